"""A pool of supervised worker processes for Python functions."""

from __future__ import annotations

import logging
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from . import _functions, _reports
from ._batch import Batch, Outcome
from ._core import Core
from ._futures import CallFuture, Runners, Scope
from ._job import Job, encode_call
from ._retry import Terms
from ._settings import Settings, check_timeout
from ._status import PoolStatus
from .errors import NotSendable, StartFailed

R = TypeVar("R")
T = TypeVar("T")

#: Where the lines that workers print go, besides the crash reports.
OutputTarget = Union[None, Literal["stderr"], logging.Logger, Callable[[str], None]]

#: Running jobs get no more than this when a pool is closed.
DRAIN_SECONDS = 10.0


class Pool:
    """Runs importable functions in supervised worker processes.

    Functions must be importable by module and name; arguments must be picklable; results must
    be plain data (see `isolith.isolate`). All methods may be called from any thread. A forked
    child that uses the pool gets workers of its own.

    :param workers: The maximum number of calls that run at the same time.
    :param spares: Idle workers kept ready beyond that, so that a call whose worker died is
        retried at once.
    :param timeout: Seconds that one attempt of a call may take; `math.inf` for no limit.
    :param memory: The memory that a worker may allocate, in bytes (RLIMIT_DATA).
    :param retries: How often a call is repeated on a fresh worker after it killed one.
    :param warm_up: Called in each new worker before it takes calls: a function without
        parameters, or its name as `"module:function"`.
    :param max_jobs: Replace a worker after this many calls.
    :param idle_stop: Stop the workers after this many seconds without a call.
    :param start_timeout: Seconds that a worker may take to start, including the warm-up.
    :param crash_folder: Where crash reports are written; by default
        `$XDG_STATE_HOME/isolith/python-crashes`. The newest 200 are kept.
    :param output: Where to send the lines that workers print: `"stderr"`, a logger, or a
        function that is called with each line.
    :param numpy: Whether functions may return numpy arrays.
    :param environment: The workers' environment variables; by default those of this process.
    :param executable: The Python interpreter; by default that of this process.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        spares: int = 1,
        timeout: float = 60.0,
        memory: int | None = None,
        retries: int = 1,
        warm_up: str | Callable[[], object] | None = None,
        max_jobs: int | None = None,
        idle_stop: float = 300.0,
        start_timeout: float = 60.0,
        stop_grace: float = 2.0,
        max_argument_bytes: int = 1 << 30,
        max_result_bytes: int = 256 << 20,
        crash_folder: str | os.PathLike[str] | None = None,
        output: OutputTarget = None,
        numpy: bool = False,
        environment: Mapping[str, str] | None = None,
        executable: str | None = None,
        prestart: bool = True,
    ) -> None:
        """Starts the workers in the background, unless `prestart` is false."""
        if _functions.main_is_loading():
            raise StartFailed(
                "the main script is being imported by a worker and must not start a pool; put "
                'the code that does under if __name__ == "__main__":'
            )
        self._core = Core(
            Settings(
                workers=workers,
                spares=spares,
                timeout=timeout,
                memory=memory,
                retries=retries,
                max_jobs=max_jobs,
                warm_up=_warm_up(warm_up),
                idle_stop=idle_stop,
                start_timeout=start_timeout,
                stop_grace=stop_grace,
                max_argument_bytes=max_argument_bytes,
                max_result_bytes=max_result_bytes,
                crash_folder=Path(crash_folder or _reports.default_folder()).absolute(),
                forward=_forward(output),
                environment=None if environment is None else dict(environment),
                executable=executable or sys.executable,
                numpy=numpy,
                prestart=prestart,
            )
        )
        self._runners = Runners(workers)
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, self._core.close_soon)
        self._finalizer.atexit = False
        if prestart:
            with self._core.lock:
                self._core.ensure_keeper()

    def run(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        timeout: float | None = None,
        retries: int | None = None,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> R:
        """Calls `function(*args, **kwargs)` in a worker and returns the result.

        `timeout` and `retries` override the pool's. After a timeout the call is only repeated
        if it is `idempotent`, because it may already have taken effect. To pass a parameter of
        one of these names to the function, use `functools.partial`.

        Raises what the function raised if that is a built-in exception, otherwise
        `RemoteError`; `WorkerDied` or one of its subclasses if the worker died; and the other
        exceptions of this package. Ctrl-C ends the call and its worker.
        """
        job = self._job(function, args, kwargs, timeout, retries, idempotent)
        result: R = self._core.call(job)
        return result

    def submit(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        timeout: float | None = None,
        retries: int | None = None,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> Future[R]:
        """Like `run`, but returns a future at once.

        Cancelling the future also ends a running call.
        """
        job = self._job(function, args, kwargs, timeout, retries, idempotent)
        scope = Scope(self._core)
        return self._start(scope, lambda: scope.call(job))

    async def run_async(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        timeout: float | None = None,
        retries: int | None = None,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> R:
        """Like `run`, for asyncio. Cancelling the task ends the call."""
        import asyncio

        job = self._job(function, args, kwargs, timeout, retries, idempotent)
        scope = Scope(self._core)
        result: R = await asyncio.wrap_future(self._start(scope, lambda: scope.call(job)))
        return result

    def map(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        timeout: float | None = None,
        retries: int | None = None,
        idempotent: bool = False,
    ) -> Iterator[R]:
        """Calls the function with each item and yields the results in order.

        The first error is raised in its place and ends the iteration. `items` is read a little
        ahead of the results.
        """
        source = iter(items)
        ahead = 2 * self._core.settings.workers
        futures: deque[Future[R]] = deque()

        def fill() -> None:
            while len(futures) < ahead:
                try:
                    item = next(source)
                except StopIteration:
                    return
                futures.append(
                    self.submit(
                        function, item, timeout=timeout, retries=retries, idempotent=idempotent
                    )
                )

        def results() -> Iterator[R]:
            try:
                while futures:
                    result = futures[0].result()
                    futures.popleft()
                    fill()
                    yield result
            finally:
                _cancel(futures)

        fill()
        return results()

    def map_batches(
        self,
        function: Callable[[list[T]], list[R]],
        items: Iterable[T],
        *,
        batch_size: int = 100,
        timeout: float | None = None,
        retries: int | None = None,
        idempotent: bool = False,
        split_errors: bool = False,
    ) -> list[Outcome[R]]:
        """Calls the function with lists of items and returns one outcome for each item.

        The function must return a list with one result for each item of its list. A batch that
        kills its workers is halved until the items that do are found: these are quarantined and
        get the error, the others their results. An exception is the outcome of the whole batch,
        unless `split_errors` is set: then the batch is halved in the same way. `timeout` is for
        one attempt of one batch.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        everything = list(items)
        futures: list[Future[list[Outcome[R]]]] = []
        for start in range(0, len(everything), batch_size):
            scope = Scope(self._core)
            batch: Batch[T, R] = Batch(
                self._core,
                scope,
                everything[start : start + batch_size],
                lambda part: self._job(function, (part,), {}, timeout, retries, idempotent),
                split_errors,
            )
            futures.append(self._start(scope, batch.run))
        try:
            return [outcome for future in futures for outcome in future.result()]
        finally:
            _cancel(futures)

    def status(self) -> PoolStatus:
        """The current workers, and the deaths since the pool was made."""
        return self._core.status()

    def clear_quarantine(self, input_hash: str | None = None) -> int:
        """Admits a quarantined call again, or all of them. Returns how many."""
        core = self._core
        with core.lock:
            if input_hash is not None:
                return int(core.quarantine.pop(input_hash, None) is not None)
            count = len(core.quarantine)
            core.quarantine.clear()
            return count

    def close(self, grace: float = DRAIN_SECONDS) -> None:
        """Stops the pool. Running calls may finish within `grace` seconds, at most 10.

        Calls that have not started, and those that are killed, raise `PoolClosed`; futures that
        have not started are cancelled. Closing twice is allowed.
        """
        self._core.close_soon()
        if os.getpid() == self._owner:
            self._runners.stop()
        self._core.close(min(grace, DRAIN_SECONDS))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupted = kind is not None and not issubclass(kind, Exception)
        self.close(0.0 if interrupted else DRAIN_SECONDS)

    def _job(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
        retries: int | None,
        idempotent: bool,
    ) -> Job:
        settings = self._core.settings
        if timeout is None:
            timeout = settings.timeout
        else:
            check_timeout("timeout", timeout)
        retries = settings.retries if retries is None else retries
        if retries < 0:
            raise ValueError(f"retries must not be negative: {retries}")
        call, name = encode_call(function, args, kwargs, settings.max_argument_bytes)
        terms = Terms(strikes=retries + 1, idempotent=idempotent)
        return Job(call, name, terms, timeout, numpy=settings.numpy)

    def _start(self, scope: Scope, task: Callable[[], R]) -> Future[R]:
        self._core.check_open()
        if os.getpid() != self._owner:
            # The parent's threads do not exist in a forked child.
            self._runners, self._owner = Runners(self._core.settings.workers), os.getpid()
        future: CallFuture[R] = CallFuture(scope)
        # A pool lives as long as its futures.
        future.pool = self  # type: ignore[attr-defined]
        self._runners.submit(future, task)
        return future


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


def _warm_up(function: str | Callable[[], object] | None) -> tuple[str, str] | None:
    if function is None:
        return None
    try:
        if isinstance(function, str):
            return _functions.parse(function)
        return _functions.reference(function)
    except _functions.Refused as error:
        raise NotSendable(str(error)) from None


def _forward(output: OutputTarget) -> Callable[[str], None] | None:
    if output is None or (callable(output) and not isinstance(output, logging.Logger)):
        return output
    if isinstance(output, logging.Logger):
        return output.info
    if output == "stderr":
        return lambda line: print(line, file=sys.stderr, flush=True)
    raise ValueError(f'output must be "stderr", a logger or a function, not {output!r}')
