"""Between LangChain's documents and the records of collections. Values in, values out."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from .._metadata import restored, stored
from ..api.collections import Record, RecordHit


def records_of(
    texts: Sequence[str],
    vectors: Sequence[Sequence[float]] | None,
    metadatas: Sequence[dict[str, Any] | None] | None,
    ids: Sequence[str | None] | None,
) -> list[dict[str, Any]]:
    """One record for each text. Those without an id get a random one.

    :raises ValueError: if the lists differ in length
    """
    for name, column in (("metadatas", metadatas), ("ids", ids), ("embeddings", vectors)):
        if column is not None and len(column) != len(texts):
            raise ValueError(f"there are {len(texts)} texts, but {len(column)} {name}")
    records = []
    for at, text in enumerate(texts):
        given = None if ids is None else ids[at]
        record: dict[str, Any] = {"id": given or str(uuid.uuid4()), "document": text}
        if vectors is not None:
            record["vector"] = vectors[at]
        metadata = None if metadatas is None else metadatas[at]
        if metadata:
            record["metadata"] = stored(metadata)
        records.append(record)
    return records


def document_of(record: Record | RecordHit) -> Document:
    """The document of a record."""
    return Document(
        id=record.id, page_content=record.document or "", metadata=restored(record.metadata)
    )
