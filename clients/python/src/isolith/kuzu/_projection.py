"""What a query returns: ``u.*``, and the names that Kuzu gives to columns."""

from __future__ import annotations

from collections.abc import Container
from typing import Callable

from ._outline import Outline
from ._rewrites import Edits
from ._tokens import quoted

_AGGREGATES = frozenset(("avg", "collect", "count", "max", "min", "sum"))


class Projection:
    """The items of ``RETURN``."""

    def __init__(self, text: str, outline: Outline, edits: Edits) -> None:
        self._text = text
        self._outline = outline
        self._tokens = outline.tokens
        self._edits = edits

    def expand_stars(self, columns_of: Callable[[str], list[str]]) -> None:
        """Names the columns of ``variable.*``, wherever it is."""
        for index in range(len(self._tokens) - 2):
            if self._is_star(index, index + 3):
                name = self._tokens[index].name
                items = [
                    f"{quoted(name)}.{quoted(column)} AS {quoted(f'{name}.{column}')}"
                    for column in columns_of(name)
                ]
                first, last = self._tokens[index], self._tokens[index + 2]
                self._edits.replace_between(first, last, ", ".join(items) or "null")

    def name_items(self, variables: Container[str]) -> None:
        """Names columns as Kuzu does, where Isolith would name them otherwise."""
        for index, token in enumerate(self._tokens):
            if self._outline.depths[index] or not token.is_word("RETURN"):
                continue
            if not self._outline.is_clause(index):
                continue
            start = index + 1
            if start < len(self._tokens) and self._tokens[start].is_word("DISTINCT"):
                start += 1
            for item in self._outline.items(start, self._outline.clause_end(index)):
                self._name_item(*item, variables)

    def _name_item(self, start: int, end: int, variables: Container[str]) -> None:
        if self._has_alias(start, end) or self._is_star(start, end):
            return
        first, last = self._tokens[start], self._tokens[end - 1]
        text = self._text[first.start : last.end]
        name = self._name_of(start, end, variables)
        if name is None and self._edits.has_changed(first.start, last.end):
            name = text
        if name is not None and (name != text or self._edits.has_changed(first.start, last.end)):
            self._edits.insert(last.end, f" AS {quoted(name)}")

    def _name_of(self, start: int, end: int, variables: Container[str]) -> str | None:
        """Kuzu's name for a column, or an aggregate of one."""
        name = self._lookup(start, end)
        if name is not None or end - start < 4 or not self._outline.is_function(start):
            return name
        function = self._tokens[start].text
        if function.lower() not in _AGGREGATES or self._outline.closing.get(start + 1) != end - 1:
            return None
        inside, distinct = start + 2, ""
        if self._tokens[inside].is_word("DISTINCT"):
            inside, distinct = inside + 1, "DISTINCT "
        if self._outline.is_symbol(inside, "*") and inside + 1 == end - 1:
            return "COUNT_STAR()"
        argument = self._lookup(inside, end - 1)
        if argument is None and inside + 1 == end - 1 and self._tokens[inside].is_name:
            argument = self._tokens[inside].name
            if function.lower() == "count" and argument in variables:
                argument += "._ID"
        return None if argument is None else f"{function.upper()}({distinct}{argument})"

    def _lookup(self, start: int, end: int) -> str | None:
        """The name of ``variable.column``."""
        if end - start != 3 or not self._outline.is_symbol(start + 1, "."):
            return None
        variable, column = self._tokens[start], self._tokens[start + 2]
        if not (variable.is_name and column.is_name):
            return None
        return f"{variable.name}.{self._edits.corrected(column)}"

    def _has_alias(self, start: int, end: int) -> bool:
        depth = self._outline.depths[start]
        return any(
            self._tokens[index].is_word("AS") and self._outline.depths[index] == depth
            for index in range(start, end)
        )

    def _is_star(self, start: int, end: int) -> bool:
        if end - start != 3 or not self._tokens[start].is_name:
            return False
        return self._outline.is_symbol(start + 1, ".") and self._outline.is_symbol(start + 2, "*")
