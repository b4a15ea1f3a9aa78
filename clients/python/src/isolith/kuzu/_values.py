"""Values on their way to the graph, and back in the shapes of Kuzu."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable

from ._catalog import Catalog, RelTable
from ._errors import KuzuError, refused, runtime_error

# What is sent as it is.
_PLAIN = frozenset((bool, float, int, str, type(None)))

_NODE = {"id", "labels", "properties"}
_REL = {"id", "type", "start", "end", "properties"}
_PATH = {"nodes", "relationships"}

# Finds the nodes with these ids.
FindNodes = Callable[[Iterable[int]], Iterable[Mapping[str, Any]]]


def sent(value: Any) -> Any:
    """A parameter as the graph takes it. Dates and UUIDs become text.

    :raises KuzuError: if there is no such value in the graph
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN else sent(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): sent(item) for key, item in value.items()}
    # The modules of these are not imported for it: without them, there are no such values.
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        return moment_text(value)
    if kind.__name__ == "UUID":
        return str(value)
    if kind.__name__ == "Decimal":
        return float(value)
    if hasattr(value, "tolist") and not isinstance(value, (bytes, bytearray, memoryview)):
        return sent(value.tolist())
    if isinstance(value, (bool, float, int, str)):
        return value
    if kind.__name__ in ("timedelta", "bytes", "bytearray"):
        raise refused(
            f"parameters of type {kind.__name__}",
            "pass seconds" if kind.__name__ == "timedelta" else "pass base64 text",
        )
    raise runtime_error(f"Unknown parameter type {kind}")


def moment_text(value: Any) -> str:
    """A date or a point in time as ISO 8601. Those with a time zone are in UTC."""
    offset = value.utcoffset() if hasattr(value, "utcoffset") else None
    if offset is not None:
        import datetime

        value = value.astimezone(datetime.timezone.utc)
    if hasattr(value, "to_pydatetime"):
        # The Timestamp of pandas has nanoseconds.
        value = value.to_pydatetime(warn=False)
    text: str = value.isoformat()
    return text


def derived_value(value: Any, kind: str) -> Any:
    """A parameter for a column of floats, or what a function such as ``date`` makes of it."""
    if kind != "DOUBLE":
        from ._convert import converted_text

        return None if value is None else converted_text(value, kind)
    if type(value) is int:
        return float(value)
    if isinstance(value, list):
        return [float(item) if type(item) is int else item for item in value]
    return value


class Shapes:
    """Makes values of the graph those of Kuzu.

    :param find_nodes: finds the nodes that relationships refer to, where their tables are not known
    """

    def __init__(self, catalog: Catalog, find_nodes: FindNodes) -> None:
        self._catalog = catalog
        self._find_nodes = find_nodes
        self._templates: dict[str, dict[str, None]] = {}
        # The labels of nodes that are known, by their ids.
        self._labels: dict[int, str] = {}
        self._nodes: dict[int, dict[str, Any]] = {}

    def rows(
        self, columns: Sequence[str], rows: list[list[Any]], recursive: frozenset[str]
    ) -> list[list[Any]]:
        """The rows of an answer.

        :param recursive: columns with relationships of variable length
        """
        if all(type(value) in _PLAIN for row in rows for value in row):
            return rows
        self._learn(rows)
        spread = [index for index, name in enumerate(columns) if name in recursive]
        if spread:
            self._learn_nodes(rows, spread)
        return [
            [
                self._spread(value) if index in spread else self._shape(value)
                for index, value in enumerate(row)
            ]
            for row in rows
        ]

    def _shape(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if isinstance(value, list):
            return [self._shape(item) for item in value]
        keys = value.keys()
        if keys == _NODE:
            return self._node(value)
        if keys == _REL:
            return self._rel(value)
        if keys == _PATH:
            nodes = [self._node(node) for node in value["nodes"]]
            return {"_nodes": nodes, "_rels": [self._rel(it) for it in value["relationships"]]}
        return {key: self._shape(item) for key, item in value.items()}

    def _node(self, node: Mapping[str, Any]) -> dict[str, Any]:
        label = self._label(node["labels"])
        shaped = {"_id": self._id(node["id"], label), "_label": label}
        return {**shaped, **self._template(label), **node["properties"]}

    def _rel(self, rel: Mapping[str, Any]) -> dict[str, Any]:
        type, start, end = rel["type"], rel["start"], rel["end"]
        shaped = {
            "_src": self._id(start, self._labels.get(start, "")),
            "_dst": self._id(end, self._labels.get(end, "")),
            "_label": type,
            "_id": self._id(rel["id"], type),
        }
        return {**shaped, **self._template(type), **rel["properties"]}

    def _spread(self, rels: Any) -> Any:
        """Relationships of variable length, with the nodes between them."""
        if not isinstance(rels, list):
            return self._shape(rels)
        between = [self._nodes.get(id) for id in _between(rels)]
        nodes = [self._node(node) for node in between if node is not None]
        return {"_nodes": nodes, "_rels": [self._rel(rel) for rel in rels]}

    def _id(self, offset: int, table: str) -> dict[str, int]:
        return {"offset": offset, "table": self._catalog.ids.get(table, -1)}

    def _template(self, table: str) -> dict[str, None]:
        """The columns of a table, all of them without a value."""
        template = self._templates.get(table)
        if template is None:
            found = self._catalog.tables.get(table)
            columns = found.columns if found is not None else ()
            template = self._templates[table] = {column.name: None for column in columns}
        return template

    def _label(self, labels: Sequence[str]) -> str:
        """The table of a node, or the first of its labels."""
        if len(labels) > 1:
            for label in labels:
                if label in self._catalog.tables:
                    return label
        return labels[0] if labels else ""

    def _learn(self, rows: Iterable[Any]) -> None:
        """Notes the labels of nodes that relationships refer to."""
        ends: set[int] = set()
        for value in _objects(rows):
            keys = value.keys()
            if keys == _NODE:
                self._labels[value["id"]] = self._label(value["labels"])
            elif keys == _REL:
                pair = self._only_pair(value["type"])
                if pair is None:
                    ends.update((value["start"], value["end"]))
                else:
                    self._labels.setdefault(value["start"], pair[0])
                    self._labels.setdefault(value["end"], pair[1])
        unknown = ends - self._labels.keys()
        if unknown:
            for node in self._find_nodes(unknown):
                self._labels[node["id"]] = self._label(node["labels"])

    def _learn_nodes(self, rows: Iterable[list[Any]], spread: Iterable[int]) -> None:
        """Finds the nodes between relationships of variable length."""
        ids: set[int] = set()
        for row in rows:
            for index in spread:
                if isinstance(row[index], list):
                    ids.update(_between(row[index]))
        if ids:
            self._nodes = {node["id"]: dict(node) for node in self._find_nodes(ids)}

    def _only_pair(self, type: str) -> tuple[str, str] | None:
        table = self._catalog.tables.get(type)
        if isinstance(table, RelTable) and len(table.ends) == 1:
            return table.ends[0]
        return None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """All maps in a value."""
    if isinstance(value, list):
        for item in value:
            if type(item) not in _PLAIN:
                yield from _objects(item)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            if type(item) not in _PLAIN:
                yield from _objects(item)


def _between(rels: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """The ids of the nodes between relationships that follow each other."""
    for rel, following in zip(rels, rels[1:]):
        if rel["end"] in (following["start"], following["end"]):
            yield rel["end"]
        else:
            yield rel["start"]


def check_names(given: Mapping[Any, Any], names: frozenset[str]) -> None:
    """Checks the names of parameters.

    :raises KuzuError: if one is not a string, or the statement has none of this name
    """
    for name in given:
        if not isinstance(name, str):
            text = f"Parameter name must be of type string but got {type(name)}"
            raise KuzuError(text, code="bad_input")
        if name not in names:
            raise KuzuError(f"Parameter {name} not found.", code="bad_input")
