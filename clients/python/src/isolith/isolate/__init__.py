"""Runs Python functions in supervised worker processes.

Code that may crash, hang or run out of memory is called like a function but runs in its own
process. If that process dies, the death is classified, the call is repeated if that is safe,
and the caller gets a result or an exception::

    import isolith

    text = isolith.isolate(parse_pdf, path, timeout=30, memory=1 << 30)

    with isolith.isolate.Pool(workers=2, timeout=30) as pool:
        for text in pool.map(parse_pdf, paths):
            ...

The function must be importable by module and name, or defined in the main script. Arguments
must be picklable. Results must be plain data: `None`, booleans, numbers, strings, bytes, lists,
tuples, sets, dictionaries, dates, decimals and UUIDs, and numpy arrays if asked for. They are
decoded without running code, because the worker that sends them may have been corrupted.

The module itself is callable: `isolith.isolate(...)` is `isolith.isolate.run(...)`.

It is not a sandbox: workers run as the same user and see the same files.
"""

from __future__ import annotations

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._batch import Outcome
    from ._run import clear_quarantine, run
    from ._status import PoolStatus, WorkerStatus
    from .errors import (
        BreakerOpen,
        IsolateError,
        NotPlain,
        NotSendable,
        OutOfMemory,
        PoolClosed,
        Quarantined,
        RemoteError,
        RemoteTraceback,
        StartFailed,
        TimedOut,
        TooLarge,
        WorkerDied,
    )
    from .pool import OutputTarget, Pool

__all__ = [
    "BreakerOpen",
    "IsolateError",
    "NotPlain",
    "NotSendable",
    "OutOfMemory",
    "Outcome",
    "OutputTarget",
    "Pool",
    "PoolClosed",
    "PoolStatus",
    "Quarantined",
    "RemoteError",
    "RemoteTraceback",
    "StartFailed",
    "TimedOut",
    "TooLarge",
    "WorkerDied",
    "WorkerStatus",
    "clear_quarantine",
    "run",
]

_HOMES = {
    "Outcome": "_batch",
    "OutputTarget": "pool",
    "Pool": "pool",
    "PoolStatus": "_status",
    "WorkerStatus": "_status",
    "clear_quarantine": "_run",
    "run": "_run",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used, so that importing the package is fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = importlib.import_module(f".{_HOMES.get(name, 'errors')}", __name__)
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallableModule(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)


_CallableModule.__call__.__doc__ = "See `isolith.isolate.run`."
sys.modules[__name__].__class__ = _CallableModule
