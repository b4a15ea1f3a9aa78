"""Gives jobs to workers, and decides what happens when one dies.

Calls run in the thread that makes them: it takes a worker, talks to it and gives it back, so
that a warm call needs no other thread. The keeper, a thread of its own, starts, watches and
stops workers. Everything that both change is guarded by one lock.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import weakref
from collections import Counter, deque
from concurrent.futures import CancelledError
from typing import Any

from . import _codec, _remote, _reports, _wire
from ._breaker import Backoff, Breaker
from ._classify import DeathClass, End, KillReason, Phase, classify
from ._deaths import another, died, quarantined, report
from ._job import Death, Job
from ._keeper import Keeper
from ._memory import OomWatch
from ._process import Process, Reply
from ._retry import Action, Record, counts_for_pool, judge
from ._settings import Settings
from ._spawn import descriptors_lock
from ._staffing import Staff
from ._status import PoolStatus, WorkerStatus
from .errors import BreakerOpen, IsolateError, PoolClosed, StartFailed

_MOST_QUARANTINED = 10_000

_MOST_MODULES = 32


class Core:
    """The state of a pool."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.closed = False
        self.deaths: Counter[DeathClass] = Counter()
        self.jobs_done = 0
        #: The class of the death that led to it, by input hash.
        self.quarantine: dict[str, DeathClass] = {}
        #: The modules of functions that were called, for new workers to import in advance.
        self.modules: dict[str, None] = {}
        self._reset()
        _cores.add(self)

    def _reset(self) -> None:
        self.lock = threading.Lock()
        self.quiet = threading.Condition(self.lock)
        self.keeper: Keeper | None = None
        self.workers: dict[int, Process] = {}
        #: Fresh workers first, the last one used at the end.
        self.idle: list[Process] = []
        #: Workers that were reaped; the keeper closes their descriptors.
        self.ended: list[Process] = []
        self.waiting: deque[Job] = deque()
        self.running = 0
        #: A job runs that nothing may run beside.
        self.alone = False
        self.breaker = Breaker()
        self.backoff = Backoff()
        self.oom = OomWatch()
        #: Why the last worker could not start, if trying again would not help.
        self.refusal: IsolateError | None = None
        self.last_death = ""
        self.last_used = time.monotonic()

    def forget_workers(self) -> None:
        """In a forked child: leaves the workers to the parent."""
        for worker in [*self.workers.values(), *self.ended]:
            worker.close()
        if self.keeper is not None:
            self.keeper.close_descriptors()
        self._reset()

    # A call.

    def call(self, job: Job) -> Any:
        """Runs a job to its end. Returns the result or raises."""
        try:
            self._admit(job)
            while True:
                worker = self._lease(job)
                job.attempts += 1
                reply = worker.exchange(job.number, job.parts(worker), job.timeout)
                answer = self._read(job, worker, reply)
                if answer is not None:
                    self._give_back(job, worker)
                    break
                self._mourn(job, worker)
        except BaseException:
            self.abandon(job)
            raise
        result, error = answer
        if error is not None:
            raise error
        return result

    def _admit(self, job: Job) -> None:
        if self.quarantine and job.terms.single:
            # Not with the lock held: hashing a large input takes a while.
            digest = job.input_hash()
            death = self.quarantine.get(digest)
            if death is not None:
                raise quarantined(job, digest, death)
        with self.lock:
            self.check_open()
            if not job.terms.bisecting:
                quiet = self.running == 0 and not self.waiting
                wait = self.breaker.admit(time.monotonic(), quiet=quiet)
                if wait is not None:
                    raise self._breaker_error(wait)

    def check_open(self) -> None:
        if self.closed:
            raise PoolClosed("the pool is closed")

    def _breaker_error(self, wait: float) -> BreakerOpen:
        last = str(self.refusal or self.last_death)
        message = f"workers keep dying (last: {last}); try again in {wait:.1f} s"
        return BreakerOpen(message, wait)

    def _lease(self, job: Job) -> Process:
        """Waits for a worker. It is the job's until `_give_back`, `_mourn` or `abandon`."""
        with self.lock:
            self.check_open()
            if job.cancelled:
                raise CancelledError
            self.last_used = time.monotonic()
            job.gate = None
            if job.suspect:
                self.waiting.appendleft(job)
            else:
                self.waiting.append(job)
            self.dispatch()
            keeper = self.ensure_keeper()
            if job.worker is None:
                self._check_refusal(job)
                job.gate = threading.Lock()
                job.gate.acquire()
                keeper.wake()
            elif keeper.rests:
                keeper.wake()
        if job.gate is not None:
            job.gate.acquire()
        if job.failure is not None:
            raise job.failure
        assert job.worker is not None, "the gate opens when there is a worker or a failure"
        return job.worker

    def _check_refusal(self, job: Job) -> None:
        """Fails at once if workers cannot start and it is too early to try again."""
        early = time.monotonic() < self.backoff.not_before
        if self.refusal is not None and early and not self.workers:
            self.waiting.remove(job)
            raise another(self.refusal)

    def _read(
        self, job: Job, worker: Process, reply: Reply | None
    ) -> tuple[Any, Exception | None] | None:
        """Decodes a reply; `None` if the worker is dead or cannot be used any more."""
        if reply is None:
            return None
        try:
            if reply.kind == _wire.RESULT:
                return _codec.decode(reply.body, numpy=job.numpy), None
            described = _remote.check(_codec.decode(reply.body))
        except _wire.Violation as violation:
            worker.violation = str(violation)
            worker.kill(KillReason.VIOLATION)
            return None
        if described["memory_error"] or described["panicked"]:
            job.traceback = described["traceback"]
            worker.job_read = True
            worker.memory_error = described["memory_error"]
            worker.panicked = described["panicked"]
            worker.kill(KillReason.CONDEMNED)
            return None
        return None, _remote.rebuild(described)

    def _give_back(self, job: Job, worker: Process) -> None:
        with self.lock:
            self._detach(job)
            worker.jobs += 1
            self.jobs_done += 1
            self._learn(job)
            self.breaker.succeeded()
            self.backoff.succeeded()
            self.last_used = time.monotonic()
            if self.closed or worker.jobs == self.settings.max_jobs:
                worker.stop(self.settings.stop_grace)
                self.ensure_keeper().wake()
            else:
                worker.phase = Phase.IDLE
                self.idle.append(worker)
            self.dispatch()

    def _learn(self, job: Job) -> None:
        module = job.name.partition(":")[0]
        if module not in self.modules and len(self.modules) < _MOST_MODULES:
            self.modules[module] = None

    def _detach(self, job: Job) -> None:
        job.worker = None
        self.running -= 1
        if job.alone:
            self.alone = False
        if self.running == 0:
            self.quiet.notify_all()

    def abandon(self, job: Job) -> None:
        """Ends a job that nobody waits for. Its worker is killed; the keeper reaps it."""
        with self.lock:
            if job in self.waiting:
                self.waiting.remove(job)
            worker = job.worker
            if worker is not None:
                self._detach(job)
                worker.kill(KillReason.CANCELLED)
                worker.phase = Phase.STOPPING
                self.dispatch()
                self.ensure_keeper().wake()

    def cancel(self, job: Job) -> None:
        """Makes the call fail with `CancelledError`, from another thread."""
        with self.lock:
            job.cancelled = True
            if job in self.waiting:
                self.waiting.remove(job)
                self._fail(job, CancelledError())
            elif job.worker is not None:
                job.worker.kill(KillReason.CANCELLED)

    def dispatch(self) -> None:
        """Gives idle workers to waiting jobs, in order. The caller holds the lock."""
        for job in list(self.waiting):
            if self.alone or self.running >= self.settings.workers:
                return
            if job.alone and self.running:
                return
            worker = self._pick(job)
            if worker is None:
                if job.suspect:
                    # It waits for a fresh worker; others need not.
                    continue
                return
            self.waiting.remove(job)
            self.running += 1
            self.alone = job.alone
            worker.phase = Phase.BUSY
            job.worker = worker
            if job.gate is not None:
                job.gate.release()

    def _pick(self, job: Job) -> Process | None:
        if not job.suspect:
            return self.idle.pop() if self.idle else None
        for index, worker in enumerate(self.idle):
            if worker.jobs == 0:
                return self.idle.pop(index)
        return None

    def _fail(self, job: Job, error: BaseException) -> None:
        job.failure = error
        if job.gate is not None:
            job.gate.release()

    def fail_waiting(self, error: IsolateError, *, suspects: bool) -> None:
        """Fails the jobs that wait. The caller holds the lock."""
        for job in list(self.waiting):
            if suspects or not (job.suspect or job.terms.bisecting):
                self.waiting.remove(job)
                self._fail(job, another(error))

    # A death.

    def _mourn(self, job: Job, worker: Process) -> None:
        """Handles the death of a job's worker. Returns if the job is to be tried again."""
        end = worker.reap()
        if worker.kill_reason is KillReason.CONDEMNED:
            end = End(reported="panic" if worker.panicked else "MemoryError")
        death_class = self.classify(worker, end)
        output = worker.output.finish()
        digest = job.input_hash() if death_class is not None else ""
        try:
            with self.lock:
                self._detach(job)
                if death_class is None:
                    raise CancelledError if job.cancelled else PoolClosed("the pool was closed")
                action = self._count(job, worker, death_class, digest)
            path = self.record(worker, end, death_class, action, output, job, digest)
        finally:
            with self.lock:
                self._bury(worker)
        job.deaths.append(Death(death_class, end, worker.pid, path, action, output))
        if not action.retries:
            raise died(job)

    def _count(self, job: Job, worker: Process, death_class: DeathClass, digest: str) -> Action:
        """Decides what happens to the job. The caller holds the lock."""
        before = job.record
        job.record, action = judge(before, job.terms, death_class, read=worker.job_read)
        if counts_for_pool(before, job.terms, death_class):
            self.count_death()
        job.suspect = job.record.strikes > 0
        job.alone = job.alone or action is Action.RETRIED_ALONE
        if action is Action.QUARANTINED:
            while len(self.quarantine) >= _MOST_QUARANTINED:
                del self.quarantine[next(iter(self.quarantine))]
            self.quarantine[digest] = death_class
        return action

    def classify(self, worker: Process, end: End) -> DeathClass | None:
        """The class of a reaped worker's death."""
        killed = end.signal == signal.SIGKILL and worker.kill_reason is None
        seen = worker.circumstances(oom_kill=killed and self.oom.recent())
        return classify(end, seen)

    def bury_idle(self, worker: Process, action: Action = Action.REPLACED) -> None:
        """Handles the end of a worker that has no job. Called by the keeper."""
        end = worker.reap()
        death_class = self.classify(worker, end)
        with self.lock:
            if death_class is not None and counts_for_pool(Record(), None, death_class):
                self.count_death()
        if death_class is not None:
            self.record(worker, end, death_class, action, worker.output.finish(), None, None)
        with self.lock:
            self._bury(worker)

    def record(
        self,
        worker: Process,
        end: End,
        death_class: DeathClass,
        action: Action,
        output: tuple[str, ...],
        job: Job | None,
        digest: str | None,
    ) -> Any:
        """Counts a death by class and writes its report. Returns the report's path."""
        with self.lock:
            self.deaths[death_class] += 1
            self.last_death = f"{death_class.value}, {end}"
        content = report(worker, end, death_class, action, output, job, digest)
        return _reports.write(self.settings.crash_folder, content)

    def count_death(self) -> None:
        """Counts for breaker and restart delay. The caller holds the lock."""
        now = time.monotonic()
        self.backoff.count(now)
        self.breaker.count(now)
        wait = self.breaker.open_for(now)
        if wait is not None:
            self.fail_waiting(self._breaker_error(wait), suspects=False)

    def refuse(self, error: StartFailed) -> None:
        """Notes that workers cannot start. Fails waiting jobs unless others are serving."""
        with self.lock:
            self.refusal = error
            if not self.idle and self.running == 0:
                self.fail_waiting(error, suspects=True)

    def _bury(self, worker: Process) -> None:
        self.workers.pop(worker.number, None)
        if worker in self.idle:
            self.idle.remove(worker)
        self.ended.append(worker)
        self.dispatch()
        self.ensure_keeper().wake()

    # The pool as a whole.

    def ensure_keeper(self) -> Keeper:
        """Starts the keeper if necessary. The caller holds the lock."""
        if self.keeper is None:
            self.keeper = Keeper(self)
            try:
                self.keeper.start()
            except RuntimeError as error:
                self.keeper = None
                raise PoolClosed("the interpreter is shutting down") from error
        return self.keeper

    def staff(self) -> Staff:
        """The caller holds the lock."""
        phases = Counter(worker.phase for worker in self.workers.values())
        quiet_for = time.monotonic() - self.last_used
        return Staff(
            workers=self.settings.workers,
            spares=self.settings.spares,
            prestart=self.settings.prestart,
            awake=quiet_for < self.settings.idle_stop,
            starting=phases[Phase.STARTING],
            idle=len(self.idle),
            busy=phases[Phase.BUSY],
            fresh=sum(worker.jobs == 0 for worker in self.idle),
            waiting=len(self.waiting),
            suspects=sum(job.suspect for job in self.waiting),
        )

    def status(self) -> PoolStatus:
        now = time.monotonic()
        with self.lock:
            workers = list(self.workers.values())
            deaths = {item.value: self.deaths[item] for item in DeathClass}
            waiting, quarantined = len(self.waiting), tuple(self.quarantine)
        for worker in workers:
            worker.sample()
        statuses = (
            WorkerStatus(
                worker.pid, worker.phase.value, now - worker.started_at, worker.jobs, worker.rss
            )
            for worker in workers
        )
        return PoolStatus(
            tuple(statuses), waiting, self.breaker.state, deaths, quarantined, self.jobs_done
        )

    def close_soon(self) -> None:
        """Accepts no more jobs. Returns at once."""
        with self.lock:
            self.closed = True
            self.fail_waiting(PoolClosed("the pool was closed"), suspects=True)
            if self.keeper is not None:
                self.keeper.wake()

    def close(self, grace: float) -> None:
        """Lets running jobs finish within `grace` seconds, kills the rest, stops the workers."""
        self.close_soon()
        with self.lock:
            try:
                self.quiet.wait_for(lambda: self.running == 0, grace)
            finally:
                for worker in self.workers.values():
                    if worker.phase is Phase.BUSY:
                        worker.kill(KillReason.SHUTDOWN)
            keeper = self.keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join(self.settings.stop_grace + 5.0)


_cores: weakref.WeakSet[Core] = weakref.WeakSet()


def _after_fork() -> None:
    descriptors_lock.release()
    for core in list(_cores):
        core.forget_workers()


def _close_all() -> None:
    # Killed at once: nobody can receive a result any more.
    for core in list(_cores):
        core.close(0.0)


os.register_at_fork(
    before=descriptors_lock.acquire,
    after_in_parent=descriptors_lock.release,
    after_in_child=_after_fork,
)
atexit.register(_close_all)
