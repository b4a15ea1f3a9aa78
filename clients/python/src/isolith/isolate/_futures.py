"""Futures for submitted calls, and the threads that make them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from ._core import Core
    from ._job import Job

    _AnyFuture = Future[Any]

R = TypeVar("R")


class Scope:
    """What a submitted task is doing, so that it can be cancelled from another thread."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._cancelled = False

    def call(self, job: Job) -> Any:
        """Runs a job. Raises `CancelledError` once the scope is cancelled."""
        with self._lock:
            if self._cancelled:
                raise CancelledError
            self._job = job
        try:
            return self._core.call(job)
        finally:
            # A future that is kept must not keep the arguments.
            self._job = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            job = self._job
        if job is not None:
            self._core.cancel(job)


class CallFuture(Future, Generic[R]):  # type: ignore[type-arg]
    """A future that can be cancelled while its call is running: the worker is killed."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._started = False

    def cancel(self) -> bool:
        """Cancels the call unless it has finished. Returns whether it was cancelled."""
        # It stays pending, for the base class, until its result is there.
        cancelled = super().cancel()
        if cancelled:
            self._scope.cancel()
        return cancelled

    def running(self) -> bool:
        """Whether the call has been started and has not finished."""
        return self._started and not self.done()

    def perform(self, task: Callable[[], R]) -> None:
        """Runs the task and sets the result."""
        if self.cancelled():
            self.set_running_or_notify_cancel()
            return
        self._started = True
        result: R | None = None
        error: BaseException | None = None
        try:
            result = task()
        except BaseException as caught:
            error = caught
        if not self.set_running_or_notify_cancel():
            return
        if error is None:
            self.set_result(result)
        else:
            self.set_exception(error)


class Runners:
    """Daemon threads that perform futures; started when needed, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: queue.SimpleQueue[tuple[_AnyFuture, Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0

    def submit(self, future: CallFuture[R], task: Callable[[], R]) -> None:
        with self._lock:
            self._queue.put((future, task))
            if self._free > 0:
                self._free -= 1
                return
            if self._threads >= self._limit:
                return
            self._threads += 1
        threading.Thread(target=self._run, name="isolate-runner", daemon=True).start()

    def stop(self) -> None:
        """Cancels what has not been started and lets the threads end."""
        with self._lock:
            try:
                while True:
                    entry = self._queue.get_nowait()
                    if entry is not None:
                        entry[0].cancel()
                        entry[0].set_running_or_notify_cancel()
            except queue.Empty:
                pass
            for _ in range(self._threads):
                self._queue.put(None)

    def _run(self) -> None:
        while True:
            entry = self._queue.get()
            if entry is None:
                return
            future, task = entry
            assert isinstance(future, CallFuture)
            future.perform(task)
            del entry, future, task
            with self._lock:
                if self._queue.empty():
                    self._free += 1
