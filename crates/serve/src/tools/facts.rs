//! Tools for facts and the time in which they are valid.

use std::fmt::Write as _;

use isolith_engine::MOST_FACTS;
use isolith_types::{
    Code, Fact, FactDirection as Direction, FactQuery as Query, FactState as State, FactStats,
    Failure, Hint, Moment, NewFact, Provenance, Supersede, WhichFact,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::offset;
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

/// Numbers of facts.
pub(crate) const LIMITS: Limits =
    Limits { default: 200, agent: MOST_FACTS - 1, program: MOST_FACTS - 1 };

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "fact_add",
            Effect::AddOnce,
            "Record a statement and when it is true. Use it for what can change: jobs, owners, versions. For text use memory_add. Example: {\"subject\":\"Ann\",\"predicate\":\"works_at\",\"object\":\"Acme\"}",
            fact_add,
        ),
        Tool::new(
            "fact_query",
            Effect::Read,
            "List facts about a person, project or thing, now or at a date. Use it for who and since when. For notes use memory_search. Example: {\"entity\":\"Ann\"}",
            fact_query,
        ),
        Tool::new(
            "fact_invalidate",
            Effect::Change,
            "End a fact that is no longer true; it stays in the history. Use it when something stopped. If something else is true instead use fact_supersede. Example: {\"subject\":\"Ann\",\"predicate\":\"works_at\"}",
            fact_invalidate,
        ),
        Tool::new(
            "fact_retract",
            Effect::Change,
            "Mark a fact as never true; only the history keeps it. Use it for mistakes. If it was true before use fact_invalidate. Example: {\"id\":\"f12\"}",
            fact_retract,
        ),
        Tool::new(
            "fact_supersede",
            Effect::Change,
            "Replace what a fact says from a date on: a new employer, owner or version. Use it when a fact changes; the old one stays in the history. If nothing replaces it use fact_invalidate. Example: {\"subject\":\"Ann\",\"predicate\":\"works_at\",\"object\":\"Globex\",\"at\":\"2026-06-01\"}",
            fact_supersede,
        ),
        Tool::new(
            "fact_timeline",
            Effect::Read,
            "List facts in the order in which they became true. Use it for the history of a person or project. For what is true now use fact_query. Example: {\"entity\":\"Ann\"}",
            fact_timeline,
        ),
        Tool::new(
            "fact_stats",
            Effect::Read,
            "Count current, past and future facts. Use it to see how much is recorded. For the facts themselves use fact_query. Example: {}",
            fact_stats,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactAdd {
    /// Who or what
    subject: String,
    /// e.g. works_at
    predicate: String,
    /// Whom or what
    object: String,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    valid_from: Option<Moment>,
    /// Date, exclusive
    #[schemars(with = "Option<String>")]
    valid_to: Option<Moment>,
    /// 0 to 1
    confidence: Option<f64>,
    /// Source
    drawer: Option<String>,
    /// Source
    file: Option<String>,
    /// By whom
    agent: Option<String>,
}

impl From<FactAdd> for NewFact {
    fn from(given: FactAdd) -> Self {
        Self {
            subject: given.subject,
            predicate: given.predicate,
            object: given.object,
            valid_from: given.valid_from,
            valid_to: given.valid_to,
            confidence: given.confidence,
            provenance: Provenance { drawer: given.drawer, file: given.file, agent: given.agent },
            ..Self::default()
        }
    }
}

pub(crate) async fn fact_add(call: Call, arguments: FactAdd) -> Result<FactAdded, Failure> {
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.add_fact(arguments.into(), call.key).await?;
    Ok(FactAdded { id: added.id, created: added.created })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactAdded {
    id: String,
    created: bool,
}

impl ToolAnswer for FactAdded {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        match self.created {
            true => format!("recorded as {}", self.id),
            false => format!("already recorded as {}", self.id),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactQuery {
    /// Name or alias
    entity: Option<String>,
    /// Words in names
    text: Option<String>,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    as_of: Option<Moment>,
    /// Default: not retracted
    state: Option<FactState>,
    #[serde(default)]
    direction: FactDirection,
    /// Relation
    predicate: Option<String>,
    /// Default 200
    limit: Option<u32>,
    /// A next_cursor
    cursor: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FactDirection {
    Out,
    In,
    #[default]
    Both,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FactState {
    Current,
    Past,
    Future,
    Retracted,
}

impl From<FactState> for State {
    fn from(state: FactState) -> Self {
        match state {
            FactState::Current => Self::Current,
            FactState::Past => Self::Past,
            FactState::Future => Self::Future,
            FactState::Retracted => Self::Retracted,
        }
    }
}

impl From<FactDirection> for Direction {
    fn from(way: FactDirection) -> Self {
        match way {
            FactDirection::Out => Self::Out,
            FactDirection::In => Self::In,
            FactDirection::Both => Self::Both,
        }
    }
}

async fn fact_query(call: Call, arguments: FactQuery) -> Result<FactPage, Failure> {
    find_facts(&call, arguments).await.map(FactPage::from)
}

/// A page of facts.
pub(crate) struct ListedFacts {
    pub(crate) facts: Vec<Fact>,
    pub(crate) next_cursor: Option<String>,
}

/// Lists facts; none if there is no store.
pub(crate) async fn find_facts(call: &Call, arguments: FactQuery) -> Result<ListedFacts, Failure> {
    let limit = call.limit(arguments.limit, LIMITS)?;
    let offset = offset(arguments.cursor.as_deref())?;
    let query = Query {
        entity: arguments.entity,
        direction: arguments.direction.into(),
        predicate: arguments.predicate,
        text: arguments.text,
        state: arguments.state.map(State::from),
        as_of: arguments.as_of,
        // One extra row shows whether there is another page.
        limit: limit + 1,
        offset,
    };
    let facts = match call.server.stores().memory()? {
        Some(engine) => engine.query_facts(&query).await?,
        None => Vec::new(),
    };
    Ok(ListedFacts::page(facts, limit, offset))
}

#[derive(Serialize, JsonSchema)]
struct FactPage {
    facts: Vec<FactRow>,
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FactRow {
    id: String,
    subject: String,
    predicate: String,
    object: String,
    valid_from: Option<String>,
    valid_to: Option<String>,
    confidence: f64,
    current: bool,
    /// At as_of, or now
    #[schemars(skip)]
    state: &'static str,
}

impl From<Fact> for FactRow {
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
            state: fact.state.name(),
        }
    }
}

impl ListedFacts {
    /// Takes up to `limit` facts; one more in `found` means that there is another page.
    fn page(mut found: Vec<Fact>, limit: u32, offset: u64) -> Self {
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = offset.saturating_add(found.len() as u64);
        Self { facts: found, next_cursor: more.then(|| next.to_string()) }
    }
}

impl From<ListedFacts> for FactPage {
    fn from(ListedFacts { facts, next_cursor }: ListedFacts) -> Self {
        Self { facts: facts.into_iter().map(FactRow::from).collect(), next_cursor }
    }
}

impl ToolAnswer for FactPage {
    fn text(&self) -> String {
        if self.facts.is_empty() {
            return "no facts found".to_owned();
        }
        let mut text = String::new();
        for fact in &self.facts {
            let FactRow { id, subject, predicate, object, .. } = fact;
            let from = fact.valid_from.as_deref().unwrap_or("…");
            let to = fact.valid_to.as_deref().unwrap_or("…");
            let state = match fact.state {
                "current" => String::new(),
                state => format!(", {state}"),
            };
            let _ = writeln!(text, "{subject} {predicate} {object} [{from} – {to}){state} {id}");
        }
        if let Some(cursor) = &self.next_cursor {
            let _ = writeln!(text, "more: cursor {cursor}");
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.facts.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactInvalidate {
    /// The fact; or its subject and predicate
    id: Option<String>,
    /// Who or what
    subject: Option<String>,
    /// Relation
    predicate: Option<String>,
    /// If there are several
    object: Option<String>,
    /// Date; default: now
    #[schemars(with = "Option<String>")]
    at: Option<Moment>,
}

pub(crate) async fn fact_invalidate(
    call: Call,
    arguments: FactInvalidate,
) -> Result<FactEnded, Failure> {
    let FactInvalidate { id, subject, predicate, object, at } = arguments;
    let which = which(id, subject, predicate, object)?;
    let Some(engine) = call.server.stores().memory()? else { return Err(no_facts()) };
    let ended = engine.invalidate_fact(which, at, call.key).await?;
    Ok(FactEnded { id: ended.id, valid_to: ended.valid_to.to_string(), changed: ended.changed })
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactRetract {
    /// Its id; or its subject and predicate
    id: Option<String>,
    /// Whom or what it is about
    subject: Option<String>,
    /// Relation
    predicate: Option<String>,
    /// If several match
    object: Option<String>,
}

pub(crate) async fn fact_retract(
    call: Call,
    arguments: FactRetract,
) -> Result<FactRetracted, Failure> {
    let FactRetract { id, subject, predicate, object } = arguments;
    let which = which(id, subject, predicate, object)?;
    let Some(engine) = call.server.stores().memory()? else { return Err(no_facts()) };
    let done = engine.retract_fact(which, call.key).await?;
    let retracted_at = done.retracted_at.to_string();
    Ok(FactRetracted { id: done.id, retracted_at, changed: done.changed })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactRetracted {
    id: String,
    retracted_at: String,
    changed: bool,
}

impl ToolAnswer for FactRetracted {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!("{} is retracted", self.id)
    }
}

pub(crate) fn no_facts() -> Failure {
    Failure::new(Code::NotFound, "there are no facts yet").with_hint(Hint::AddFact)
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactEnded {
    id: String,
    valid_to: String,
    changed: bool,
}

impl ToolAnswer for FactEnded {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!("{} ends at {}", self.id, self.valid_to)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactSupersede {
    /// The old fact; or its subject and predicate
    id: Option<String>,
    /// Who or what
    subject: Option<String>,
    /// Relation
    predicate: Option<String>,
    /// If there are several
    old_object: Option<String>,
    /// The new object
    object: String,
    /// Date; default: now
    #[schemars(with = "Option<String>")]
    at: Option<Moment>,
    /// 0 to 1
    confidence: Option<f64>,
}

pub(crate) async fn fact_supersede(
    call: Call,
    arguments: FactSupersede,
) -> Result<FactSuperseded, Failure> {
    let FactSupersede { id, subject, predicate, old_object, object, at, confidence } = arguments;
    let change = Supersede {
        old: which(id, subject, predicate, old_object)?,
        object,
        object_type: None,
        at,
        confidence,
        provenance: Provenance::default(),
    };
    let Some(engine) = call.server.stores().memory()? else { return Err(no_facts()) };
    let done = engine.supersede_fact(change, call.key).await?;
    Ok(FactSuperseded {
        id: done.id,
        old: done.old,
        created: done.created,
        at: done.at.to_string(),
    })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactSuperseded {
    id: String,
    old: String,
    created: bool,
    at: String,
}

impl ToolAnswer for FactSuperseded {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!("{} replaces {} from {}", self.id, self.old, self.at)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactTimeline {
    /// Only facts about it
    entity: Option<String>,
    /// Only what was true by then
    #[schemars(with = "Option<String>")]
    as_of: Option<Moment>,
    /// Default 200
    limit: Option<u32>,
    /// A next_cursor
    cursor: Option<String>,
}

async fn fact_timeline(call: Call, arguments: FactTimeline) -> Result<FactPage, Failure> {
    list_timeline(&call, arguments).await.map(FactPage::from)
}

/// Lists facts by the time they became true; none if there is no store.
pub(crate) async fn list_timeline(
    call: &Call,
    arguments: FactTimeline,
) -> Result<ListedFacts, Failure> {
    let limit = call.limit(arguments.limit, LIMITS)?;
    let offset = offset(arguments.cursor.as_deref())?;
    let facts = match call.server.stores().memory()? {
        Some(engine) => {
            let FactTimeline { entity, as_of, .. } = &arguments;
            engine.fact_timeline(entity.as_deref(), *as_of, limit + 1, offset).await?
        }
        None => Vec::new(),
    };
    Ok(ListedFacts::page(facts, limit, offset))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactStatsAt {
    /// YYYY-MM-DD; default: now
    #[schemars(with = "Option<String>")]
    as_of: Option<Moment>,
}

pub(crate) async fn fact_stats(call: Call, at: FactStatsAt) -> Result<FactCounts, Failure> {
    let FactStats { facts, current, past, future, retracted, entities, predicates } =
        match call.server.stores().memory()? {
            Some(engine) => engine.fact_stats(at.as_of).await?,
            None => FactStats::default(),
        };
    Ok(FactCounts { facts, current, past, future, retracted, entities, predicates })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactCounts {
    facts: u64,
    current: u64,
    past: u64,
    future: u64,
    retracted: u64,
    entities: u64,
    predicates: u64,
}

impl ToolAnswer for FactCounts {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let Self { facts, current, past, future, retracted, entities, predicates } = self;
        format!(
            "facts: {facts} ({current} current, {past} past, {future} future); retracted: {retracted}; entities: {entities}; predicates: {predicates}"
        )
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
            state: if to.is_none() { State::Current } else { State::Past },
            retracted_at: None,
            superseded_by: None,
        }
    }

    #[test]
    fn a_page_shows_whether_there_are_more() {
        let facts = || vec![fact("Acme", Some("2025-01-01")), fact("Initech", None)];
        insta::assert_snapshot!(FactPage::from(ListedFacts::page(facts(), 1, 3)).text(), @r"
        Max works_at Acme [2024-01-01 – 2025-01-01), past f1
        more: cursor 4
        ");
        insta::assert_snapshot!(FactPage::from(ListedFacts::page(facts(), 2, 0)).text(), @r"
        Max works_at Acme [2024-01-01 – 2025-01-01), past f1
        Max works_at Initech [2024-01-01 – …) f1
        ");
    }

    #[test]
    fn a_fact_is_identified_by_id_or_content() {
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
