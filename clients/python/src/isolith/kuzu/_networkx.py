"""Nodes and relationships as a graph of networkx."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._tabular import _import


def to_networkx(
    rows: Iterable[Iterable[Any]], key_of: Callable[[str], str | None] | None, directed: bool
) -> Any:
    """A graph with each node and relationship of the rows once.

    :param key_of: finds the primary key of a table; nodes without one are named by their ids
    """
    networkx = _import("networkx", "get_as_networkx")
    graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    nodes: dict[int, dict[str, Any]] = {}
    rels: dict[int, dict[str, Any]] = {}
    for row in rows:
        for value in row:
            for node in _nodes(value):
                nodes[node["_id"]["offset"]] = node
            for rel in _rels(value):
                rels[rel["_id"]["offset"]] = rel
    names = {}
    for offset, node in nodes.items():
        key = None if key_of is None else key_of(node["_label"])
        names[offset] = f"{node['_label']}_{node.get(key, offset) if key else offset}"
        graph.add_node(names[offset])
        # As in Kuzu, which also marks it with its label.
        graph.nodes[names[offset]].update({**node, node["_label"]: True})
    for rel in rels.values():
        start, end = rel["_src"]["offset"], rel["_dst"]["offset"]
        if start in names and end in names:
            key = graph.add_edge(names[start], names[end])
            graph.edges[names[start], names[end], key].update(rel)
    return graph


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "_nodes" in value and "_rels" in value:
            yield from value["_nodes"]
        elif "_label" in value and "_src" not in value:
            yield value


def _rels(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "_nodes" in value and "_rels" in value:
            yield from value["_rels"]
        elif "_src" in value and "_dst" in value:
            yield value
