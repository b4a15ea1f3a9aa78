//! Facts and entities.

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, Row, Value, params, params_from_iter};
use isolith_types::{
    Entity, EntityQuery, Fact, FactDirection, FactQuery, FactState, FactStats, Moment, Source,
};

use super::Snapshot;
use crate::create::now;
use crate::facts::id_of;
use crate::facts::names::{fold, fold_predicate};
use crate::facts::validity::Validity;
use crate::sqlite::During;

/// Maximum number of sources in an answer: the first one, and the latest.
const MAX_SOURCES: u32 = 20;

/// A fact as writers see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredFact {
    pub(crate) id: i64,
    pub(crate) subject: i64,
    pub(crate) predicate: i64,
    pub(crate) object: i64,
    pub(crate) validity: Validity,
    pub(crate) confidence: f64,
    pub(crate) drawer: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) recorded_at: i64,
    pub(crate) superseded_by: Option<i64>,
}

const STORED_FACT: &str = "SELECT id, valid_from, from_day, valid_to, to_day, until, confidence, drawer, \
    file, agent, recorded_at, superseded_by, subject, predicate, object FROM fact";

/// True now first, then future, then past; the latest of each first.
const CURRENT_FIRST: &str = "ORDER BY CASE \
    WHEN f.valid_from >= ?5 THEN 1 WHEN f.until <= ?6 THEN 2 ELSE 0 END, \
    coalesce(f.valid_from, f.until) DESC, f.id DESC";

/// Facts without any date come last.
const BY_TIME: &str = "ORDER BY coalesce(f.valid_from, f.until) NULLS LAST, f.id";

const ENTITY: &str = "SELECT e.id, e.name, e.type, \
    (SELECT count(*) FROM fact WHERE subject = e.id) + \
    (SELECT count(*) FROM fact WHERE object = e.id AND subject <> e.id) FROM entity e";

impl Snapshot<'_> {
    /// Facts: true now first, then future, then past.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn facts(&self, query: &FactQuery) -> Result<Vec<Fact>, StoreError> {
        let db = self.connection();
        let Some(entity) = wanted(db, query.entity.as_deref())? else { return Ok(Vec::new()) };
        let predicate = match &query.predicate {
            None => None,
            Some(name) => match predicate_number(db, &fold_predicate(name))? {
                Some(number) => Some(number),
                None => return Ok(Vec::new()),
            },
        };
        let of_entity = of_entity(entity, query.direction);
        let said = if predicate.is_some() { "f.predicate = ?4" } else { "?4 IS NULL" };
        let words = words_of(query.text.as_deref())?;
        let in_state = in_state(query.state.or(query.as_of.map(|_| FactState::Current)));
        let mut which = format!("{of_entity} AND {said} AND {in_state}");
        for at in 0..words.len() {
            which.push_str(&mentions(FIRST_WORD + at));
        }
        let sql = page(&which, CURRENT_FIRST);
        let time = AskedTime::new(query.as_of);
        let read = || {
            let mut statement = db.prepare_cached(&sql)?;
            let mut values: Vec<Value> = vec![
                entity.number().map_or(Value::Null, Value::from),
                i64::from(query.limit).into(),
                i64::try_from(query.offset).unwrap_or(i64::MAX).into(),
                predicate.map_or(Value::Null, Value::from),
                time.end.into(),
                time.start.into(),
            ];
            values.extend(words.into_iter().map(Value::from));
            let rows = statement.query_map(params_from_iter(values), |row| fact_of(row, time))?;
            with_sources(db, rows.collect::<Result<_, _>>()?)
        };
        read().during(db, "look for facts")
    }

    /// Facts in the order in which they became true; of all entities if none is given.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn fact_timeline(
        &self,
        entity: Option<&str>,
        as_of: Option<Moment>,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<Fact>, StoreError> {
        let db = self.connection();
        let Some(entity) = wanted(db, entity)? else { return Ok(Vec::new()) };
        let of_entity = of_entity(entity, FactDirection::Both);
        let begun = format!("{of_entity} AND (?4 IS NULL OR coalesce(f.valid_from < ?4, 1))");
        let sql = page(&begun, BY_TIME);
        let time = AskedTime::new(as_of);
        let read = || {
            let mut statement = db.prepare_cached(&sql)?;
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            let begun_by = as_of.map(Moment::end);
            let rows = statement
                .query_map(params![entity.number(), limit, offset, begun_by], |row| {
                    fact_of(row, time)
                })?;
            with_sources(db, rows.collect::<Result<_, _>>()?)
        };
        read().during(db, "read the timeline")
    }

    /// The number of facts: current, past and future at that time, which is now if not given.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn fact_stats(&self, as_of: Option<Moment>) -> Result<FactStats, StoreError> {
        let db = self.connection();
        let time = AskedTime::new(as_of);
        db.prepare_cached(
            "SELECT count(*) FILTER (WHERE retracted_at IS NULL), \
             count(*) FILTER (WHERE retracted_at IS NULL AND until <= ?1), \
             count(*) FILTER (WHERE retracted_at IS NULL AND valid_from >= ?2), \
             count(retracted_at), (SELECT count(*) FROM entity), \
             count(DISTINCT predicate) FROM fact",
        )
        .and_then(|mut statement| {
            statement.query_row([time.start, time.end], |row| {
                let (facts, past, future): (u64, u64, u64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(FactStats {
                    facts,
                    current: facts.saturating_sub(past + future),
                    past,
                    future,
                    retracted: row.get(3)?,
                    entities: row.get(4)?,
                    predicates: row.get(5)?,
                })
            })
        })
        .during(db, "count facts")
    }

    /// Entities by name.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn entities(&self, query: &EntityQuery) -> Result<Vec<Entity>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut statement = db.prepare_cached(&format!(
                "{ENTITY} WHERE (?1 IS NULL OR lower(e.type) = lower(?1)) \
                 AND (?2 IS NULL OR instr(e.folded, ?2) > 0 OR EXISTS \
                  (SELECT 1 FROM alias a WHERE a.entity = e.id AND instr(a.folded, ?2) > 0)) \
                 ORDER BY e.folded LIMIT ?3 OFFSET ?4"
            ))?;
            let like = query.like.as_deref().map(fold);
            let of_type = query.r#type.as_deref().map(str::trim);
            let offset = i64::try_from(query.offset).unwrap_or(i64::MAX);
            let rows = statement
                .query_map(params![of_type, like, query.limit, offset], |row| entity_of(db, row))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "list entities")
    }

    /// The entity with this name or alias.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn entity(&self, name: &str) -> Result<Option<Entity>, StoreError> {
        entity_named(self.connection(), name)
    }
}

/// The id of the entity with this folded name or alias.
pub(crate) fn entity_number(db: &dyn Connection, folded: &str) -> Result<Option<i64>, StoreError> {
    db.prepare_cached(
        "SELECT id FROM entity WHERE folded = ?1 \
         UNION ALL SELECT entity FROM alias WHERE folded = ?1 LIMIT 1",
    )
    .and_then(|mut statement| statement.query_row([folded], |row| row.get(0)).optional())
    .during(db, "look for an entity")
}

/// The id of the predicate with this folded name.
pub(crate) fn predicate_number(
    db: &dyn Connection,
    folded: &str,
) -> Result<Option<i64>, StoreError> {
    db.prepare_cached("SELECT id FROM predicate WHERE folded = ?1")
        .and_then(|mut statement| statement.query_row([folded], |row| row.get(0)).optional())
        .during(db, "look for a predicate")
}

/// The entity with this name or alias.
pub(crate) fn entity_named(db: &dyn Connection, name: &str) -> Result<Option<Entity>, StoreError> {
    let number = entity_number(db, &fold(name))?;
    number.map(|number| require_entity(db, number)).transpose()
}

/// The entity with this id, which must exist.
pub(crate) fn require_entity(db: &dyn Connection, number: i64) -> Result<Entity, StoreError> {
    db.prepare_cached(&format!("{ENTITY} WHERE e.id = ?1"))
        .and_then(|mut statement| statement.query_row([number], |row| entity_of(db, row)))
        .during(db, "read an entity")
}

/// All facts with this subject and predicate, and this object if given, but retracted ones, in
/// the order they were recorded.
pub(crate) fn stored_facts(
    db: &dyn Connection,
    subject: i64,
    predicate: i64,
    object: Option<i64>,
) -> Result<Vec<StoredFact>, StoreError> {
    // With an object, an index finds it directly, however many others there are.
    let of_object = if object.is_some() { "object = ?3" } else { "?3 IS NULL" };
    let read = || {
        db.prepare_cached(&format!(
            "{STORED_FACT} WHERE subject = ?1 AND predicate = ?2 AND {of_object} \
             AND retracted_at IS NULL ORDER BY id"
        ))?
        .query_map(params![subject, predicate, object], stored_fact_of)?
        .collect::<Result<Vec<_>, _>>()
    };
    read().during(db, "look for facts")
}

/// The fact with this id.
pub(crate) fn stored_fact(
    db: &dyn Connection,
    number: i64,
) -> Result<Option<StoredFact>, StoreError> {
    db.prepare_cached(&format!("{STORED_FACT} WHERE id = ?1"))
        .and_then(|mut statement| statement.query_row([number], stored_fact_of).optional())
        .during(db, "look for a fact")
}

/// All facts with this predicate but retracted ones.
pub(crate) fn facts_with_predicate(
    db: &dyn Connection,
    predicate: i64,
) -> Result<Vec<StoredFact>, StoreError> {
    let read = || {
        db.prepare_cached(&format!(
            "{STORED_FACT} WHERE predicate = ?1 AND retracted_at IS NULL ORDER BY id"
        ))?
        .query_map([predicate], stored_fact_of)?
        .collect::<Result<Vec<_>, _>>()
    };
    read().during(db, "look for facts")
}

/// When a fact was retracted, if it was.
pub(crate) fn retracted_at(db: &dyn Connection, number: i64) -> Result<Option<i64>, StoreError> {
    db.prepare_cached("SELECT retracted_at FROM fact WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([number], |row| row.get(0)).optional())
        .during(db, "look for a fact")
        .map(Option::flatten)
}

/// The validity of a fact, from five columns starting at this one.
pub(crate) fn validity_of(row: &Row<'_>, column: usize) -> isolith_sql::Result<Validity> {
    Ok(Validity {
        from: moment_of(row.get(column)?, row.get(column + 1)?),
        to: moment_of(row.get(column + 2)?, row.get(column + 3)?),
        until: row.get(column + 4)?,
    })
}

/// Whether the times and confidence of a fact, in six columns after the first, are valid.
pub(crate) fn makes_sense(row: &Row<'_>) -> isolith_sql::Result<bool> {
    let validity = validity_of(row, 1)?;
    let starts = [row.get(1)?, row.get(3)?];
    let as_written = [validity.from, validity.to].map(|given| given.map(Moment::start)) == starts;
    let confidence: f64 = row.get(6)?;
    Ok(as_written && validity.makes_sense() && (0.0..=1.0).contains(&confidence))
}

/// Selects a page of facts. Names are only looked up for those on the page. Its parameters: 1 the
/// entity, 2 the limit, 3 the offset, 4 the predicate, 5 and 6 the end and the start of the time
/// asked about, from 7 on the words to look for.
fn page(which: &str, order: &str) -> String {
    format!(
        "SELECT f.id, f.valid_from, f.from_day, f.valid_to, f.to_day, f.until, f.confidence, \
         f.drawer, f.file, f.agent, f.recorded_at, f.superseded_by, s.name, p.name, o.name, f.retracted_at \
         FROM (SELECT * FROM fact f WHERE {which} {order} LIMIT ?2 OFFSET ?3) f \
         JOIN entity s ON s.id = f.subject JOIN predicate p ON p.id = f.predicate \
         JOIN entity o ON o.id = f.object {order}"
    )
}

/// The number of the first parameter with a word.
const FIRST_WORD: usize = 7;

/// Maximum number of words to look for.
const MAX_WORDS: usize = 16;

/// The words of a search, as names are compared.
fn words_of(text: Option<&str>) -> Result<Vec<String>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let words: Vec<String> = fold_predicate(text).split(' ').map(str::to_owned).collect();
    if words.iter().all(String::is_empty) {
        return Err(StoreError::Invalid("there is no word to look for".to_owned()));
    }
    if words.len() > MAX_WORDS {
        let reason = format!("{} words to look for; the limit is {MAX_WORDS}", words.len());
        return Err(StoreError::Invalid(reason));
    }
    Ok(words)
}

/// Whether the names of a fact contain the word.
fn mentions(parameter: usize) -> String {
    format!(
        " AND (EXISTS (SELECT 1 FROM entity e WHERE e.id IN (f.subject, f.object) \
         AND instr(replace(e.folded, '_', ' '), ?{parameter}) > 0) \
         OR EXISTS (SELECT 1 FROM alias a WHERE a.entity IN (f.subject, f.object) \
         AND instr(replace(a.folded, '_', ' '), ?{parameter}) > 0) \
         OR EXISTS (SELECT 1 FROM predicate k WHERE k.id = f.predicate \
         AND instr(k.folded, ?{parameter}) > 0))"
    )
}

/// Restricts facts to those in a state at the time asked about.
fn in_state(state: Option<FactState>) -> &'static str {
    match state {
        None => "f.retracted_at IS NULL",
        Some(FactState::Current) => {
            "f.retracted_at IS NULL AND coalesce(f.valid_from < ?5, 1) AND coalesce(f.until > ?6, 1)"
        }
        Some(FactState::Past) => "f.retracted_at IS NULL AND f.until <= ?6",
        Some(FactState::Future) => "f.retracted_at IS NULL AND f.valid_from >= ?5",
        Some(FactState::Retracted) => "f.retracted_at IS NOT NULL",
    }
}

/// The time that a query asks about, and the current time.
#[derive(Debug, Clone, Copy)]
struct AskedTime {
    start: i64,
    /// Exclusive.
    end: i64,
    now: i64,
}

impl AskedTime {
    fn new(as_of: Option<Moment>) -> Self {
        let now = now();
        let at = as_of.unwrap_or(Moment::instant(now));
        Self { start: at.start(), end: at.end(), now }
    }
}

/// Whose facts are requested.
#[derive(Debug, Clone, Copy)]
enum FactOwner {
    Anybodys,
    Of(i64),
}

impl FactOwner {
    fn number(self) -> Option<i64> {
        match self {
            Self::Anybodys => None,
            Self::Of(number) => Some(number),
        }
    }
}

/// `None` if no entity has this name.
fn wanted(db: &dyn Connection, name: Option<&str>) -> Result<Option<FactOwner>, StoreError> {
    let Some(name) = name else { return Ok(Some(FactOwner::Anybodys)) };
    Ok(entity_number(db, &fold(name))?.map(FactOwner::Of))
}

fn of_entity(whose: FactOwner, direction: FactDirection) -> &'static str {
    match (whose, direction) {
        (FactOwner::Anybodys, _) => "?1 IS NULL",
        (_, FactDirection::Out) => "f.subject = ?1",
        (_, FactDirection::In) => "f.object = ?1",
        (_, FactDirection::Both) => "(f.subject = ?1 OR f.object = ?1)",
    }
}

fn moment_of(at: Option<i64>, is_day: bool) -> Option<Moment> {
    at.map(|at| if is_day { Moment::day_of(at) } else { Moment::instant(at) })
}

fn stored_fact_of(row: &Row<'_>) -> isolith_sql::Result<StoredFact> {
    Ok(StoredFact {
        id: row.get(0)?,
        validity: validity_of(row, 1)?,
        confidence: row.get(6)?,
        drawer: row.get(7)?,
        file: row.get(8)?,
        agent: row.get(9)?,
        recorded_at: row.get(10)?,
        superseded_by: row.get(11)?,
        subject: row.get(12)?,
        predicate: row.get(13)?,
        object: row.get(14)?,
    })
}

/// A fact with its id; its only source so far is the first.
fn fact_of(row: &Row<'_>, time: AskedTime) -> isolith_sql::Result<(i64, Fact)> {
    let number = row.get(0)?;
    let validity = validity_of(row, 1)?;
    let (confidence, recorded_at) = (row.get(6)?, Moment::instant(row.get(10)?));
    let first = Source {
        drawer: row.get(7)?,
        file: row.get(8)?,
        agent: row.get(9)?,
        confidence,
        recorded_at,
    };
    let retracted_at: Option<i64> = row.get(15)?;
    let fact = Fact {
        id: id_of(number),
        subject: row.get(12)?,
        predicate: row.get(13)?,
        object: row.get(14)?,
        valid_from: validity.from,
        valid_to: validity.to,
        confidence,
        sources: vec![first],
        recorded_at,
        current: retracted_at.is_none() && validity.is_true(time.now),
        state: match retracted_at {
            Some(_) => FactState::Retracted,
            None => validity.state(time.start, time.end),
        },
        retracted_at: retracted_at.map(Moment::instant),
        superseded_by: row.get::<_, Option<i64>>(11)?.map(id_of),
    };
    Ok((number, fact))
}

/// If a fact has several sources, each is stored separately.
fn with_sources(db: &dyn Connection, facts: Vec<(i64, Fact)>) -> isolith_sql::Result<Vec<Fact>> {
    let with = |(number, mut fact): (i64, Fact)| {
        let words = sources_of(db, number)?;
        if !words.is_empty() {
            fact.sources = words;
        }
        Ok(fact)
    };
    facts.into_iter().map(with).collect()
}

/// The sources of a fact, as far as answers show them; empty if there is only the first.
pub(crate) fn sources_of(db: &dyn Connection, fact: i64) -> isolith_sql::Result<Vec<Source>> {
    db.prepare_cached(
        "SELECT drawer, file, agent, confidence, recorded_at FROM fact_source \
         WHERE id = (SELECT min(id) FROM fact_source WHERE fact = ?1) OR id IN \
         (SELECT id FROM fact_source WHERE fact = ?1 ORDER BY id DESC LIMIT ?2) ORDER BY id",
    )?
    .query_map(params![fact, MAX_SOURCES - 1], source_of)?
    .collect()
}

fn source_of(row: &Row<'_>) -> isolith_sql::Result<Source> {
    Ok(Source {
        drawer: row.get(0)?,
        file: row.get(1)?,
        agent: row.get(2)?,
        confidence: row.get(3)?,
        recorded_at: Moment::instant(row.get(4)?),
    })
}

fn entity_of(db: &dyn Connection, row: &Row<'_>) -> isolith_sql::Result<Entity> {
    let number: i64 = row.get(0)?;
    let aliases = aliases_of(db, number)?;
    Ok(Entity { name: row.get(1)?, r#type: row.get(2)?, aliases, facts: row.get(3)? })
}

/// The aliases of an entity.
pub(crate) fn aliases_of(db: &dyn Connection, entity: i64) -> isolith_sql::Result<Vec<String>> {
    db.prepare_cached("SELECT name FROM alias WHERE entity = ?1 ORDER BY id")?
        .query_map([entity], |row| row.get(0))?
        .collect()
}
