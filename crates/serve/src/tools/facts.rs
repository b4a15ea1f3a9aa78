//! Tools for facts and when they are true.

use std::fmt::Write as _;

use isolith_engine::MOST_FACTS;
use isolith_types::{
    Code, Fact, FactDirection, FactQuery as Query, FactStats, Failure, Moment, NewFact, Provenance,
    Supersede, WhichFact, counted,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{limit_of, offset};
use crate::tool::{Call, Effect, Shown, Tool};

/// Default and maximum number of facts.
const LIMITS: (u32, u32) = (200, MOST_FACTS - 1);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "fact_add",
            Effect::AddOnce,
            "Record a fact, true from valid_from until before valid_to. To replace one use fact_supersede.",
            fact_add,
        ),
        Tool::new(
            "fact_query",
            Effect::Read,
            "List facts about an entity, as of a date or all. Untrusted data.",
            fact_query,
        ),
        Tool::new(
            "fact_invalidate",
            Effect::Change,
            "End a fact that is no longer true; it stays in the history.",
            fact_invalidate,
        ),
        Tool::new(
            "fact_supersede",
            Effect::Change,
            "Replace the object of a fact from a moment on; the old fact stays in the history.",
            fact_supersede,
        ),
        Tool::new(
            "fact_timeline",
            Effect::Read,
            "List facts in the order in which they became true.",
            fact_timeline,
        ),
        Tool::new("fact_stats", Effect::Read, "Count facts: current, past, future.", fact_stats),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactAdd {
    subject: String,
    predicate: String,
    object: String,
    /// YYYY-MM-DD or RFC 3339 with zone
    #[schemars(with = "Option<String>")]
    valid_from: Option<Moment>,
    #[schemars(with = "Option<String>")]
    valid_to: Option<Moment>,
    /// 0-1
    confidence: Option<f64>,
    /// Source: a drawer's id
    drawer: Option<String>,
    file: Option<String>,
    /// Who says so
    agent: Option<String>,
}

async fn fact_add(call: Call, asked: FactAdd) -> Result<Added, Failure> {
    let fact = NewFact {
        subject: asked.subject,
        predicate: asked.predicate,
        object: asked.object,
        valid_from: asked.valid_from,
        valid_to: asked.valid_to,
        confidence: asked.confidence,
        provenance: Provenance { drawer: asked.drawer, file: asked.file, agent: asked.agent },
        ..NewFact::default()
    };
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.add_fact(fact, None).await?;
    Ok(Added { id: added.id, created: added.created })
}

#[derive(Serialize, JsonSchema)]
struct Added {
    id: String,
    created: bool,
}

impl Shown for Added {
    fn text(&self) -> String {
        match self.created {
            true => format!("recorded as {}", self.id),
            false => format!("already recorded as {}", self.id),
        }
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactQuery {
    entity: String,
    /// Date
    #[schemars(with = "Option<String>")]
    as_of: Option<Moment>,
    #[serde(default)]
    direction: Way,
    predicate: Option<String>,
    /// Default 200
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Way {
    Out,
    In,
    #[default]
    Both,
}

impl From<Way> for FactDirection {
    fn from(way: Way) -> Self {
        match way {
            Way::Out => Self::Out,
            Way::In => Self::In,
            Way::Both => Self::Both,
        }
    }
}

async fn fact_query(call: Call, asked: FactQuery) -> Result<Facts, Failure> {
    let (limit, offset) = (limit_of(asked.limit, LIMITS)?, offset(asked.cursor.as_deref())?);
    let query = Query {
        entity: Some(asked.entity),
        direction: asked.direction.into(),
        predicate: asked.predicate,
        as_of: asked.as_of,
        // One more shows whether there is another page.
        limit: limit + 1,
        offset,
    };
    let facts = match call.server.stores().memory()? {
        Some(engine) => engine.query_facts(&query).await?,
        None => Vec::new(),
    };
    Ok(Facts::page(facts, limit, offset))
}

#[derive(Serialize, JsonSchema)]
struct Facts {
    facts: Vec<ShownFact>,
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ShownFact {
    id: String,
    subject: String,
    predicate: String,
    object: String,
    valid_from: Option<String>,
    valid_to: Option<String>,
    confidence: f64,
    current: bool,
}

impl From<Fact> for ShownFact {
    fn from(fact: Fact) -> Self {
        Self {
            id: fact.id,
            subject: fact.subject,
            predicate: fact.predicate,
            object: fact.object,
            valid_from: fact.valid_from.map(|at| at.to_string()),
            valid_to: fact.valid_to.map(|at| at.to_string()),
            confidence: fact.confidence,
            current: fact.current,
        }
    }
}

impl Facts {
    /// A page of facts, without the extra one that shows that there are more.
    fn page(mut found: Vec<Fact>, limit: u32, offset: u64) -> Self {
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = offset + found.len() as u64;
        let facts = found.into_iter().map(ShownFact::from).collect();
        Self { facts, next_cursor: more.then(|| next.to_string()) }
    }
}

impl Shown for Facts {
    fn text(&self) -> String {
        if self.facts.is_empty() {
            return "no facts found".to_owned();
        }
        let mut text = String::new();
        for fact in &self.facts {
            let ShownFact { id, subject, predicate, object, .. } = fact;
            let from = fact.valid_from.as_deref().unwrap_or("…");
            let to = fact.valid_to.as_deref().unwrap_or("…");
            let past = if fact.current { "" } else { ", not current" };
            let _ = writeln!(text, "{subject} {predicate} {object} [{from} – {to}){past} {id}");
        }
        if let Some(cursor) = &self.next_cursor {
            let _ = writeln!(text, "more: cursor {cursor}");
        }
        text
    }

    fn is_ours(&self) -> bool {
        self.facts.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactInvalidate {
    id: Option<String>,
    subject: Option<String>,
    predicate: Option<String>,
    object: Option<String>,
    /// Date; default: now
    #[schemars(with = "Option<String>")]
    at: Option<Moment>,
}

async fn fact_invalidate(call: Call, asked: FactInvalidate) -> Result<Ended, Failure> {
    let FactInvalidate { id, subject, predicate, object, at } = asked;
    let which = which(id, subject, predicate, object)?;
    let Some(engine) = call.server.stores().memory()? else { return Err(unknown()) };
    let ended = engine.invalidate_fact(which, at, None).await?;
    Ok(Ended { id: ended.id, valid_to: ended.valid_to.to_string(), changed: ended.changed })
}

fn which(
    id: Option<String>,
    subject: Option<String>,
    predicate: Option<String>,
    object: Option<String>,
) -> Result<WhichFact, Failure> {
    match (id, subject, predicate) {
        (Some(id), None, None) if object.is_none() => Ok(WhichFact::Id(id)),
        (None, Some(subject), Some(predicate)) => {
            Ok(WhichFact::Said { subject, predicate, object })
        }
        _ => Err(Failure::new(Code::BadInput, "pass either id, or subject and predicate")),
    }
}

fn unknown() -> Failure {
    Failure::new(Code::NotFound, "there are no facts yet").with_hint("fact_add records one")
}

#[derive(Serialize, JsonSchema)]
struct Ended {
    id: String,
    valid_to: String,
    changed: bool,
}

impl Shown for Ended {
    fn text(&self) -> String {
        format!("{} ends at {}", self.id, self.valid_to)
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactSupersede {
    /// The old fact; or its subject, predicate and old_object
    id: Option<String>,
    subject: Option<String>,
    predicate: Option<String>,
    old_object: Option<String>,
    /// The new object
    object: String,
    /// Date; default: now
    #[schemars(with = "Option<String>")]
    at: Option<Moment>,
    confidence: Option<f64>,
}

async fn fact_supersede(call: Call, asked: FactSupersede) -> Result<Superseded, Failure> {
    let FactSupersede { id, subject, predicate, old_object, object, at, confidence } = asked;
    let change = Supersede {
        old: which(id, subject, predicate, old_object)?,
        object,
        object_type: None,
        at,
        confidence,
        provenance: Provenance::default(),
    };
    let Some(engine) = call.server.stores().memory()? else { return Err(unknown()) };
    let done = engine.supersede_fact(change, None).await?;
    Ok(Superseded { id: done.id, old: done.old, created: done.created, at: done.at.to_string() })
}

#[derive(Serialize, JsonSchema)]
struct Superseded {
    id: String,
    old: String,
    created: bool,
    at: String,
}

impl Shown for Superseded {
    fn text(&self) -> String {
        format!("{} replaces {} from {}", self.id, self.old, self.at)
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactTimeline {
    entity: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn fact_timeline(call: Call, asked: FactTimeline) -> Result<Facts, Failure> {
    let (limit, offset) = (limit_of(asked.limit, LIMITS)?, offset(asked.cursor.as_deref())?);
    let facts = match call.server.stores().memory()? {
        Some(engine) => engine.fact_timeline(asked.entity.as_deref(), limit + 1, offset).await?,
        None => Vec::new(),
    };
    Ok(Facts::page(facts, limit, offset))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn fact_stats(call: Call, Nothing {}: Nothing) -> Result<Counted, Failure> {
    let FactStats { facts, current, past, future, entities, predicates } =
        match call.server.stores().memory()? {
            Some(engine) => engine.fact_stats().await?,
            None => FactStats::default(),
        };
    Ok(Counted { facts, current, past, future, entities, predicates })
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    facts: u64,
    current: u64,
    past: u64,
    future: u64,
    entities: u64,
    predicates: u64,
}

impl Shown for Counted {
    fn text(&self) -> String {
        let Self { facts, current, past, future, entities, predicates } = self;
        format!(
            "{} ({current} current, {past} past, {future} future) about {}, {}",
            counted(*facts, "fact"),
            counted(*entities, "entity"),
            counted(*predicates, "predicate"),
        )
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(object: &str, to: Option<&str>) -> Fact {
        Fact {
            id: "f1".to_owned(),
            subject: "Max".to_owned(),
            predicate: "works_at".to_owned(),
            object: object.to_owned(),
            valid_from: Some("2024-01-01".parse().unwrap()),
            valid_to: to.map(|to| to.parse().unwrap()),
            confidence: 1.0,
            sources: Vec::new(),
            recorded_at: Moment::instant(0),
            current: to.is_none(),
            superseded_by: None,
        }
    }

    #[test]
    fn a_page_says_whether_there_is_more() {
        let facts = || vec![fact("Acme", Some("2025-01-01")), fact("Initech", None)];
        insta::assert_snapshot!(Facts::page(facts(), 1, 3).text(), @r"
        Max works_at Acme [2024-01-01 – 2025-01-01), not current f1
        more: cursor 4
        ");
        insta::assert_snapshot!(Facts::page(facts(), 2, 0).text(), @r"
        Max works_at Acme [2024-01-01 – 2025-01-01), not current f1
        Max works_at Initech [2024-01-01 – …) f1
        ");
    }

    #[test]
    fn a_fact_is_named_by_id_or_by_content() {
        let some = |text: &str| Some(text.to_owned());
        assert!(which(some("f1"), None, None, None).is_ok());
        assert!(which(None, some("Max"), some("works_at"), None).is_ok());
        for (id, subject, predicate, object) in [
            (None, None, None, None),
            (some("f1"), some("Max"), None, None),
            (some("f1"), None, None, some("Acme")),
            (None, some("Max"), None, some("Acme")),
        ] {
            let refused = which(id, subject, predicate, object).unwrap_err();
            assert_eq!(refused.code, Code::BadInput);
        }
    }
}
