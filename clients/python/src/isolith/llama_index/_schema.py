"""The schema of a property graph, for prompts that ask for Cypher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._labelled import MARKS, NODE

# How many nodes and relations are looked at.
_SAMPLE = 10_000

_NODES = f"MATCH (n:`{NODE}`) WITH n LIMIT {_SAMPLE}"
_RELATIONS = f"MATCH (a:`{NODE}`)-[r]->(b:`{NODE}`) WITH a, r, b LIMIT {_SAMPLE}"

# Each has rows of names, and of an example where they are about a property.
NODE_PROPERTIES = (
    f"{_NODES} UNWIND labels(n) AS label UNWIND keys(n) AS key "
    "RETURN label, key, head(collect(n[key])) ORDER BY label, key"
)
RELATION_PROPERTIES = (
    f"{_RELATIONS} UNWIND keys(r) AS key WITH type(r) AS type, key, r "
    "RETURN type, key, head(collect(r[key])) ORDER BY type, key"
)
RELATIONS = (
    f"{_RELATIONS} UNWIND labels(a) AS start UNWIND labels(b) AS end "
    "RETURN DISTINCT start, type(r) AS type, end ORDER BY start, type, end"
)


def schema_of(
    node_properties: Sequence[Sequence[Any]],
    relation_properties: Sequence[Sequence[Any]],
    relations: Sequence[Sequence[Any]],
) -> dict[str, Any]:
    """The schema from the rows of the three queries."""
    return {
        "node_props": _by_name(row for row in node_properties if row[0] not in MARKS),
        "rel_props": _by_name(relation_properties),
        "relationships": [
            {"start": start, "type": type, "end": end}
            for start, type, end in relations
            if not MARKS.intersection((start, end))
        ],
    }


def text_of(schema: dict[str, Any]) -> str:
    """The schema as text."""
    lines = ["Labels of nodes and their properties:"]
    lines += _properties(schema["node_props"])
    lines.append("Types of relationships and their properties:")
    lines += _properties(schema["rel_props"])
    lines.append("Relationships:")
    lines += [f"(:{it['start']})-[:{it['type']}]->(:{it['end']})" for it in schema["relationships"]]
    return "\n".join(lines)


def _by_name(rows: Any) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for name, key, example in rows:
        # Properties of LlamaIndex itself are of no use in queries.
        if not key.startswith("_"):
            found.setdefault(name, []).append({"property": key, "type": _type_of(example)})
    return found


def _properties(groups: dict[str, list[dict[str, str]]]) -> list[str]:
    lines = []
    for name, properties in groups.items():
        each = ", ".join(f"{it['property']}: {it['type']}" for it in properties)
        lines.append(f"{name} {{{each}}}")
    return lines


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    for kind, name in ((int, "INTEGER"), (float, "FLOAT"), (list, "LIST")):
        if isinstance(value, kind):
            return name
    return "STRING"
