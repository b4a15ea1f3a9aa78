//! Entities and facts as nodes and edges. They are derived from their own tables and written in
//! the same transaction; their owner is the negated id of the entity or fact.

use isolith_graph::Value;
use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, Params};
use isolith_types::{Failure, Moment, Source};

use super::names::NameKind;
use super::{Property, TruthGraph, bytes, failure, query_failed};
use crate::facts::id_of;
use crate::read::facts::{StoredFact, aliases_of, retracted_at, sources_of, stored_fact};
use crate::sqlite::During;

/// Name of an entity's node within its owner, which has only this one.
const NAME: &str = "";

const LABEL: &str = "Entity";

/// Nodes of deleted entities, and nodes that no entity would have.
const STRAY_NODES: &str = "SELECT id, owner FROM node WHERE owner < 0 \
    AND (name IS NOT '' OR -owner NOT IN (SELECT id FROM entity))";

/// Edges of facts that were retracted.
const RETRACTED_EDGES: &str = "SELECT e.id FROM edge e JOIN fact f ON f.id = -e.owner \
    WHERE e.owner < 0 AND f.retracted_at IS NOT NULL";

/// The edges of one fact, found from its subject's node.
const FACT_EDGES: &str = "SELECT e.id FROM node s CROSS JOIN edge_out l ON l.src = s.id \
    CROSS JOIN edge e ON e.id = l.edge WHERE s.owner = ?1 AND e.owner = ?2";

/// Edges that disagree with their facts, edges of deleted facts, and duplicates.
const STRAY_EDGES: &str = "SELECT e.id FROM edge e \
    LEFT JOIN fact f ON f.id = -e.owner LEFT JOIN predicate p ON p.id = f.predicate \
    LEFT JOIN graph_name k ON k.id = e.type \
    LEFT JOIN node s ON s.id = e.src LEFT JOIN node o ON o.id = e.dst \
    WHERE e.owner < 0 AND (f.id IS NULL OR k.name IS NOT p.name \
    OR s.owner IS NOT -f.subject OR o.owner IS NOT -f.object \
    OR e.id NOT IN (SELECT min(id) FROM edge WHERE owner < 0 GROUP BY owner))";

/// Writes all facts and entities to the graph, in the open transaction.
pub(crate) fn sync_facts(db: &dyn Connection) -> Result<(), StoreError> {
    let graph = TruthGraph::begin(db)?;
    let sync = || {
        let mut retracted = Vec::new();
        graph.numbers(RETRACTED_EDGES, [], &mut retracted)?;
        for edge in retracted {
            graph.drop_edge(edge)?;
        }
        graph.sync_facts("SELECT id FROM fact WHERE retracted_at IS NULL ORDER BY id")
    };
    sync().map_err(query_failed)?;
    graph.finish()
}

/// [`sync_facts`] for a store of a version in which no fact could be retracted.
pub(crate) fn sync_first_facts(db: &dyn Connection) -> Result<(), StoreError> {
    let graph = TruthGraph::begin(db)?;
    graph.sync_facts("SELECT id FROM fact ORDER BY id").map_err(query_failed)?;
    graph.finish()
}

impl TruthGraph<'_> {
    /// Updates the edge of a fact and the nodes of its two entities. A retracted fact has no edge.
    pub(crate) fn sync_fact(&self, number: i64) -> Result<(), Failure> {
        let Some(fact) = stored_fact(self.db, number).map_err(failure)? else { return Ok(()) };
        let ends = (self.sync_entity(fact.subject)?, self.sync_entity(fact.object)?);
        if retracted_at(self.db, number).map_err(failure)?.is_none() {
            return self.sync_edge(&fact, ends);
        }
        let mut edges = Vec::new();
        self.flush_edges()?;
        self.numbers(FACT_EDGES, [-fact.subject, -number], &mut edges)?;
        edges.into_iter().try_for_each(|edge| self.drop_edge(edge))
    }

    /// Updates the node of an entity and returns its id.
    pub(crate) fn sync_entity(&self, number: i64) -> Result<i64, Failure> {
        let properties = of_entity(self.db, number).map_err(failure)?;
        self.put_owned(-number, NAME, LABEL, &properties)
    }

    /// Updates all facts and entities and removes those that no longer exist.
    /// `live` selects the facts that have an edge.
    fn sync_facts(&self, live: &str) -> Result<(), Failure> {
        for (node, owner) in self.pairs(STRAY_NODES)? {
            self.remove_owned(owner, node)?;
        }
        let (mut strays, mut entities, mut facts) = (Vec::new(), Vec::new(), Vec::new());
        self.numbers(STRAY_EDGES, [], &mut strays)?;
        for edge in strays {
            self.drop_edge(edge)?;
        }
        self.numbers("SELECT id FROM entity ORDER BY id", [], &mut entities)?;
        for entity in entities {
            self.sync_entity(entity)?;
        }
        self.numbers(live, [], &mut facts)?;
        for fact in facts {
            let Some(fact) = stored_fact(self.db, fact).map_err(failure)? else { continue };
            let node = |entity: i64| self.owned(-entity, NAME);
            if let (Some(start), Some(end)) = (node(fact.subject)?, node(fact.object)?) {
                self.sync_edge(&fact, (start, end))?;
            }
        }
        Ok(())
    }

    fn sync_edge(&self, fact: &StoredFact, ends: (i64, i64)) -> Result<(), Failure> {
        let (kind, properties) = of_fact(self.db, fact).map_err(failure)?;
        self.put_owned_edge(-fact.id, &kind, ends, &properties)
    }

    fn pairs(&self, sql: &str) -> Result<Vec<(i64, i64)>, Failure> {
        let read = || {
            self.db
                .prepare(sql)?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(self.db, "read the graph").map_err(failure)
    }

    /// Whether an entity's node exists and is up to date.
    pub(crate) fn is_entity_current(&self, number: i64) -> Result<bool, StoreError> {
        let properties = of_entity(self.db, number)?;
        let Some(list) = self.known_list(&properties)? else { return Ok(false) };
        let label = self.names.find(self.db, NameKind::Label, LABEL)?;
        let labels = label.map(|label| bytes::write_labels(&[label])).unwrap_or_default();
        self.is_there(
            "SELECT 1 FROM node WHERE owner = ?1 AND name = ?2 AND labels = ?3 AND properties = ?4",
            isolith_sql::params![-number, NAME, labels, list],
        )
    }

    /// Whether a fact's edge exists and is up to date, or the fact is retracted and has none.
    pub(crate) fn is_fact_current(&self, number: i64) -> Result<bool, StoreError> {
        let Some(fact) = stored_fact(self.db, number)? else { return Ok(false) };
        if retracted_at(self.db, number)?.is_some() {
            let ends = [-fact.subject, -number];
            return self.is_there(FACT_EDGES, ends).map(|is_there| !is_there);
        }
        let (kind, properties) = of_fact(self.db, &fact)?;
        let Some(list) = self.known_list(&properties)? else { return Ok(false) };
        let kind = self.names.find(self.db, NameKind::Type, &kind)?;
        self.is_there(
            "SELECT 1 FROM node s CROSS JOIN node o \
             CROSS JOIN edge_out l ON l.src = s.id AND l.type = ?2 AND l.dst = o.id \
             CROSS JOIN edge e ON e.id = l.edge \
             WHERE s.owner = ?4 AND o.owner = ?5 AND e.owner = ?1 AND e.properties = ?3",
            isolith_sql::params![-number, kind, list, -fact.subject, -fact.object],
        )
    }

    /// Encodes properties; `None` if one of their names is unknown.
    fn known_list(&self, properties: &[Property<'_>]) -> Result<Option<Vec<u8>>, StoreError> {
        let mut keyed = Vec::with_capacity(properties.len());
        for (key, value) in properties.iter().filter(|(_, value)| !value.is_null()) {
            let Some(key) = self.names.find(self.db, NameKind::Key, key)? else { return Ok(None) };
            keyed.push((key, value));
        }
        Ok(Some(bytes::write(keyed.into_iter())))
    }

    fn is_there(&self, sql: &str, parameters: impl Params) -> Result<bool, StoreError> {
        self.db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.exists(parameters))
            .during(self.db, "look for a fact in the graph")
    }
}

fn of_entity(db: &dyn Connection, number: i64) -> Result<[Property<'static>; 3], StoreError> {
    let read = || {
        let (name, of_type): (String, Option<String>) = db
            .prepare_cached("SELECT name, type FROM entity WHERE id = ?1")?
            .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((name, of_type, aliases_of(db, number)?))
    };
    let (name, of_type, aliases) = read().during(db, "read an entity")?;
    Ok([
        ("name", Value::text(name)),
        ("type", text_or_null(of_type)),
        ("aliases", list_or_null(aliases)),
    ])
}

/// The type and properties of a fact's edge.
fn of_fact(
    db: &dyn Connection,
    fact: &StoredFact,
) -> Result<(String, [Property<'static>; 9]), StoreError> {
    let read = || {
        let predicate = db
            .prepare_cached("SELECT name FROM predicate WHERE id = ?1")?
            .query_row([fact.predicate], |row| row.get::<_, String>(0))
            .optional()?;
        Ok((predicate.unwrap_or_default(), sources_of(db, fact.id)?))
    };
    let (predicate, mut sources) = read().during(db, "read a fact")?;
    if sources.is_empty() {
        sources.push(Source {
            drawer: fact.drawer.clone(),
            file: fact.file.clone(),
            agent: fact.agent.clone(),
            confidence: fact.confidence,
            recorded_at: Moment::instant(fact.recorded_at),
        });
    }
    let given = |part: fn(&Source) -> &Option<String>| {
        let mut all: Vec<String> = Vec::new();
        for it in sources.iter().filter_map(|source| part(source).as_ref()) {
            if !all.contains(it) {
                all.push(it.clone());
            }
        }
        list_or_null(all)
    };
    let properties = [
        ("id", Value::text(id_of(fact.id))),
        ("valid_from", time_or_null(fact.validity.from.map(Moment::start))),
        ("valid_to", time_or_null(fact.validity.until)),
        ("confidence", Value::Float(fact.confidence)),
        ("recorded_at", time_or_null(Some(fact.recorded_at))),
        ("superseded_by", text_or_null(fact.superseded_by.map(id_of))),
        ("drawers", given(|source| &source.drawer)),
        ("files", given(|source| &source.file)),
        ("agents", given(|source| &source.agent)),
    ];
    Ok((predicate, properties))
}

fn text_or_null(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::text)
}

fn time_or_null(at: Option<i64>) -> Value {
    text_or_null(at.map(|at| Moment::instant(at).sortable()))
}

fn list_or_null(texts: Vec<String>) -> Value {
    match texts.is_empty() {
        true => Value::Null,
        false => Value::list(texts.into_iter().map(Value::text).collect()),
    }
}
