"""What a text says: tables to declare and drop, files to copy, and queries. Nothing is run here."""

from __future__ import annotations

from typing import Any, Union

from . import _ddl
from ._copying import CopyFrom, parse_copy
from ._ddl import AddColumn, CreateNodeTable, CreateRelTable, DropColumn, DropTable
from ._errors import parser_error, refused
from ._procedures import CallTable, Setting, parse_call
from ._tokens import SYMBOL, Cursor, Token, split, tokenize


class Query:
    """A query for the graph, with its tokens. Their places are those in the text.

    It equals itself only, so that it is quickly found again.
    """

    __slots__ = ("text", "tokens")

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.text = text
        self.tokens = tokens


class Checkpoint:
    """A wish for durability, which every statement has already."""


Statement = Union[
    AddColumn,
    CallTable,
    Checkpoint,
    CopyFrom,
    CreateNodeTable,
    CreateRelTable,
    DropColumn,
    DropTable,
    Query,
    Setting,
]

_TRANSACTION = (
    "each statement is a transaction of its own: write what belongs together as one statement, "
    "for example with UNWIND $rows"
)
_COPY_INSTEAD = "use COPY ... FROM with a file of CSV or Parquet, or a DataFrame"

# Statements that are refused, by their first words, and what to do instead.
_REFUSED: dict[tuple[str, ...], str] = {
    ("BEGIN",): _TRANSACTION,
    ("COMMIT",): _TRANSACTION,
    ("ROLLBACK",): _TRANSACTION,
    ("CREATE", "SEQUENCE"): "pass the values of keys, for example UUIDs",
    ("CREATE", "MACRO"): "",
    ("CREATE", "TYPE"): "write the type itself",
    ("CREATE", "USER"): "a store belongs to the user of the operating system who created it",
    ("CREATE", "ROLE"): "a store belongs to the user of the operating system who created it",
    ("DROP", "SEQUENCE"): "",
    ("DROP", "MACRO"): "",
    ("COMMENT", "ON"): "",
    ("LOAD", "FROM"): _COPY_INSTEAD + ", or read the file in Python and pass it as a parameter",
    ("LOAD", "WITH"): _COPY_INSTEAD,
    ("LOAD",): "",
    ("INSTALL",): "",
    ("FORCE",): "",
    ("UNINSTALL",): "",
    ("UPDATE",): "",
    ("EXPORT", "DATABASE"): "use `isolith export`, or copy the folder of the store",
    ("IMPORT", "DATABASE"): _COPY_INSTEAD,
    ("ATTACH",): "open the other store as another Database",
    ("DETACH",): "open the other store as another Database",
    ("USE",): "open the other store as another Database",
    ("EXPLAIN",): "",
    ("PROFILE",): "",
}


def parse(text: str) -> list[Statement]:
    """The statements of a text.

    :raises KuzuError: if one of them cannot be parsed, or is not supported
    """
    statements = [parse_statement(text, tokens) for tokens in split(tokenize(text))]
    if not statements:
        raise parser_error("there is no statement")
    return statements


def parse_statement(text: str, tokens: list[Token]) -> Statement:
    """The statement that tokens are."""
    cursor = Cursor(text, tokens)
    statement = _own_statement(cursor)
    if statement is not None:
        return statement
    _refuse(cursor)
    query = Query(text[tokens[0].start : tokens[-1].end], _moved(tokens))
    _refuse_calls(query.tokens)
    return query


def _own_statement(cursor: Cursor) -> Statement | None:
    """A statement that is not a query, if it is one of those that are supported."""
    statement: Any = None
    if cursor.words("CHECKPOINT"):
        statement = Checkpoint()
    elif cursor.words("CREATE", "NODE", "TABLE"):
        statement = _ddl.parse_node_table(cursor)
    elif cursor.words("CREATE", "REL", "TABLE"):
        statement = _ddl.parse_rel_table(cursor)
    elif cursor.words("DROP", "TABLE"):
        statement = _ddl.parse_drop(cursor)
    elif cursor.words("ALTER", "TABLE"):
        statement = _ddl.parse_alter(cursor)
    elif cursor.words("COPY"):
        statement = parse_copy(cursor)
    elif cursor.words("CALL"):
        return parse_call(cursor)
    if statement is not None:
        cursor.expect_end()
    checked: Statement | None = statement
    return checked


def _refuse(cursor: Cursor) -> None:
    if cursor.at_words("DETACH", "DELETE"):
        return
    for words, hint in _REFUSED.items():
        if cursor.at_words(*words):
            raise refused(" ".join(words), hint)


def _refuse_calls(tokens: tuple[Token, ...]) -> None:
    """Refuses procedures and files inside queries."""
    before: Token | None = None
    for token, after in zip(tokens, tokens[1:]):
        is_inside = before is not None and before.kind == SYMBOL and before.text in ".:|{,("
        if not is_inside:
            if token.is_word("CALL") and after.is_name:
                raise refused(
                    "CALL after another clause", "run it first, and pass what it returns on"
                )
            if token.is_word("LOAD") and after.is_word("FROM", "WITH"):
                raise refused("LOAD FROM", _REFUSED["LOAD", "FROM"])
        before = token


def _moved(tokens: list[Token]) -> tuple[Token, ...]:
    """Tokens whose places are those in the statement."""
    start = tokens[0].start
    if not start:
        return tuple(tokens)
    return tuple(
        Token(token.kind, token.text, token.start - start, token.end - start) for token in tokens
    )
