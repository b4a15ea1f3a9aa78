"""Statements that declare, change and drop tables. Nothing is run here."""

from __future__ import annotations

from typing import NamedTuple

from ._columns import ColumnType, parse_type
from ._errors import binder_error, parser_error, refused
from ._tokens import SYMBOL, Cursor

_MULTIPLICITIES = ("ONE_ONE", "ONE_MANY", "MANY_ONE")
_RESERVED = frozenset(("_id", "_label", "_src", "_dst"))


class ColumnDefinition(NamedTuple):
    """A column to be declared."""

    name: str
    type: ColumnType


class CreateNodeTable(NamedTuple):
    """``CREATE NODE TABLE``."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    key: str
    if_missing: bool = False


class CreateRelTable(NamedTuple):
    """``CREATE REL TABLE``. ``ends`` are pairs of node tables."""

    name: str
    ends: tuple[tuple[str, str], ...]
    columns: tuple[ColumnDefinition, ...]
    if_missing: bool = False


class DropTable(NamedTuple):
    """``DROP TABLE``."""

    name: str
    if_exists: bool = False


class AddColumn(NamedTuple):
    """``ALTER TABLE … ADD``."""

    table: str
    column: ColumnDefinition
    if_missing: bool = False


class DropColumn(NamedTuple):
    """``ALTER TABLE … DROP``."""

    table: str
    name: str
    if_exists: bool = False


def parse_node_table(cursor: Cursor) -> CreateNodeTable:
    """Takes what follows ``CREATE NODE TABLE``."""
    if_missing = cursor.words("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a table")
    _refuse_query(cursor, "CREATE NODE TABLE")
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    keys: list[str] = []
    while True:
        if cursor.at_words("PRIMARY", "KEY") and columns:
            cursor.words("PRIMARY", "KEY")
            cursor.expect("(")
            keys.append(cursor.name("the name of a column"))
            cursor.expect(")")
            break
        columns.append(_column(cursor))
        if cursor.words("PRIMARY", "KEY"):
            keys.append(columns[-1].name)
        if not cursor.symbol(","):
            break
    cursor.expect(")")
    _refuse_query(cursor, "CREATE NODE TABLE")
    _check_names(columns)
    if len(keys) > 1:
        raise parser_error("Found multiple primary keys.")
    if not keys:
        raise parser_error("Can not find primary key.")
    return CreateNodeTable(name, tuple(columns), _key(columns, keys[0]), if_missing)


def parse_rel_table(cursor: Cursor) -> CreateRelTable:
    """Takes what follows ``CREATE REL TABLE``."""
    cursor.words("GROUP")
    if_missing = cursor.words("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a table")
    cursor.expect("(")
    ends = [_ends(cursor)]
    columns: list[ColumnDefinition] = []
    while cursor.symbol(","):
        if not columns and cursor.at_words("FROM") and _is_pair(cursor):
            ends.append(_ends(cursor))
        elif _at_last_word(cursor):
            _multiplicity(cursor.name("a multiplicity"))
            break
        else:
            columns.append(_column(cursor))
    cursor.expect(")")
    if cursor.at_words("WITH"):
        raise refused("WITH (...) of a relationship table", "leave it out")
    _refuse_query(cursor, "CREATE REL TABLE")
    _check_names(columns)
    for pair in ends:
        if ends.count(pair) > 1:
            raise binder_error(f"Found duplicate FROM-TO {pair[0]}-{pair[1]} pairs.")
    return CreateRelTable(name, tuple(ends), tuple(columns), if_missing)


def parse_drop(cursor: Cursor) -> DropTable:
    """Takes what follows ``DROP TABLE``."""
    if_exists = cursor.words("IF", "EXISTS")
    return DropTable(cursor.name("the name of a table"), if_exists)


def parse_alter(cursor: Cursor) -> AddColumn | DropColumn:
    """Takes what follows ``ALTER TABLE``."""
    table = cursor.name("the name of a table")
    if cursor.words("ADD"):
        if_missing = cursor.words("IF", "NOT", "EXISTS")
        _refuse_ends(cursor)
        added = AddColumn(table, _column(cursor), if_missing)
        _check_names([added.column])
        return added
    if cursor.words("DROP"):
        if_exists = cursor.words("IF", "EXISTS")
        _refuse_ends(cursor)
        return DropColumn(table, cursor.name("the name of a column"), if_exists)
    if cursor.words("RENAME"):
        raise refused(
            "ALTER TABLE ... RENAME", "declare the new name, copy the values with SET, drop the old"
        )
    raise cursor.unexpected("ADD or DROP")


def _column(cursor: Cursor) -> ColumnDefinition:
    column = ColumnDefinition(cursor.name("the name of a column"), parse_type(cursor))
    if cursor.at_words("DEFAULT"):
        raise refused("DEFAULT", "pass the value when nodes are created")
    return column


def _ends(cursor: Cursor) -> tuple[str, str]:
    cursor.expect_words("FROM")
    start = cursor.name("the name of a node table")
    cursor.expect_words("TO")
    return start, cursor.name("the name of a node table")


def _is_pair(cursor: Cursor) -> bool:
    """Whether ``FROM A TO B`` comes next, and not a column named FROM."""
    token = cursor.peek(2)
    return token is not None and token.is_word("TO")


def _at_last_word(cursor: Cursor) -> bool:
    """Whether a name and the closing bracket come next."""
    token, after = cursor.current, cursor.peek()
    if token is None or after is None:
        return False
    return token.is_name and after.kind == SYMBOL and after.text == ")"


def _multiplicity(word: str) -> None:
    if word.upper() in _MULTIPLICITIES:
        raise refused(
            f"the multiplicity {word}", "leave it out, and check it where relationships are created"
        )
    if word.upper() != "MANY_MANY":
        raise binder_error(f"Cannot bind {word} as relationship multiplicity.")


def _check_names(columns: list[ColumnDefinition]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in _RESERVED:
            raise binder_error(f"{column.name} is a reserved property name.")
        if column.name.lower() in seen:
            raise binder_error(
                f"Duplicated column name: {column.name}, column name must be unique."
            )
        seen.add(column.name.lower())


def _key(columns: list[ColumnDefinition], name: str) -> str:
    for column in columns:
        if column.name.lower() != name.lower():
            continue
        if column.type.is_list or column.type.base == "BOOL":
            raise binder_error(
                f"Invalid primary key column type {column.type.name}. "
                "Primary keys must be either STRING or a numeric type."
            )
        return column.name
    raise binder_error(f"Primary key {name} does not match any of the predefined node properties.")


def _refuse_query(cursor: Cursor, statement: str) -> None:
    if cursor.at_words("AS"):
        raise refused(
            f"{statement} ... AS", "declare the table, then use COPY ... FROM with the query"
        )


def _refuse_ends(cursor: Cursor) -> None:
    if cursor.at_words("FROM") and _is_pair(cursor):
        raise refused(
            "changing the ends of a relationship table", "declare another relationship table"
        )
