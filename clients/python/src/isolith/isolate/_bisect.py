"""Finds the items of a batch that kill workers. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ._retry import Terms


@dataclass(frozen=True)
class Step:
    """A run of adjacent items, from `start` up to but excluding `stop`."""

    start: int
    stop: int
    bisecting: bool = False

    def __len__(self) -> int:
        return self.stop - self.start

    def terms(self, terms: Terms) -> Terms:
        """The terms of the step's job, derived from those of the batch.

        A whole batch may kill as often as any job before it is halved. After that, each half is
        split after one death; a single item may again kill as often as any job.
        """
        single = len(self) == 1
        strikes = 1 if self.bisecting and not single else terms.strikes
        return replace(terms, strikes=strikes, single=single, bisecting=self.bisecting)


class Bisection:
    """The steps still to be tried, in the order of the items."""

    def __init__(self, indices: Iterable[int]) -> None:
        """Starts with one step for each run of consecutive `indices`."""
        runs: list[Step] = []
        for index in indices:
            if runs and runs[-1].stop == index:
                runs[-1] = Step(runs[-1].start, index + 1)
            else:
                runs.append(Step(index, index + 1))
        self._todo = runs[::-1]

    def next(self) -> Step | None:
        """The next step to try; `None` when all items are accounted for."""
        return self._todo.pop() if self._todo else None

    def split(self, step: Step) -> None:
        """Replaces `step`, which failed, by its two halves."""
        middle = (step.start + step.stop) // 2
        self._todo.append(Step(middle, step.stop, bisecting=True))
        self._todo.append(Step(step.start, middle, bisecting=True))
