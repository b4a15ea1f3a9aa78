"""Exceptions: one class for each error code of Isolith.

Every exception derives from :class:`Error`. The codes are those of the command line and of HTTP,
see ``docs/commands.md#error-codes``; a code that this version does not know is an :class:`Error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLASSES: dict[str, type[Error]] = {}


class Error(Exception):
    """Something failed. ``code`` says what, for programs; ``hint`` says what to do about it.

    ``status`` is the HTTP status of the reply, or ``None`` if there was no reply.
    """

    code: str = "failed"

    # After how many seconds the server wants to be asked again, if it says so.
    _retry_after: float | None = None

    def __init_subclass__(cls, codes: tuple[str, ...] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if codes:
            cls.code = codes[0]
        for code in codes:
            _CLASSES[code] = cls

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, code={self.code!r}, hint={self.hint!r})"

    def to_dict(self) -> dict[str, Any]:
        """The error as it is on the command line: ``code``, ``message`` and ``hint``."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, dict(self.__dict__))


def _restore(kind: type[Error], message: str, state: dict[str, Any]) -> Error:
    error = kind(message)
    error.__dict__.update(state)
    return error


class Failed(Error, codes=("failed",)):
    """It failed for a reason without a code of its own."""


class NotFound(Error, codes=("not_found",)):
    """It does not exist."""


class NoStore(NotFound, codes=("no_store",)):
    """Nothing has been stored yet."""


class AlreadyExists(Error, codes=("already_exists",)):
    """It exists already, with other content."""


class BadInput(
    Error,
    ValueError,
    codes=(
        "bad_input",
        "usage",
    ),
):
    """An argument is invalid."""


class TooLarge(BadInput, codes=("too_large",)):
    """The request or its answer exceeds a limit."""


class ForbiddenPath(BadInput, codes=("forbidden_path",)):
    """The path is outside the folders that the server may read."""


class ModelMismatch(Error, codes=("model_mismatch",)):
    """The vectors of the collection come from another model."""


class ModelUnavailable(Error, codes=("model_unavailable",)):
    """The model of the collection is not available to the server: pass a vector."""


class KeyReused(Error, codes=("key_reused",)):
    """The idempotency key was used for a different write."""


class AlreadyApplied(Error, codes=("already_applied",)):
    """The write was applied before, and its result is no longer stored."""


class CursorExpired(Error, codes=("cursor_expired",)):
    """The rest of a paged answer is no longer available: ask again."""


class WorkerFailed(Error):
    """A worker of the server failed on this call. The server itself is not affected.

    ``crash_class`` is the class of the crash, such as ``crash``, ``out_of_memory`` or ``timeout``.
    ``signal`` is the number of the signal that ended the worker, or ``exit_code`` what it exited
    with. ``report`` is the crash report in the folder ``crashes`` of the store; ``db.crashes``
    finds it by ``worker_pid``. What the server did not say is ``None``.
    """

    crash_class: str | None = None
    signal: int | None = None
    exit_code: int | None = None
    worker_pid: int | None = None
    report: str | None = None


class WorkerCrashed(WorkerFailed, codes=("worker_died",)):
    """A worker crashed on this call, and so did the retry."""


class Quarantined(WorkerFailed, codes=("quarantined",)):
    """The call has crashed several workers, now or before, and is not tried again."""


class StartFailed(WorkerFailed, codes=("start_failure",)):
    """The server, or a worker of the server, could not be started."""


class Timeout(Error, TimeoutError, codes=("timeout",)):
    """The time limit of the call has passed."""


class Busy(
    Error,
    codes=(
        "queue_full",
        "lock_held",
        "breaker_open",
        "draining",
        "too_many_connections",
        "store_replaced",
    ),
):
    """Not possible right now, also after several attempts. Try again later."""


class Corrupt(Error, codes=("corrupt",)):
    """Stored data is damaged: call ``doctor(repair=True)``."""


class StoreForeign(Error, codes=("store_foreign",)):
    """The store was not created by this user on this machine."""


class StoreNewer(Error, codes=("store_newer",)):
    """A newer version of Isolith wrote the store."""


class StoreRefused(Error, codes=("store_refused",)):
    """The store may not be used: it belongs to somebody else, git tracks it, or it is remote."""


class ReadOnly(Error, codes=("read_only",)):
    """The store cannot be written."""


class DiskFull(Error, codes=("disk_full",)):
    """The disk is full."""


class Unauthorized(Error, codes=("unauthorized",)):
    """The token is missing or wrong."""


class Forbidden(Error, codes=("forbidden",)):
    """The server does not accept this client."""


class Interrupted(
    Error,
    codes=(
        "interrupted",
        "terminated",
    ),
):
    """The server cancelled the call, because somebody asked it to or because it is stopping."""


class ConnectionLost(Error, ConnectionError, codes=("connection_lost",)):
    """The server could not be reached, or ended during the call.

    If the call was a write without an idempotency key, it may have taken effect.
    """

    # Whether the request may have reached the server.
    _may_have_arrived = False


class Closed(Error, codes=("closed",)):
    """The handle was closed."""


class UnexpectedReply(Error, codes=("unexpected_reply",)):
    """The reply is not one of Isolith's. Is something else listening at this address?"""


def class_of(code: str) -> type[Error]:
    """The class of a code; :class:`Error` if this version has none for it."""
    return _CLASSES.get(code, Error)


def from_details(details: Mapping[str, Any], status: int | None = None) -> Error:
    """The exception for the ``error`` object of a reply."""
    code = str(details.get("code") or "failed")
    message = str(details.get("message") or f"failed with code {code}")
    hint = str(details.get("hint") or "")
    error = class_of(code)(message, code=code, hint=hint, status=status)
    crash = details.get("crash") or details.get("death")
    if isinstance(error, WorkerFailed) and isinstance(crash, Mapping):
        error.crash_class = crash.get("class")
        error.signal = crash.get("signal")
        error.exit_code = crash.get("exit_code")
        error.worker_pid = crash.get("worker_pid")
        error.report = crash.get("report")
    return error
