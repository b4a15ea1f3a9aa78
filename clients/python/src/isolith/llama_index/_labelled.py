"""Between LlamaIndex's labelled nodes and the nodes of the graph. Values in, values out.

Every node of a property graph store has the label ``__Node__``, and ``__Entity__`` or
``__Chunk__``; it also has the label that LlamaIndex gave to it. Its id is the property ``id``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    Relation,
    Triplet,
)

from .._call import to_json
from ..api.graph import Node, Relationship

NODE, ENTITY, CHUNK = "__Node__", "__Entity__", "__Chunk__"
MARKS = frozenset((NODE, ENTITY, CHUNK))

# What a request may have; the server's limit is 4 MiB.
_MOST_ROWS = 1000
_MOST_BYTES = 2_000_000

_INTEGERS = range(-(2**63), 2**63)


def id_of(name: str) -> str:
    """The id of the entity with this name."""
    return EntityNode(name=name).id


def row_of(node: LabelledNode) -> dict[str, Any]:
    """The id and properties of a node, as parameters of a query.

    :raises ValueError: if it is neither an entity nor a chunk
    """
    if isinstance(node, EntityNode):
        own = {"name": node.name}
    elif isinstance(node, ChunkNode):
        own = {"text": node.text}
    else:
        raise ValueError(f"a node must be an entity or a chunk, not {type(node).__name__}")
    return {"id": node.id, "properties": {**properties_of(node.properties), **own}}


def labels_of(node: LabelledNode) -> tuple[str, ...]:
    """The labels of a node, besides ``__Node__``."""
    return (CHUNK if isinstance(node, ChunkNode) else ENTITY, node.label)


def relation_row(relation: Relation) -> dict[str, Any]:
    """The ends and properties of a relation, as parameters of a query."""
    return {
        "source": relation.source_id,
        "target": relation.target_id,
        "properties": properties_of(relation.properties),
    }


def properties_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as the graph stores them: maps, nested lists and large integers become JSON text.

    :raises isolith.BadInput: if a value has no JSON
    """
    return {
        name: value if _is_property(value) else to_json(value).decode()
        for name, value in given.items()
        if name != "id"
    }


def node_of(node: Node) -> LabelledNode:
    """The node of LlamaIndex for a node of the graph.

    A node that was only the end of a relation is an entity.
    """
    properties = dict(node.properties)
    id = str(properties.pop("id", node.id))
    found: LabelledNode
    if CHUNK in node.labels:
        text = str(properties.pop("text", ""))
        found = ChunkNode(id_=id, text=text, properties=properties)
    else:
        name = str(properties.pop("name", id))
        found = EntityNode(name=name, properties=properties)
    own = sorted(set(node.labels) - MARKS)
    if own:
        found.label = own[0]
    return found


def triplet_of(start: Node, relationship: Relationship, end: Node) -> Triplet:
    """The triplet for a relationship and its ends."""
    source, target = node_of(start), node_of(end)
    relation = Relation(
        label=relationship.type,
        source_id=source.id,
        target_id=target.id,
        properties=relationship.properties,
    )
    return (source, relation, target)


def batches(
    rows: Sequence[tuple[Any, dict[str, Any]]],
) -> Iterator[dict[Any, list[dict[str, Any]]]]:
    """Rows in the sizes of requests, each grouped by the first element of its rows."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    count = size = 0
    for group, row in rows:
        length = len(to_json(row))
        if count and (count == _MOST_ROWS or size + length > _MOST_BYTES):
            yield groups
            groups, count, size = {}, 0, 0
        groups.setdefault(group, []).append(row)
        count += 1
        size += length
    if count:
        yield groups


def _is_property(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(item is not None and _is_scalar(item) for item in value)
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int):
        return value in _INTEGERS
    if isinstance(value, float):
        # JSON makes no difference between 1e30 and an integer of that size.
        return math.isfinite(value) and abs(value) < 2**63
    return not isinstance(value, (Mapping, list, tuple, set, frozenset))
