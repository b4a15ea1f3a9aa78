"""The thread that starts, watches and stops the workers of a pool."""

from __future__ import annotations

import math
import os
import pickle
import select
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import _codec, _functions, _remote, _wire
from ._classify import KillReason, Phase, dump_signal
from ._job import search_path, working_folder
from ._process import Process
from ._spawn import descriptors_lock
from ._staffing import to_start, to_stop
from .errors import RemoteTraceback, StartFailed

if TYPE_CHECKING:
    from ._core import Core

#: How often busy workers are looked at.
_TICK = 0.5
#: How often processes are looked at where the kernel cannot announce their end.
_FAST_TICK = 0.05
#: No more workers than this start at the same time.
_MOST_STARTING = 4


class Keeper(threading.Thread):
    """Runs until its pool is closed and the last worker is reaped."""

    def __init__(self, core: Core) -> None:
        super().__init__(name="isolate-keeper", daemon=True)
        #: Whether it only wakes when asked to: nothing has run lately.
        self.rests = False
        self._core = core
        self._numbers = 0
        self._last_tick = 0.0
        with descriptors_lock:
            self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def wake(self) -> None:
        """Makes it look at the pool again. The caller holds the pool's lock."""
        # It fails if the thread is about to wake anyway, or has finished.
        with suppress(OSError):
            os.write(self._wake_write, b"\0")

    def run(self) -> None:
        core = self._core
        while not self._is_done():
            try:
                self._step()
            except Exception as error:
                # Nobody may wait for a worker that is not coming. The next step may succeed.
                core.refuse(StartFailed(f"cannot look after the workers: {error!r}"))
                time.sleep(_FAST_TICK)
        self._close_ended()
        with descriptors_lock:
            self.close_descriptors()

    def _is_done(self) -> bool:
        core = self._core
        with core.lock:
            done = core.closed and not core.workers and core.running == 0
            if done:
                core.keeper = None
            return done

    def _step(self) -> None:
        """Brings the number of workers up to date, then waits for something to happen."""
        core = self._core
        self._close_ended()
        with core.lock:
            self._stop_surplus()
            starts, retry_at = self._starts()
        for _ in range(starts):
            self._start_one()
        self._wait(retry_at)
        self._tick()

    def close_descriptors(self) -> None:
        """Called at the end of the thread, and in a forked child, where it does not exist."""
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _close_ended(self) -> None:
        core = self._core
        with core.lock:
            ended, core.ended = core.ended, []
        for worker in ended:
            worker.close()

    # Starting and stopping.

    def _starts(self) -> tuple[int, float]:
        """How many workers to start now, and when to look again. The lock is held."""
        core = self._core
        if core.closed:
            return 0, math.inf
        staff = core.staff()
        wanted = to_start(staff)
        blocked = core.refusal is not None or core.breaker.open_for(time.monotonic()) is not None
        if blocked and not staff.waiting:
            # Not ahead of need while workers fail.
            return 0, math.inf
        wanted = min(wanted, _MOST_STARTING - staff.starting)
        if wanted <= 0:
            return 0, math.inf
        if time.monotonic() < core.backoff.not_before:
            return 0, core.backoff.not_before
        return wanted, math.inf

    def _stop_surplus(self) -> None:
        core = self._core
        surplus = len(core.idle) if core.closed else to_stop(core.staff())
        for _ in range(surplus):
            core.idle.pop().stop(core.settings.stop_grace)
        if core.closed:
            for worker in core.workers.values():
                if worker.phase is Phase.STARTING:
                    worker.kill(KillReason.SHUTDOWN)

    def _start_one(self) -> None:
        core, settings = self._core, self._core.settings
        environment = settings.environment
        self._numbers += 1
        try:
            worker = Process(
                self._numbers,
                settings.executable,
                dict(os.environ) if environment is None else environment,
                settings.forward,
                settings.max_result_bytes + (1 << 20),
            )
        except OSError as error:
            with core.lock:
                core.count_death()
            core.refuse(StartFailed(f"cannot start {settings.executable}: {error}"))
            return
        worker.stop_by = worker.started_at + settings.start_timeout
        with core.lock:
            core.workers[worker.number] = worker
        # If it has ended already, that is noticed like any other end.
        with suppress(OSError):
            worker.send_settings(self._settings_for(worker))

    def _settings_for(self, worker: Process) -> bytes:
        settings = self._core.settings
        path, cwd = worker.place = search_path(), working_folder()
        init: dict[str, Any] = {
            "path": path,
            "cwd": cwd,
            "argv": list(sys.argv),
            "main": _functions.main_source(),
            "memory": settings.memory,
            "warm_up": settings.warm_up,
            "modules": list(self._core.modules),
            "max_result_bytes": settings.max_result_bytes,
            "dump_signal": dump_signal(),
        }
        return pickle.dumps(init)

    # Watching.

    def _wait(self, until: float) -> None:
        """Waits for something to happen, and handles it."""
        core = self._core
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        watched: dict[int, tuple[Process, str]] = {}
        with core.lock:
            workers = list(core.workers.values())
            for worker in workers:
                until = min(until, worker.stop_by)
                if not worker.output.ended:
                    watched[worker.output_end] = (worker, "output")
                if worker.phase is Phase.STARTING:
                    watched[worker.socket.fileno()] = (worker, "socket")
                if worker.phase is not Phase.BUSY and worker.exit_watch is not None:
                    watched[worker.exit_watch] = (worker, "exit")
            until = min(until, self._next_tick(workers))
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        timeout = None if until == math.inf else max(until - time.monotonic(), 0) * 1000 + 1
        for descriptor, _ in poll.poll(timeout):
            if descriptor == self._wake_read:
                self._drain_wakes()
                continue
            worker, what = watched[descriptor]
            if what == "output":
                worker.output.read()
            elif what == "socket":
                self._greet(worker)
            else:
                self._check_end(worker)

    def _next_tick(self, workers: list[Process]) -> float:
        """When to look without being woken. The lock is held."""
        core = self._core
        now = time.monotonic()
        recent = core.running > 0 or core.last_used > self._last_tick
        self.rests = not recent
        unwatched = any(
            worker.exit_watch is None and worker.phase is not Phase.BUSY for worker in workers
        )
        if unwatched:
            return now + _FAST_TICK
        if recent:
            return now + _TICK
        asleep_at = core.last_used + core.settings.idle_stop
        return asleep_at if core.idle and asleep_at > now else math.inf

    def _drain_wakes(self) -> None:
        with suppress(OSError):
            while len(os.read(self._wake_read, 4096)) == 4096:
                pass

    def _tick(self) -> None:
        """Looks at what nothing announces: deadlines, memory, ends without a pidfd."""
        core = self._core
        now = time.monotonic()
        with core.lock:
            workers = list(core.workers.values())
        for worker in workers:
            if worker.phase is Phase.BUSY:
                continue
            if now >= worker.stop_by:
                starting = worker.phase is Phase.STARTING
                worker.kill(KillReason.DEADLINE if starting else KillReason.STOP_GRACE)
                worker.stop_by = math.inf
            if worker.exit_watch is None and worker.has_ended():
                self._check_end(worker)
        if now - self._last_tick >= _TICK:
            self._last_tick = now
            core.oom.refresh()
            for worker in workers:
                if worker.phase is Phase.BUSY:
                    worker.sample()

    def _greet(self, worker: Process) -> None:
        """Handles the first frame of a starting worker."""
        core = self._core
        if worker.phase is not Phase.STARTING:
            return
        try:
            reply = worker.first_reply()
            described = None
            if reply is not None and reply.kind == _wire.REFUSED:
                described = _remote.check(_codec.decode(reply.body))
        except EOFError:
            core.bury_idle(worker)
            return
        except _wire.Violation as violation:
            worker.violation = str(violation)
            worker.kill(KillReason.VIOLATION)
            return
        if described is not None:
            self._refused(worker, described)
        elif reply is not None:
            with core.lock:
                worker.stop_by = math.inf
                worker.phase = Phase.IDLE
                core.refusal = None
                core.idle.insert(0, worker)
                core.dispatch()

    def _refused(self, worker: Process, described: dict[str, Any]) -> None:
        """The warm-up raised an exception."""
        core = self._core
        cause = _remote.rebuild(described)
        error = StartFailed(f"the warm-up failed: {type(cause).__name__}: {cause}")
        error.__cause__ = RemoteTraceback(described["traceback"])
        core.refuse(error)
        core.bury_idle(worker)

    def _check_end(self, worker: Process) -> None:
        core = self._core
        with core.lock:
            if worker.phase is Phase.BUSY or not worker.has_ended():
                return
            if worker in core.idle:
                core.idle.remove(worker)
        if worker.number in core.workers:
            core.bury_idle(worker)
