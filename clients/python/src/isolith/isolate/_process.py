"""One worker process, as its pool sees it: started, spoken to, killed and reaped."""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from . import _wire
from ._classify import Circumstances, End, KillReason, Phase, dump_signal
from ._memory import resident_bytes
from ._output import Output
from ._spawn import descriptors_lock, spawn

_FIRST_READ = 64 << 10

#: How long the exit status may follow the end of the socket. A large process takes a while.
_EXIT_WAIT = 2.0

#: How long a worker that is about to be killed at its deadline may print its tracebacks.
_DUMP_WAIT = 0.05


class Reply:
    """A frame from the worker."""

    __slots__ = ("body", "kind")

    def __init__(self, kind: int, body: memoryview) -> None:
        self.kind = kind
        self.body = body


class Process:
    """A started worker. Only the process that started it may use it.

    One thread at a time calls `exchange`; every other method is safe from any thread.
    """

    def __init__(
        self,
        number: int,
        executable: str,
        environment: dict[str, str],
        forward: Callable[[str], None] | None,
        max_reply: int,
    ) -> None:
        """Starts it. Raises `OSError` if that fails."""
        self.number = number
        self.phase = Phase.STARTING
        self.started_at = time.monotonic()
        self.stop_by = math.inf
        self.jobs = 0
        self.job_started_at = 0.0
        self.rss: int | None = None
        #: The search path and the working folder that the worker has now.
        self.place: tuple[list[str], str | None] = ([], None)
        self.kill_reason: KillReason | None = None
        self.violation: str | None = None
        #: What the job reported before the worker was condemned.
        self.panicked = False
        self.memory_error = False
        #: Whether the worker has read its current job, as far as is known.
        self.job_read = False
        self._max_reply = max_reply
        self._lock = threading.Lock()
        self._end: End | None = None
        self._inbox = bytearray()
        with descriptors_lock:
            self.pid, self.socket, self._lifeline, self.output_end = spawn(executable, environment)
            self.exit_watch = _open_pidfd(self.pid)
            self._open = True
        self.output = Output(self.output_end, forward)
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)
        if self.exit_watch is not None:
            self._poll.register(self.exit_watch, select.POLLIN)

    # Speaking to it.

    def send_settings(self, body: bytes) -> None:
        """Sends the first frame. Raises `OSError`."""
        header = _wire.pack(_wire.INIT, 0, [body], whole=False)
        self.socket.settimeout(5.0)
        self.socket.sendall(header + body)
        self.socket.setblocking(False)

    def first_reply(self) -> Reply | None:
        """Reads without waiting; the worker's first frame once it is complete.

        Raises `EOFError` when the worker closed the socket, and `Violation`.
        """
        try:
            data = self.socket.recv(_FIRST_READ)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self._inbox += data
        if len(self._inbox) < _wire.HEADER_BYTES:
            return None
        header = _wire.unpack(self._inbox, self._max_reply)
        body = memoryview(self._inbox)[_wire.HEADER_BYTES :]
        if len(body) < header.length:
            return None
        self._inbox = bytearray()
        header.verify(body)
        if header.job != 0 or header.kind not in (_wire.READY, _wire.REFUSED):
            raise _wire.Violation(f"unexpected frame {header.kind}")
        return Reply(header.kind, body)

    def exchange(self, job: int, parts: list[bytes], timeout: float) -> Reply | None:
        """Sends a job and waits for the answer; `None` if the worker ended or was killed.

        Kills the worker at the deadline and when it breaks the protocol.
        """
        deadline = time.monotonic() + timeout
        self.job_started_at = time.monotonic()
        self.job_read = False
        self.rss = None
        try:
            header = _wire.pack(_wire.JOB, job, list(parts), whole=False)
            self._send([header, *parts], deadline)
            self.job_read = True
            return self._receive(job, deadline)
        except _wire.Violation as violation:
            self.violation = str(violation)
            self.kill(KillReason.VIOLATION)
        except TimeoutError:
            self.job_read = True
            self._dump()
            self.kill(KillReason.DEADLINE)
        except EOFError:
            pass
        except OSError:
            # Broken or reset: the worker ended before it had read all of the job.
            self.job_read = False
        return None

    def _send(self, parts: list[bytes], deadline: float) -> None:
        rest: list[bytes | memoryview] = list(parts)
        while rest:
            try:
                sent = self.socket.sendmsg(rest, [], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                self._wait_to_send(deadline)
                continue
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = memoryview(rest[0])[sent:]

    def _wait_to_send(self, deadline: float) -> None:
        self._poll.modify(self.socket, select.POLLOUT)
        try:
            self._wait(deadline)
            self._check_alive()
        finally:
            self._poll.modify(self.socket, select.POLLIN)

    def _receive(self, job: int, deadline: float) -> Reply:
        data = memoryview(self._first_bytes(deadline))
        while len(data) < _wire.HEADER_BYTES:
            data = memoryview(bytes(data) + self._first_bytes(deadline))
        header = _wire.unpack(data, self._max_reply)
        if header.job != job or header.kind not in (_wire.RESULT, _wire.ERROR):
            raise _wire.Violation(f"unexpected frame {header.kind} for job {header.job}")
        body = data[_wire.HEADER_BYTES :]
        if len(body) > header.length:
            raise _wire.Violation("more data than announced")
        if len(body) < header.length:
            body = self._rest_of_body(body, header.length, deadline)
        header.verify(body)
        return Reply(header.kind, body)

    def _first_bytes(self, deadline: float) -> bytes:
        while True:
            self._wait(deadline)
            try:
                data = self.socket.recv(_FIRST_READ)
            except BlockingIOError:
                # The process has ended, and a child of it keeps the socket open.
                self._check_alive()
                continue
            if not data:
                raise EOFError
            return data

    def _rest_of_body(self, start: memoryview, length: int, deadline: float) -> memoryview:
        body = memoryview(bytearray(length))
        body[: len(start)] = start
        at = len(start)
        while at < length:
            try:
                got = self.socket.recv_into(body[at:])
            except BlockingIOError:
                self._check_alive()
                self._wait(deadline)
                continue
            if got == 0:
                raise EOFError
            at += got
        return body

    def _wait(self, deadline: float) -> None:
        """Waits for the socket or the end of the process. Raises `TimeoutError`."""
        if deadline == math.inf:
            self._poll.poll()
            return
        left = deadline - time.monotonic()
        if left <= 0 or not self._poll.poll(math.ceil(left * 1000)):
            raise TimeoutError

    def _check_alive(self) -> None:
        if self.exit_watch is not None and _readable(self.exit_watch, 0):
            raise EOFError

    # Ending it.

    def kill(self, reason: KillReason) -> None:
        """Kills the worker and what it started in its process group. The first reason counts."""
        with self._lock:
            if self._end is None:
                self.kill_reason = self.kill_reason or reason
                self._signal_group()

    def stop(self, grace: float) -> None:
        """Asks an idle worker to exit. It must be reaped, and killed after `grace` seconds."""
        self.phase = Phase.STOPPING
        self.stop_by = time.monotonic() + grace
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def has_ended(self) -> bool:
        """Whether the process has ended; it still has to be reaped."""
        if self._end is not None:
            return True
        if self.exit_watch is not None:
            return _readable(self.exit_watch, 0)
        try:
            wait_flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, wait_flags) is not None
        except ChildProcessError:
            return True

    def reap(self, wait: float = _EXIT_WAIT) -> End:
        """Waits for the end, kills what is left of the group, and returns the end.

        A worker that is still there after `wait` seconds closed its socket without exiting. It
        is killed.
        """
        deadline = time.monotonic() + wait
        while not self.has_ended():
            if time.monotonic() >= deadline:
                self.violation = self.violation or "closed its socket"
                self.kill(KillReason.VIOLATION)
                deadline = math.inf
            if self.exit_watch is not None:
                _readable(self.exit_watch, 0.1)
            else:
                time.sleep(0.001)
        with self._lock:
            if self._end is None:
                # The group outlives its leader until the leader is reaped.
                self._signal_group()
                self._end = _wait_for(self.pid)
        return self._end

    def circumstances(self, *, oom_kill: bool) -> Circumstances:
        """What is known about the end. Reads the rest of the output."""
        self.output.finish()
        return Circumstances(
            phase=self.phase,
            panicked=self.panicked,
            memory_error=self.memory_error,
            violated=self.violation is not None,
            killed=self.kill_reason,
            allocator_refused=self.output.allocator_refused,
            oom_kill=oom_kill,
        )

    def close(self) -> None:
        """Closes all descriptors. A worker that is still running is killed by that.

        Only the thread that polls the descriptors may call this, or a forked child.
        """
        with descriptors_lock:
            if self._open:
                self._open = False
                self.socket.close()
                for descriptor in (self._lifeline, self.output_end, self.exit_watch):
                    if descriptor is not None:
                        os.close(descriptor)

    def sample(self) -> None:
        """Notes the memory in use, for a crash report."""
        self.rss = resident_bytes(self.pid) or self.rss

    def _dump(self) -> None:
        """Lets the worker print where it is. That does not need the interpreter lock."""
        self.sample()
        with self._lock:
            if self._end is not None or self.kill_reason is not None:
                return
            self.kill_reason = KillReason.DEADLINE
            try:
                os.kill(self.pid, dump_signal())
            except OSError:
                return
        if _readable(self.output_end, _DUMP_WAIT):
            # The dump consists of several writes.
            time.sleep(_DUMP_WAIT / 10)

    def _signal_group(self) -> None:
        for kill in (os.killpg, os.kill):
            with suppress(OSError):
                kill(self.pid, signal.SIGKILL)


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wait_for(pid: int) -> End:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        # The program reaps all children itself, or ignores SIGCHLD.
        return End()
    if os.WIFSIGNALED(status):
        return End(signal=os.WTERMSIG(status))
    return End(exit_code=os.WEXITSTATUS(status))
