"""Code: indexing, searching and reading it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable

from .._call import Call, Endpoint, Moment, Plan
from .._model import Model, Rows, many, maybe, one
from .._operation import Asynchronous, Blocking, operation, resolved
from .jobs import Progress

_SEARCH = Endpoint("POST", "/code/search", repeatable=True)
_SIMILAR = Endpoint("GET", "/code/similar")
_CHUNKS = Endpoint("GET", "/code/chunks")
_ROOTS = Endpoint("GET", "/code/index")
_INDEX = Endpoint("POST", "/code/index", repeatable=True, job=True)


@dataclass(frozen=True)
class Place(Model):
    """Lines of a file."""

    start_line: int
    end_line: int
    symbol: str | None = None


@dataclass(frozen=True)
class CodeHit(Model):
    """A piece of code that was found. ``path`` is relative to ``root``; lines count from 1."""

    root: str
    path: str
    start_line: int
    end_line: int
    snippet: str
    score: float
    kind: str = ""
    language: str = ""
    symbol: str | None = None
    symbol_line: int | None = None
    parent: str | None = None
    signature: str | None = None
    snippet_line: int = 0
    line: int | None = None
    column: int | None = None
    why: list[str] = field(default_factory=list)
    also: list[Place] = many(Place)
    stale: bool = False


@dataclass(frozen=True)
class MatchCounts(Model):
    """The number of all matches, shown or not."""

    total: int
    lines: int
    files: int


@dataclass(frozen=True)
class CodeHits(Model, Rows[CodeHit]):
    """Hits, the best first.

    ``weak`` says that nothing fits the query well, ``degraded`` why the answer is incomplete, and
    ``missing`` which quoted parts of the query nothing contains. ``matches`` is set for the modes
    ``exact`` and ``regex``.
    """

    hits: list[CodeHit] = many(CodeHit)
    weak: bool = False
    degraded: str | None = None
    missing: list[str] = field(default_factory=list)
    matches: MatchCounts | None = maybe(MatchCounts)
    cut: str | None = None
    notice: str | None = None
    took_ms: int = 0

    def _items(self) -> list[CodeHit]:
        return self.hits


@dataclass(frozen=True)
class Chunk(Model):
    """A function, class or section."""

    start_line: int
    end_line: int
    kind: str
    text: str
    symbol: str | None = None


@dataclass(frozen=True)
class FileChunks(Model, Rows[Chunk]):
    """Chunks of a file. ``truncated`` says that there are more than fit into the answer."""

    root: str
    path: str
    language: str
    chunks: list[Chunk] = many(Chunk)
    stale: bool = False
    truncated: bool = False

    def _items(self) -> list[Chunk]:
        return self.chunks


@dataclass(frozen=True)
class IndexedRoot(Model):
    """An indexed folder."""

    root: str
    files: int
    chunks: int
    indexed_at: str | None = None
    watched: str = ""


@dataclass(frozen=True)
class FileCounts(Model):
    """Numbers of files. ``seen`` is the sum of all others but ``removed``."""

    seen: int
    indexed: int
    unchanged: int
    removed: int
    renamed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0


@dataclass(frozen=True)
class IndexProblem(Model):
    """A file that is not indexed, or not completely."""

    path: str
    code: str
    message: str


@dataclass(frozen=True)
class IndexSeconds(Model):
    """How long it took."""

    total: float


@dataclass(frozen=True)
class IndexReport(Model):
    """What an index run did."""

    path: str
    files: FileCounts = one(FileCounts)
    seconds: IndexSeconds = one(IndexSeconds)
    chunks: int = 0
    problems: list[IndexProblem] = many(IndexProblem)
    peak_pss_bytes: int = 0
    interrupted: bool = False


class CodeOperations:
    """Indexing and searching code."""

    @operation
    def index(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rebuild: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> Plan[IndexReport]:
        """Indexes a folder, or updates its index. There is no time limit.

        :param path: the folder, by default that of the project. A relative one is in the current
            folder, with ``connect`` in the project.
        :param rebuild: whether to read all files again
        :param progress: is called up to ten times a second; an exception in it cancels the run
        :raises isolith.ForbiddenPath: if the server may not read the folder
        """
        folder = None if path is None else resolved(self, path)
        call = _INDEX(IndexReport.from_json, path=folder, rebuild=rebuild or None)
        call.on_progress = Progress.callback(progress)
        return call

    @operation
    def search(
        self,
        query: str,
        *,
        mode: str | None = None,
        language: str | None = None,
        path: str | None = None,
        kind: str | None = None,
        symbol: str | None = None,
        tests: bool | None = None,
        since: Moment | None = None,
        all_roots: bool | None = None,
        ignore_case: bool | None = None,
        context: int | None = None,
        limit: int | None = None,
        budget: int | None = None,
    ) -> Plan[CodeHits]:
        """Finds code by a question, keywords or a name, or every match of a text or a pattern.

        :param mode: ``hybrid`` (the default), ``keyword``, ``vector``, ``exact`` or ``regex``
        :param path: only files in this folder, or that match this glob
        :param kind: ``function``, ``method``, ``class``, ``module``, ``section`` or ``text``
        :param symbol: only code that defines this symbol
        :param tests: only tests, or no tests
        :param all_roots: whether to search all indexed folders, not only that of the project
        :param ignore_case: for ``exact`` and ``regex``
        :param context: for ``exact`` and ``regex``: lines around a match
        :param since: only files that changed at this date or later
        :param limit: the maximum number of hits: 1 to 1000, by default 10
        :param budget: tokens that the hits may take; ``cut`` says what was left out
        :raises isolith.NoStore: if nothing is indexed
        """
        return _SEARCH(
            CodeHits.from_json,
            query=query,
            mode=mode,
            language=language,
            path=path,
            kind=kind,
            symbol=symbol,
            tests=tests,
            since=since,
            all_roots=all_roots,
            budget=budget,
            ignore_case=ignore_case,
            context=context,
            limit=limit,
        )

    @operation
    def similar(
        self,
        path: str | os.PathLike[str],
        *,
        line: int | None = None,
        language: str | None = None,
        limit: int | None = None,
    ) -> Plan[CodeHits]:
        """Finds code similar to that at a line of a file, by default to its first chunk.

        :param path: absolute, or relative to the project
        """
        return _SIMILAR(
            CodeHits.from_json, path=os.fspath(path), line=line, language=language, limit=limit
        )

    @operation
    def chunks(
        self,
        path: str | os.PathLike[str],
        *,
        line: int | None = None,
        end_line: int | None = None,
    ) -> Plan[FileChunks]:
        """Reads whole chunks of an indexed file: those of some lines, by default the first one.

        :param path: absolute, or relative to the project
        """
        return _CHUNKS(FileChunks.from_json, path=os.fspath(path), line=line, end_line=end_line)

    @operation
    def roots(self) -> Plan[list[IndexedRoot]]:
        """Lists the indexed folders."""
        return _roots()


def _roots() -> Call[list[IndexedRoot]]:
    def parse(reply: Any) -> list[IndexedRoot]:
        return [IndexedRoot.from_json(root) for root in reply["roots"]]

    return _ROOTS(parse)


class Code(CodeOperations, Blocking):
    """Indexing and searching code."""


class AsyncCode(CodeOperations, Asynchronous):
    """Indexing and searching code."""
