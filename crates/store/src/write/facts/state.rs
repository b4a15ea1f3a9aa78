use isolith_protocol::StoreError;
use isolith_sql::{Connection, params};
use isolith_types::AddedFact;

use super::super::Work;
use crate::facts::id_of;
use crate::facts::validity::{Fit, Validity};
use crate::read::facts::{StoredFact, require_entity, stored_facts};
use crate::read::predicates::{is_single_valued, require_predicate};
use crate::sqlite::During;

/// A statement, as ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement {
    pub(super) subject: i64,
    pub(super) predicate: i64,
    pub(super) object: i64,
}

/// Who states it, and with what confidence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribution<'a> {
    pub(super) confidence: Option<f64>,
    pub(super) drawer: Option<&'a str>,
    pub(super) file: Option<&'a str>,
    pub(super) agent: Option<&'a str>,
}

/// The fact that a statement became part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedStatement {
    pub(super) id: i64,
    pub(super) created: bool,
    pub(super) updated: bool,
}

impl PlacedStatement {
    /// As returned to the caller.
    pub(super) fn added(self) -> AddedFact {
        AddedFact { id: id_of(self.id), created: self.created, updated: self.updated }
    }
}

/// Adds a statement as a new fact, unless an existing fact includes it.
pub(super) fn state(
    work: Work<'_>,
    statement: Statement,
    validity: Validity,
    attribution: &Attribution<'_>,
) -> Result<PlacedStatement, StoreError> {
    let Statement { subject, predicate, object } = statement;
    let there = stored_facts(work.db, subject, predicate, Some(object))?;
    let same = place(validity, &there, work.now)?;
    let result = same.map_or(validity, |(_, result)| result);
    refuse_contradiction(work, (subject, predicate), Some(object), result)?;
    match same {
        None => {
            let id =
                insert(work, statement, validity, attribution).during(work.db, "add a fact")?;
            Ok(PlacedStatement { id, created: true, updated: false })
        }
        Some((fact, validity)) => {
            let updated =
                learn(work, fact, validity, attribution).during(work.db, "add to a fact")?;
            Ok(PlacedStatement { id: fact.id, created: false, updated })
        }
    }
}

/// Fails as [`state`] would for entities that exist, and changes nothing.
pub(super) fn check(
    work: Work<'_>,
    (subject, predicate): (i64, i64),
    object: Option<i64>,
    validity: Validity,
) -> Result<(), StoreError> {
    let there = match object {
        Some(_) => stored_facts(work.db, subject, predicate, object)?,
        None => Vec::new(),
    };
    let result = place(validity, &there, work.now)?.map_or(validity, |(_, result)| result);
    refuse_contradiction(work, (subject, predicate), object, result)
}

/// Fails if the predicate is single-valued and another object is known for some of this time.
fn refuse_contradiction(
    work: Work<'_>,
    (subject, predicate): (i64, i64),
    object: Option<i64>,
    validity: Validity,
) -> Result<(), StoreError> {
    if !is_single_valued(work.db, predicate)? {
        return Ok(());
    }
    let there = stored_facts(work.db, subject, predicate, None)?;
    let mut others = there.iter().filter(|fact| Some(fact.object) != object);
    let excludes =
        |fact: &&StoredFact| validity.overlaps(fact.validity, fact.recorded_at, work.now);
    match others.find(excludes) {
        None => Ok(()),
        Some(other) => Err(contradiction(work.db, other, validity)?),
    }
}

/// The error for a fact that is excluded by another one.
pub(super) fn contradiction(
    db: &dyn Connection,
    there: &StoredFact,
    asked: Validity,
) -> Result<StoreError, StoreError> {
    let subject = require_entity(db, there.subject)?.name;
    let predicate = require_predicate(db, there.predicate)?.name;
    let object = require_entity(db, there.object)?.name;
    Ok(StoreError::FactContradicts {
        id: id_of(there.id),
        rule: format!("{subject:?} has only one {predicate:?} at a time"),
        there: format!("{object:?} {}", there.validity),
        asked: asked.to_string(),
    })
}

/// The existing fact that includes this statement, and its resulting validity.
fn place(
    validity: Validity,
    there: &[StoredFact],
    now: i64,
) -> Result<Option<(&StoredFact, Validity)>, StoreError> {
    let fits = |fact: &StoredFact| validity.fit(fact.validity, fact.recorded_at, now);
    let same = there.iter().find_map(|fact| match fits(fact) {
        Fit::Same(from) => Some((fact, Validity { from, ..fact.validity })),
        Fit::Beside | Fit::Clash => None,
    });
    let result = match same {
        Some((fact, result)) if fact.validity == result => return Ok(same),
        Some((_, result)) => result,
        None => validity,
    };
    let others = there.iter().filter(|fact| same.is_none_or(|(same, _)| same.id != fact.id));
    let mut clashes =
        others.filter(|fact| result.fit(fact.validity, fact.recorded_at, now) == Fit::Clash);
    match clashes.next() {
        None => Ok(same),
        Some(other) => Err(StoreError::FactOverlaps {
            id: id_of(other.id),
            there: other.validity.to_string(),
            asked: validity.to_string(),
            is_open: other.validity.until.is_none(),
        }),
    }
}

fn insert(
    work: Work<'_>,
    statement: Statement,
    validity: Validity,
    attribution: &Attribution<'_>,
) -> isolith_sql::Result<i64> {
    let Validity { from, to, until } = validity;
    work.db
        .prepare_cached(
            "INSERT INTO fact (subject, predicate, object, valid_from, from_day, valid_to, \
             to_day, until, confidence, drawer, file, agent, recorded_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) RETURNING id",
        )?
        .query_row(
            params![
                statement.subject,
                statement.predicate,
                statement.object,
                from.map(|from| from.start()),
                from.is_some_and(|from| from.is_day()),
                to.map(|to| to.start()),
                to.is_some_and(|to| to.is_day()),
                until,
                attribution.confidence.unwrap_or(1.0),
                attribution.drawer,
                attribution.file,
                attribution.agent,
                work.now
            ],
            |row| row.get(0),
        )
}

/// Adds new information to an existing fact. Returns whether anything changed.
fn learn(
    work: Work<'_>,
    fact: &StoredFact,
    validity: Validity,
    attribution: &Attribution<'_>,
) -> isolith_sql::Result<bool> {
    let confidence = attribution.confidence.unwrap_or(fact.confidence);
    let is_vouched = add_source(work, fact, confidence, attribution)?;
    let is_new = is_vouched || confidence != fact.confidence || validity != fact.validity;
    if is_new {
        let from = validity.from;
        work.db
            .prepare_cached(
                "UPDATE fact SET valid_from = ?2, from_day = ?3, confidence = ?4, \
                 changed_at = ?5 WHERE id = ?1",
            )?
            .execute(params![
                fact.id,
                from.map(|from| from.start()),
                from.is_some_and(|from| from.is_day()),
                confidence,
                work.now
            ])?;
    }
    Ok(is_new)
}

/// Adds a source, unless it adds nothing new. With the second source, the first one is stored,
/// too, since the fact's confidence may change.
fn add_source(
    work: Work<'_>,
    fact: &StoredFact,
    confidence: f64,
    attribution: &Attribution<'_>,
) -> isolith_sql::Result<bool> {
    let db = work.db;
    let nothing =
        [attribution.drawer, attribution.file, attribution.agent].iter().all(Option::is_none);
    if nothing && attribution.confidence.is_none() {
        return Ok(false);
    }
    let is_alone = !db
        .prepare_cached("SELECT 1 FROM fact_source WHERE fact = ?1 LIMIT 1")?
        .exists([fact.id])?;
    let first = Attribution {
        confidence: Some(fact.confidence),
        drawer: fact.drawer.as_deref(),
        file: fact.file.as_deref(),
        agent: fact.agent.as_deref(),
    };
    let known = match is_alone {
        true => {
            (first.drawer, first.file, first.agent)
                == (attribution.drawer, attribution.file, attribution.agent)
                && confidence == fact.confidence
        }
        false => db
            .prepare_cached(
                "SELECT 1 FROM fact_source WHERE fact = ?1 AND confidence = ?2 \
                 AND drawer IS ?3 AND file IS ?4 AND agent IS ?5 LIMIT 1",
            )?
            .exists(params![
                fact.id,
                confidence,
                attribution.drawer,
                attribution.file,
                attribution.agent
            ])?,
    };
    if known {
        return Ok(false);
    }
    if is_alone {
        insert_source(db, fact.id, fact.confidence, &first, fact.recorded_at)?;
    }
    insert_source(db, fact.id, confidence, attribution, work.now)?;
    Ok(true)
}

fn insert_source(
    db: &dyn Connection,
    fact: i64,
    confidence: f64,
    attribution: &Attribution<'_>,
    recorded_at: i64,
) -> isolith_sql::Result<()> {
    db.prepare_cached(
        "INSERT INTO fact_source (fact, confidence, drawer, file, agent, recorded_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        fact,
        confidence,
        attribution.drawer,
        attribution.file,
        attribution.agent,
        recorded_at
    ])
    .map(|_| ())
}
