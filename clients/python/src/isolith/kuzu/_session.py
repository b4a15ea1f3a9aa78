"""What the connections of a database share: its tables, and queries that were seen before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import NoStore
from ._binder import Bound, bind, undeclared
from ._catalog import SHOW, Catalog, catalog_of, constraints_of
from ._errors import no_table
from ._graph import Execution
from ._literals import PREFIX, movable, places, replaced, template_of, value_of
from ._outline import Outline
from ._statements import Query, Statement, parse
from ._tokens import quoted, tokenize

# For how many seconds tables that another process declares, changes or drops may go unnoticed.
_MAX_AGE = 1.0

_NODES = "MATCH (n) WHERE id(n) IN $ids RETURN n"

# How many texts are remembered, how many of them may differ in literals only, and their length.
_MAX_KEPT = 256
_MAX_VARIANTS = 16
_MAX_LENGTH = 5_000


class Prepared(NamedTuple):
    """The statements of a text, and the values of literals that became parameters."""

    statements: list[Statement]
    literals: dict[str, Any]


class _Known(NamedTuple):
    """A text that was seen with other literals.

    Literals at the numbers in ``moved`` become parameters. With the others, which stay, the
    statements are found.
    """

    moved: tuple[int, ...]
    fixed: tuple[int, ...]
    statements: dict[tuple[str, ...], list[Statement]]


class Tables:
    """The tables of a database, as they were at most a second ago. Threads can share it."""

    def __init__(self) -> None:
        self._catalog = catalog_of(())
        self._loaded = float("-inf")
        # Labels and types that are not tables, but exist.
        self._other: set[tuple[str, bool]] = set()
        self._parsed: dict[str, list[Statement]] = {}
        self._templates: dict[str, _Known] = {}
        self._bound: dict[Query, tuple[Catalog, Bound]] = {}

    def catalog(self, execution: Execution, is_fresh: bool = False) -> Catalog:
        """The tables.

        :param is_fresh: whether to ask the server in any case
        """
        if is_fresh or time.monotonic() - self._loaded > _MAX_AGE:
            self._load(execution)
        return self._catalog

    def forget(self) -> None:
        """To be called when the tables have changed."""
        self._loaded = float("-inf")

    def parsed(self, text: str) -> list[Statement]:
        """The statements of a text.

        :raises KuzuError: if it cannot be parsed, or is not supported
        """
        statements = self._parsed.get(text)
        if statements is None:
            statements = parse(text)
            _keep(self._parsed, text, statements, len(text))
        return statements

    def prepared(self, text: str) -> Prepared:
        """The statements of a text, with literals of a query moved to parameters.

        :raises KuzuError: if it cannot be parsed, or is not supported
        """
        if len(text) > _MAX_LENGTH:
            return Prepared(self.parsed(text), {})
        template, literals = template_of(text)
        known = self._templates.get(template)
        if known is None:
            statements = self.parsed(text)
            known = _Known(*_movable(text, statements, len(literals)), {})
            _keep(self._templates, template, known, len(template))
        values = {f"{PREFIX}{number}": value_of(literals[number]) for number in known.moved}
        if not known.moved or None in values.values():
            return Prepared(self.parsed(text), {})
        key = tuple(literals[number] for number in known.fixed)
        prepared = known.statements.get(key)
        if prepared is None:
            prepared = parse(_with_parameters(text, known.moved))
            _keep(known.statements, key, prepared, len(text), _MAX_VARIANTS)
        return Prepared(prepared, values)

    def bound(self, query: Query, execution: Execution) -> tuple[Bound, Catalog]:
        """A query for the graph, and the tables that it was made with.

        :raises KuzuError: if it does not fit the tables
        """
        catalog = self.catalog(execution)
        made_with, bound = self._bound.get(query, (None, None))
        if bound is None or made_with is not catalog:
            outline = Outline(query.tokens)
            if self._unknown(outline, catalog):
                catalog = self._look_for(outline, execution)
            bound = bind(query.text, outline, catalog)
            _keep(self._bound, query, (catalog, bound), len(query.text))
        return bound, catalog

    def _load(self, execution: Execution) -> None:
        started = time.monotonic()
        try:
            answer = execution.query(SHOW, is_write=False)
        except NoStore:
            catalog = catalog_of(())
        else:
            catalog = catalog_of(constraints_of(answer.columns, answer.rows))
        if catalog != self._catalog:
            self._catalog = catalog
        self._other = set()
        self._loaded = started

    def _unknown(self, outline: Outline, catalog: Catalog) -> list[tuple[str, bool, bool]]:
        return [
            (name, is_node, is_new)
            for name, is_node, is_new in undeclared(outline, catalog)
            if is_new or (name, is_node) not in self._other
        ]

    def _look_for(self, outline: Outline, execution: Execution) -> Catalog:
        """Looks for labels and types that are not known, and returns the tables of now."""
        catalog = self.catalog(execution, is_fresh=True)
        for name, is_node, is_new in self._unknown(outline, catalog):
            if is_new or not _exists(name, is_node, execution):
                raise no_table(name)
            self._other.add((name, is_node))
        return catalog


def find_nodes(ids: Iterable[int], execution: Execution) -> list[Mapping[str, Any]]:
    """The nodes with these ids."""
    answer = execution.query(_NODES, {"ids": sorted(ids)}, is_write=False)
    return [row[0] for row in answer.rows]


def _movable(
    text: str, statements: list[Statement], count: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which of the literals of a text can be parameters, and which have to stay."""
    moved: list[int] = []
    if len(statements) == 1 and isinstance(statements[0], Query):
        ranges = movable(Outline(tokenize(text)))
        moved = [number for number, start in enumerate(places(text)) if start in ranges]
    return tuple(moved), tuple(number for number in range(count) if number not in moved)


def _with_parameters(text: str, moved: tuple[int, ...]) -> str:
    """A text with parameters in the places of literals."""
    ranges = movable(Outline(tokenize(text)))
    starts = places(text)
    return replaced(
        text,
        [(starts[number], ranges[starts[number]], f"${PREFIX}{number}") for number in moved],
    )


def _exists(name: str, is_node: bool, execution: Execution) -> bool:
    """Whether there are nodes with a label, or relationships of a type, that is not a table."""
    pattern = f"(x:{quoted(name)})" if is_node else f"()-[x:{quoted(name)}]->()"
    try:
        query = f"MATCH {pattern} RETURN 1 LIMIT 1"
        return bool(execution.query(query, is_write=False).rows)
    except NoStore:
        return False


def _keep(kept: dict[Any, Any], key: Any, value: Any, length: int, most: int = _MAX_KEPT) -> None:
    """Remembers something, in place of what was remembered first if there is no room."""
    if length <= _MAX_LENGTH:
        while len(kept) >= most:
            kept.pop(next(iter(kept)), None)
        kept[key] = value
