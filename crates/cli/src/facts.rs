//! `isolith fact`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use isolith_engine::{Engine, EngineOptions, Key, StorePlace};
use isolith_types::{
    AddedFact, Entity, EntityPatch, EntityQuery, Fact, FactQuery, FactStats, Failure, Moment,
    NewFact, Supersede, WhichFact, counted,
};
use serde_json::{Value, json};

use crate::collection::excerpt;
use crate::output::Output;
use crate::session::Session;
use crate::table::table;

/// A command on facts.
pub(crate) enum FactCommand {
    Add { fact: Box<NewFact>, key: Option<Key> },
    Query(FactQuery),
    Invalidate { which: WhichFact, at: Option<Moment>, key: Option<Key> },
    Supersede { change: Box<Supersede>, key: Option<Key> },
    Timeline { entity: Option<String>, limit: u32, offset: u64 },
    Stats,
    Entities(EntityQuery),
    Entity { name: String },
    Describe { patch: EntityPatch, key: Option<Key> },
}

pub(crate) fn run(
    store: &StorePlace,
    command: FactCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let create = matches!(command, FactCommand::Add { .. } | FactCommand::Describe { .. });
    let writes =
        create || matches!(command, FactCommand::Invalidate { .. } | FactCommand::Supersede { .. });
    let mut session = Session::open(store, EngineOptions { create, ..EngineOptions::default() })?;
    let (document, text) = session.run(async |engine| perform(engine, command).await)?;
    output.result(&document, &text)?;
    match writes {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result as JSON and as text.
async fn perform(engine: &Engine, command: FactCommand) -> Result<(Value, String), Failure> {
    match command {
        FactCommand::Add { fact, key } => {
            let added = engine.add_fact(*fact, key).await?;
            let text = tell_added(&added);
            Ok((json!(added), text))
        }
        FactCommand::Query(query) => {
            let limit = query.limit;
            let asked = FactQuery { limit: limit + 1, ..query };
            let facts = engine.query_facts(&asked).await?;
            Ok(show_facts(facts, limit, asked.offset))
        }
        FactCommand::Invalidate { which, at, key } => {
            let ended = engine.invalidate_fact(which, at, key).await?;
            let how = if ended.changed { "ended" } else { "had already ended" };
            let text = format!("{} {how} at {}\n", ended.id, ended.valid_to);
            Ok((json!(ended), text))
        }
        FactCommand::Supersede { change, key } => {
            let done = engine.supersede_fact(*change, key).await?;
            let text = format!("{} replaces {} from {} on\n", done.id, done.old, done.at);
            Ok((json!(done), text))
        }
        FactCommand::Timeline { entity, limit, offset } => {
            let facts = engine.fact_timeline(entity.as_deref(), limit + 1, offset).await?;
            Ok(show_facts(facts, limit, offset))
        }
        FactCommand::Stats => {
            let stats = engine.fact_stats().await?;
            Ok((json!(stats), show_stats(&stats)))
        }
        FactCommand::Entities(query) => {
            let limit = query.limit;
            let asked = EntityQuery { limit: limit + 1, ..query };
            let entities = engine.entities(&asked).await?;
            Ok(show_entities(entities, limit, asked.offset))
        }
        FactCommand::Entity { name } => {
            let entity = engine.entity(&name).await?;
            let text = show_entity(&entity);
            Ok((json!(entity), text))
        }
        FactCommand::Describe { patch, key } => {
            let entity = engine.describe_entity(patch, key).await?;
            let text = show_entity(&entity);
            Ok((json!(entity), text))
        }
    }
}

fn tell_added(added: &AddedFact) -> String {
    let AddedFact { id, created, updated } = added;
    match (created, updated) {
        (true, _) => format!("added {id}\n"),
        (false, true) => format!("{id} already exists; added what was new\n"),
        (false, false) => format!("{id} already exists\n"),
    }
}

/// Drops the extra row that was requested to find out whether there are more.
fn cut<T>(all: &mut Vec<T>, limit: u32) -> bool {
    let more = all.len() > limit as usize;
    all.truncate(limit as usize);
    more
}

fn tell_more(text: &mut String, more: bool, limit: u32, offset: u64) {
    if more {
        let _ = writeln!(text, "there are more: use --offset {}", offset + u64::from(limit));
    }
}

fn show_facts(mut facts: Vec<Fact>, limit: u32, offset: u64) -> (Value, String) {
    let more = cut(&mut facts, limit);
    let mut text = match facts.as_slice() {
        [] => "no facts\n".to_owned(),
        facts => fact_table(facts),
    };
    tell_more(&mut text, more, limit, offset);
    (json!({ "facts": facts, "more": more }), text)
}

fn fact_table(facts: &[Fact]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let when = |moment: Option<Moment>| moment.map_or("-".to_owned(), |it| it.to_string());
    let is_sure = facts.iter().all(|fact| fact.confidence == 1.0);
    let rows: Vec<Vec<String>> = facts
        .iter()
        .map(|fact| {
            let mut row = vec![
                fact.id.clone(),
                state(fact, now).to_owned(),
                excerpt(Some(&fact.subject)),
                excerpt(Some(&fact.predicate)),
                excerpt(Some(&fact.object)),
                when(fact.valid_from),
                when(fact.valid_to),
            ];
            row.extend((!is_sure).then(|| fact.confidence.to_string()));
            row
        })
        .collect();
    let mut headings = vec!["ID", "STATE", "SUBJECT", "PREDICATE", "OBJECT", "FROM", "TO"];
    headings.extend((!is_sure).then_some(">CONFIDENCE"));
    table(&headings, &rows)
}

fn state(fact: &Fact, now: i64) -> &'static str {
    match fact.valid_from {
        _ if fact.current => "current",
        Some(from) if from.start() > now => "future",
        _ => "past",
    }
}

fn show_stats(stats: &FactStats) -> String {
    let FactStats { facts, current, past, future, entities, predicates } = stats;
    format!(
        "facts       {facts}\n  current   {current}\n  past      {past}\n  future    {future}\n\
         entities    {entities}\npredicates  {predicates}\n"
    )
}

fn show_entities(mut entities: Vec<Entity>, limit: u32, offset: u64) -> (Value, String) {
    let more = cut(&mut entities, limit);
    let mut text = match entities.as_slice() {
        [] => "no entities\n".to_owned(),
        entities => {
            let rows: Vec<Vec<String>> = entities
                .iter()
                .map(|it| {
                    vec![
                        excerpt(Some(&it.name)),
                        it.r#type.clone().unwrap_or_else(|| "-".to_owned()),
                        it.facts.to_string(),
                        excerpt(Some(&it.aliases.join(", "))),
                    ]
                })
                .collect();
            table(&["NAME", "TYPE", ">FACTS", "ALIASES"], &rows)
        }
    };
    tell_more(&mut text, more, limit, offset);
    (json!({ "entities": entities, "more": more }), text)
}

fn show_entity(entity: &Entity) -> String {
    let Entity { name, r#type, aliases, facts } = entity;
    let of_type = r#type.as_deref().unwrap_or("unknown type");
    let facts = counted(*facts, "fact");
    let mut text = format!("{name}: {of_type}, {facts}\n");
    if !aliases.is_empty() {
        let _ = writeln!(text, "  aliases: {}", aliases.join(", "));
    }
    text
}
