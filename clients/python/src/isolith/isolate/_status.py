"""What a pool reports about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class WorkerStatus:
    """One worker process."""

    pid: int
    #: `starting`, `idle`, `busy` or `stopping`.
    state: str
    #: Seconds since it was started.
    age: float
    #: Jobs completed.
    jobs: int
    #: Resident memory in bytes, if known.
    rss: int | None


@dataclass(frozen=True)
class PoolStatus:
    """A pool at one moment."""

    workers: tuple[WorkerStatus, ...]
    #: Calls that wait for a worker.
    waiting: int
    #: `closed` (calls are accepted), `open` (refused) or `half_open` (one is tried).
    breaker: str
    #: The number of deaths by class, since the pool was made.
    deaths: dict[str, int]
    #: The input hashes of quarantined calls.
    quarantined: tuple[str, ...]
    #: Completed calls.
    jobs: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)
