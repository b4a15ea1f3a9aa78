"""``COPY … FROM``: what is copied, and with which options. Nothing is read here."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

from ._errors import binder_error, refused
from ._tokens import PARAMETER, STRING, SYMBOL, Cursor, Token, string_value, unquoted


class Files(NamedTuple):
    """Files, by their paths or by a pattern of these."""

    paths: tuple[str, ...]


class Variable(NamedTuple):
    """A variable of the caller."""

    name: str


class Parameter(NamedTuple):
    """A parameter."""

    name: str


class Subquery(NamedTuple):
    """What a query returns, with its tokens. Their places are those in the text."""

    text: str
    tokens: tuple[Token, ...]


Source = Union[Files, Variable, Parameter, Subquery]


class CopyFrom(NamedTuple):
    """``COPY table [(columns)] FROM source [(options)]``. The names of options are in capitals."""

    table: str
    columns: tuple[str, ...] | None
    source: Source
    options: dict[str, Any]


def parse_copy(cursor: Cursor) -> CopyFrom:
    """Takes what follows ``COPY``."""
    if cursor.symbol("("):
        raise refused("COPY ... TO", "write what get_as_df() or get_as_arrow() returns to a file")
    table = cursor.name("the name of a table")
    columns = _columns(cursor) if cursor.symbol("(") else None
    cursor.expect_words("FROM")
    source = _source(cursor)
    if cursor.at_words("BY", "COLUMN"):
        raise refused("COPY ... BY COLUMN", "use a file of CSV or Parquet, or a DataFrame")
    options = _options(cursor) if cursor.symbol("(") else {}
    return CopyFrom(table, columns, source, options)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    names: list[str] = []
    while not cursor.symbol(")"):
        name = cursor.name("the name of a column")
        if name.lower() in (other.lower() for other in names):
            raise binder_error(f"Detect duplicate column name {name} during COPY.")
        names.append(name)
        if not cursor.symbol(","):
            cursor.expect(")")
            break
    return tuple(names)


def _source(cursor: Cursor) -> Source:
    token = cursor.current
    if token is None:
        raise cursor.unexpected("what to copy from")
    if token.kind == STRING:
        return Files((cursor.string("a path"),))
    if token.kind == PARAMETER:
        cursor.take(PARAMETER)
        return Parameter(unquoted(token.text[1:]))
    if cursor.symbol("["):
        paths = _paths(cursor, "]")
        if not paths:
            raise cursor.unexpected("a path")
        return Files(paths)
    if cursor.symbol("("):
        return _subquery(cursor)
    after = cursor.peek()
    if token.is_word("GLOB") and after is not None and after.text == "(":
        cursor.words("GLOB")
        cursor.expect("(")
        return Files(_paths(cursor, ")"))
    name = cursor.name("what to copy from")
    if cursor.symbol("."):
        raise refused("COPY from an attached database", "open it, and pass its rows as a DataFrame")
    if _is_call(cursor):
        raise refused(f"COPY from {name}()", "run the function first, and pass its rows")
    return Variable(name)


def _is_call(cursor: Cursor) -> bool:
    """Whether arguments come next, and not options."""
    token, inside = cursor.current, cursor.peek()
    if token is None or token.text != "(" or inside is None:
        return False
    return inside.kind in (STRING, PARAMETER) or inside.text == ")"


def _paths(cursor: Cursor, end: str) -> tuple[str, ...]:
    paths = []
    while not cursor.symbol(end):
        paths.append(cursor.string("a path"))
        if not cursor.symbol(","):
            cursor.expect(end)
            break
    return tuple(paths)


def _subquery(cursor: Cursor) -> Subquery:
    depth, start = 1, cursor.position
    while depth:
        token = cursor.current
        if token is None:
            raise cursor.unexpected("')'")
        if token.kind == SYMBOL and token.text in "()":
            depth += 1 if token.text == "(" else -1
        cursor.position += 1
    tokens = tuple(cursor.tokens[start : cursor.position - 1])
    if not tokens:
        raise cursor.unexpected("a query")
    return Subquery(cursor.text, tokens)


def _options(cursor: Cursor) -> dict[str, Any]:
    options: dict[str, Any] = {}
    while not cursor.symbol(")"):
        name = cursor.name("the name of an option").upper()
        cursor.symbol("=")
        token = cursor.current
        is_alone = token is not None and token.kind == SYMBOL and token.text in ",)"
        options[name] = True if is_alone else _value(cursor)
        if not cursor.symbol(","):
            cursor.expect(")")
            break
    return options


def _value(cursor: Cursor) -> Any:
    from ._procedures import literal

    token = cursor.take(STRING)
    return literal(cursor) if token is None else string_value(token)
