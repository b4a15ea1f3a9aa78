"""The exceptions of `isolith.isolate`."""

from __future__ import annotations

from pathlib import Path


class IsolateError(Exception):
    """Base class: the call got no answer from the function."""

    #: A stable code for programs.
    code = "isolate_error"


class NotSendable(IsolateError, TypeError):
    """The function or one of its arguments cannot be sent to a worker."""

    code = "not_sendable"


class NotPlain(IsolateError, TypeError):
    """The function returned something that is not plain data."""

    code = "not_plain"


class TooLarge(IsolateError, ValueError):
    """The arguments or the result exceed the pool's limit."""

    code = "too_large"


class RemoteError(IsolateError):
    """The function raised an exception that is not a built-in one.

    `type_name` is the full name of its class and `message` its text. The worker's traceback is
    the `__cause__`.
    """

    code = "remote_error"

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}" if message else type_name)
        self.type_name = type_name
        self.message = message

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str]]:
        return (type(self), (self.type_name, self.message))


class RemoteTraceback(Exception):
    """Carries the text of a worker's traceback as the `__cause__` of an exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class WorkerDied(IsolateError):
    """The worker died while it ran the function, and a retry was not allowed or also failed."""

    code = "worker_died"

    def __init__(
        self,
        message: str,
        *,
        crash_class: str,
        signal: int | None = None,
        exit_code: int | None = None,
        report: Path | None = None,
        deaths: int = 1,
        output: tuple[str, ...] = (),
        quarantined: bool = False,
    ) -> None:
        super().__init__(message)
        #: `crash`, `panic`, `out_of_memory`, `killed`, `timeout`, `protocol` or `exit`.
        self.crash_class = crash_class
        #: The number of the signal that ended the last worker.
        self.signal = signal
        #: The code that the last worker exited with.
        self.exit_code = exit_code
        #: The crash report of the last death.
        self.report = report
        #: The number of workers that died.
        self.deaths = deaths
        #: The last lines that the last worker printed.
        self.output = output
        #: Whether this call is refused from now on.
        self.quarantined = quarantined

    def __reduce__(self) -> tuple[object, ...]:
        # Without keyword arguments; the attributes travel in the instance's dictionary.
        return (_restore, (type(self), str(self)), self.__dict__)


def _restore(kind: type[WorkerDied], message: str) -> WorkerDied:
    return kind(message, crash_class="")


class OutOfMemory(WorkerDied, MemoryError):
    """The function used more memory than the worker may have."""

    code = "out_of_memory"


class TimedOut(WorkerDied, TimeoutError):
    """The function did not return in time."""

    code = "timed_out"


class Quarantined(IsolateError):
    """The call was not tried: with these arguments the function has killed two workers."""

    code = "quarantined"

    def __init__(self, message: str, *, input_hash: str = "", crash_class: str = "") -> None:
        super().__init__(message)
        #: Identifies function and arguments; see `Pool.clear_quarantine`.
        self.input_hash = input_hash
        #: The class of the last death.
        self.crash_class = crash_class


class BreakerOpen(IsolateError):
    """Workers keep dying, so the pool refuses calls for `retry_after` seconds."""

    code = "breaker_open"

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StartFailed(IsolateError):
    """No worker can be started: the program is missing or the warm-up failed."""

    code = "start_failure"


class PoolClosed(IsolateError):
    """The pool was closed before the call had an answer."""

    code = "pool_closed"
