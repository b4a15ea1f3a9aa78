"""What declares, changes and drops tables: queries that are run one after the other.

Each query is a transaction of its own. The constraint that makes a table is created last and
dropped last, so that a statement that was interrupted can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from ..errors import BadInput
from ._catalog import Catalog, Constraint, NodeTable, Table, column_name, constraint_name
from ._ddl import (
    AddColumn,
    ColumnDefinition,
    CreateNodeTable,
    CreateRelTable,
    DropColumn,
    DropTable,
)
from ._errors import binder_error, no_table, runtime_error, table_exists
from ._graph import Rows
from ._tokens import quoted

# How many nodes or relationships are changed in a transaction.
_BATCH = 10_000

# Runs a query.
Run = Callable[[str], Rows]


def create_node_table(statement: CreateNodeTable, catalog: Catalog, run: Run) -> str:
    """Declares a node table, and says so."""
    if catalog.find(statement.name) is not None:
        return _existing(statement.name, statement.if_missing)
    label = quoted(statement.name)
    _clear(statement.name, statement.columns, catalog, run)
    for column in statement.columns:
        run(_column(statement.name, column, is_node=True))
    condition = "IF NOT EXISTS " if statement.if_missing else ""
    return _finish(
        statement.name,
        f"CREATE CONSTRAINT {label} {condition}FOR (n:{label}) "
        f"REQUIRE n.{quoted(statement.key)} IS NODE KEY",
        run,
    )


def create_rel_table(statement: CreateRelTable, catalog: Catalog, run: Run) -> str:
    """Declares a relationship table, and says so."""
    if catalog.find(statement.name) is not None:
        return _existing(statement.name, statement.if_missing)
    ends = [tuple(_node_table(end, catalog).name for end in pair) for pair in statement.ends]
    type = quoted(statement.name)
    _clear(statement.name, statement.columns, catalog, run)
    for column in statement.columns:
        run(_column(statement.name, column, is_node=False))
    pairs = " OR ".join(f"(:{quoted(start)})-[r]->(:{quoted(end)})" for start, end in ends)
    condition = "IF NOT EXISTS " if statement.if_missing else ""
    return _finish(
        statement.name,
        f"CREATE CONSTRAINT {type} {condition}FOR ()-[r:{type}]->() REQUIRE {pairs}",
        run,
    )


def drop_table(statement: DropTable, catalog: Catalog, run: Run) -> str:
    """Deletes a table with everything in it, and says so."""
    table = catalog.find(statement.name)
    if table is None:
        error = no_table(statement.name)
        if not statement.if_exists:
            raise error
        return f"Table {statement.name} does not exist."
    if isinstance(table, NodeTable):
        referring = catalog.referring(table.name)
        if referring is not None:
            raise binder_error(
                f"Cannot delete node table {table.name} because it is referenced by "
                f"relationship table {referring}."
            )
        found = f"MATCH (x:{quoted(table.name)})"
        delete = "DETACH DELETE x"
    else:
        found = f"MATCH ()-[x:{quoted(table.name)}]->()"
        delete = "DELETE x"
    _repeat(f"{found} WITH x LIMIT {_BATCH} {delete} RETURN count(*)", run)
    for column in table.columns:
        _drop_constraint(column.constraint, run)
    _drop_constraint(table.constraint, run)
    return f"Table {table.name} has been dropped."


def add_column(statement: AddColumn, catalog: Catalog, run: Run) -> str:
    """Declares another column, and says so."""
    table = _table(statement.table, catalog)
    column = statement.column
    if table.column(column.name) is not None:
        return _refusal(
            f"{table.name} table already has property {column.name}.", statement.if_missing
        )
    run(_column(table.name, column, isinstance(table, NodeTable)))
    return f"Property {column.name} added to table {table.name}."


def drop_column(statement: DropColumn, catalog: Catalog, run: Run) -> str:
    """Deletes a column with its values, and says so."""
    table = _table(statement.table, catalog)
    column = table.column(statement.name)
    if column is None:
        return _refusal(
            f"{table.name} table does not have property {statement.name}.", statement.if_exists
        )
    if isinstance(table, NodeTable) and column.name == table.key:
        raise binder_error(
            f"Cannot drop property {column.name} in table {table.name} because it is used as "
            "primary key."
        )
    label, property = quoted(table.name), quoted(column.name)
    found = f"(x:{label})" if isinstance(table, NodeTable) else f"()-[x:{label}]->()"
    _repeat(
        f"MATCH {found} WHERE x.{property} IS NOT NULL WITH x LIMIT {_BATCH} "
        f"REMOVE x.{property} RETURN count(*)",
        run,
    )
    _drop_constraint(column.constraint, run)
    return f"Property {column.name} has been dropped from table {table.name}."


def _column(table: str, column: ColumnDefinition, is_node: bool) -> str:
    name = quoted(constraint_name(table, column.name, column.type))
    pattern = f"(x:{quoted(table)})" if is_node else f"()-[x:{quoted(table)}]-()"
    return (
        f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR {pattern} "
        f"REQUIRE x.{quoted(column.name)} IS :: {column.type.property_type}"
    )


def _finish(name: str, query: str, run: Run) -> str:
    """Creates the constraint that makes a table."""
    try:
        run(query)
    except BadInput as error:
        if "already" not in error.message:
            raise
        # Somebody else declared it at the same time.
        raise table_exists(name) from None
    return f"Table {name} has been created."


def _clear(name: str, columns: Sequence[ColumnDefinition], catalog: Catalog, run: Run) -> None:
    """Drops what is left of a statement that was interrupted, unless this one continues it."""
    left = [constraint for constraint in catalog.unfinished.get(name, ()) if _is_column(constraint)]
    wanted = [
        (constraint_name(name, column.name, column.type), column.type.property_type)
        for column in columns
    ]
    if [(it.name, it.property_type) for it in left] != wanted[: len(left)]:
        for constraint in left:
            _drop_constraint(constraint.name, run)


def _is_column(constraint: Constraint) -> bool:
    """Whether a column's constraint was made by this module."""
    if not constraint.type.endswith("_PROPERTY_TYPE") or len(constraint.properties) != 1:
        return False
    start = column_name(constraint.label, constraint.properties[0])
    return constraint.name == start or constraint.name.startswith(start + " ")


def _drop_constraint(name: str, run: Run) -> None:
    if name:
        run(f"DROP CONSTRAINT {quoted(name)} IF EXISTS")


def _repeat(query: str, run: Run) -> None:
    """Runs a query that counts what it changes until that is nothing."""
    while run(query).rows[0][0] >= _BATCH:
        pass


def _existing(name: str, is_welcome: bool) -> str:
    if not is_welcome:
        raise table_exists(name)
    return f"Table {name} already exists."


def _refusal(message: str, is_welcome: bool) -> str:
    if not is_welcome:
        raise runtime_error(message)
    return message


def _table(name: str, catalog: Catalog) -> Table:
    table = catalog.find(name)
    if table is None:
        raise no_table(name)
    return table


def _node_table(name: str, catalog: Catalog) -> NodeTable:
    table = _table(name, catalog)
    if not isinstance(table, NodeTable):
        raise binder_error(f"{name} is not of type NODE.")
    return table
