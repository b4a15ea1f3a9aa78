"""The settings of a pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """See `Pool`, which documents and checks them."""

    workers: int
    spares: int
    timeout: float
    memory: int | None
    retries: int
    max_jobs: int | None
    warm_up: tuple[str, str] | None
    idle_stop: float
    start_timeout: float
    stop_grace: float
    max_argument_bytes: int
    max_result_bytes: int
    crash_folder: Path
    forward: Callable[[str], None] | None
    environment: dict[str, str] | None
    executable: str
    numpy: bool
    prestart: bool

    def __post_init__(self) -> None:
        _at_least("workers", self.workers, 1)
        _at_least("spares", self.spares, 0)
        _at_least("retries", self.retries, 0)
        if self.max_jobs is not None:
            _at_least("max_jobs", self.max_jobs, 1)
        if self.memory is not None:
            _at_least("memory", self.memory, 1 << 20)
        for name in ("timeout", "idle_stop", "start_timeout"):
            check_timeout(name, getattr(self, name))


def check_timeout(name: str, seconds: float) -> None:
    """Raises `ValueError` unless it is a positive number."""
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"{name} must be a positive number of seconds, not {seconds}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
