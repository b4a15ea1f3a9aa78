"""How fast a pool replaces dead workers, and when it stops. Pure: the caller passes the time."""

from __future__ import annotations

import math
import random
from collections import deque


class Breaker:
    """Refuses jobs for a while when too many workers have died.

    More than `deaths` deaths within `window` seconds open it. After `cooldown` seconds one job
    is admitted as a trial: it closes the breaker again, or opens it for twice as long.
    """

    def __init__(
        self,
        deaths: int = 5,
        window: float = 10.0,
        cooldown: float = 5.0,
        longest_cooldown: float = 60.0,
    ) -> None:
        self._limit = deaths
        self._window = window
        self._first_cooldown = cooldown
        self._longest_cooldown = longest_cooldown
        self._deaths: deque[float] = deque()
        self._cooldown = cooldown
        self._open_until = -math.inf
        self._state = "closed"

    @property
    def state(self) -> str:
        """`closed`, `open` or `half_open`."""
        return self._state

    def admit(self, now: float, *, quiet: bool) -> float | None:
        """Returns `None` if a job may run, or the seconds to wait.

        `quiet` means that the pool has no other job; only then is a trial admitted.
        """
        if self._state == "closed":
            return None
        if self._state == "open" and now < self._open_until:
            return self._open_until - now
        if not quiet:
            return self._cooldown
        self._state = "half_open"
        return None

    def count(self, now: float) -> None:
        """Counts a death."""
        if self._state == "half_open":
            self._open(now, min(self._cooldown * 2, self._longest_cooldown))
        elif self._state == "closed":
            self._deaths.append(now)
            while self._deaths[0] + self._window < now:
                self._deaths.popleft()
            if len(self._deaths) > self._limit:
                self._open(now, self._first_cooldown)

    def succeeded(self) -> None:
        """Records a completed job, which ends a trial."""
        if self._state == "half_open":
            self._state = "closed"

    def open_for(self, now: float) -> float | None:
        """How long the breaker stays open; `None` if it is not open."""
        return max(self._open_until - now, 0.0) if self._state == "open" else None

    def _open(self, now: float, cooldown: float) -> None:
        self._deaths.clear()
        self._cooldown = cooldown
        self._open_until = now + cooldown
        self._state = "open"


class Backoff:
    """When the next worker may be started after deaths.

    The first dead worker is replaced at once, the next after `first_delay` seconds, doubling up
    to `longest_delay`. A completed job, or `healthy_after` seconds without a death, starts over.
    """

    def __init__(
        self,
        first_delay: float = 0.1,
        longest_delay: float = 30.0,
        healthy_after: float = 60.0,
    ) -> None:
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._healthy_after = healthy_after
        self._in_a_row = 0
        self._last_death = -math.inf
        self.not_before = -math.inf

    def count(self, now: float, jitter: float | None = None) -> None:
        """Counts a death. The jitter (0 to 1) keeps pools from starting workers in step."""
        healthy = now >= self._last_death + self._healthy_after
        self._in_a_row = 1 if healthy else self._in_a_row + 1
        self._last_death = now
        jitter = random.random() if jitter is None else jitter
        self.not_before = now + self._delay() * (0.75 + jitter * 0.5)

    def succeeded(self) -> None:
        """Records a completed job."""
        self._in_a_row = 0

    def _delay(self) -> float:
        if self._in_a_row <= 1:
            return 0.0
        doubled = self._first_delay * 2.0 ** min(self._in_a_row - 2, 20)
        return min(doubled, self._longest_delay)
