"""The state of the stores, and their repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from .._call import Endpoint, Plan
from .._model import Model, many, maybe, renamed
from .._operation import Asynchronous, Blocking, operation
from .jobs import Progress

_STATUS = Endpoint("GET", "/status")
_CRASHES = Endpoint("GET", "/crashes")
_QUARANTINE = Endpoint("GET", "/quarantine")
_DOCTOR = Endpoint("POST", "/doctor", job=True)
_RECONNECT = Endpoint("POST", "/stores/reconnect", repeatable=True)


@dataclass(frozen=True)
class Worker(Model):
    """A worker process. ``front`` is the process that it works for."""

    front: int
    role: str
    state: str
    pid: int | None = None
    job: str | None = None
    jobs_done: int = 0
    rss_bytes: int | None = None


@dataclass(frozen=True)
class Process(Model):
    """A process that has the store open."""

    pid: int
    answers: bool
    age_ms: int | None = None


@dataclass(frozen=True)
class StoreStatus(Model):
    """A store. ``error`` says why it cannot be read: ``code``, ``message`` and ``hint``."""

    whose: str
    store: str
    schema: int | None = None
    collections: list[dict[str, Any]] = field(default_factory=list)
    roots: list[dict[str, Any]] = field(default_factory=list)
    wings: int = 0
    drawers: int = 0
    nodes: int = 0
    relationships: int = 0
    processes: list[Process] = many(Process)
    workers: list[Worker] = many(Worker)
    crashes: dict[str, int] = field(default_factory=dict)
    quarantine: int = 0
    wal_bytes: int = 0
    disk_bytes: int = 0
    warnings: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class Status(Model):
    """The state of the server's stores. There are none before something is stored."""

    ok: bool
    version: str
    stores: list[StoreStatus] = many(StoreStatus)


@dataclass(frozen=True)
class CrashedJob(Model):
    """The job that a worker was running when it died. ``input_hash`` names it in quarantine."""

    kind: str
    input_hash: str = ""
    attempt: int = 0
    ran_ms: int = 0


@dataclass(frozen=True)
class Crash(Model):
    """The report of a worker's death.

    ``end`` is the name of the signal, or the exit code; ``report`` the file in the store's folder
    ``crashes``; ``output`` the last lines that the worker printed; ``action`` what was done.
    """

    report: str
    died_at: str
    crash_class: str = renamed("class")
    whose: str = ""
    end: str = ""
    signal: int | None = None
    exit_code: int | None = None
    role: str = ""
    worker_pid: int | None = None
    age_ms: int = 0
    jobs_done: int = 0
    rss_bytes: int | None = None
    job: CrashedJob | None = maybe(CrashedJob)
    panic: str | None = None
    violation: str | None = None
    output: list[str] = field(default_factory=list)
    action: str = ""


@dataclass(frozen=True)
class QuarantinedJob(Model):
    """A job that is skipped, because it has killed its workers.

    ``id`` is what ``isolith doctor --quarantine retry`` takes.
    """

    id: str
    crash_class: str = renamed("class")
    whose: str = ""
    role: str = ""
    kind: str = ""
    since: str = ""


@dataclass(frozen=True)
class Check(Model):
    """What was checked. ``status`` is ``ok``, ``warn``, ``failed`` or ``corrupt``."""

    name: str
    status: str
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class StoreReport(Model):
    """The checks of a store. ``lost`` is data that could not be recovered unchanged."""

    whose: str
    store: str
    ok: bool
    checks: list[Check] = many(Check)
    repaired: list[str] = field(default_factory=list)
    lost: list[Any] = field(default_factory=list)
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class DoctorReport(Model):
    """The checks of all stores."""

    ok: bool
    stores: list[StoreReport] = many(StoreReport)


class StatusOperations:
    """The state of the stores, and their repair."""

    @operation
    def status(self) -> Plan[Status]:
        """The state of the stores: counts, workers, crashes and warnings."""
        return _STATUS(Status.from_json)

    @operation
    def crashes(
        self, *, limit: int | None = None, worker_pid: int | None = None
    ) -> Plan[list[Crash]]:
        """The reports of workers that died, the newest first.

        :param limit: the maximum number of reports: 1 to 400, by default 20
        :param worker_pid: only the reports of this worker
        """

        def parse(reply: Any) -> list[Crash]:
            return [Crash.from_json(crash) for crash in reply["crashes"]]

        return _CRASHES(parse, limit=limit, worker_pid=worker_pid)

    @operation
    def quarantine(self) -> Plan[list[QuarantinedJob]]:
        """The jobs that are skipped, because they have killed their workers, the newest first."""

        def parse(reply: Any) -> list[QuarantinedJob]:
            return [QuarantinedJob.from_json(job) for job in reply["jobs"]]

        return _QUARANTINE(parse)

    @operation
    def doctor(
        self,
        *,
        full: bool = False,
        repair: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> Plan[DoctorReport]:
        """Checks the stores. There is no time limit.

        :param full: whether to compare indexes with their tables, which takes longer
        :param repair: whether to repair what can be repaired; other calls have to wait
        """
        call = _DOCTOR(DoctorReport.from_json, full=full or None, repair=repair or None)
        call.on_progress = Progress.callback(progress)
        call.is_repeatable = not repair
        return call

    @operation
    def reconnect(self) -> Plan[bool]:
        """Makes the server close and reopen the stores, for example after one was restored."""

        def parse(reply: Any) -> bool:
            return bool(reply["ok"])

        return _RECONNECT(parse)


class Maintenance(StatusOperations, Blocking):
    """The state of the stores, and their repair."""


class AsyncMaintenance(StatusOperations, Asynchronous):
    """The state of the stores, and their repair."""
