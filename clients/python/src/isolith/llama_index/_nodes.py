"""Between LlamaIndex's nodes and the records of collections. Values in, values out."""

from __future__ import annotations

import json
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from .._metadata import flat, restored
from ..api.collections import Record, RecordHit

# The metadata keys of ids: filters have no access to the ids of records.
NODE_ID = "_node_id"
DOCUMENT_ID = "ref_doc_id"

_CONTENT, _TYPE = "_node_content", "_node_type"


def record_of(node: BaseNode, with_vector: bool) -> dict[str, Any]:
    """The record of a node. Its metadata can be filtered by, if it is flat; all of the node is
    kept.

    :raises ValueError: if the vector is needed, and the node has none
    """
    given = node_to_metadata_dict(node, remove_text=True)
    # Metadata is indexed, so that every byte of it counts twice.
    content = {key: value for key, value in json.loads(given[_CONTENT]).items() if _says(value)}
    record: dict[str, Any] = {
        "id": node.node_id,
        "document": node.get_content(metadata_mode=MetadataMode.NONE),
        "metadata": {
            **flat(node.metadata),
            _CONTENT: json.dumps(content, ensure_ascii=False, separators=(",", ":")),
            _TYPE: given[_TYPE],
            DOCUMENT_ID: given[DOCUMENT_ID],
            NODE_ID: node.node_id,
        },
    }
    if with_vector:
        record["vector"] = node.get_embedding()
    return record


def node_of(record: Record | RecordHit) -> BaseNode:
    """The node of a record; records of other origin become text nodes."""
    if _CONTENT in record.metadata:
        return metadata_dict_to_node(record.metadata, text=record.document)
    return TextNode(id_=record.id, text=record.document or "", metadata=restored(record.metadata))


def _says(value: Any) -> bool:
    """Whether a field has to be stored: nodes are made without the empty ones."""
    return value is not None and value not in ("", [], {})
