"""Memory: texts in rooms of wings, and diaries of agents."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Sequence

from .._call import Call, Endpoint, Moment, Plan, strings
from .._model import Model, Rows, many
from .._operation import Asynchronous, Blocking, Page, listing, operation, resolved
from .jobs import Progress

_SEARCH = Endpoint("POST", "/memory/search", repeatable=True)
_ADD = Endpoint("POST", "/memory/drawers", keyed=True)
_LIST = Endpoint("GET", "/memory/drawers")
_GET = Endpoint("GET", "/memory/drawers/{id}")
_UPDATE = Endpoint("PATCH", "/memory/drawers/{id}", keyed=True)
_DELETE = Endpoint("DELETE", "/memory/drawers/{id}", keyed=True)
_DELETE_SOURCE = Endpoint("DELETE", "/memory/drawers", keyed=True)
_TAXONOMY = Endpoint("GET", "/memory/taxonomy")
_DUPLICATES = Endpoint("POST", "/memory/duplicates", repeatable=True)
_WRITE_DIARY = Endpoint("POST", "/memory/diaries/{agent}", keyed=True)
_READ_DIARY = Endpoint("GET", "/memory/diaries/{agent}")
_WAKE_UP = Endpoint("GET", "/memory/wake-up")
_CHECKPOINT = Endpoint("POST", "/memory/checkpoints", keyed=True)
_IMPORT = Endpoint("POST", "/memory/import", repeatable=True, job=True)


@dataclass(frozen=True)
class Drawer(Model):
    """A text, verbatim, and where it belongs. ``position`` is the order of arrival in its room."""

    id: str
    wing: str
    room: str
    text: str
    position: int = 0
    source: str | None = None
    author: str | None = None
    date: str | None = None
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: str | None = None
    updated_at: str | None = None


@dataclass(frozen=True)
class MemoryHit(Drawer):
    """A drawer that was found. ``passage`` is the part of its text that fits best."""

    passage: str = ""
    score: float = 0.0
    why: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MemoryHits(Model, Rows[MemoryHit]):
    """Hits, the best first.

    ``weak`` says that nothing fits the query well, ``degraded`` why the answer is incomplete.
    ``period`` has the days ``since`` and ``until`` to which dates in the question narrowed it.
    """

    hits: list[MemoryHit] = many(MemoryHit)
    weak: bool = False
    degraded: str | None = None
    cut: str | None = None
    period: dict[str, str | None] | None = None
    took_ms: int = 0

    def _items(self) -> list[MemoryHit]:
        return self.hits


@dataclass(frozen=True)
class Added(Model):
    """What happened to a text: if it was stored before, ``created`` is false."""

    id: str
    created: bool
    duplicate_of: str | None = None


@dataclass(frozen=True)
class Updated(Model):
    """Whether a drawer was changed."""

    id: str
    changed: bool


@dataclass(frozen=True)
class Deleted(Model):
    """How many were deleted, and how many ids did not exist."""

    deleted: int
    missing: int = 0


@dataclass(frozen=True)
class SimilarDrawer(Model):
    """A drawer that is nearly identical; the beginning of its text."""

    id: str
    wing: str
    room: str
    text: str
    similarity: float


@dataclass(frozen=True)
class DuplicateCheck(Model):
    """Whether a text is nearly identical to others."""

    duplicate: bool
    similar: list[SimilarDrawer] = many(SimilarDrawer)


@dataclass(frozen=True)
class DiaryEntry(Model):
    """An entry of a diary."""

    id: str
    text: str
    date: str | None = None
    topic: str | None = None


@dataclass(frozen=True)
class WakeUp(Model):
    """What is worth knowing. ``left_out`` is the number of lines that the budget left out."""

    text: str
    tokens: int
    left_out: int = 0
    wings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RecordedFact(Model):
    """The id of a fact, and whether it is new."""

    id: str
    created: bool


@dataclass(frozen=True)
class Checkpoint(Model):
    """What a checkpoint has stored. ``diary`` is the id of the entry."""

    drawers: list[Added] = many(Added)
    facts: list[RecordedFact] = many(RecordedFact)
    diary: str | None = None


@dataclass(frozen=True)
class MemoryImport(Model):
    """What an import has stored, and the first parts that it left out."""

    path: str
    drawers: int
    created: int
    duplicates: int
    skipped: int = 0
    format: str | None = None
    rejected: list[str] = field(default_factory=list)
    rejected_count: int = 0


class MemoryOperations:
    """Texts in rooms of wings, and diaries of agents."""

    @operation
    def add(
        self,
        text: str,
        *,
        wing: str = "general",
        room: str = "general",
        source: str | None = None,
        author: str | None = None,
        date: Moment | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Plan[Added]:
        """Stores a text verbatim. The same text in the same place is stored once.

        :param key: repeating the call with the same key within a day changes nothing
        """
        return _ADD(
            Added.from_json,
            idempotency_key=key,
            text=text,
            wing=wing,
            room=room,
            source=source,
            author=author,
            date=date,
            tags=strings("tags", tags),
            metadata=metadata,
        )

    @operation
    def search(
        self,
        query: str,
        *,
        wing: str | None = None,
        room: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
        budget: int | None = None,
    ) -> Plan[MemoryHits]:
        """Finds drawers by a question or keywords.

        :param limit: the maximum number of hits: 1 to 1000, by default 10
        :param budget: tokens that the hits may take; ``cut`` says what was left out
        """
        return _SEARCH(
            MemoryHits.from_json,
            query=query,
            wing=wing,
            room=room,
            since=since,
            until=until,
            limit=limit,
            budget=budget,
        )

    @operation
    def get(self, id: str) -> Plan[Drawer]:
        """A drawer.

        :raises isolith.NotFound: if there is none with this id
        """
        return _GET(Drawer.from_json, id=id)

    @listing
    def list(
        self,
        *,
        wing: str | None = None,
        room: str | None = None,
        source: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        page_size: int = 100,
    ) -> Callable[[Any], Call[Page[Drawer]]]:
        """Iterates over drawers, the newest first. Pages are read as they are needed."""

        def parse(reply: Any) -> Page[Drawer]:
            drawers = [Drawer.from_json(drawer) for drawer in reply["drawers"]]
            return Page(drawers, reply.get("next_cursor"))

        return lambda cursor: _LIST(
            parse,
            wing=wing,
            room=room,
            source=source,
            since=since,
            until=until,
            limit=page_size,
            cursor=cursor,
        )

    @operation
    def update(
        self,
        id: str,
        *,
        text: str | None = None,
        wing: str | None = None,
        room: str | None = None,
        source: str | None = None,
        author: str | None = None,
        date: Moment | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Plan[Updated]:
        """Changes a drawer; what is omitted is kept.

        :param tags: replace the old ones
        :param metadata: is merged into the old; ``None`` as a value removes a key
        :raises isolith.AlreadyExists: if another drawer is the same then
        """
        return _UPDATE(
            Updated.from_json,
            idempotency_key=key,
            id=id,
            text=text,
            wing=wing,
            room=room,
            source=source,
            author=author,
            date=date,
            tags=strings("tags", tags),
            metadata=metadata,
        )

    @operation
    def delete(self, id: str, *, key: str | None = None) -> Plan[Deleted]:
        """Deletes a drawer. It is no error if there is none with this id."""
        return _DELETE(Deleted.from_json, idempotency_key=key, id=id)

    @operation
    def delete_source(self, source: str, *, key: str | None = None) -> Plan[Deleted]:
        """Deletes all drawers from a source."""
        return _DELETE_SOURCE(Deleted.from_json, idempotency_key=key, source=source)

    @operation
    def taxonomy(self) -> Plan[Dict[str, Dict[str, int]]]:
        """The number of drawers in each room of each wing."""

        def parse(reply: Any) -> Dict[str, Dict[str, int]]:
            wings: Dict[str, Dict[str, int]] = reply["wings"]
            return wings

        return _TAXONOMY(parse)

    @operation
    def duplicates(
        self,
        text: str,
        *,
        wing: str | None = None,
        room: str | None = None,
        threshold: float | None = None,
    ) -> Plan[DuplicateCheck]:
        """Finds drawers that are nearly identical to a text.

        :param threshold: the minimum cosine similarity, by default 0.9
        """
        return _DUPLICATES(
            DuplicateCheck.from_json, text=text, wing=wing, room=room, threshold=threshold
        )

    @operation
    def write_diary(
        self,
        agent: str,
        text: str,
        *,
        topic: str | None = None,
        date: Moment | None = None,
        key: str | None = None,
    ) -> Plan[Added]:
        """Adds an entry to the diary of an agent.

        :param date: the day, by default today
        """
        return _WRITE_DIARY(
            Added.from_json, idempotency_key=key, agent=agent, text=text, topic=topic, date=date
        )

    @operation
    def read_diary(
        self, agent: str, *, date: Moment | None = None, limit: int | None = None
    ) -> Plan[List[DiaryEntry]]:
        """The latest entries of an agent's diary, or those of a day, in the order of time.

        :param limit: the maximum number of entries, by default 10
        """

        def parse(reply: Any) -> List[DiaryEntry]:
            return [DiaryEntry.from_json(entry) for entry in reply["entries"]]

        return _READ_DIARY(parse, agent=agent, date=date, limit=limit)

    @operation
    def wake_up(self, *, wing: str | None = None, budget: int | None = None) -> Plan[WakeUp]:
        """What is worth knowing when a session begins.

        :param wing: a person or project, by default the server's project
        :param budget: the maximum length in tokens, by default 700
        """
        return _WAKE_UP(WakeUp.from_json, wing=wing, budget=budget)

    @operation
    def checkpoint(
        self,
        wing: str,
        *,
        drawers: Sequence[Mapping[str, Any]] = (),
        facts: Sequence[Mapping[str, Any]] = (),
        diary: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> Plan[Checkpoint]:
        """Stores texts, facts and a diary entry of a session, all or nothing.

        :param drawers: objects with ``text``, ``room`` and perhaps ``tags``
        :param facts: objects with ``subject``, ``predicate``, ``object`` and perhaps ``valid_from``
        """
        return _CHECKPOINT(
            Checkpoint.from_json,
            idempotency_key=key,
            wing=wing,
            drawers=[dict(drawer) for drawer in drawers],
            facts=[dict(fact) for fact in facts],
            diary=diary,
            agent=agent,
        )

    @operation
    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        wing: str | None = None,
        room: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Plan[MemoryImport]:
        """Imports a file of conversations or notes on the server's machine. There is no time limit.

        :param path: absolute, or relative to the project
        :param format: by default detected
        :param progress: is called up to ten times a second; an exception in it cancels the import
        """
        call = _IMPORT(
            MemoryImport.from_json,
            path=resolved(self, path),
            format=format,
            wing=wing,
            room=room,
        )
        call.on_progress = Progress.callback(progress)
        return call


class Memory(MemoryOperations, Blocking):
    """Texts in rooms of wings, and diaries of agents."""


class AsyncMemory(MemoryOperations, Asynchronous):
    """Texts in rooms of wings, and diaries of agents."""
