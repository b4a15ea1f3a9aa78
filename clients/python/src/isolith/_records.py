"""What the stores of frameworks do with a collection: plans that run blocking or in asyncio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

from ._call import Call, Plan
from ._operation import AsyncRunner, BlockingRunner, run, run_async
from ._ranking import cosine, cosine_of_units, diverse
from .api.collections import CollectionOperations, Record, RecordHit, create
from .errors import NotFound

T = TypeVar("T")

_LOG = logging.getLogger("isolith")

# A plan of several calls.
Steps = Generator[Call[Any], Any, T]

# The model that embeds documents on the server.
BUILT_IN = "built-in"

# The most records that one request returns.
_PAGE = 10_000

# Matches all records: none has a value that is in an empty list.
_EVERYTHING: dict[str, Any] = {"_": {"$nin": []}}


async def run_either(client: BlockingRunner, async_client: AsyncRunner | None, plan: Plan[T]) -> T:
    """Runs a plan with the asynchronous handle, or in a thread with the other one."""
    if async_client is not None:
        return await run_async(async_client, plan)
    return await asyncio.to_thread(run, client, plan)


def warn_of(source: str, degraded: str | None) -> None:
    """Logs why an answer is incomplete: frameworks have no place for it."""
    if degraded:
        _LOG.warning("%s: %s", source, degraded)


class Records(CollectionOperations):
    """A collection that is created by the first record. Until then, nothing is found in it.

    :ivar metric: the metric for creating it, ``None`` for the default
    """

    def __init__(self, name: str, metric: str | None, is_built_in: bool) -> None:
        self.name = name
        self.metric = metric
        self._model = BUILT_IN if is_built_in else None
        self._is_created = metric is None
        self._known_metric: str | None = None

    def put(self, records: Sequence[Mapping[str, Any]]) -> Steps[list[str]]:
        """Adds or replaces records, and returns their ids. The last record with an id counts."""
        if records:
            if not self._is_created:
                yield from create(self.name, None, self.metric, self._model, if_missing=True)
                self._is_created = True
            last = {record["id"]: record for record in records}
            yield from CollectionOperations.upsert.function(self, last.values())
        return [record["id"] for record in records]

    def remove(
        self,
        ids: Sequence[str] | None,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
    ) -> Steps[None]:
        """Deletes records, by their ids or by filters; all of them if neither is given.

        :raises ValueError: if both are given
        """
        if ids is not None and (where or where_document):
            raise ValueError("pass either ids or filters")
        conditions: dict[str, Any] = {"where": where or None}
        if ids is not None:
            if not ids:
                return
            conditions = {"ids": list(ids)}
        elif where_document:
            conditions["where_document"] = where_document
        elif not where:
            conditions["where"] = _EVERYTHING
        try:
            yield from CollectionOperations.delete.function(self, **conditions)
        except NotFound:
            # There is no collection.
            return

    def fetch(self, ids: Sequence[str], *, vectors: bool = False) -> Steps[list[Record]]:
        """The records with these ids, in this order; those that do not exist are left out."""
        try:
            found = yield from CollectionOperations.get.function(self, list(ids), vectors=vectors)
        except NotFound:
            return []
        by_id = {record.id: record for record in found}
        return [by_id[one] for one in dict.fromkeys(ids) if one in by_id]

    def select(
        self, where: Mapping[str, Any] | None, *, limit: int | None = None
    ) -> Steps[list[Record]]:
        """The records that match a filter in the order of their arrival; all by default."""
        records: list[Record] = []
        while limit is None or len(records) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(records))
            try:
                page = yield from CollectionOperations.get.function(
                    self, where=where, limit=size, offset=len(records)
                )
            except NotFound:
                break
            records += page
            if len(page) < size:
                break
        return records

    def search(self, question: Mapping[str, Any], k: int) -> Steps[list[RecordHit]]:
        """The best ``k`` hits. A question has the arguments of a collection's ``query``."""
        if k < 1:
            return []
        try:
            found = yield from CollectionOperations.query.function(self, **question, limit=k)
        except NotFound:
            return []
        warn_of(self.name, found.degraded)
        return found.hits

    def search_diverse(
        self, question: Mapping[str, Any], k: int, candidates: int, weight: float
    ) -> Steps[list[tuple[RecordHit, float]]]:
        """Hits that differ from each other, with the cosines of their angles with the question.

        :param candidates: among how many of the best hits to choose
        :param weight: see :func:`isolith._ranking.diverse`
        """
        hits = yield from self.search(question, max(k, candidates) if k > 0 else 0)
        records = yield from self.fetch([hit.id for hit in hits], vectors=True)
        vectors = {record.id: record.vector for record in records}
        # A record can be deleted between the two requests.
        hits = [hit for hit in hits if vectors.get(hit.id) is not None]
        if not hits:
            return []
        target = question.get("vector")
        if target is None:
            metric = yield from self.its_metric()
            cosines = [cosine_of_units(metric, hit.distance or 0.0) for hit in hits]
        else:
            cosines = [cosine(target, vectors[hit.id]) for hit in hits]
        chosen = diverse(cosines, [vectors[hit.id] for hit in hits], k, weight)
        return [(hits[at], cosines[at]) for at in chosen]

    def its_metric(self) -> Steps[str]:
        """The metric of the collection, which is asked for once."""
        if self._known_metric is None:
            info = yield from CollectionOperations.info.function(self)
            self._known_metric = info.metric
        return self._known_metric
