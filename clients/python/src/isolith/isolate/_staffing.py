"""Decides how many workers a pool should have. Pure: values in, values out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Staff:
    """The workers and jobs of a pool at one moment."""

    #: The maximum number of running jobs.
    workers: int
    #: Idle workers to keep beyond that.
    spares: int
    #: Whether all workers are started before there is anything to do.
    prestart: bool
    #: Whether there was a job lately.
    awake: bool
    starting: int = 0
    idle: int = 0
    busy: int = 0
    #: Idle workers that have not done a job.
    fresh: int = 0
    waiting: int = 0
    #: Waiting jobs that need a fresh worker.
    suspects: int = 0


def to_start(staff: Staff) -> int:
    """How many workers to start now."""
    demand = min(staff.busy + staff.waiting, staff.workers)
    ready = (staff.workers if staff.prestart else demand) + staff.spares
    wanted = ready if staff.awake else demand
    missing = wanted - staff.starting - staff.idle - staff.busy
    unmet = min(staff.suspects, staff.workers) - staff.fresh - staff.starting
    return max(missing, unmet, 0)


def to_stop(staff: Staff) -> int:
    """How many idle workers to stop now."""
    limit = staff.workers + staff.spares if staff.awake else staff.busy + staff.waiting
    surplus = staff.starting + staff.idle + staff.busy - max(limit, staff.suspects)
    return max(min(surplus, staff.idle), 0)
