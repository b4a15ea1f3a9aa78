"""Facts, the time in which they are true, and the entities that they are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

from .._call import Call, Endpoint, Moment, Plan, strings
from .._model import Model, many
from .._operation import Asynchronous, Blocking, Page, listing, operation

_ADD = Endpoint("POST", "/facts", keyed=True)
_QUERY = Endpoint("GET", "/facts")
_INVALIDATE = Endpoint("POST", "/facts/invalidate", keyed=True)
_RETRACT = Endpoint("POST", "/facts/retract", keyed=True)
_IMPORT = Endpoint("POST", "/facts/import", keyed=True)
_PREDICATES = Endpoint("GET", "/facts/predicates")
_DECLARE = Endpoint("PUT", "/facts/predicates/{name}", keyed=True)
_SUPERSEDE = Endpoint("POST", "/facts/supersede", keyed=True)
_TIMELINE = Endpoint("GET", "/facts/timeline")
_STATS = Endpoint("GET", "/facts/stats")
_ENTITIES = Endpoint("GET", "/facts/entities")
_ENTITY = Endpoint("GET", "/facts/entities/{name}")
_UPDATE_ENTITY = Endpoint("PATCH", "/facts/entities/{name}", keyed=True)


@dataclass(frozen=True)
class FactSource(Model):
    """Where a fact comes from."""

    recorded_at: str
    drawer: str | None = None
    file: str | None = None
    agent: str | None = None
    confidence: float = 1.0


@dataclass(frozen=True)
class Fact(Model):
    """A statement, true from ``valid_from`` until just before ``valid_to``.

    ``current`` says whether it is true now, and ``state`` whether it was ``current``, ``past``,
    ``future`` or ``retracted`` at the time that was asked about.
    """

    id: str
    subject: str
    predicate: str
    object: str
    valid_from: str | None = None
    valid_to: str | None = None
    confidence: float = 1.0
    current: bool = False
    state: str = "current"
    retracted_at: str | None = None
    recorded_at: str | None = None
    superseded_by: str | None = None
    sources: list[FactSource] = many(FactSource)


@dataclass(frozen=True)
class FactAdded(Model):
    """The id of a fact, and whether it is new."""

    id: str
    created: bool


@dataclass(frozen=True)
class FactEnded(Model):
    """When a fact ends now, and whether that was changed."""

    id: str
    valid_to: str
    changed: bool


@dataclass(frozen=True)
class FactRetracted(Model):
    """When a fact was retracted, and whether that was just now."""

    id: str
    retracted_at: str
    changed: bool


@dataclass(frozen=True)
class RejectedFact(Model):
    """Why the fact at ``row``, counted from 0, was not recorded."""

    row: int
    code: str
    message: str


@dataclass(frozen=True)
class FactsImported(Model):
    """What became of several facts."""

    created: int
    updated: int
    unchanged: int
    rejected: list[RejectedFact] = many(RejectedFact)
    rejected_count: int = 0


@dataclass(frozen=True)
class Predicate(Model):
    """A relation. If it is ``single_valued``, a subject has one object at a time."""

    name: str
    single_valued: bool = False
    facts: int = 0


@dataclass(frozen=True)
class FactSuperseded(Model):
    """The new fact ``id`` replaces the fact ``old`` from ``at`` on."""

    id: str
    old: str
    created: bool
    at: str


@dataclass(frozen=True)
class FactStats(Model):
    """How many facts there are."""

    facts: int
    current: int
    past: int
    future: int
    entities: int
    predicates: Any = None
    retracted: int = 0


@dataclass(frozen=True)
class Entity(Model):
    """What facts are about. ``facts`` is their number."""

    name: str
    type: str | None = None
    aliases: list[str] = field(default_factory=list)
    facts: int = 0


class FactOperations:
    """Facts and entities."""

    @operation
    def add(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        confidence: float | None = None,
        drawer: str | None = None,
        file: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> Plan[FactAdded]:
        """Records a fact. A fact that is known already is not added again.

        :param drawer: the id of the drawer that it comes from
        :param file: the file that it comes from
        :param agent: who stated it
        :raises isolith.AlreadyExists: if the same statement is recorded for an overlapping time
        """
        return _ADD(
            FactAdded.from_json,
            idempotency_key=key,
            subject=subject,
            predicate=predicate,
            object=object,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            drawer=drawer,
            file=file,
            agent=agent,
        )

    @listing
    def query(
        self,
        entity: str | None = None,
        *,
        text: str | None = None,
        as_of: Moment | None = None,
        state: str | None = None,
        direction: str | None = None,
        predicate: str | None = None,
        page_size: int = 200,
    ) -> Callable[[Any], Call[Page[Fact]]]:
        """Iterates over the facts about an entity, or about all, the current ones first.

        :param text: only facts in whose names all of these words occur
        :param state: ``current``, ``past``, ``future`` or ``retracted``, at ``as_of`` or now; by
            default all but retracted ones
        :param as_of: only facts that were true then; by default all, also past ones
        :param direction: ``out`` (the entity is the subject), ``in`` or ``both`` (the default)
        """
        return lambda cursor: _QUERY(
            _facts,
            entity=entity,
            text=text,
            as_of=as_of,
            state=state,
            direction=direction,
            predicate=predicate,
            limit=page_size,
            cursor=cursor,
        )

    @operation
    def invalidate(
        self,
        id: str | None = None,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        at: Moment | None = None,
        key: str | None = None,
    ) -> Plan[FactEnded]:
        """Ends a fact, which is given by its id, or by subject and predicate.

        :param at: when, by default now
        """
        return _INVALIDATE(
            FactEnded.from_json,
            idempotency_key=key,
            id=id,
            subject=subject,
            predicate=predicate,
            object=object,
            at=at,
        )

    @operation
    def retract(
        self,
        id: str | None = None,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        key: str | None = None,
    ) -> Plan[FactRetracted]:
        """Marks a fact as never true. It is kept, but only shown on request."""
        return _RETRACT(
            FactRetracted.from_json,
            idempotency_key=key,
            id=id,
            subject=subject,
            predicate=predicate,
            object=object,
        )

    @operation
    def add_many(
        self, facts: Sequence[Mapping[str, Any]], *, key: str | None = None
    ) -> Plan[FactsImported]:
        """Records up to 500 facts, given as dictionaries with the arguments of :meth:`add`.

        A fact that is refused does not affect the others.
        """
        return _IMPORT(FactsImported.from_json, idempotency_key=key, facts=list(facts))

    @listing
    def predicates(self, *, page_size: int = 200) -> Callable[[Any], Call[Page[Predicate]]]:
        """Iterates over predicates by name."""

        def parse(reply: Any) -> Page[Predicate]:
            found = [Predicate.from_json(predicate) for predicate in reply["predicates"]]
            return Page(found, reply.get("next_cursor"))

        return lambda cursor: _PREDICATES(parse, limit=page_size, cursor=cursor)

    @operation
    def declare_predicate(
        self, name: str, *, single_valued: bool, key: str | None = None
    ) -> Plan[Predicate]:
        """Declares whether a subject can have only one object of a predicate at a time.

        :raises isolith.AlreadyExists: if existing facts contradict that
        """
        return _DECLARE(
            Predicate.from_json, idempotency_key=key, name=name, single_valued=single_valued
        )

    @operation
    def supersede(
        self,
        id: str | None = None,
        *,
        object: str,
        subject: str | None = None,
        predicate: str | None = None,
        old_object: str | None = None,
        at: Moment | None = None,
        confidence: float | None = None,
        key: str | None = None,
    ) -> Plan[FactSuperseded]:
        """Replaces the object of a fact, which is given by its id, or by subject and predicate.

        :param at: from when on, by default now
        """
        return _SUPERSEDE(
            FactSuperseded.from_json,
            idempotency_key=key,
            id=id,
            subject=subject,
            predicate=predicate,
            old_object=old_object,
            object=object,
            at=at,
            confidence=confidence,
        )

    @listing
    def timeline(
        self, entity: str | None = None, *, as_of: Moment | None = None, page_size: int = 200
    ) -> Callable[[Any], Call[Page[Fact]]]:
        """Iterates over facts in the order in which they became true, also retracted ones.

        :param as_of: only facts that had become true by then
        """
        return lambda cursor: _TIMELINE(
            _facts, entity=entity, as_of=as_of, limit=page_size, cursor=cursor
        )

    @operation
    def stats(self, *, as_of: Moment | None = None) -> Plan[FactStats]:
        """How many facts there are: all, current, past and future ones, now or at a time."""
        return _STATS(FactStats.from_json, as_of=as_of)

    @listing
    def entities(
        self, *, type: str | None = None, like: str | None = None, page_size: int = 200
    ) -> Callable[[Any], Call[Page[Entity]]]:
        """Iterates over entities by name.

        :param like: only entities with this in a name
        """

        def parse(reply: Any) -> Page[Entity]:
            entities = [Entity.from_json(entity) for entity in reply["entities"]]
            return Page(entities, reply.get("next_cursor"))

        return lambda cursor: _ENTITIES(parse, type=type, like=like, limit=page_size, cursor=cursor)

    @operation
    def entity(self, name: str) -> Plan[Entity]:
        """An entity, by its name or an alias.

        :raises isolith.NotFound: if there is none of this name
        """
        return _ENTITY(Entity.from_json, name=name)

    @operation
    def update_entity(
        self,
        name: str,
        *,
        type: str | None = None,
        add_aliases: Sequence[str] | None = None,
        remove_aliases: Sequence[str] | None = None,
        key: str | None = None,
    ) -> Plan[Entity]:
        """Changes an entity, or creates it."""
        return _UPDATE_ENTITY(
            Entity.from_json,
            idempotency_key=key,
            name=name,
            type=type,
            add_aliases=strings("add_aliases", add_aliases),
            remove_aliases=strings("remove_aliases", remove_aliases),
        )


def _facts(reply: Any) -> Page[Fact]:
    return Page([Fact.from_json(fact) for fact in reply["facts"]], reply.get("next_cursor"))


class Facts(FactOperations, Blocking):
    """Facts and entities."""


class AsyncFacts(FactOperations, Asynchronous):
    """Facts and entities."""
