"""What the server says about constraints, in the words of Kuzu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import Error
from ._catalog import NodeTable
from ._errors import KuzuError, converted
from ._tokens import place, quoted

if TYPE_CHECKING:
    from ._binder import Bound
    from ._copy import Target
    from ._graph import Execution
    from ._parts import Batch

# The constraint of a table's key is called like the table.
_DUPLICATE = re.compile(
    r"node \d+ would violate the constraint (.+): node \d+ is also a :\1 with .+? = (.*)", re.S
)
_MISSING = re.compile(
    r"node \d+ would violate the constraint (.+): a :\1 must have the property .*", re.S
)
_ENDS = re.compile(r"relationship \d+ would violate the constraint (.+): a :.* must go (.*)", re.S)
# Where something is wrong, and all that follows: the line, with a caret below it.
_POSITION = re.compile(r" \(line (\d+), column (\d+)\)(\n.*)?\Z", re.S)

# How many characters are shown before and after it.
_AROUND = 60

# What the import of rows says.
_ROW = re.compile(r"row (\d+): (.*)", re.S)
_EXISTS = re.compile(r"\)( exists already| is in row \d+)$")
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


def show_given_text(error: Error, given: str, bound: Bound) -> None:
    """Makes an error about the text of a query that was sent one about the text that was given."""
    match = _POSITION.search(error.message)
    if match is None:
        return
    lines = bound.text.split("\n")
    line, column = int(match.group(1)), int(match.group(2))
    sent = sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
    offset = min(bound.edits.origin(sent), len(given))
    where = place(given, offset)
    error.message = f"{error.message[: match.start()]} ({where})\n{_excerpt(given, offset)}"
    error.args = (error.message,)


def _excerpt(text: str, offset: int) -> str:
    """The line at an offset, shortened if it is long, with a caret below it."""
    line = text.rfind("\n", 0, offset) + 1
    start = max(line, offset - _AROUND)
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    stop = min(end, offset + _AROUND)
    before, after = "…" if start > line else "", "…" if stop < end else ""
    shown = text[start:stop].replace("\t", " ").replace("\r", " ")
    return f"{before}{shown}{after}\n{' ' * (len(before) + offset - start)}^"


def copy_violation(error: Error, target: Target, batch: Batch, execution: Execution) -> KuzuError:
    """Why rows were not copied."""
    made = converted(error)
    match = _ROW.fullmatch(error.message)
    if match:
        words = _row_words(target, batch.row(int(match.group(1))), match.group(2), execution)
    else:
        # The tables at the ends are empty.
        keys = [list(dict.fromkeys(batch.column(index))) for index, _ in enumerate(target.ends)]
        words = _missing_end(target.ends, keys, execution) or error.message
    made.message = f"Copy exception: {words}"
    made.args = (made.message,)
    made.hint = ""
    return made


def _row_words(
    target: Target, row: tuple[str, list[Any]], reason: str, execution: Execution
) -> str:
    """What is wrong with a row."""
    place, values = row
    keys = values[:2] if target.ends else [values[target.key or 0]]
    if None in keys:
        return (
            "Found NULL, which violates the non-null constraint of the primary key column. "
            f"({place[:1].lower()}{place[1:]})"
        )
    if target.ends:
        words = _missing_end(target.ends, [[key] for key in keys], execution)
    else:
        words = _duplicate(str(keys[0])) if _EXISTS.search(reason) else None
    return words or f"{place}: {_words(reason) or reason}"


def _words(message: str) -> str | None:
    """Kuzu's words for a violated constraint."""
    match = _DUPLICATE.fullmatch(message)
    if match:
        return _duplicate(_value(match.group(2)))
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


def _duplicate(value: str) -> str:
    return (
        f"Found duplicated primary key value {value}, which violates the uniqueness constraint of "
        "the primary key column."
    )


def _value(text: str) -> str:
    """A value without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _missing_end(
    ends: tuple[NodeTable, ...], keys: list[list[Any]], execution: Execution
) -> str | None:
    """The first key that no node has."""
    for table, wanted in zip(ends, keys):
        missing = _missing_key(table, wanted, execution)
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
