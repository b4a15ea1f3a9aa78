"""The graph: Cypher over the code, facts and nodes of your own, and questions about code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generator, List, Mapping, Sequence

from .._call import Call, Endpoint, Plan
from .._model import Model, Rows, many, one, plain, renamed
from .._operation import Asynchronous, Blocking, Page, listing, operation

_QUERY = Endpoint("POST", "/graph/query", keyed=True)
_IMPORT = Endpoint("POST", "/graph/import", keyed=True)
_CALLERS = Endpoint("GET", "/graph/callers")
_CALLEES = Endpoint("GET", "/graph/callees")
_PATH = Endpoint("GET", "/graph/path")
_IMPACT = Endpoint("GET", "/graph/impact")
_CYCLES = Endpoint("GET", "/graph/cycles")
_UNUSED = Endpoint("GET", "/graph/unused")
_HOTSPOTS = Endpoint("GET", "/graph/hotspots")
_STATS = Endpoint("GET", "/graph/stats")
_SCHEMA = Endpoint("GET", "/graph/schema")

# The rows of a page: as many as the server allows, as all of them are wanted.
_PAGE_ROWS = 10_000


@dataclass(frozen=True)
class Node(Model):
    """A node of the graph."""

    id: int
    labels: list[str]
    properties: dict[str, Any]


@dataclass(frozen=True)
class Relationship(Model):
    """A relationship of the graph. ``start`` and ``end`` are the ids of nodes."""

    id: int
    type: str
    start: int
    end: int
    properties: dict[str, Any]


@dataclass(frozen=True)
class Path:
    """A path: nodes, and the relationships between them."""

    nodes: list[Node]
    relationships: list[Relationship]

    def to_dict(self) -> dict[str, Any]:
        """The path as plain values."""
        return {"nodes": plain(self.nodes), "relationships": plain(self.relationships)}


_NODE = {"id", "labels", "properties"}
_RELATIONSHIP = {"id", "type", "start", "end", "properties"}
_PATH_KEYS = {"nodes", "relationships"}


def value_of(value: Any) -> Any:
    """A value of a row: nodes, relationships and paths as objects.

    They are recognized by their keys, so that a map with exactly these keys is taken for one.
    """
    if isinstance(value, list):
        return [value_of(item) for item in value]
    if not isinstance(value, dict):
        return value
    keys = value.keys()
    if keys == _NODE:
        return Node.from_json(value)
    if keys == _RELATIONSHIP:
        return Relationship.from_json(value)
    if keys == _PATH_KEYS:
        nodes, relationships = value_of(value["nodes"]), value_of(value["relationships"])
        return Path(nodes, relationships)
    return {key: value_of(item) for key, item in value.items()}


@dataclass(frozen=True)
class Result(Rows[List[Any]]):
    """All rows of a query, and what it changed.

    ``stats`` counts changes, such as ``nodes_created``. ``degraded`` says why the query was slow.
    """

    columns: list[str]
    rows: list[list[Any]]
    stats: dict[str, int] = field(default_factory=dict)
    degraded: str | None = None

    def _items(self) -> list[list[Any]]:
        return self.rows

    def _columns(self) -> list[str]:
        return self.columns

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each row, with nodes and relationships as dictionaries."""
        return [dict(zip(self.columns, plain(row))) for row in self.rows]

    def value(self) -> Any:
        """The first value of the first row, ``None`` if there is none."""
        return self.rows[0][0] if self.rows and self.columns else None

    def to_dict(self) -> dict[str, Any]:
        """The result as the command line prints it."""
        return {
            "columns": self.columns,
            "rows": plain(self.rows),
            "stats": self.stats,
            "degraded": self.degraded,
        }


@dataclass(frozen=True)
class ResultPage:
    """Some rows of a query, and the token of the next ones."""

    columns: list[str]
    rows: list[list[Any]]
    stats: dict[str, int]
    degraded: str | None
    next: str | None

    @classmethod
    def from_json(cls, reply: Any) -> ResultPage:
        """A page from the reply of the server."""
        rows = [[value_of(value) for value in row] for row in reply["rows"]]
        stats, degraded = reply.get("stats") or {}, reply.get("degraded")
        return cls(reply["columns"], rows, stats, degraded, reply.get("next"))


@dataclass(frozen=True)
class RejectedRow(Model):
    """A row that was skipped."""

    row: int
    reason: str


@dataclass(frozen=True)
class ImportedRows(Model):
    """What an import did. ``bytes`` is the length of the rows that were imported."""

    rows: int
    bytes: int
    nodes_created: int = 0
    relationships_created: int = 0
    properties_set: int = 0
    rejected: list[RejectedRow] = many(RejectedRow)
    rejected_rows: int = 0
    repeated: bool = False


@dataclass(frozen=True)
class Symbol(Model):
    """A definition, or a file. ``id`` is ``path#Qualified.name``, or the path of a file."""

    id: str
    name: str
    qualified_name: str = ""
    label: str = ""
    kind: str = ""
    path: str = ""
    line: int | None = None
    end_line: int | None = None
    language: str = ""
    signature: str | None = None
    exported: bool = False
    test: bool = False


@dataclass(frozen=True)
class Reached(Symbol):
    """A symbol, and the edge through which it was reached.

    ``via`` is the id at the other end of the edge, ``via_line`` the line of the reference.
    """

    depth: int = 0
    type: str = ""
    certainty: str = ""
    via: str = ""
    via_line: int | None = None


@dataclass(frozen=True)
class Neighbours(Model, Rows[Reached]):
    """Callers or callees, the nearest first. ``likely`` counts edges that are uncertain."""

    symbol: Symbol = one(Symbol)
    found: list[Reached] = many(Reached)
    likely: int = 0
    more: bool = False

    def _items(self) -> list[Reached]:
        return self.found


@dataclass(frozen=True)
class Impact(Model):
    """What may break if a symbol changes, and the tests to run."""

    symbol: Symbol = one(Symbol)
    impact: list[Reached] = many(Reached)
    tests: list[Reached] = many(Reached)
    more: bool = False


@dataclass(frozen=True)
class SymbolPath:
    """A shortest path between two symbols. ``path`` is ``None`` if there is no path."""

    start: Symbol
    end: Symbol
    path: list[Reached] | None

    @classmethod
    def from_json(cls, reply: Any) -> SymbolPath:
        """A path from the reply of the server."""
        steps = reply["path"]
        path = None if steps is None else [Reached.from_json(step) for step in steps]
        return cls(Symbol.from_json(reply["from"]), Symbol.from_json(reply["to"]), path)

    def to_dict(self) -> dict[str, Any]:
        """The path as the command line prints it."""
        return {"from": plain(self.start), "to": plain(self.end), "path": plain(self.path)}


@dataclass(frozen=True)
class Import(Model):
    """An import of a file in another one."""

    importer: str = renamed("from")
    imported: str = renamed("to")
    line: int | None = None


@dataclass(frozen=True)
class Cycle(Model):
    """Files that import each other, and a shortest cycle among them."""

    files: list[str]
    ring: list[Import] = many(Import)


@dataclass(frozen=True)
class Cycles(Model, Rows[Cycle]):
    """Import cycles, the smallest first."""

    cycles: list[Cycle] = many(Cycle)
    total: int = 0
    more: bool = False

    def _items(self) -> list[Cycle]:
        return self.cycles


@dataclass(frozen=True)
class Unused(Model, Rows[Symbol]):
    """Definitions without a known use."""

    unused: list[Symbol] = many(Symbol)
    total: int = 0
    more: bool = False

    def _items(self) -> list[Symbol]:
        return self.unused


@dataclass(frozen=True)
class Hotspot(Symbol):
    """A symbol and the number of its edges."""

    count: int = 0


@dataclass(frozen=True)
class LabelCount(Model):
    """The number of nodes with a label."""

    label: str | None
    count: int


@dataclass(frozen=True)
class TypeCount(Model):
    """The number of edges of a type."""

    type: str
    count: int
    certainty: str | None = None


@dataclass(frozen=True)
class GraphStats(Model):
    """The size of the graph."""

    nodes: int
    edges: int
    labels: list[LabelCount] = many(LabelCount)
    types: list[TypeCount] = many(TypeCount)


@dataclass(frozen=True)
class LabelSchema(Model):
    """The nodes with a label. ``properties`` has an example of each."""

    label: str
    count: int
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TypeSchema(Model):
    """The relationships of a type, and the labels that they connect."""

    type: str
    count: int
    properties: dict[str, str] = field(default_factory=dict)
    to: list[str] = field(default_factory=list)
    from_: list[str] = renamed("from", default_factory=list)


@dataclass(frozen=True)
class GraphSchema(Model):
    """What can be asked of the graph."""

    labels: list[LabelSchema] = many(LabelSchema)
    relationships: list[TypeSchema] = many(TypeSchema)


class GraphOperations:
    """The graph of the code, of facts, and of nodes of your own."""

    @operation
    def query(
        self,
        query: str,
        params: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
    ) -> Plan[Result]:
        """Runs a Cypher query and returns all rows. A query that writes is one transaction.

        :param params: the values of ``$names`` in the query
        :param key: repeating the call with the same key within a day changes nothing
        """
        return _all_rows(query, params, key)

    @listing
    def rows(
        self,
        query: str,
        params: Mapping[str, Any] | None = None,
        *,
        page_size: int = 1000,
        key: str | None = None,
    ) -> Callable[[Any], Call[Page[List[Any]]]]:
        """Runs a Cypher query and iterates over its rows; pages are read as they are needed.

        All pages show the graph as it was when the query ran. The server keeps them for five
        minutes after the last one that was read.
        """

        def parse(reply: Any) -> Page[List[Any]]:
            page = ResultPage.from_json(reply)
            return Page(page.rows, page.next)

        def page_at(cursor: Any) -> Call[Page[List[Any]]]:
            if cursor is None:
                return _QUERY(
                    parse, idempotency_key=key, query=query, params=params, limit=page_size
                )
            return _QUERY(parse, next=cursor, limit=page_size)

        return page_at

    @operation
    def import_csv(
        self,
        rows: str,
        columns: Sequence[str],
        *,
        nodes: Mapping[str, Any] | None = None,
        relationships: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        more: bool | None = None,
        rows_before: int | None = None,
        skip_bad: bool | None = None,
        key: str | None = None,
    ) -> Plan[ImportedRows]:
        """Imports rows of CSV in one transaction. A request may have 16 MiB.

        :param rows: the rows, without names of columns
        :param columns: the names of columns with types, such as ``id:int``
        :param nodes: ``{"label": …, "key": …, "existing": "update"}`` if rows become nodes;
            ``key`` is the column that identifies them, and ``existing`` may be ``"refuse"``
        :param relationships: ``{"type": …, "from": {"label": …, "key": …}, "to": …}`` if rows
            become relationships; the first two columns are the keys of their nodes
        :param more: whether more rows follow; then an incomplete row at the end is left out
        :param rows_before: the number of rows before, for errors
        :param skip_bad: whether to skip invalid rows
        :param key: repeating the call with the same key within a day changes nothing
        """
        return _IMPORT(
            ImportedRows.from_json,
            idempotency_key=key,
            nodes=nodes,
            relationships=relationships,
            columns=list(columns),
            rows=rows,
            delimiter=delimiter,
            more=more,
            rows_before=rows_before,
            skip_bad=skip_bad,
        )

    @operation
    def callers(
        self,
        symbol: str,
        *,
        depth: int | None = None,
        candidates: bool | None = None,
        limit: int | None = None,
    ) -> Plan[Neighbours]:
        """What calls a symbol.

        :param symbol: a name, ``Type.name``, ``path#Name``, ``path:line`` or the path of a file
        :param depth: the maximum distance in hops, by default 1
        :param candidates: whether to follow uncertain edges, too
        :param limit: the maximum number of symbols, by default 30
        """
        return _CALLERS(
            Neighbours.from_json, symbol=symbol, depth=depth, candidates=candidates, limit=limit
        )

    @operation
    def callees(
        self,
        symbol: str,
        *,
        depth: int | None = None,
        candidates: bool | None = None,
        limit: int | None = None,
    ) -> Plan[Neighbours]:
        """What a symbol calls. The arguments are those of ``callers``."""
        return _CALLEES(
            Neighbours.from_json, symbol=symbol, depth=depth, candidates=candidates, limit=limit
        )

    @operation
    def path(self, start: str, end: str, *, candidates: bool | None = None) -> Plan[SymbolPath]:
        """A shortest path of dependencies between two symbols."""
        # `from` is a keyword of Python.
        ends: Dict[str, Any] = {"from": start, "to": end}
        return _PATH(SymbolPath.from_json, candidates=candidates, **ends)

    @operation
    def impact(
        self,
        symbol: str,
        *,
        depth: int | None = None,
        candidates: bool | None = None,
        limit: int | None = None,
    ) -> Plan[Impact]:
        """What may break if a symbol or a file changes, and the tests to run."""
        return _IMPACT(
            Impact.from_json, symbol=symbol, depth=depth, candidates=candidates, limit=limit
        )

    @operation
    def cycles(
        self,
        *,
        path: str | None = None,
        candidates: bool | None = None,
        limit: int | None = None,
    ) -> Plan[Cycles]:
        """Files that import each other.

        :param path: only cycles with a file in this folder
        """
        return _CYCLES(Cycles.from_json, path=path, candidates=candidates, limit=limit)

    @operation
    def unused(
        self,
        *,
        path: str | None = None,
        tests: bool | None = None,
        exported: bool | None = None,
        limit: int | None = None,
    ) -> Plan[Unused]:
        """Functions, methods and types without a known use.

        :param path: only in this folder or file
        :param tests: only tests, or no tests
        :param exported: whether to include what other files can see
        """
        return _UNUSED(Unused.from_json, path=path, tests=tests, exported=exported, limit=limit)

    @operation
    def hotspots(
        self,
        *,
        by: str | None = None,
        path: str | None = None,
        tests: bool | None = None,
        candidates: bool | None = None,
        limit: int | None = None,
    ) -> Plan[List[Hotspot]]:
        """The symbols with the most edges.

        :param by: ``callers`` (the default), ``callees`` or ``links``
        :param path: only in this folder or file
        :param tests: only tests, or no tests
        """

        def parse(reply: Any) -> List[Hotspot]:
            return [Hotspot.from_json(hotspot) for hotspot in reply["hotspots"]]

        return _HOTSPOTS(parse, by=by, path=path, tests=tests, candidates=candidates, limit=limit)

    @operation
    def stats(self) -> Plan[GraphStats]:
        """The number of nodes by label, and of edges by type."""
        return _STATS(GraphStats.from_json)

    @operation
    def schema(self) -> Plan[GraphSchema]:
        """Labels, relationship types and properties, with counts and examples."""
        return _SCHEMA(GraphSchema.from_json)


def _all_rows(
    query: str, params: Mapping[str, Any] | None, key: str | None
) -> Generator[Call[Any], Any, Result]:
    first = yield from _QUERY(
        ResultPage.from_json, idempotency_key=key, query=query, params=params, limit=_PAGE_ROWS
    )
    rows, token = first.rows, first.next
    while token is not None:
        page = yield from _QUERY(ResultPage.from_json, next=token, limit=_PAGE_ROWS)
        rows.extend(page.rows)
        token = page.next
    return Result(first.columns, rows, first.stats, first.degraded)


class Graph(GraphOperations, Blocking):
    """The graph of the code, of facts, and of nodes of your own."""


class AsyncGraph(GraphOperations, Asynchronous):
    """The graph of the code, of facts, and of nodes of your own."""
