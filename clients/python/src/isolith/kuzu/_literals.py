"""Literals in the text of a query that can as well be parameters.

Programs often write keys into their queries. Queries that differ in such literals only are checked
and rewritten once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._outline import Outline
from ._tokens import NUMBER, STRING, SYMBOL, Token, string_value

# The names of the parameters that literals become; programs do not use this prefix.
PREFIX = "isolith_literal_"

# Literals, and what may contain something that looks like one.
_LITERAL = re.compile(
    r"""
    ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w$.`])\d+(?:\.\d+)?(?![\w.]))
  | //[^\n]*|/\*.*?\*/|`[^`]*`
    """,
    re.VERBOSE | re.DOTALL,
)

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))

# Integers have 64 bits. Longer ones are left to the server.
_MAX_DIGITS = 18


class Template(NamedTuple):
    """A text without its literals, and the literals in order."""

    text: str
    literals: list[str]


def template_of(text: str) -> Template:
    """Takes the literals out of a text."""
    literals: list[str] = []

    def taken(match: re.Match[str]) -> str:
        literal = match.group(1)
        if literal is None:
            return match.group()
        literals.append(literal)
        return "\0n" if literal[0].isdigit() else "\0s"

    return Template(_LITERAL.sub(taken, text), literals)


def places(text: str) -> list[int]:
    """Where the literals are in a text, in order."""
    return [match.start() for match in _LITERAL.finditer(text) if match.group(1) is not None]


def movable(outline: Outline) -> dict[int, int]:
    """The literals that can be parameters: where they begin and end in the text.

    They are values in patterns, of comparisons in ``WHERE``, and of assignments.
    """
    found: dict[int, int] = {}
    for pattern in outline.patterns:
        for entry in pattern.entries:
            if entry.start + 1 == entry.end:
                _add(found, outline.tokens[entry.start])
    for index, token in enumerate(outline.tokens[1:], 1):
        before = outline.tokens[index - 1]
        if before.kind != SYMBOL or before.text not in _COMPARISONS:
            continue
        if outline.clauses[index] in ("WHERE", "SET") and _is_end(outline, index + 1):
            _add(found, token)
    return found


def value_of(literal: str) -> Any:
    """The value of a literal; ``None`` for an integer that may be too large."""
    if literal[0] in "\"'":
        if "\\" in literal:
            return string_value(Token(STRING, literal, 0, 0))
        return literal[1:-1]
    if "." in literal:
        return float(literal)
    return int(literal) if len(literal) <= _MAX_DIGITS else None


def replaced(text: str, ranges: Sequence[tuple[int, int, str]]) -> str:
    """A text with other texts in some places, which are in order."""
    parts, position = [], 0
    for start, end, new in ranges:
        parts += [text[position:start], new]
        position = end
    return "".join(parts) + text[position:]


def _add(found: dict[int, int], token: Token) -> None:
    if token.kind in (NUMBER, STRING):
        found[token.start] = token.end


def _is_end(outline: Outline, index: int) -> bool:
    """Whether a value ends before a token: no operator follows that it could belong to."""
    if index == len(outline.tokens):
        return True
    token = outline.tokens[index]
    if token.kind == SYMBOL:
        return token.text in (",", ")")
    return token.is_word("AND", "OR", "XOR") or outline.is_clause(index)
