"""What the server says about constraints, in the words of Kuzu."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..errors import Error
from ._catalog import NodeTable
from ._errors import KuzuError, converted
from ._tokens import quoted

if TYPE_CHECKING:
    from ._copy import Target
    from ._graph import Execution

# The constraint of a table's key is called like the table.
_DUPLICATE = re.compile(
    r"node \d+ would violate the constraint (.+): node \d+ is also a :\1 with .+? = (.*)", re.S
)
_MISSING = re.compile(
    r"node \d+ would violate the constraint (.+): a :\1 must have the property .*", re.S
)
_ENDS = re.compile(r"relationship \d+ would violate the constraint (.+): a :.* must go (.*)", re.S)
_CONNECTED = re.compile(r"node (\d+) still has ")


def violation(error: Error) -> KuzuError:
    """An exception of the package as one of Kuzu."""
    made = converted(error)
    if error.code != "bad_input":
        return made
    if " (line " in error.message:
        kind = "Parser" if error.message.startswith("expected ") else "Binder"
        made.message = f"{kind} exception: {error.message}"
    else:
        made.message = f"Runtime exception: {_words(error.message) or error.message}"
        made.hint = ""
    made.args = (made.message,)
    return made


def copy_violation(
    error: Error, target: Target, text: bytes, copied: int, execution: Execution
) -> KuzuError:
    """Why rows were not copied.

    :param text: the rows, as they were sent
    :param copied: how many rows before them were
    """
    made = converted(error)
    words = _words(error.message)
    if target.ends and "one end is null" in error.message:
        words = _missing_end(target.ends, text, execution) or words
    made.message = "Copy exception: " + (words or error.message)
    made.args = (made.message,)
    made.hint = f"{copied} rows were copied before" if copied else ""
    return made


def _words(message: str) -> str | None:
    """Kuzu's words for a violated constraint."""
    match = _DUPLICATE.fullmatch(message)
    if match:
        return (
            f"Found duplicated primary key value {_value(match.group(2))}, which violates the "
            "uniqueness constraint of the primary key column."
        )
    match = _MISSING.fullmatch(message)
    if match:
        return "Found NULL, which violates the non-null constraint of the primary key column."
    match = _CONNECTED.match(message)
    if match:
        return (
            f"Node(nodeOffset: {match.group(1)}) has connected edges, which cannot be deleted. "
            "Please delete the edges first or try DETACH DELETE."
        )
    match = _ENDS.fullmatch(message)
    if match:
        return f"Query violates schema: a {match.group(1)} must go {match.group(2)}."
    return None


def _value(text: str) -> str:
    """A value without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _missing_end(ends: tuple[NodeTable, ...], text: bytes, execution: Execution) -> str | None:
    """The first key among rows that no node has."""
    rows = json.loads(b"[" + text + b"]")
    for index, table in enumerate(ends):
        keys = list(dict.fromkeys(row[index] for row in rows))
        missing = _missing_key(table, keys, execution)
        if missing is not None:
            return f"Unable to find primary key value {missing}."
    return None


def _missing_key(table: NodeTable, keys: list[Any], execution: Execution) -> Any:
    query = (
        f"UNWIND $keys AS k OPTIONAL MATCH (n:{quoted(table.name)} {{{quoted(table.key)}: k}}) "
        "WITH k, n WHERE n IS NULL RETURN k LIMIT 1"
    )
    rows = execution.query(query, {"keys": keys}, is_write=False).rows
    return rows[0][0] if rows else None
