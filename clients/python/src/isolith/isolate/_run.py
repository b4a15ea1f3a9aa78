"""The function `isolith.isolate`, and the pools behind it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .pool import Pool

R = TypeVar("R")

#: Workers of these pools go away after this many seconds without a call.
_IDLE_STOP = 60.0

_pools: dict[tuple[int | None, bool], Pool] = {}
_lock = threading.Lock()


def run(
    function: Callable[..., R],
    /,
    *args: Any,
    timeout: float = 60.0,
    memory: int | None = None,
    retries: int = 1,
    idempotent: bool = False,
    numpy: bool = False,
    **kwargs: Any,
) -> R:
    """Calls `function(*args, **kwargs)` in a supervised worker process and returns the result.

    The workers are shared by all calls of this process with the same `memory` and `numpy`.
    They start when needed, stay warm for a minute, and one more is kept ready. See `Pool.run`
    for what is raised, and `Pool` for everything that can be set.
    """
    return _pool(memory, numpy).run(
        function, *args, timeout=timeout, retries=retries, idempotent=idempotent, **kwargs
    )


def clear_quarantine() -> int:
    """Admits all quarantined calls of `run` again. Returns how many."""
    with _lock:
        return sum(pool.clear_quarantine() for pool in _pools.values())


def _pool(memory: int | None, numpy: bool) -> Pool:
    with _lock:
        pool = _pools.get((memory, numpy))
        if pool is None:
            pool = _pools[memory, numpy] = Pool(
                workers=min(os.cpu_count() or 1, 8),
                memory=memory,
                numpy=numpy,
                idle_stop=_IDLE_STOP,
                prestart=False,
            )
        return pool


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
