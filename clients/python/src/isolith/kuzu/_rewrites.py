"""Changes of a query's text, where the same words mean something else in Kuzu."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Callable, NamedTuple

from ._catalog import Column
from ._errors import refused, runtime_error
from ._outline import WORDS, Outline
from ._tokens import NAME, NUMBER, PARAMETER, QUOTED, STRING, Token, string_value, unquoted

# Functions that have another name in Isolith.
_NAMES = {
    "lcase": "toLower",
    "ln": "log",
    "log": "log10",
    "rels": "relationships",
    "substr": "substring",
    "ucase": "toUpper",
}

# Functions whose values are text here, by the type of the column that has such values.
_TEXTS = {"date": "DATE", "timestamp": "TIMESTAMP", "uuid": "UUID"}

_TIME = "pass it as a parameter: datetime.now(), date.today()"
_VECTORS = "keep vectors in a collection, and query that"
_CONVERT = "use toInteger(), toFloat(), toString() or toBoolean()"

# Functions that Isolith does not have, and what to do instead.
_INSTEAD = {
    "array_cosine_similarity": _VECTORS,
    "array_distance": _VECTORS,
    "array_inner_product": _VECTORS,
    "cast": _CONVERT,
    "concat": "use +: a + b",
    "current_date": _TIME,
    "current_timestamp": _TIME,
    "date_part": "take the part from the text: substring(d, 1, 4)",
    "list_append": "use +: list + [value]",
    "list_concat": "use +: list + list",
    "list_contains": "use IN: value IN list",
    "list_element": "use a position: list[1]",
    "list_extract": "use a position: list[1]",
    "list_has": "use IN: value IN list",
    "list_len": "use size(list)",
    "list_slice": "use positions: list[1:3]",
    "regexp_matches": "use =~, which compares the whole text: a =~ '.*b.*'",
    "string_split": "use split(text, separator)",
}

# What turns a position that counts from 1 into one that counts from 0. Negative ones count from
# the end in both, and the keys of maps stay.
_SHIFT = ("[x IN [", "] | CASE WHEN x > 0 THEN x - 1 ELSE x END][0]")

# What turns integers into floats, and nothing else into anything.
_FLOAT = ("(", ") * 1.0")
_FLOATS = ("[x IN (", ") | x * 1.0]")


class Edits:
    """Changes of a text. Each token is replaced at most once."""

    def __init__(self) -> None:
        self._edits: list[tuple[int, int, str]] = []
        self._corrected: dict[int, str] = {}
        self._replaced: set[int] = set()

    def replace(self, token: Token, text: str) -> None:
        """Replaces a token."""
        self._edits.append((token.start, token.end, text))
        self._replaced.add(token.start)

    def correct(self, token: Token, text: str) -> None:
        """Replaces a name by the one that the table has."""
        if token.start not in self._corrected:
            self._corrected[token.start] = text
            self._edits.append((token.start, token.end, text))

    def replace_between(self, first: Token, last: Token, text: str) -> None:
        """Replaces all from one token to another."""
        self._edits.append((first.start, last.end, text))

    def replace_inside(self, first: Token, last: Token, text: str) -> None:
        """Replaces what is between two tokens."""
        self._edits.append((first.end, last.start, text))

    def leave_out(self, token: Token) -> None:
        """Notes that a token is no longer in the text."""
        self._replaced.add(token.start)

    def insert(self, offset: int, text: str) -> None:
        """Inserts a text."""
        self._edits.append((offset, offset, text))

    def is_replaced(self, token: Token) -> bool:
        """Whether a token was replaced."""
        return token.start in self._replaced

    def corrected(self, token: Token) -> str:
        """A name as the table has it."""
        return unquoted(self._corrected.get(token.start, token.text))

    def has_changed(self, start: int, end: int) -> bool:
        """Whether more than the case of a name is changed in a part of the text."""
        return any(
            start <= at and last <= end and self._corrected.get(at) != text
            for at, last, text in self._edits
        )

    def apply(self, text: str) -> str:
        """The changed text."""
        if not self._edits:
            return text
        parts, position = [], 0
        for start, end, new in self._sorted():
            parts += [text[position:start], new]
            position = end
        return "".join(parts) + text[position:]

    def origin(self, offset: int) -> int:
        """Where something in the changed text is from: an offset in the text before."""
        longer = 0
        for start, end, new in self._sorted():
            if offset < start + longer:
                break
            if offset < start + longer + len(new):
                return start
            longer += len(new) - (end - start)
        return offset - longer

    def _sorted(self) -> list[tuple[int, int, str]]:
        return sorted(self._edits, key=lambda edit: edit[:2])


class Derived(NamedTuple):
    """A parameter that is made of another one: by its type, such as ``DOUBLE`` or ``DATE``."""

    source: str
    type: str


def rewrite_floats(
    outline: Outline, edits: Edits, values: Iterable[tuple[Column, int, int]]
) -> dict[str, Derived]:
    """Makes floats of integers that are written to columns of floats.

    Returns the parameters whose values have to become floats, by their new names.
    """
    parameters = {}
    for column, start, end in values:
        if start >= end:
            continue
        first, last = outline.tokens[start], outline.tokens[end - 1]
        if start + 1 == end:
            name = first.text[1:]
            if first.kind == PARAMETER and not name.startswith("`"):
                parameters[f"float_{name}"] = Derived(name, "DOUBLE")
                edits.replace(first, f"$float_{name}")
                continue
            if first.kind == NUMBER and not column.type.is_list:
                if first.text.isdigit():
                    edits.replace(first, first.text + ".0")
                continue
            if first.is_word("NULL"):
                continue
        before, after = _FLOATS if column.type.is_list else _FLOAT
        edits.insert(first.start, before)
        edits.insert(last.end, after)
    return parameters


def rewrite_positions(outline: Outline, edits: Edits) -> None:
    """Makes positions in lists count from 0."""
    for start, end in outline.closing.items():
        if not (outline.is_symbol(start, "[") and _is_value(outline, start - 1)):
            continue
        if end == start + 1:
            continue
        inside = range(start + 1, end)
        colons = [
            index
            for index in inside
            if outline.depths[index] == outline.depths[start] + 1
            and (outline.is_symbol(index, ":") or outline.is_symbol(index, ".."))
        ]
        if colons:
            _rewrite_slice(outline, edits, start, colons[0], end)
        else:
            _rewrite_position(outline, edits, start + 1, end)


def rewrite_functions(
    outline: Outline, edits: Edits, is_node: Callable[[str], bool | None]
) -> dict[str, Derived]:
    """Calls functions by the names that Isolith has for them.

    Returns the parameters whose values have to become dates and the like, by their new names.

    :param is_node: whether a variable is a node, ``None`` if it is something else
    """
    parameters: dict[str, Derived] = {}
    for index, token in enumerate(outline.tokens[:-1]):
        if not outline.is_function(index):
            continue
        name = token.text.lower()
        if name in _INSTEAD:
            raise refused(f"the function {name}", _INSTEAD[name])
        end = outline.closing.get(index + 1)
        if end is None:
            continue
        arguments = outline.items(index + 2, end)
        if name in ("label", "labels"):
            _rewrite_label(outline, edits, index, end, is_node)
        if name in _NAMES:
            edits.replace(token, _NAMES[name])
        if name in ("substr", "substring") and len(arguments) > 1:
            _rewrite_start(outline, edits, *arguments[1])
        if name in _TEXTS and len(arguments) == 1:
            parameters.update(_rewrite_text(outline, edits, index, end))
    return parameters


def _is_value(outline: Outline, index: int) -> bool:
    """Whether a token ends a value, so that a bracket after it is a position."""
    if index < 0:
        return False
    token = outline.tokens[index]
    if token.kind == NAME:
        return token.text.upper() not in WORDS or outline.is_symbol(index - 1, ".")
    return token.kind in (QUOTED, STRING, PARAMETER) or token.text in (")", "]", "}")


def _rewrite_position(outline: Outline, edits: Edits, start: int, end: int) -> None:
    number = _integer(outline, start, end)
    tokens = outline.tokens
    if number is None:
        if start + 1 == end and tokens[start].kind == STRING:
            return
        edits.insert(tokens[start].start, _SHIFT[0])
        edits.insert(tokens[end - 1].end, _SHIFT[1])
    elif number == 0:
        raise runtime_error("List extract takes 1-based position.")
    elif number > 0:
        edits.replace(tokens[start], str(number - 1))


def _rewrite_slice(outline: Outline, edits: Edits, start: int, colon: int, end: int) -> None:
    bounds: list[int | None] = []
    for first, last in ((start + 1, colon), (colon + 1, end)):
        number = _integer(outline, first, last)
        if number is None and first != last:
            raise refused("parts of lists with computed positions", "pass the part as a parameter")
        bounds.append(number)
    begin, stop = bounds
    if begin is not None and begin >= 0:
        begin = begin - 1 if begin > 1 else None
    if stop is not None and stop < 0:
        # The last element is included in Kuzu.
        stop = stop + 1 if stop < -1 else None
    text = f"{'' if begin is None else begin}..{'' if stop is None else stop}"
    if begin is None and stop is None:
        text = "0.."
    edits.replace_inside(outline.tokens[start], outline.tokens[end], text)


def _rewrite_start(outline: Outline, edits: Edits, start: int, end: int) -> None:
    """Makes the position of a character count from 0."""
    number = _integer(outline, start, end)
    if number is None:
        edits.insert(outline.tokens[start].start, "(")
        edits.insert(outline.tokens[end - 1].end, ") - 1")
    elif number > 0:
        edits.replace(outline.tokens[start], str(number - 1))
    else:
        raise refused("substring() with a start below 1", "the first character is at 1")


def _rewrite_label(
    outline: Outline,
    edits: Edits,
    index: int,
    end: int,
    is_node: Callable[[str], bool | None],
) -> None:
    if end != index + 3 or not outline.tokens[index + 2].is_name:
        return
    kind = is_node(outline.tokens[index + 2].name)
    if kind is None:
        return
    edits.replace(outline.tokens[index], "labels" if kind else "type")
    if kind:
        edits.insert(outline.tokens[end].end, "[0]")


def _rewrite_text(outline: Outline, edits: Edits, index: int, end: int) -> dict[str, Derived]:
    """Puts a date and the like in the place of the function that makes it."""
    from ._convert import converted_text

    function, argument = outline.tokens[index], outline.tokens[index + 2]
    type = _TEXTS[function.text.lower()]
    parameters = {}
    if end == index + 3 and argument.kind == STRING:
        text = json.dumps(converted_text(string_value(argument), type), ensure_ascii=False)
    elif end == index + 3 and argument.kind == PARAMETER and "`" not in argument.text:
        name = argument.text[1:]
        parameters[f"{type.lower()}_{name}"] = Derived(name, type)
        text = f"${type.lower()}_{name}"
        edits.leave_out(argument)
    else:
        raise refused(
            f"{function.text}() of anything but a string or a parameter",
            "pass the text itself, as ISO 8601",
        )
    edits.replace_between(function, outline.tokens[end], text)
    return parameters


def _integer(outline: Outline, start: int, end: int) -> int | None:
    """The integer that tokens are, ``None`` if they are something else."""
    is_negative = outline.is_symbol(start, "-")
    number = start + 1 if is_negative else start
    if number + 1 != end or not outline.tokens[number].text.isdigit():
        return None
    value = int(outline.tokens[number].text)
    return -value if is_negative else value
