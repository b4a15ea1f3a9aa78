"""The tables of a database. They are kept as constraints of the graph.

A node table is a label with a key on one property, a relationship table is a type whose ends are
declared. A column is the type of a property. The constraint of a column is called ``Table.column``,
followed by its type if the type of the property does not say it; the constraint that makes the
table is called like the table, and is the last one to be created.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from ._columns import ColumnType, of_property_type, of_text
from ._errors import KuzuError
from ._tokens import quoted

SHOW = "SHOW CONSTRAINTS"

_PLAIN = re.compile(r"[^\W\d]\w*")


class Constraint(NamedTuple):
    """A constraint of the graph."""

    name: str
    type: str
    label: str
    properties: tuple[str, ...]
    property_type: str | None
    ends: tuple[tuple[str, str], ...]
    is_node: bool


class Column(NamedTuple):
    """A column of a table. ``constraint`` is empty if it has none of its own."""

    name: str
    type: ColumnType
    constraint: str


class NodeTable(NamedTuple):
    """A label, its columns and its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: str
    constraint: str

    def column(self, name: str) -> Column | None:
        """A column. Names are not case-sensitive in Kuzu."""
        return _named(self.columns, name)


class RelTable(NamedTuple):
    """A type of relationships, its columns, and which node tables they connect."""

    name: str
    columns: tuple[Column, ...]
    ends: tuple[tuple[str, str], ...]
    constraint: str

    def column(self, name: str) -> Column | None:
        """A column. Names are not case-sensitive in Kuzu."""
        return _named(self.columns, name)


Table = Union[NodeTable, RelTable]


class Catalog(NamedTuple):
    """All tables, in the order in which they were declared.

    :ivar unfinished: the constraints of labels and types that are not tables (yet)
    :ivar ids: the number of each table
    """

    tables: Mapping[str, Table]
    unfinished: Mapping[str, tuple[Constraint, ...]]
    ids: Mapping[str, int]

    def find(self, name: str) -> Table | None:
        """A table. Names are not case-sensitive in Kuzu."""
        found = self.tables.get(name)
        if found is None:
            lowered = name.lower()
            for other, table in self.tables.items():
                if other.lower() == lowered:
                    return table
        return found

    def node_table(self, name: str) -> NodeTable | None:
        """A node table."""
        found = self.find(name)
        return found if isinstance(found, NodeTable) else None

    def rel_table(self, name: str) -> RelTable | None:
        """A relationship table."""
        found = self.find(name)
        return found if isinstance(found, RelTable) else None

    def key_of(self, name: str) -> str | None:
        """The primary key of a node table."""
        table = self.node_table(name)
        return None if table is None else table.key

    def referring(self, name: str) -> str | None:
        """A relationship table that connects a node table."""
        for table in self.tables.values():
            if isinstance(table, RelTable) and any(name in pair for pair in table.ends):
                return table.name
        return None


def constraints_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Constraint]:
    """The constraints in the answer to ``SHOW CONSTRAINTS``."""
    found = []
    for row in rows:
        values = dict(zip(columns, row))
        labels = values["labelsOrTypes"]
        ends = tuple((start, end) for start, end in values.get("ends") or ())
        found.append(
            Constraint(
                values["name"],
                values["type"],
                labels[0] if labels else "",
                tuple(values["properties"] or ()),
                values.get("propertyType"),
                ends,
                values["entityType"] == "NODE",
            )
        )
    return found


def catalog_of(constraints: Iterable[Constraint]) -> Catalog:
    """The tables that constraints make."""
    groups: dict[tuple[str, bool], list[Constraint]] = {}
    for constraint in constraints:
        groups.setdefault((constraint.label, constraint.is_node), []).append(constraint)
    tables: dict[str, Table] = {}
    unfinished: dict[str, tuple[Constraint, ...]] = {}
    for (label, is_node), group in groups.items():
        table = _node_table(label, group) if is_node else _rel_table(label, group)
        if table is None:
            unfinished[label] = unfinished.get(label, ()) + tuple(group)
        else:
            tables.setdefault(label, table)
    return Catalog(tables, unfinished, {name: number for number, name in enumerate(tables)})


def constraint_name(table: str, column: str, type: ColumnType) -> str:
    """The name of a column's constraint."""
    name = column_name(table, column)
    return name if type.is_default else f"{name} {type.name}"


def column_name(table: str, column: str) -> str:
    """What the name of a column's constraint begins with."""
    return f"{_part(table)}.{_part(column)}"


def _part(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


def _node_table(label: str, group: list[Constraint]) -> NodeTable | None:
    for constraint in group:
        if constraint.type == "NODE_KEY" and len(constraint.properties) == 1:
            (key,) = constraint.properties
            columns = _columns(group)
            if _named(columns, key) is None:
                columns = (Column(key, of_property_type(None), ""), *columns)
            return NodeTable(label, columns, key, constraint.name)
    return None


def _rel_table(label: str, group: list[Constraint]) -> RelTable | None:
    for constraint in group:
        if constraint.type == "RELATIONSHIP_ENDS":
            return RelTable(label, _columns(group), constraint.ends, constraint.name)
    return None


def _columns(group: list[Constraint]) -> tuple[Column, ...]:
    return tuple(
        Column(constraint.properties[0], _type(constraint), constraint.name)
        for constraint in group
        if constraint.type.endswith("_PROPERTY_TYPE") and len(constraint.properties) == 1
    )


def _type(constraint: Constraint) -> ColumnType:
    """The type in the name of a constraint, if it has one that fits."""
    usual = of_property_type(constraint.property_type)
    start = column_name(constraint.label, constraint.properties[0]) + " "
    if constraint.name.startswith(start):
        try:
            named = of_text(constraint.name[len(start) :])
        except KuzuError:
            return usual
        if named.property_type == constraint.property_type:
            return named
    return usual


def _named(columns: Iterable[Column], name: str) -> Column | None:
    lowered = None
    for column in columns:
        if column.name == name:
            return column
        if column.name.lower() == name.lower():
            lowered = column
    return lowered
