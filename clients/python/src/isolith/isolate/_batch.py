"""A batch: many items in one call, halved until the ones that kill workers are found."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Generic, TypeVar

from ._bisect import Bisection, Step
from ._core import Core
from ._deaths import quarantined
from ._futures import Scope
from ._job import Job
from ._retry import Terms
from .errors import IsolateError, WorkerDied

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """What became of one item of a batch: a value, or the error that took its place."""

    value: R | None = None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.error is None

    def get(self) -> R:
        """Returns the value, or raises the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class Batch(Generic[T, R]):
    """A batch on its way, with the outcomes of its items."""

    def __init__(
        self,
        core: Core,
        scope: Scope,
        items: list[T],
        make_job: Callable[[list[T]], Job],
        split_errors: bool,
    ) -> None:
        self._core = core
        self._scope = scope
        self._items = items
        self._make_job = make_job
        self._split_errors = split_errors
        self._outcomes: list[Outcome[R]] = [Outcome() for _ in items]

    def run(self) -> list[Outcome[R]]:
        healthy = [i for i in range(len(self._items)) if not self._is_quarantined(i)]
        bisection = Bisection(healthy)
        while True:
            step = bisection.next()
            if step is None:
                return self._outcomes
            self._try(step, bisection)

    def _is_quarantined(self, index: int) -> bool:
        if not self._core.quarantine:
            return False
        job = self._make_job([self._items[index]])
        digest = job.input_hash()
        death = self._core.quarantine.get(digest)
        if death is None:
            return False
        self._outcomes[index] = Outcome(error=quarantined(job, digest, death))
        return True

    def _try(self, step: Step, bisection: Bisection) -> None:
        try:
            job = self._make_job(self._items[step.start : step.stop])
            job.terms = step.terms(job.terms)
            results = self._scope.call(job)
            if not isinstance(results, list) or len(results) != len(step):
                raise TypeError(
                    f"{job.name} must return a list with one result for each of {len(step)} items"
                )
        except CancelledError:
            raise
        except Exception as error:
            if len(step) > 1 and self._splits(error, job.terms):
                bisection.split(step)
                return
            for index in range(step.start, step.stop):
                self._outcomes[index] = Outcome(error=error)
        else:
            for index, result in enumerate(results, step.start):
                self._outcomes[index] = Outcome(value=result)

    def _splits(self, error: Exception, terms: Terms) -> bool:
        """Whether an item may be to blame, and finding out which is allowed."""
        if isinstance(error, WorkerDied):
            if error.crash_class == "timeout":
                return terms.idempotent
            return error.crash_class != "killed"
        return self._split_errors and not isinstance(error, IsolateError)
