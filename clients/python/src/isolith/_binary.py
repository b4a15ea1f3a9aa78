"""Where the program ``isolith`` is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .errors import StartFailed

VARIABLE = "ISOLITH_BINARY"


def find_binary(given: str | os.PathLike[str] | None = None) -> str:
    """The path of the program.

    It is the first of: what is given, the environment variable ``ISOLITH_BINARY``, the program that
    was installed with this package, and the one on ``PATH``.

    :raises StartFailed: if there is none, or what is given cannot be executed
    """
    explicit = os.fspath(given) if given is not None else os.environ.get(VARIABLE)
    if explicit:
        if not _is_program(explicit):
            origin = "the argument binary" if given is not None else VARIABLE
            raise StartFailed(f"{origin} is not an executable file: {explicit}")
        return os.path.abspath(explicit)
    for folder in _folders():
        program = os.path.join(folder, "isolith")
        if _is_program(program):
            return program
    raise StartFailed(
        "cannot find the program isolith",
        hint=f"install the package's wheel, or set {VARIABLE} to the path of the program",
    )


def _folders() -> Iterator[str]:
    import sysconfig

    yield sysconfig.get_path("scripts")
    # Where the running interpreter's scripts are, also if it was started through a link.
    yield os.path.dirname(sys.executable)
    if sys.version_info >= (3, 10):
        user_scheme = sysconfig.get_preferred_scheme("user")
    else:
        user_scheme = f"{os.name}_user"
    yield sysconfig.get_path("scripts", user_scheme)
    # `pip install --target` puts programs beside packages, and `--prefix` above them.
    package = Path(__file__).resolve().parent
    yield str(package.parent / "bin")
    if len(package.parents) > 3:
        yield str(package.parents[3] / "bin")
    yield from os.environ.get("PATH", os.defpath).split(os.pathsep)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
