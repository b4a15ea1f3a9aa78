"""Decides what happens to a job whose worker died. Pure: values in, values out."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from ._classify import DeathClass

#: How often a job is retried because its worker was killed from outside, or died before it had
#: read the job.
OUTSIDE_KILLS = 10

#: A job that has killed this many workers by itself is quarantined.
POISONOUS = 2


class Action(enum.Enum):
    """What was done about a death. The values are the names used in crash reports."""

    RETRIED = "retried"
    RETRIED_ALONE = "retried_alone"
    QUARANTINED = "quarantined"
    GAVE_UP = "gave_up"
    REPLACED = "replaced"

    @property
    def retries(self) -> bool:
        return self in (Action.RETRIED, Action.RETRIED_ALONE)


@dataclass(frozen=True)
class Terms:
    """The conditions under which a job runs."""

    #: How many workers it may kill before it is given up.
    strikes: int = 2
    #: Whether it may be retried after a timeout although it may already have taken effect.
    idempotent: bool = False
    #: Whether it is a single input that can be blamed, not a batch.
    single: bool = True
    #: Whether it runs to find the culprit in a batch: its deaths are expected.
    bisecting: bool = False


@dataclass(frozen=True)
class Record:
    """What a job has done to its workers so far."""

    strikes: int = 0
    outside_kills: int = 0


def judge(record: Record, terms: Terms, death: DeathClass, *, read: bool) -> tuple[Record, Action]:
    """Counts a death and decides what happens to the job.

    `read` is false if the worker died before it had read the job, which is then not to blame.
    """
    if not (read and death.blames_job):
        record = replace(record, outside_kills=record.outside_kills + 1)
        spared = record.outside_kills <= OUTSIDE_KILLS
        return record, Action.RETRIED if spared else Action.GAVE_UP
    record = replace(record, strikes=record.strikes + 1)
    repeatable = terms.idempotent or death is not DeathClass.TIMEOUT
    if repeatable and record.strikes < terms.strikes:
        alone = death is DeathClass.OUT_OF_MEMORY
        return record, Action.RETRIED_ALONE if alone else Action.RETRIED
    poisonous = terms.single and record.strikes >= POISONOUS
    return record, Action.QUARANTINED if poisonous else Action.GAVE_UP


def counts_for_pool(before: Record, terms: Terms | None, death: DeathClass) -> bool:
    """Whether a death counts for the breaker and the restart delay.

    `terms` is `None` if the worker had no job. Of a job only the first death counts, and none
    while a batch is bisected: later ones say something about the job, not about the pool.
    """
    if death is DeathClass.KILLED:
        return False
    if terms is None or death is DeathClass.START_FAILURE:
        return True
    return before.strikes == 0 and not terms.bisecting
