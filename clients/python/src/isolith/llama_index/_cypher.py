"""Cypher queries for property graphs. Texts and parameters out, nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._labelled import NODE

_NODE = f"`{NODE}`"


def quoted(name: str) -> str:
    """A label, type or property in a query."""
    return "`" + name.replace("`", "``") + "`"


def write_nodes(
    groups: Mapping[tuple[tuple[str, ...], tuple[str, ...]], list[dict[str, Any]]],
) -> tuple[str, dict[str, Any]]:
    """Creates or updates nodes. A group is the labels that its nodes get, and that they lose."""
    parts = []
    for number, (get, lose) in enumerate(groups):
        part = f"UNWIND $rows{number} AS row MERGE (n:{_NODE} {{id: row.id}}) "
        if lose:
            part += f"REMOVE n{_labels(lose)} "
        parts.append(part + f"SET n{_labels(get)}, n += row.properties")
    return _in_turn(parts), _parameters(groups.values())


def write_relations(groups: Mapping[str, list[dict[str, Any]]]) -> tuple[str, dict[str, Any]]:
    """Creates or updates relations, and their ends where they do not exist. A group is a label."""
    parts = [
        f"UNWIND $rows{number} AS row "
        f"MERGE (a:{_NODE} {{id: row.source}}) MERGE (b:{_NODE} {{id: row.target}}) "
        f"MERGE (a)-[r:{quoted(label)}]->(b) SET r += row.properties"
        for number, label in enumerate(groups)
    ]
    return _in_turn(parts), _parameters(groups.values())


def labels(ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The ids and labels of nodes that exist."""
    return f"MATCH (n:{_NODE}) WHERE n.id IN $ids RETURN n.id, labels(n)", {"ids": list(ids)}


def nodes(
    properties: Mapping[str, Any] | None, ids: Sequence[str] | None
) -> tuple[str, dict[str, Any]]:
    """The nodes that have these ids and all of these properties."""
    conditions, parameters = [], {}
    if ids is not None:
        conditions.append("n.id IN $ids")
        parameters["ids"] = list(ids)
    if properties:
        conditions.append(_has(("n",), properties, parameters))
    return f"MATCH (n:{_NODE}){_where(conditions)} RETURN n", parameters


def delete_nodes(ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Deletes nodes and their relations."""
    return f"MATCH (n:{_NODE}) WHERE n.id IN $ids DETACH DELETE n", {"ids": list(ids)}


def delete_relations(types: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Deletes relations by their labels."""
    return f"MATCH (:{_NODE})-[r{_types(types)}]->(:{_NODE}) DELETE r", {}


def triplets(
    names: Sequence[str] | None,
    types: Sequence[str] | None,
    properties: Mapping[str, Any] | None,
    ids: Sequence[str] | None,
) -> tuple[str, dict[str, Any]]:
    """Relations with their ends, where all of this is true that is given: the type is one of these,
    an end has one of these names (which are ids), an end has one of these ids, and an end or the
    relation has all of these properties."""
    parameters: dict[str, Any] = {}
    given = {"ids": ids, "names": names}
    ends = {key: list(values) for key, values in given.items() if values is not None}
    parameters.update(ends)
    common = [f"(a.id IN ${key} OR b.id IN ${key})" for key in list(ends)[1:]]
    if properties:
        common.append(_has(("a", "r", "b"), properties, parameters))
    # Each side by itself is found through an index; together, they would not be.
    sides = [[f"{end}.id IN ${next(iter(ends))}"] for end in ("a", "b")] if ends else [[]]
    pattern = f"MATCH (a:{_NODE})-[r{_types(types or ())}]->(b:{_NODE})"
    parts = [f"{pattern}{_where(side + common)} RETURN a, r, b" for side in sides]
    return " UNION ".join(parts), parameters


def neighbours(
    ids: Sequence[str], ignored: Sequence[str], found: Sequence[int], limit: int
) -> tuple[str, dict[str, Any]]:
    """Relations of nodes, in the order of the nodes: the start, the relation, the end."""
    query = (
        f"UNWIND range(0, size($ids) - 1) AS at MATCH (n:{_NODE} {{id: $ids[at]}})-[r]-(:{_NODE}) "
        "WHERE NOT type(r) IN $ignored AND NOT id(r) IN $found "
        "WITH at, r ORDER BY at, id(r) LIMIT $limit RETURN startNode(r), r, endNode(r)"
    )
    # A relation between two of the nodes is found twice.
    parameters = {"ids": list(ids), "ignored": list(ignored), "found": list(found)}
    return query, {**parameters, "limit": 2 * limit}


def _labels(names: Iterable[str]) -> str:
    return "".join(f":{quoted(name)}" for name in names)


def _types(names: Sequence[str]) -> str:
    return ":" + "|".join(map(quoted, names)) if names else ""


def _has(
    variables: Sequence[str], properties: Mapping[str, Any], parameters: dict[str, Any]
) -> str:
    """That one of the variables has all properties, whose values become parameters."""
    for number, value in enumerate(properties.values()):
        parameters[f"value{number}"] = value
    each = (
        " AND ".join(
            f"{variable}.{quoted(name)} = $value{number}" for number, name in enumerate(properties)
        )
        for variable in variables
    )
    return "(" + " OR ".join(each) + ")"


def _where(conditions: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def _in_turn(parts: Sequence[str]) -> str:
    """Clauses that write, one after the other: counting makes one row of those before it."""
    return " WITH count(*) AS done ".join(parts)


def _parameters(rows: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    return {f"rows{number}": group for number, group in enumerate(rows)}
