"""Records as JSON, in requests that the server accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._call import to_json
from ._vectors import encode
from .errors import BadInput

if TYPE_CHECKING:
    from ._vectors import Vector

# The limits of a request. The server's are 10,000 records and 4 MiB.
MAX_RECORDS = 10_000
MAX_BYTES = 3_500_000

_FIELDS = frozenset(("id", "document", "vector", "metadata"))


def record_batches(records: Iterable[Any], start: bytes = b'{"records":[') -> Iterator[bytes]:
    """Bodies of requests for any number of records. Records are taken as they are needed."""
    parts: list[bytes] = []
    size = 0
    for record in records:
        part = to_json(_plain_record(record))
        if parts and (len(parts) == MAX_RECORDS or size + len(part) > MAX_BYTES):
            yield start + b",".join(parts) + b"]}"
            parts, size = [], 0
        parts.append(part)
        size += len(part) + 1
    if parts:
        yield start + b",".join(parts) + b"]}"


def id_batches(ids: Iterable[str], size: int = MAX_RECORDS) -> Iterator[list[str]]:
    """Ids in lists of at most ``size``, and at most as long as a request may be."""
    batch: list[str] = []
    length = 0
    for one in ids:
        if not isinstance(one, str):
            raise BadInput(f"an id must be a string, not {type(one).__name__}")
        # Each character has at most 6 bytes in JSON.
        if batch and (len(batch) == size or length + len(one) * 6 > MAX_BYTES):
            yield batch
            batch, length = [], 0
        batch.append(one)
        length += len(one) * 6 + 3
    if batch:
        yield batch


def rows_of(
    records: Iterable[Any] | None,
    ids: Sequence[str] | None,
    documents: Sequence[str | None] | None,
    vectors: Sequence[Vector] | None,
    metadata: Sequence[Mapping[str, Any] | None] | None,
) -> Iterable[Any]:
    """Records that are given as such, or as columns.

    :raises BadInput: if they are given in both ways, or columns differ in length
    """
    if records is not None:
        if any(column is not None for column in (ids, documents, vectors, metadata)):
            raise BadInput("pass either records, or ids with documents, vectors and metadata")
        if isinstance(records, (str, bytes, Mapping)):
            raise BadInput("records must be a list of records")
        return records
    if ids is None:
        raise BadInput("pass records, or ids with documents, vectors and metadata")
    if isinstance(ids, str):
        raise BadInput("ids must be a list of strings, not a string")
    columns = {"document": documents, "vector": vectors, "metadata": metadata}
    given = {name: column for name, column in columns.items() if column is not None}
    for name, column in given.items():
        if len(column) != len(ids):
            raise BadInput(f"there are {len(ids)} ids, but {len(column)} of {name}")
    return _rows(ids, given)


def _rows(ids: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for index, id in enumerate(ids):
        row: dict[str, Any] = {"id": id}
        for name, column in columns.items():
            if column[index] is not None:
                row[name] = column[index]
        yield row


def _plain_record(record: Any) -> dict[str, Any]:
    if hasattr(record, "to_dict") and not isinstance(record, Mapping):
        record = {name: value for name, value in vars(record).items() if value is not None}
    if not isinstance(record, Mapping):
        raise BadInput(f"a record must be a mapping, not {type(record).__name__}")
    unknown = record.keys() - _FIELDS
    if unknown:
        raise BadInput(f"a record has no field {sorted(map(str, unknown))[0]!r}")
    plain = dict(record)
    vector = plain.get("vector")
    if vector is None:
        plain.pop("vector", None)
    else:
        try:
            plain["vector"] = encode(vector)
        except BadInput as error:
            raise BadInput(f"record {plain.get('id')!r}: {error.message}") from None
    return plain
