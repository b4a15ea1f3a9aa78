"""The worker process: reads jobs from its socket, runs them and answers.

Everything here runs in the worker. It imports little, because every import delays its start.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import pickle
import resource
import signal
import sys
from contextlib import suppress

from . import _codec, _functions, _lifeline, _wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: Where the pool puts the worker's end of the socket and of the lifeline.
SOCKET, LIFELINE = 3, 4

#: The socket and the lifeline are moved to descriptors from here on.
_PRIVATE = 100

_FIRST_READ = 64 << 10

_TRACEBACK_LIMIT = 64 << 10


def main() -> NoReturn:
    """Runs a worker until the pool closes the socket."""
    link = _Link(_prepare())
    kind, _, body = link.read()
    if kind != _wire.INIT:
        raise _wire.Violation("expected the settings")
    init: dict[str, Any] = pickle.loads(body)
    # The names that started this process are not those of the main script.
    sys.modules["__main__"] = type(sys)("__main__")
    worker = _Worker(link, init)
    if worker.warm_up(init["warm_up"], init["modules"]):
        worker.serve()
    sys.exit(0)


def _prepare() -> int:
    """Sets up the process and returns the descriptor of the socket."""
    _lifeline.arm(LIFELINE)
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        if int(name) > LIFELINE:
            with suppress(OSError):  # One of them was that of the listing.
                os.close(int(name))
    # Away from the low numbers, which programs close or write to without looking.
    link = fcntl.fcntl(SOCKET, fcntl.F_DUPFD_CLOEXEC, _PRIVATE)
    fcntl.fcntl(LIFELINE, fcntl.F_DUPFD_CLOEXEC, _PRIVATE)
    os.close(SOCKET)
    os.close(LIFELINE)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # It may already be higher.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    faulthandler.enable(file=2, all_threads=True)
    return link


class _Link:
    """The worker's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        #: The job that was read last does not fit into the memory limit.
        self.overloaded = False
        self._owner = os.getpid()
        os.register_at_fork(after_in_child=self._abandon)

    def _abandon(self) -> None:
        os.close(self.descriptor)

    def read(self) -> tuple[int, int, memoryview]:
        """Returns kind, job and body of the next frame. Exits if there is none.

        The pool sends one frame at a time, so nothing follows it in the socket.
        """
        self.overloaded = False
        data = os.read(self.descriptor, _FIRST_READ)
        while len(data) < _wire.HEADER_BYTES:
            more = os.read(self.descriptor, _FIRST_READ)
            if not more:
                sys.exit(0)
            data += more
        header = _wire.unpack(data, sys.maxsize)
        header.verify(b"")
        start = memoryview(data)[_wire.HEADER_BYTES :]
        if len(start) == header.length:
            return header.kind, header.job, start
        body = memoryview(self._allocate(header.length))
        body[: len(start)] = start
        self._fill(body[len(start) :])
        return header.kind, header.job, body

    def _allocate(self, size: int) -> bytearray:
        try:
            return bytearray(size)
        except MemoryError:
            # Over the limit before it has begun. The job is read to answer it.
            self.overloaded = True
            lift_memory_limit()
            return bytearray(size)

    def _fill(self, view: memoryview) -> None:
        while view:
            got = os.readv(self.descriptor, [view])
            if got == 0:
                sys.exit(0)
            view = view[got:]

    def write(self, kind: int, job: int, parts: list[Any]) -> None:
        if os.getpid() != self._owner:
            # A child forked by a job has come back from it. It is not a worker.
            os._exit(0)
        rest = [_wire.pack(kind, job, parts, whole=True), *parts]
        while rest:
            sent = os.writev(self.descriptor, rest)
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = memoryview(rest[0])[sent:]


class _Worker:
    def __init__(self, link: _Link, init: dict[str, Any]) -> None:
        self._link = link
        self._main = _functions.MainScript(init["main"])
        self._limit: int = init["max_result_bytes"]
        sys.argv[:] = init["argv"]
        self._move(init)
        faulthandler.register(init["dump_signal"], file=2, all_threads=True)
        if init["memory"] is not None:
            self._limit_memory(init["memory"])

    def _move(self, notes: dict[str, Any]) -> None:
        """Takes over the parent's module search path and working folder."""
        if notes.get("path") is not None:
            sys.path[:] = notes["path"]
        if notes.get("cwd") is not None:
            os.chdir(notes["cwd"])

    def _limit_memory(self, limit: int) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))

    def warm_up(self, function: tuple[str, str] | None, modules: list[str]) -> bool:
        """Imports what earlier jobs needed, calls the warm-up function and reports.

        Returns whether the worker can serve.
        """
        for module in modules:
            # A job that needs it fails by itself.
            with suppress(Exception):
                _functions.load(module, self._main)
        try:
            if function is not None:
                _functions.find(*function, self._main)()
        except Exception as error:
            self._link.write(_wire.REFUSED, 0, _codec.encode(_describe(error)))
            return False
        self._link.write(_wire.READY, 0, [])
        return True

    def serve(self) -> None:
        while True:
            kind, job, body = self._link.read()
            if kind != _wire.JOB:
                raise _wire.Violation(f"unexpected frame {kind}")
            self._link.write(*self._answer(job, body))
            # A job's data must not stay in memory until the next one comes.
            del body

    def _answer(self, job: int, body: memoryview) -> tuple[int, int, list[Any]]:
        """Runs a job and returns the frame to send."""
        try:
            if self._link.overloaded:
                raise MemoryError(f"arguments of {len(body)} bytes")
            (length,) = _wire.NOTES.unpack_from(body)
            start = _wire.NOTES.size
            # Most jobs come without notes.
            notes: dict[str, Any] = pickle.loads(body[start : start + length]) if length else {}
            self._move(notes)
            parts = self._run(body[start + length :], notes.get("numpy", False))
            return _wire.RESULT, job, parts
        except SystemExit:
            # The function ends its process, and the pool reports that.
            raise
        except MemoryError as error:
            # What is left to do needs memory, too.
            lift_memory_limit()
            return _wire.ERROR, job, _codec.encode(_describe(error))
        except BaseException as error:
            return _wire.ERROR, job, _codec.encode(_describe(error))

    def _run(self, call: memoryview, numpy: bool) -> list[Any]:
        module, qualname, args, kwargs = self._unpickle(call)
        function = _functions.find(module, qualname, self._main)
        result = function(*args, **kwargs)
        try:
            parts = _codec.encode(result, numpy=numpy)
        except _codec.Unsupported as error:
            raise _BadResult("not_plain", f"the result is not plain data: {error}") from None
        size = sum(map(len, parts))
        if size > self._limit:
            raise _BadResult(
                "too_large", f"the result of {size} bytes exceeds the limit of {self._limit}"
            )
        return parts

    def _unpickle(self, call: memoryview) -> Any:
        try:
            return pickle.loads(call)
        except AttributeError:
            # A class or function of the main script, perhaps.
            if not self._main.load():
                raise
        return pickle.loads(call)


def lift_memory_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


class _BadResult(Exception):
    """The function returned something that cannot be sent back."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _describe(error: BaseException) -> dict[str, Any]:
    """Describes an exception as plain data."""
    import traceback

    kind = type(error)
    try:
        message = str(error)
    except Exception:
        message = ""
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    described: dict[str, Any] = {
        "module": kind.__module__,
        "name": kind.__qualname__,
        "message": message,
        "args": None,
        "traceback": text[-_TRACEBACK_LIMIT:],
        "code": error.code if isinstance(error, _BadResult) else None,
        "memory_error": isinstance(error, MemoryError),
        "panicked": kind.__name__ == "PanicException",
    }
    # If the arguments are not plain, the message alone has to do.
    with suppress(Exception):
        _codec.encode(error.args)
        described["args"] = error.args
    return described
