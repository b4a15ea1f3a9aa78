//! `isolith graph`.

mod ask;
mod format;
mod import;
mod kuzu;
mod print;

use std::process::ExitCode;

use isolith_engine::{CypherQuery, EngineOptions, GraphImport, GraphStats, Key, StorePlace};
use isolith_types::{Code, Failure, counted};

pub(crate) use ask::Question;
pub(crate) use format::Format;
pub(crate) use kuzu::KuzuImport;

use crate::output::Output;
use crate::session::{self, Session};

/// A command on the graph.
pub(crate) enum GraphCommand {
    Query { query: CypherQuery, format: Format, key: Option<Key> },
    Ask(Question),
    Import(GraphImport),
    FromKuzu(KuzuImport),
}

impl GraphCommand {
    /// Whether the command may create the store. For a query this is only a guess: the parser
    /// decides when there is no store.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Query { .. } | Self::Import(_) | Self::FromKuzu(_) => true,
            Self::Ask(_) => false,
        }
    }
}

pub(crate) fn run(
    store: &StorePlace,
    command: GraphCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match command {
        GraphCommand::Import(import) => return import::run(store, &import, output),
        GraphCommand::FromKuzu(import) => return kuzu::run(store, &import, output),
        GraphCommand::Query { query, format, key } => run_query(store, query, format, key, output)?,
        GraphCommand::Ask(question) => {
            let here = std::env::current_dir().ok();
            let options = EngineOptions { here, ..EngineOptions::default() };
            let mut session = Session::open(store, options)?;
            let (document, text) = session.run(async |engine| question.answer(engine).await)?;
            output.result(&document, &text)?;
            session.close();
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_query(
    store: &StorePlace,
    query: CypherQuery,
    format: Format,
    key: Option<Key>,
    output: &Output,
) -> Result<(), Failure> {
    let mut session = open_for(store, &query)?;
    let mut cursor = session.run(async |engine| engine.cypher_rows(query, key).await)?;
    let shown = if output.is_json() { Format::Json } else { format };
    session.run(async |_| print::print(&mut cursor, shown).await)?;
    let is_for_people = !output.is_quiet() && !output.is_json() && format == Format::Table;
    let is_silent = cursor.is_write() && cursor.columns().is_empty();
    let summary = summary(cursor.stats()).or(is_silent.then(|| "nothing changed".to_owned()));
    if let Some(summary) = summary.filter(|_| is_for_people) {
        output.progress(&summary);
    }
    // Only JSON has a field for it.
    if let Some(degraded) = cursor.degraded()
        && shown != Format::Json
        && !output.is_quiet()
    {
        output.note(&format!("slower than usual: {degraded}"));
    }
    match cursor.is_write() {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(())
}

/// Opens the store for a query. Where there is none, one is created if the query writes.
fn open_for(store: &StorePlace, query: &CypherQuery) -> Result<Session, Failure> {
    let options = EngineOptions::default();
    match Session::open(store, options.clone()) {
        Err(missing) if missing.code == Code::NoStore => {
            match session::changes_graph(&options, query)? {
                true => Session::open(store, EngineOptions { create: true, ..options }),
                false => Err(missing),
            }
        }
        opened => opened,
    }
}

/// A summary of the changes; `None` if nothing changed.
fn summary(stats: &GraphStats) -> Option<String> {
    let changes = [
        (stats.nodes_created, "node", "created"),
        (stats.nodes_deleted, "node", "deleted"),
        (stats.relationships_created, "relationship", "created"),
        (stats.relationships_deleted, "relationship", "deleted"),
        (stats.properties_set, "property", "set"),
        (stats.labels_added, "label", "added"),
        (stats.labels_removed, "label", "removed"),
        (stats.constraints_added, "constraint", "added"),
        (stats.constraints_removed, "constraint", "removed"),
    ];
    let changes: Vec<String> = changes
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, noun, done)| format!("{} {done}", counted(*count, noun)))
        .collect();
    (!changes.is_empty()).then(|| changes.join(", "))
}
