//! Endpoints for facts and entities.

use isolith_types::{
    Code, Entity, EntityPatch, EntityQuery, Fact, FactOutcome, Failure, NewFact, Predicate, Source,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::arguments::offset;
use crate::tool::Call;
use crate::tools::facts::{
    FactAdd, FactQuery, FactTimeline, LIMITS, ListedFacts, fact_add, fact_invalidate, fact_retract,
    fact_stats, fact_supersede, find_facts, list_timeline, no_facts,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut all = facts();
    all.extend(entities());
    all.extend(predicates());
    all
}

fn predicates() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/facts/predicates"),
            "predicate_list",
            "List predicates by name",
            predicate_list,
        ),
        Endpoint::new(
            (Verb::Put, "/facts/predicates/{name}"),
            "predicate_declare",
            "Declare whether a subject can have several objects of a predicate at once",
            predicate_declare,
        )
        .keyed(),
    ]
}

fn facts() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Post, "/facts"),
            "fact_add",
            "Record a fact, true from valid_from to valid_to (exclusive)",
            fact_add,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/facts"),
            "fact_query",
            "List facts about an entity or with words: those true at a date, or all",
            fact_query,
        ),
        Endpoint::new(
            (Verb::Post, "/facts/invalidate"),
            "fact_invalidate",
            "End a fact that is no longer true",
            fact_invalidate,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/facts/import"),
            "fact_import",
            "Record up to 500 facts; those that are refused do not affect the others",
            fact_import,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/facts/retract"),
            "fact_retract",
            "Mark a fact as never true; it is kept as retracted",
            fact_retract,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/facts/supersede"),
            "fact_supersede",
            "Replace the object of a fact from a date on",
            fact_supersede,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/facts/timeline"),
            "fact_timeline",
            "List facts in the order in which they became true",
            fact_timeline,
        ),
        Endpoint::new(
            (Verb::Get, "/facts/stats"),
            "fact_stats",
            "Count current, past and future facts",
            fact_stats,
        ),
    ]
}

fn entities() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/facts/entities"),
            "entity_list",
            "List entities by name",
            entity_list,
        ),
        Endpoint::new(
            (Verb::Get, "/facts/entities/{name}"),
            "entity_get",
            "Get an entity by its name or an alias",
            entity_get,
        ),
        Endpoint::new(
            (Verb::Patch, "/facts/entities/{name}"),
            "entity_update",
            "Create or change an entity: its type and its aliases",
            entity_update,
        )
        .keyed(),
    ]
}

async fn fact_query(call: Call, arguments: FactQuery) -> Result<FactAnswer, Failure> {
    find_facts(&call, arguments).await.map(FactAnswer::from)
}

async fn fact_timeline(call: Call, arguments: FactTimeline) -> Result<FactAnswer, Failure> {
    list_timeline(&call, arguments).await.map(FactAnswer::from)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FactList")]
struct FactAnswer {
    facts: Vec<FullFact>,
    /// The cursor of the next page, if there is one.
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Fact")]
struct FullFact {
    id: String,
    subject: String,
    predicate: String,
    object: String,
    valid_from: Option<String>,
    /// Exclusive.
    valid_to: Option<String>,
    confidence: f64,
    /// Whether it is true now.
    current: bool,
    /// current, past, future or retracted: at as_of, or now.
    state: &'static str,
    /// When it was retracted as never true.
    retracted_at: Option<String>,
    recorded_at: String,
    superseded_by: Option<String>,
    sources: Vec<FactSource>,
}

/// Where a fact comes from.
#[derive(Serialize, JsonSchema)]
struct FactSource {
    drawer: Option<String>,
    file: Option<String>,
    agent: Option<String>,
    confidence: f64,
    recorded_at: String,
}

impl From<ListedFacts> for FactAnswer {
    fn from(ListedFacts { facts, next_cursor }: ListedFacts) -> Self {
        Self { facts: facts.into_iter().map(FullFact::from).collect(), next_cursor }
    }
}

impl From<Fact> for FullFact {
    fn from(fact: Fact) -> Self {
        let source = |it: Source| {
            let Source { drawer, file, agent, confidence, recorded_at } = it;
            FactSource { drawer, file, agent, confidence, recorded_at: recorded_at.to_string() }
        };
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
            retracted_at: fact.retracted_at.map(|at| at.to_string()),
            recorded_at: fact.recorded_at.to_string(),
            superseded_by: fact.superseded_by,
            sources: fact.sources.into_iter().map(source).collect(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FactImport {
    facts: Vec<FactAdd>,
}

async fn fact_import(call: Call, arguments: FactImport) -> Result<FactImported, Failure> {
    let rows = arguments.facts.len() as u64;
    let facts = arguments.facts.into_iter().map(NewFact::from).collect();
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.add_facts(facts, call.key).await?;
    let rejected = added.facts.into_iter().zip(0..).filter_map(|(outcome, row)| match outcome {
        FactOutcome::Stored(_) => None,
        FactOutcome::Refused(failure) => {
            Some(RejectedFact { row, code: failure.code, message: failure.message })
        }
    });
    Ok(FactImported {
        created: added.created,
        updated: added.updated,
        unchanged: rows.saturating_sub(added.created + added.updated + added.refused),
        rejected_count: added.refused,
        rejected: rejected.collect(),
    })
}

#[derive(Serialize, JsonSchema)]
struct FactImported {
    created: u64,
    updated: u64,
    unchanged: u64,
    /// Empty if an answer is repeated that was too long to keep.
    rejected: Vec<RejectedFact>,
    rejected_count: u64,
}

#[derive(Serialize, JsonSchema)]
struct RejectedFact {
    /// Its index, from 0.
    row: u64,
    #[schemars(with = "String")]
    code: Code,
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PredicatePage {
    /// 1 to 1000, by default 200.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

async fn predicate_list(call: Call, arguments: PredicatePage) -> Result<PredicateList, Failure> {
    let limit = call.limit(arguments.limit, LIMITS)?;
    let offset = offset(arguments.cursor.as_deref())?;
    let mut predicates = match call.server.stores().memory()? {
        // One extra row shows whether there is another page.
        Some(engine) => engine.predicates(limit + 1, offset).await?,
        None => Vec::new(),
    };
    let more = predicates.len() > limit as usize;
    predicates.truncate(limit as usize);
    let next = offset.saturating_add(predicates.len() as u64);
    let predicates = predicates.into_iter().map(PredicateAnswer::from).collect();
    Ok(PredicateList { predicates, next_cursor: more.then(|| next.to_string()) })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PredicateDeclaration {
    name: String,
    /// Whether one object excludes all others at the same time.
    single_valued: bool,
}

async fn predicate_declare(
    call: Call,
    arguments: PredicateDeclaration,
) -> Result<PredicateAnswer, Failure> {
    let PredicateDeclaration { name, single_valued } = arguments;
    let engine = call.server.stores().memory_to_write()?;
    let declared = engine.declare_predicate(name, single_valued, call.key).await?;
    Ok(PredicateAnswer::from(declared))
}

#[derive(Serialize, JsonSchema)]
struct PredicateList {
    predicates: Vec<PredicateAnswer>,
    /// The cursor of the next page, if there is one.
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Predicate")]
struct PredicateAnswer {
    name: String,
    /// Whether a subject can have only one object at a time.
    single_valued: bool,
    /// Number of facts with it that are not retracted.
    facts: u64,
}

impl From<Predicate> for PredicateAnswer {
    fn from(Predicate { name, single_valued, facts }: Predicate) -> Self {
        Self { name, single_valued, facts }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntityFilter {
    /// Only entities of this type.
    r#type: Option<String>,
    /// Only entities with this in a name.
    like: Option<String>,
    /// 1 to 1000, by default 200.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

async fn entity_list(call: Call, arguments: EntityFilter) -> Result<EntityList, Failure> {
    let EntityFilter { r#type, like, limit, cursor } = arguments;
    let (limit, offset) = (call.limit(limit, LIMITS)?, offset(cursor.as_deref())?);
    let Some(engine) = call.server.stores().memory()? else {
        return Ok(EntityList { entities: Vec::new(), next_cursor: None });
    };
    // One extra row shows whether there is another page.
    let query = EntityQuery { r#type, like, limit: limit + 1, offset };
    let mut entities = engine.entities(&query).await?;
    let more = entities.len() > limit as usize;
    entities.truncate(limit as usize);
    let next = offset.saturating_add(entities.len() as u64);
    let entities = entities.into_iter().map(EntityAnswer::from).collect();
    Ok(EntityList { entities, next_cursor: more.then(|| next.to_string()) })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntityName {
    name: String,
}

async fn entity_get(call: Call, EntityName { name }: EntityName) -> Result<EntityAnswer, Failure> {
    let engine = call.server.stores().memory()?.ok_or_else(no_facts)?;
    engine.entity(&name).await.map(EntityAnswer::from)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntityChange {
    name: String,
    /// A kind of thing, such as person.
    r#type: Option<String>,
    /// Other names of it.
    #[serde(default)]
    add_aliases: Vec<String>,
    /// Names that are not its names any more.
    #[serde(default)]
    remove_aliases: Vec<String>,
}

async fn entity_update(call: Call, arguments: EntityChange) -> Result<EntityAnswer, Failure> {
    let EntityChange { name, r#type, add_aliases, remove_aliases } = arguments;
    let patch = EntityPatch { name, r#type, add_aliases, remove_aliases };
    let engine = call.server.stores().memory_to_write()?;
    engine.describe_entity(patch, call.key).await.map(EntityAnswer::from)
}

#[derive(Serialize, JsonSchema)]
struct EntityList {
    entities: Vec<EntityAnswer>,
    /// The cursor of the next page, if there is one.
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entity")]
struct EntityAnswer {
    name: String,
    r#type: Option<String>,
    aliases: Vec<String>,
    /// Number of facts about it.
    facts: u64,
}

impl From<Entity> for EntityAnswer {
    fn from(Entity { name, r#type, aliases, facts }: Entity) -> Self {
        Self { name, r#type, aliases, facts }
    }
}
