"""Scores and orders of hits, for frameworks that expect similarities. Values in, values out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul


def similarity(metric: str, distance: float) -> float:
    """How similar two vectors at this distance are: larger is more similar.

    For ``cosine`` and ``dot`` it is the cosine and the inner product, for ``l2`` a number above 0
    that is 1 for equal vectors.
    """
    if metric == "l2":
        return 1.0 / (1.0 + max(distance, 0.0))
    return 1.0 - distance


def relevance(metric: str, distance: float) -> float:
    """The similarity of two vectors, cut off at 0 and 1."""
    return min(max(similarity(metric, distance), 0.0), 1.0)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors; 0 if one of them is all zeros."""
    return _dot(_unit(one), _unit(other))


def cosine_of_units(metric: str, distance: float) -> float:
    """The cosine of the angle between two vectors of length 1 at this distance."""
    return 1.0 - distance / 2 if metric == "l2" else 1.0 - distance


def diverse(
    similarities: Sequence[float], vectors: Sequence[Sequence[float]], k: int, weight: float
) -> list[int]:
    """Chooses up to ``k`` hits that are similar to the query and not to each other.

    This is maximal marginal relevance. Positions are returned in the order in which they are
    chosen; of equal candidates, the first one is.

    :param similarities: the cosine of each candidate and the query
    :param weight: 1 to look at the query only, 0 at the difference from those chosen before
    """
    units = [_unit(vector) for vector in vectors]
    left = list(range(len(units)))
    repetition = [0.0] * len(units)
    chosen: list[int] = []
    while left and len(chosen) < k:
        best = left[0]
        for at in left:
            if _gain(similarities, repetition, weight, at) > _gain(
                similarities, repetition, weight, best
            ):
                best = at
        left.remove(best)
        for at in left:
            same = _dot(units[at], units[best])
            repetition[at] = max(repetition[at], same) if chosen else same
        chosen.append(best)
    return chosen


def _gain(
    similarities: Sequence[float], repetition: Sequence[float], weight: float, at: int
) -> float:
    return weight * similarities[at] - (1.0 - weight) * repetition[at]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum(map(mul, one, other)))


def _unit(vector: Sequence[float]) -> Sequence[float]:
    length = math.sqrt(_dot(vector, vector))
    return [value / length for value in vector] if length > 0.0 else vector
