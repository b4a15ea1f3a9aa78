"""What is said about a death: the crash report, and the exception for the caller."""

from __future__ import annotations

import copy
import time
from typing import Any, TypeVar

from . import _reports
from ._classify import DeathClass, End
from ._job import Job
from ._process import Process
from ._retry import Action
from .errors import OutOfMemory, Quarantined, RemoteTraceback, TimedOut, WorkerDied

E = TypeVar("E", bound=BaseException)

_KINDS = {DeathClass.TIMEOUT: TimedOut, DeathClass.OUT_OF_MEMORY: OutOfMemory}


def report(
    worker: Process,
    end: End,
    death_class: DeathClass,
    action: Action,
    output: tuple[str, ...],
    job: Job | None,
    digest: str | None,
) -> dict[str, Any]:
    """The content of a crash report."""
    now = time.monotonic()
    note = None
    if job is not None:
        note = {
            "kind": job.name,
            "input_hash": digest,
            "attempt": job.attempts - 1,
            "ran_ms": round((now - worker.job_started_at) * 1000),
        }
    return {
        "unix_ms": _reports.now_ms(),
        "class": death_class.value,
        "end": str(end),
        "signal": end.signal,
        "exit_code": end.exit_code,
        "role": "python",
        "pid": worker.pid,
        "age_ms": round((now - worker.started_at) * 1000),
        "jobs_done": worker.jobs,
        "rss_bytes": worker.rss,
        "job": note,
        "panic": job.traceback if job is not None else None,
        "violation": worker.violation,
        "output": list(output),
        "action": action.value,
    }


def died(job: Job) -> WorkerDied:
    """The exception for a job that was given up."""
    last = job.deaths[-1]
    if last.crash_class is DeathClass.TIMEOUT:
        what = f"did not return within {job.timeout:g} s"
    elif last.crash_class is DeathClass.OUT_OF_MEMORY:
        what = f"ran out of memory ({last.end})"
    else:
        what = f"ended its worker ({last.crash_class.value}: {last.end})"
    quarantine = last.action is Action.QUARANTINED
    count = len(job.deaths)
    text = f"{job.name} {what}; {count} {'worker' if count == 1 else 'workers'} died"
    if quarantine:
        text += "; the call is quarantined"
    if last.report is not None:
        text += f"; report: {last.report}"
    error = _KINDS.get(last.crash_class, WorkerDied)(
        text,
        crash_class=last.crash_class.value,
        signal=last.end.signal,
        exit_code=last.end.exit_code,
        report=last.report,
        deaths=count,
        output=last.output,
        quarantined=quarantine,
    )
    if job.traceback is not None:
        error.__cause__ = RemoteTraceback(job.traceback)
    return error


def quarantined(job: Job, digest: str, death: DeathClass) -> Quarantined:
    """The exception for a job that is not tried."""
    text = f"{job.name} is quarantined with these arguments: it killed workers ({death.value})"
    return Quarantined(text, input_hash=digest, crash_class=death.value)


def another(error: E) -> E:
    """A copy, for an exception that is raised more than once."""
    fresh = copy.copy(error)
    fresh.__cause__ = error.__cause__
    return fresh
