"""``CALL``: what it returns about the tables, as rows for the rest of the query."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from . import version
from ._catalog import Catalog, NodeTable, RelTable
from ._errors import KuzuError, binder_error, refused
from ._tokens import NAME, NUMBER, STRING, Cursor, Token, quoted, string_value

# What ``CALL name = value`` sets. The first is the time limit of queries; the number of threads
# is up to Isolith.
_SETTINGS = ("timeout", "threads")

_INDEXES = "use a collection of Isolith for vectors and texts: docs/python.md"


class CallTable(NamedTuple):
    """A function that returns rows, and what follows it.

    ``yields`` are names of its columns with their new names, if they are given.
    """

    function: str
    arguments: tuple[Any, ...]
    yields: tuple[tuple[str, str], ...] | None
    rest: str


class Setting(NamedTuple):
    """``CALL name = value``."""

    name: str
    value: Any


def parse_call(cursor: Cursor) -> CallTable | Setting:
    """Takes what follows ``CALL``, to the end."""
    function = cursor.name("the name of a function")
    if cursor.symbol("="):
        setting = Setting(function.lower(), literal(cursor))
        cursor.expect_end()
        if setting.name not in _SETTINGS:
            raise refused(f"the setting {function}")
        return setting
    if function.lower() not in _FUNCTIONS:
        raise _unknown(function)
    cursor.expect("(")
    arguments = []
    while not cursor.symbol(")"):
        arguments.append(literal(cursor))
        if not cursor.symbol(","):
            cursor.expect(")")
            break
    yields = _yields(cursor) if cursor.words("YIELD") else None
    token = cursor.current
    if token is None:
        raise binder_error(
            "Only standalone table functions can be called without return statement."
        )
    end = cursor.tokens[-1].end
    return CallTable(
        function.lower(), tuple(arguments), yields, cursor.text[token.start : end].strip()
    )


def literal(cursor: Cursor) -> Any:
    """Takes a literal: a string, a number, a boolean, or a list of these."""
    if cursor.symbol("["):
        values = []
        while not cursor.symbol("]"):
            values.append(literal(cursor))
            if not cursor.symbol(","):
                cursor.expect("]")
                break
        return values
    is_negative = cursor.symbol("-")
    token = cursor.current
    value = None if token is None else _value(token)
    if value is None:
        raise cursor.unexpected("a value")
    cursor.position += 1
    return -value if is_negative else value


def table_of(call: CallTable, catalog: Catalog) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows that a function returns.

    :raises KuzuError: if its arguments do not fit
    """
    function = _FUNCTIONS[call.function]
    takes = _ARGUMENTS[call.function]
    if len(call.arguments) != takes or not all(isinstance(it, str) for it in call.arguments):
        raise binder_error(f"{call.function}() takes {takes} string{'' if takes == 1 else 's'}.")
    return function(catalog, *call.arguments)


def query_of(
    call: CallTable, columns: list[str], rows: list[list[Any]]
) -> tuple[str, dict[str, Any]] | None:
    """The query that does the rest with the rows; ``None`` if that is to return all of them."""
    names = call.yields or tuple((column, column) for column in columns)
    for name, _ in names:
        if name not in columns:
            raise binder_error(f"Unknown table function output variable name: {name}.")
    words = call.rest.split()
    if call.yields is None and [word.upper() for word in words] == ["RETURN", "*"]:
        return None
    # Positions count from 1, as in all queries. WITH takes conditions, as CALL does.
    items = ", ".join(f"row[{columns.index(name) + 1}] AS {quoted(new)}" for name, new in names)
    return f"UNWIND $rows AS row WITH {items} {_ordered(call.rest, names)}", {"rows": rows}


def _ordered(rest: str, names: tuple[tuple[str, str], ...]) -> str:
    """Columns of ``RETURN *`` in their own order: Isolith returns them by name."""
    head, _, tail = rest.rpartition("*")
    if tail.strip() or not head.rstrip().upper().endswith("RETURN"):
        return rest
    return head + ", ".join(quoted(new) for _, new in names)


def _yields(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    names = []
    while True:
        name = cursor.name("the name of a column")
        names.append((name, cursor.name("a name") if cursor.words("AS") else name))
        if not cursor.symbol(","):
            return tuple(names)


def _value(token: Token) -> Any:
    if token.kind == STRING:
        return string_value(token)
    if token.kind == NUMBER:
        return float(token.text) if "." in token.text or "e" in token.text else int(token.text)
    if token.kind == NAME and token.is_word("TRUE", "FALSE"):
        return token.text.upper() == "TRUE"
    return None


def _unknown(function: str) -> KuzuError:
    name = function.lower()
    if "index" in name:
        return refused(f"CALL {function}", _INDEXES)
    return refused(f"CALL {function}")


def _show_tables(catalog: Catalog) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [number, table.name, "NODE" if isinstance(table, NodeTable) else "REL", "local(kuzu)", ""]
        for number, table in enumerate(catalog.tables.values())
    ]
    return ["id", "name", "type", "database name", "comment"], rows


def _table_info(catalog: Catalog, name: str) -> tuple[list[str], list[list[Any]]]:
    table = catalog.find(name)
    if table is None:
        error = f"Catalog exception: {name} does not exist in catalog."
        raise KuzuError(error, code="not_found")
    columns = ["property id", "name", "type", "default expression"]
    rows: list[list[Any]]
    if isinstance(table, NodeTable):
        rows = [
            [number, column.name, column.type.name, "NULL", column.name == table.key]
            for number, column in enumerate(table.columns)
        ]
        return [*columns, "primary key"], rows
    rows = [
        [number, column.name, column.type.name, "NULL", "both"]
        for number, column in enumerate(table.columns, 1)
    ]
    return [*columns, "storage_direction"], rows


def _show_connection(catalog: Catalog, name: str) -> tuple[list[str], list[list[Any]]]:
    table = catalog.find(name)
    if table is None:
        error = f"Catalog exception: {name} does not exist in catalog."
        raise KuzuError(error, code="not_found")
    if not isinstance(table, RelTable):
        raise binder_error("Show connection can only be called on a rel table!")
    columns = ["source table name", "destination table name"]
    columns += ["source table primary key", "destination table primary key"]
    rows = [[*pair, *(catalog.key_of(end) for end in pair)] for pair in table.ends]
    return columns, rows


def _db_version(_: Catalog) -> tuple[list[str], list[list[Any]]]:
    return ["version"], [[version]]


_FUNCTIONS: dict[str, Callable[..., tuple[list[str], list[list[Any]]]]] = {
    "show_tables": _show_tables,
    "table_info": _table_info,
    "show_connection": _show_connection,
    "db_version": _db_version,
}
_ARGUMENTS = {"show_tables": 0, "table_info": 1, "show_connection": 1, "db_version": 0}
