"""The outline of a query: its clauses, its brackets, and the patterns in it.

This is not a parser: it finds what has to be looked at, in the tokens of a query that may be
wrong. What it does not understand is left to the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._errors import refused
from ._tokens import NAME, NUMBER, PARAMETER, SYMBOL, Token


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_CLAUSES = _words(
    "CALL CREATE DELETE DETACH FOREACH LIMIT LOAD MATCH MERGE ON OPTIONAL ORDER REMOVE RETURN",
    "SET SKIP UNION UNWIND WHERE WITH YIELD",
)
_WRITING = frozenset(("CREATE", "DELETE", "MERGE", "REMOVE", "SET"))

# Words that can stand before an opening bracket without being the name of a function or variable.
WORDS = _CLAUSES | _words(
    "AND AS ASC ASCENDING BY CASE CONTAINS DESC DESCENDING DISTINCT ELSE END ENDS FALSE IN IS",
    "NOT NULL OR STARTS THEN TRUE WHEN XOR",
)

_OPENING = {"(": ")", "[": "]", "{": "}"}
_RECURSIONS = ("SHORTEST", "ALL", "TRAIL", "ACYCLIC", "WSHORTEST")


class Entry(NamedTuple):
    """A key in the properties of a pattern, and its value: indexes of tokens."""

    key: int
    start: int
    end: int


class Pattern(NamedTuple):
    """A node or a relationship in a query. Indexes are those of tokens."""

    is_node: bool
    start: int
    variable: int | None
    labels: tuple[int, ...]
    entries: tuple[Entry, ...]
    is_recursive: bool = False


class Outline:
    """What is in a query.

    :ivar clauses: for each token, the clause in which it is
    :ivar depths: for each token, how many brackets are around it
    :ivar closing: for an opening bracket, where it is closed
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.clauses: list[str] = []
        self.depths: list[int] = []
        self.closing: dict[int, int] = {}
        self._read_brackets()
        self.is_write = not _WRITING.isdisjoint(self.clauses) or "FOREACH" in self.clauses
        self.patterns = self._read_patterns()

    def is_symbol(self, index: int, text: str) -> bool:
        """Whether a token is a symbol."""
        if not 0 <= index < len(self.tokens):
            return False
        token = self.tokens[index]
        return token.kind == SYMBOL and token.text == text

    def is_function(self, index: int) -> bool:
        """Whether a name is that of a function that is called."""
        token = self.tokens[index]
        is_named = token.kind == NAME and token.text.upper() not in WORDS
        return is_named and self.is_symbol(index + 1, "(") and not self.is_symbol(index - 1, ".")

    def items(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts between commas."""
        parts = []
        depth = self.depths[start] if start < end else 0
        begin = start
        for index in range(start, end):
            if self.depths[index] == depth and self.is_symbol(index, ","):
                parts.append((begin, index))
                begin = index + 1
        if begin < end:
            parts.append((begin, end))
        return parts

    def is_clause(self, index: int) -> bool:
        """Whether a clause begins with a token."""
        token = self.tokens[index]
        if token.kind != NAME or token.text.upper() not in _CLAUSES:
            return False
        before = self.tokens[index - 1] if index else None
        if before is None:
            return True
        if before.kind == SYMBOL and before.text in (".", ":", "|"):
            return False
        if before.is_word("STARTS", "ENDS"):
            return False
        is_key = self.is_symbol(index + 1, ":") and before.text in ("{", ",")
        return not is_key

    def clause_end(self, index: int) -> int:
        """Where the clause of a token ends, at the same depth."""
        depth = self.depths[index]
        for later in range(index, len(self.tokens)):
            if self.depths[later] < depth:
                return later
            if later > index and self.depths[later] == depth and self.is_clause(later):
                return later
        return len(self.tokens)

    def _read_brackets(self) -> None:
        clause = ""
        opened: list[tuple[int, str]] = []
        for index, token in enumerate(self.tokens):
            if token.kind == SYMBOL and token.text in (")", "]", "}") and opened:
                start, clause = opened.pop()
                if _OPENING[self.tokens[start].text] == token.text:
                    self.closing[start] = index
            elif self.is_clause(index):
                clause = token.text.upper()
            self.clauses.append(clause)
            self.depths.append(len(opened))
            if token.kind == SYMBOL and token.text in _OPENING:
                opened.append((index, clause))

    def _read_patterns(self) -> list[Pattern]:
        found = []
        for start, end in sorted(self.closing.items()):
            pattern = None
            if self.is_symbol(start, "(") and not (start and self.is_function(start - 1)):
                pattern = self._pattern(start, end, is_node=True)
            elif self.is_symbol(start, "[") and self.is_symbol(start - 1, "-"):
                pattern = self._pattern(start, end, is_node=False)
            if pattern is not None:
                found.append(pattern)
        return found

    def _pattern(self, start: int, end: int, is_node: bool) -> Pattern | None:
        """The pattern between brackets, if it is one."""
        at = start + 1
        variable = None
        if at < end and self.tokens[at].is_name:
            variable = at
            at += 1
        labels, at = self._labels(at, end)
        is_recursive = not is_node and self.is_symbol(at, "*")
        if is_recursive:
            at = self._range(at + 1)
        entries: tuple[Entry, ...] = ()
        if at < end and self.is_symbol(at, "{"):
            entries = self._entries(at)
            at = self.closing.get(at, end) + 1
        elif at < end and self.tokens[at].kind == PARAMETER:
            at += 1
        if at != end:
            return None
        return Pattern(is_node, start, variable, tuple(labels), entries, is_recursive)

    def _labels(self, at: int, end: int) -> tuple[list[int], int]:
        labels: list[int] = []
        while at < end:
            if self.is_symbol(at, ":"):
                at += 1
            elif labels and self.is_symbol(at, "|"):
                at += 2 if self.is_symbol(at + 1, ":") else 1
            else:
                break
            if at < end and self.tokens[at].is_name:
                labels.append(at)
                at += 1
        return labels, at

    def _range(self, at: int) -> int:
        """Skips the length of a path. Refuses what only Kuzu has."""
        token = self.tokens[at]
        if token.is_word(*_RECURSIONS):
            hint = "use shortestPath((a)-[:E*]->(b))" if "SHORTEST" in token.text.upper() else ""
            raise refused(f"{token.text} in a relationship of variable length", hint)
        while self.tokens[at].kind == NUMBER or self.is_symbol(at, ".."):
            at += 1
        if self.is_symbol(at, "("):
            raise refused(
                "conditions and projections inside a relationship of variable length",
                "name the path, and use all(x IN relationships(p) WHERE ...)",
            )
        return at

    def _entries(self, start: int) -> tuple[Entry, ...]:
        entries = []
        for begin, end in self.items(start + 1, self.closing.get(start, start)):
            if self.tokens[begin].is_name and self.is_symbol(begin + 1, ":"):
                entries.append(Entry(begin, begin + 2, end))
        return tuple(entries)
