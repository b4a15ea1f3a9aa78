"""Collections of records: vectors with documents and metadata."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, Iterable, List, Mapping, Sequence

from .._batches import id_batches, record_batches, rows_of
from .._call import Call, Endpoint, Plan
from .._model import Model, Rows, converted, many
from .._operation import (
    Asynchronous,
    AsyncRunner,
    Blocking,
    BlockingRunner,
    Page,
    listing,
    operation,
    resolved,
)
from .._vectors import decode, encode
from .jobs import Progress
from .memory import Deleted

if TYPE_CHECKING:
    from .._vectors import Vector

_LIST = Endpoint("GET", "/collections")
_CREATE = Endpoint("POST", "/collections")
_INFO = Endpoint("GET", "/collections/{collection}")
_RENAME = Endpoint("PATCH", "/collections/{collection}")
_DROP = Endpoint("DELETE", "/collections/{collection}")
_COUNT = Endpoint("GET", "/collections/{collection}/count")
_QUERY = Endpoint("POST", "/collections/{collection}/query", repeatable=True)
_VALUES = Endpoint("POST", "/collections/{collection}/values", repeatable=True)
_UPSERT = Endpoint("PUT", "/collections/{collection}/records", keyed=True)
_ADD = Endpoint("POST", "/collections/{collection}/records", keyed=True)
_UPDATE = Endpoint("PATCH", "/collections/{collection}/records", keyed=True)
_GET = Endpoint("POST", "/collections/{collection}/get", repeatable=True)
_GET_ONE = Endpoint("GET", "/collections/{collection}/records/{id}")
_DELETE = Endpoint("POST", "/collections/{collection}/delete", keyed=True)
_DELETE_ONE = Endpoint("DELETE", "/collections/{collection}/records/{id}", keyed=True)
_INGEST = Endpoint("POST", "/collections/{collection}/ingest", repeatable=True, job=True)

# How many records are asked for at once by their ids.
_IDS_AT_ONCE = 1000

# How vectors are asked for.
_ENCODING = "base64"


@dataclass(frozen=True)
class CollectionInfo(Model):
    """The properties of a collection. ``dimension`` is ``None`` before the first vector."""

    name: str
    records: int
    dimension: int | None = None
    metric: str = "cosine"
    model: str | None = None
    generation: int = 0
    tail: int = 0
    store: str = ""


@dataclass(frozen=True)
class Record(Model):
    """A record.

    Its vector is an ``array.array`` of floats, and ``None`` unless it was asked for.
    """

    id: str
    document: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    vector: Any = converted(decode, default=None)


@dataclass(frozen=True)
class RecordHit(Model):
    """A record that was found.

    ``distance`` is smaller for nearer vectors, ``score`` larger for better keywords. If a query has
    both, hits are ordered by ``fused``, and ``why`` says what contributed to it.
    """

    id: str
    distance: float | None = None
    score: float | None = None
    fused: float | None = None
    why: list[str] = field(default_factory=list)
    document: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordHits(Model, Rows[RecordHit]):
    """Hits, the best first. ``degraded`` says why the answer is incomplete, or took long."""

    hits: list[RecordHit] = many(RecordHit)
    degraded: str | None = None

    def _items(self) -> list[RecordHit]:
        return self.hits


@dataclass(frozen=True)
class Stored(Model):
    """How many records were new, replaced, or there already; ``count`` is their number now."""

    inserted: int
    updated: int
    unchanged: int
    count: int


@dataclass(frozen=True)
class Changed(Model):
    """How many records were changed, were as they should be already, or did not exist."""

    updated: int
    unchanged: int
    missing: int


@dataclass(frozen=True)
class ValueCount(Model):
    """A value of a metadata key, and how many records have it."""

    value: Any
    count: int


@dataclass(frozen=True)
class ValueCounts(Model, Rows[ValueCount]):
    """Values, the most frequent first. ``total`` is the number of distinct values."""

    values: list[ValueCount] = many(ValueCount)
    total: int = 0

    def _items(self) -> list[ValueCount]:
        return self.values


@dataclass(frozen=True)
class RejectedRow(Model):
    """A row that was not loaded, and why."""

    row: int
    reason: str


@dataclass(frozen=True)
class IngestReceipt(Model):
    """What loading a file did. ``rejected`` has the first rejected rows."""

    collection: str
    rows: int
    inserted: int
    updated: int
    unchanged: int
    rejected: list[RejectedRow] = many(RejectedRow)
    rejected_rows: int = 0
    count_before: int = 0
    count_after: int = 0
    seconds: float = 0.0


def list_collections() -> Call[List[CollectionInfo]]:
    """Lists the collections."""

    def parse(reply: Any) -> List[CollectionInfo]:
        return [CollectionInfo.from_json(collection) for collection in reply["collections"]]

    return _LIST(parse)


def create(
    name: str, dimension: int | None, metric: str | None, model: str | None, if_missing: bool
) -> Call[None]:
    """Creates a collection."""
    call = _CREATE(
        lambda reply: None,
        name=name,
        dimension=dimension,
        metric=metric,
        model=model,
        if_missing=if_missing or None,
    )
    call.is_repeatable = if_missing
    return call


class CollectionOperations:
    """A collection of records."""

    name: str

    @operation
    def info(self) -> Plan[CollectionInfo]:
        """Its properties.

        :raises isolith.NotFound: if it does not exist
        """
        return _INFO(CollectionInfo.from_json, collection=self.name)

    @operation
    def count(self) -> Plan[int]:
        """The number of its records."""

        def parse(reply: Any) -> int:
            return int(reply["count"])

        return _COUNT(parse, collection=self.name)

    @operation
    def add(
        self,
        records: Iterable[Record | Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        documents: Sequence[str | None] | None = None,
        vectors: Sequence[Vector] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        key: str | None = None,
    ) -> Plan[Stored]:
        """Adds records; creates the collection if needed.

        More than 10,000 records, or 3.5 MB, are sent as several requests. Each of them is stored
        completely or not at all, but not all of them together: if one fails, those before it are
        stored. Repeating the call stores the rest.

        :param records: records, or mappings with ``id``, ``document``, ``vector`` and ``metadata``
        :param ids: the ids, if records are given as columns; ``vectors`` can be a matrix of numpy
        :param key: repeating the call with the same key within a day changes nothing
        :raises isolith.AlreadyExists: if an id exists with other content
        """
        rows = rows_of(records, ids, documents, vectors, metadata)
        return _store(_ADD, self.name, rows, key)

    @operation
    def upsert(
        self,
        records: Iterable[Record | Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        documents: Sequence[str | None] | None = None,
        vectors: Sequence[Vector] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        key: str | None = None,
    ) -> Plan[Stored]:
        """Adds records, or replaces those with the same ids. The arguments are those of ``add``."""
        rows = rows_of(records, ids, documents, vectors, metadata)
        return _store(_UPSERT, self.name, rows, key)

    @operation
    def update(
        self,
        records: Iterable[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        documents: Sequence[str | None] | None = None,
        vectors: Sequence[Vector] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        key: str | None = None,
    ) -> Plan[Changed]:
        """Changes parts of records that exist; what is omitted is kept.

        In a record, ``"document": None`` removes the document. Metadata is merged, and ``None``
        as a value removes a key. The arguments are those of ``add``.
        """
        rows = rows_of(records, ids, documents, vectors, metadata)
        return _change(self.name, rows, key)

    @operation
    def get(
        self,
        ids: Iterable[str] | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        sort: str | None = None,
        descending: bool | None = None,
        vectors: bool = False,
    ) -> Plan[List[Record]]:
        """Records, by their ids or by filters. Ids that do not exist are left out.

        :param limit: the maximum number: 1 to 10,000; by default 100, or all with ids
        :param sort: a metadata key to sort by
        :param vectors: whether to include vectors
        """
        page = {
            "where": where,
            "where_document": where_document,
            "limit": limit,
            "offset": offset,
            "sort": sort,
            "descending": descending,
        }
        if ids is None or any(value is not None for value in page.values()):
            listed = None if ids is None else _list_of(ids)
            if listed is not None and limit is None:
                page["limit"] = max(1, min(len(listed), 10_000))
            return _page(self.name, listed, vectors, page)
        return _by_ids(self.name, _list_of(ids), vectors)

    @operation
    def get_one(self, id: str) -> Plan[Record]:
        """A record with its vector.

        :raises isolith.NotFound: if there is none with this id
        """
        return _GET_ONE(Record.from_json, collection=self.name, id=id)

    @listing
    def records(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        sort: str | None = None,
        descending: bool | None = None,
        vectors: bool = False,
        page_size: int = 1000,
    ) -> Callable[[Any], Call[Page[Record]]]:
        """Iterates over all records, or those that match filters.

        Pages are read as they are needed, so that records that are added or deleted meanwhile can
        be left out or appear twice.
        """

        def page_at(offset: Any) -> Call[Page[Record]]:
            page = {
                "where": where,
                "where_document": where_document,
                "limit": page_size,
                "offset": offset,
                "sort": sort,
                "descending": descending,
            }

            def parse(reply: Any) -> Page[Record]:
                records = _records(reply)
                is_last = len(records) < page_size
                return Page(records, None if is_last else (offset or 0) + len(records))

            return _get_call(parse, self.name, None, vectors, page)

        return page_at

    @operation
    def query(
        self,
        *,
        vector: Vector | None = None,
        text: str | None = None,
        keywords: str | None = None,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Plan[RecordHits]:
        """Finds records by a vector or a text, by keywords, or by both.

        :param text: is embedded first, if the vectors come from the built-in model
        :param where: only records whose metadata match, such as ``{"year": {"$gte": 2024}}``
        :param where_document: only records whose documents match: ``{"$contains": "word"}``
        :param limit: the maximum number of hits: 1 to 1000, by default 10
        """
        return _QUERY(
            RecordHits.from_json,
            collection=self.name,
            vector=None if vector is None else encode(vector),
            text=text,
            keywords=keywords,
            where=where,
            where_document=where_document,
            limit=limit,
        )

    @operation
    def values(
        self,
        key: str,
        *,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Plan[ValueCounts]:
        """Counts the distinct values of a metadata key.

        :param limit: the maximum number of values: 1 to 10,000, by default 100
        """
        return _VALUES(
            ValueCounts.from_json,
            collection=self.name,
            key=key,
            where=where,
            where_document=where_document,
            limit=limit,
        )

    @operation
    def delete(
        self,
        ids: Iterable[str] | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Plan[Deleted]:
        """Deletes records, by their ids or by filters. ``drop`` deletes the collection."""
        if ids is not None and where is None and where_document is None:
            return _delete_ids(self.name, _list_of(ids), key)
        return _DELETE(
            Deleted.from_json,
            idempotency_key=key,
            collection=self.name,
            ids=None if ids is None else _list_of(ids),
            where=where,
            where_document=where_document,
        )

    @operation
    def delete_one(self, id: str, *, key: str | None = None) -> Plan[Deleted]:
        """Deletes a record. It is no error if there is none with this id."""
        return _DELETE_ONE(Deleted.from_json, idempotency_key=key, collection=self.name, id=id)

    @operation
    def ingest(
        self,
        path: str | os.PathLike[str],
        *,
        skip_bad: bool = False,
        model: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Plan[IngestReceipt]:
        """Loads a file of records on the server's machine. There is no time limit.

        The file is JSONL, or JSON ready for Chroma. It is checked completely before anything is
        written. Repeating the call continues a load that was interrupted.

        :param path: absolute, or relative to the current folder; with ``connect`` to the project
        :param skip_bad: whether to load the valid rows of a file that has invalid ones
        :param model: the model that made the vectors
        :param progress: is called up to ten times a second; an exception in it cancels the load
        """
        call = _INGEST(
            IngestReceipt.from_json,
            collection=self.name,
            path=resolved(self, path),
            skip_bad=skip_bad or None,
            model=model,
        )
        call.on_progress = Progress.callback(progress)
        return call

    @operation
    def drop(self) -> Plan[int]:
        """Deletes the collection, and returns how many records it had."""

        def parse(reply: Any) -> int:
            return int(reply["deleted"])

        return _DROP(parse, collection=self.name)

    @operation
    def rename(self, name: str) -> Plan[CollectionInfo]:
        """Renames the collection; this object is that of the new name then."""
        return _rename(self, name)


def _store(
    endpoint: Endpoint, name: str, records: Iterable[Any], key: str | None
) -> Generator[Call[Any], Any, Stored]:
    inserted = updated = unchanged = count = 0
    for number, body in enumerate(record_batches(records)):
        done = yield from endpoint(
            Stored.from_json,
            idempotency_key=_batch_key(key, number),
            raw_body=body,
            collection=name,
        )
        inserted += done.inserted
        updated += done.updated
        unchanged += done.unchanged
        count = done.count
    return Stored(inserted, updated, unchanged, count)


def _change(
    name: str, records: Iterable[Any], key: str | None
) -> Generator[Call[Any], Any, Changed]:
    updated = unchanged = missing = 0
    for number, body in enumerate(record_batches(records)):
        done = yield from _UPDATE(
            Changed.from_json,
            idempotency_key=_batch_key(key, number),
            raw_body=body,
            collection=name,
        )
        updated += done.updated
        unchanged += done.unchanged
        missing += done.missing
    return Changed(updated, unchanged, missing)


def _delete_ids(name: str, ids: List[str], key: str | None) -> Generator[Call[Any], Any, Deleted]:
    deleted = missing = 0
    for number, batch in enumerate(id_batches(ids)):
        done = yield from _DELETE(
            Deleted.from_json,
            idempotency_key=_batch_key(key, number),
            collection=name,
            ids=batch,
        )
        deleted += done.deleted
        missing += done.missing
    return Deleted(deleted, missing)


def _batch_key(key: str | None, number: int) -> str | None:
    """The key of one request of several: the caller's for the first, derived from it for others."""
    return key if key is None or number == 0 else f"{key}.{number}"


def _by_ids(name: str, ids: List[str], vectors: bool) -> Generator[Call[Any], Any, List[Record]]:
    records: List[Record] = []
    for batch in id_batches(ids, _IDS_AT_ONCE):
        records += yield from _page(name, batch, vectors, {"limit": len(batch)})
    return records


def _page(
    name: str, ids: List[str] | None, vectors: bool, page: Dict[str, Any]
) -> Call[List[Record]]:
    return _get_call(_records, name, ids, vectors, page)


def _get_call(
    parse: Callable[[Any], Any],
    name: str,
    ids: List[str] | None,
    vectors: bool,
    page: Dict[str, Any],
) -> Call[Any]:
    return _GET(
        parse,
        collection=name,
        ids=ids,
        vectors=True if vectors else None,
        encoding=_ENCODING if vectors else None,
        **page,
    )


def _records(reply: Any) -> List[Record]:
    return [Record.from_json(record) for record in reply["records"]]


def _rename(collection: Any, name: str) -> Generator[Call[Any], Any, CollectionInfo]:
    info = yield from _RENAME(CollectionInfo.from_json, collection=collection.name, name=name)
    collection.name = name
    return info


def _list_of(ids: Iterable[str]) -> List[str]:
    from ..errors import BadInput

    if isinstance(ids, str):
        raise BadInput("ids must be a list of strings, not a string")
    return list(ids)


class Collection(CollectionOperations, Blocking):
    """A collection of records. It need not exist yet: adding records creates it."""

    def __init__(self, runner: BlockingRunner, name: str) -> None:
        super().__init__(runner)
        self.name = name

    def __repr__(self) -> str:
        return f"Collection({self.name!r})"


class AsyncCollection(CollectionOperations, Asynchronous):
    """A collection of records. It need not exist yet: adding records creates it."""

    def __init__(self, runner: AsyncRunner, name: str) -> None:
        super().__init__(runner)
        self.name = name

    def __repr__(self) -> str:
        return f"AsyncCollection({self.name!r})"
