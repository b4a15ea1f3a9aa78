"""Names functions, so that a worker can import them.

A function travels as its module and qualified name. Functions of `__main__` are found by
importing the main script in the worker under another name, as multiprocessing's spawn does.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The name of the main script when it is imported in a worker.
MAIN_ALIAS = "__mp_main__"


class Refused(Exception):
    """The function cannot be imported by a worker."""


def reference(function: Callable[..., Any]) -> tuple[str, str]:
    """Returns module and qualified name. Raises `Refused` if they do not lead back to it."""
    # Methods of built-in types know their class instead of their module.
    owner = getattr(function, "__objclass__", function)
    module = getattr(owner, "__module__", None)
    qualname = getattr(function, "__qualname__", None)
    if not callable(function) or not isinstance(module, str) or not isinstance(qualname, str):
        raise Refused(f"{function!r} is not a function with a module and a name")
    if "<lambda>" in qualname:
        raise Refused("a lambda cannot be sent to a worker; define a function in a module")
    if "<locals>" in qualname:
        raise Refused(
            f"{qualname} is defined inside another function and cannot be sent to a worker; "
            "move it to the top level of a module"
        )
    if module == "__main__" and main_source() is None:
        raise Refused(
            f"{qualname} is defined in an interactive session, which a worker cannot import; "
            "put it into a file"
        )
    try:
        found = look_up(sys.modules[module], qualname)
    except (KeyError, AttributeError):
        found = None
    if found is not function and found != function:
        raise Refused(
            f"{module}:{qualname} is not the function itself (a bound method, or replaced by a "
            "decorator?), so a worker cannot import it"
        )
    return module, qualname


def parse(name: str) -> tuple[str, str]:
    """Splits `"module:function"`. Raises `Refused`."""
    module, _, qualname = name.partition(":")
    if not module or not qualname:
        raise Refused(f'{name!r} is not of the form "module:function"')
    return module, qualname


def look_up(module: Any, qualname: str) -> Any:
    """Returns the attribute of a module that a dotted name leads to."""
    found = module
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def main_source() -> tuple[str, str] | None:
    """How to import the main script: `("name", module)` or `("path", file)`, if at all."""
    main = sys.modules.get("__main__")
    spec_name = getattr(getattr(main, "__spec__", None), "name", None)
    if isinstance(spec_name, str):
        return ("name", spec_name)
    path = getattr(main, "__file__", None)
    if not isinstance(path, str) or not os.path.isfile(path):
        return None
    return ("path", os.path.abspath(path))


class MainScript:
    """Imports the parent's main script in a worker, once, when it is first needed."""

    #: Whether the import is going on in this process.
    loading = False

    def __init__(self, source: tuple[str, str] | None) -> None:
        self._source = source
        self._loaded = False

    def load(self) -> bool:
        """Makes the script available as `__main__`. Returns whether that was still to be done.

        Raises what the script raises.
        """
        if self._loaded or self._source is None:
            return False
        import runpy
        import types

        kind, source = self._source
        module = types.ModuleType(MAIN_ALIAS)
        MainScript.loading = True
        try:
            if kind == "name":
                content = runpy.run_module(source, run_name=MAIN_ALIAS, alter_sys=True)
            else:
                content = runpy.run_path(source, run_name=MAIN_ALIAS)
        finally:
            MainScript.loading = False
        module.__dict__.update(content)
        sys.modules["__main__"] = sys.modules[MAIN_ALIAS] = module
        self._loaded = True
        return True


def main_is_loading() -> bool:
    """Whether this process is a worker that is importing the main script."""
    ours = sys.modules.get("isolith_worker._functions")
    return ours is not None and ours.MainScript.loading is True


def load(module: str, main: MainScript) -> None:
    """Imports a module in a worker."""
    if module == "__main__":
        main.load()
    __import__(module)


def find(module: str, qualname: str, main: MainScript) -> Callable[..., Any]:
    """Imports a function in a worker."""
    if module not in sys.modules or module == "__main__":
        load(module, main)
    function: Callable[..., Any] = look_up(sys.modules[module], qualname)
    return function
