"""What `isolith.isolate` is to a type checker.

At run time it is this package, whose module object can be called. Type checkers do not know
callable modules, so `isolith/__init__.py` declares it as an object with the same names::

    if TYPE_CHECKING:
        from .isolate._callable import isolate as isolate
"""

from collections.abc import Callable
from typing import Any, TypeVar

from . import _batch, _status, errors, pool

R = TypeVar("R")

class Isolate:
    BreakerOpen = errors.BreakerOpen
    IsolateError = errors.IsolateError
    NotPlain = errors.NotPlain
    NotSendable = errors.NotSendable
    OutOfMemory = errors.OutOfMemory
    Outcome = _batch.Outcome
    Pool = pool.Pool
    PoolClosed = errors.PoolClosed
    PoolStatus = _status.PoolStatus
    Quarantined = errors.Quarantined
    RemoteError = errors.RemoteError
    RemoteTraceback = errors.RemoteTraceback
    StartFailed = errors.StartFailed
    TimedOut = errors.TimedOut
    TooLarge = errors.TooLarge
    WorkerDied = errors.WorkerDied
    WorkerStatus = _status.WorkerStatus

    def __call__(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        timeout: float = 60.0,
        memory: int | None = None,
        retries: int = 1,
        idempotent: bool = False,
        numpy: bool = False,
        **kwargs: Any,
    ) -> R: ...
    def run(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        timeout: float = 60.0,
        memory: int | None = None,
        retries: int = 1,
        idempotent: bool = False,
        numpy: bool = False,
        **kwargs: Any,
    ) -> R: ...
    def clear_quarantine(self) -> int: ...

isolate: Isolate
