//! `isolith fact`.

mod import;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use isolith_engine::{Engine, EngineOptions, Key, StorePlace};
use isolith_types::{
    AddedFact, Entity, EntityPatch, EntityQuery, Fact, FactQuery, FactStats, Failure, Moment,
    NewFact, Predicate, Supersede, WhichFact, counted,
};
use serde_json::{Value, json};

use crate::collection::excerpt;
use crate::output::Output;
use crate::session::Session;
use crate::table::table;

/// A command on facts.
pub(crate) enum FactCommand {
    Read(FactRead),
    Write(FactWrite),
    Import(PathBuf),
}

pub(crate) enum FactRead {
    Query(FactQuery),
    Timeline { entity: Option<String>, as_of: Option<Moment>, limit: u32, offset: u64 },
    Stats { as_of: Option<Moment> },
    Predicates { limit: u32, offset: u64 },
    Entities(EntityQuery),
    Entity { name: String },
}

pub(crate) enum FactWrite {
    Add { fact: Box<NewFact>, key: Option<Key> },
    Invalidate { which: WhichFact, at: Option<Moment>, key: Option<Key> },
    Supersede { change: Box<Supersede>, key: Option<Key> },
    Retract { which: WhichFact, key: Option<Key> },
    Declare { predicate: String, single_valued: bool, key: Option<Key> },
    Describe { patch: EntityPatch, key: Option<Key> },
}

impl From<FactRead> for FactCommand {
    fn from(command: FactRead) -> Self {
        Self::Read(command)
    }
}

impl From<FactWrite> for FactCommand {
    fn from(command: FactWrite) -> Self {
        Self::Write(command)
    }
}

/// The result of a command, as JSON and as text.
struct FactAnswer {
    document: Value,
    text: String,
    /// Why a part of it failed.
    error: Option<Failure>,
}

impl From<(Value, String)> for FactAnswer {
    fn from((document, text): (Value, String)) -> Self {
        Self { document, text, error: None }
    }
}

pub(crate) fn run(
    store: &StorePlace,
    command: FactCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let writes = !matches!(command, FactCommand::Read(_));
    let create = match &command {
        FactCommand::Read(_) => false,
        FactCommand::Write(write) => write.creates(),
        FactCommand::Import(_) => true,
    };
    let mut session = Session::open(store, EngineOptions { create, ..EngineOptions::default() })?;
    let FactAnswer { document, text, error } =
        session.run(async |engine| perform(engine, command).await)?;
    if let Some(error) = &error {
        output.complain(error);
    }
    output.result(&document, &text)?;
    match writes {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(error.map_or(ExitCode::SUCCESS, |error| ExitCode::from(error.code.exit_status())))
}

async fn perform(engine: &Engine, command: FactCommand) -> Result<FactAnswer, Failure> {
    match command {
        FactCommand::Read(command) => read(engine, command).await.map(FactAnswer::from),
        FactCommand::Write(command) => write(engine, command).await.map(FactAnswer::from),
        FactCommand::Import(file) => {
            let receipt = import::import(engine, &file).await?;
            let (document, text) = (json!(receipt), receipt.text());
            Ok(FactAnswer { document, text, error: receipt.error().cloned() })
        }
    }
}

impl FactWrite {
    /// Whether it is worth a new store; the others need an existing fact.
    fn creates(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Declare { .. } | Self::Describe { .. } => true,
            Self::Invalidate { .. } | Self::Supersede { .. } | Self::Retract { .. } => false,
        }
    }
}

async fn read(engine: &Engine, command: FactRead) -> Result<(Value, String), Failure> {
    match command {
        FactRead::Query(query) => {
            let limit = query.limit;
            let asked = FactQuery { limit: limit + 1, ..query };
            let facts = engine.query_facts(&asked).await?;
            Ok(show_facts(facts, limit, asked.offset))
        }
        FactRead::Timeline { entity, as_of, limit, offset } => {
            let facts = engine.fact_timeline(entity.as_deref(), as_of, limit + 1, offset).await?;
            Ok(show_facts(facts, limit, offset))
        }
        FactRead::Predicates { limit, offset } => {
            let predicates = engine.predicates(limit + 1, offset).await?;
            Ok(show_predicates(predicates, limit, offset))
        }
        FactRead::Stats { as_of } => {
            let stats = engine.fact_stats(as_of).await?;
            Ok((json!(stats), show_stats(&stats)))
        }
        FactRead::Entities(query) => {
            let limit = query.limit;
            let asked = EntityQuery { limit: limit + 1, ..query };
            let entities = engine.entities(&asked).await?;
            Ok(show_entities(entities, limit, asked.offset))
        }
        FactRead::Entity { name } => {
            let entity = engine.entity(&name).await?;
            let text = show_entity(&entity);
            Ok((json!(entity), text))
        }
    }
}

async fn write(engine: &Engine, command: FactWrite) -> Result<(Value, String), Failure> {
    match command {
        FactWrite::Add { fact, key } => {
            let added = engine.add_fact(*fact, key).await?;
            let text = tell_added(&added);
            Ok((json!(added), text))
        }
        FactWrite::Invalidate { which, at, key } => {
            let ended = engine.invalidate_fact(which, at, key).await?;
            let how = if ended.changed { "ended" } else { "had already ended" };
            let text = format!("{} {how} at {}\n", ended.id, ended.valid_to);
            Ok((json!(ended), text))
        }
        FactWrite::Supersede { change, key } => {
            let done = engine.supersede_fact(*change, key).await?;
            let text = format!("{} replaces {} from {} on\n", done.id, done.old, done.at);
            Ok((json!(done), text))
        }
        FactWrite::Retract { which, key } => {
            let done = engine.retract_fact(which, key).await?;
            let how = if done.changed { "is retracted" } else { "was retracted before" };
            let text = format!("{} {how}\n", done.id);
            Ok((json!(done), text))
        }
        FactWrite::Declare { predicate, single_valued, key } => {
            let declared = engine.declare_predicate(predicate, single_valued, key).await?;
            let text = format!("{}: {}\n", declared.name, values_of(&declared));
            Ok((json!(declared), text))
        }
        FactWrite::Describe { patch, key } => {
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
    let when = |moment: Option<Moment>| moment.map_or("-".to_owned(), |it| it.to_string());
    let is_sure = facts.iter().all(|fact| fact.confidence == 1.0);
    let rows: Vec<Vec<String>> = facts
        .iter()
        .map(|fact| {
            let mut row = vec![
                fact.id.clone(),
                fact.state.name().to_owned(),
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

fn show_stats(stats: &FactStats) -> String {
    let FactStats { facts, current, past, future, retracted, entities, predicates } = stats;
    format!(
        "facts       {facts}\n  current   {current}\n  past      {past}\n  future    {future}\n\
         retracted   {retracted}\nentities    {entities}\npredicates  {predicates}\n"
    )
}

fn show_predicates(mut predicates: Vec<Predicate>, limit: u32, offset: u64) -> (Value, String) {
    let more = cut(&mut predicates, limit);
    let rows: Vec<Vec<String>> = predicates
        .iter()
        .map(|it| vec![excerpt(Some(&it.name)), it.facts.to_string(), values_of(it).to_owned()])
        .collect();
    let mut text = match rows.is_empty() {
        true => "no predicates\n".to_owned(),
        false => table(&["PREDICATE", ">FACTS", "OBJECTS"], &rows),
    };
    tell_more(&mut text, more, limit, offset);
    (json!({ "predicates": predicates, "more": more }), text)
}

fn values_of(predicate: &Predicate) -> &'static str {
    if predicate.single_valued { "one at a time" } else { "any number" }
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
