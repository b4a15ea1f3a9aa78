//! `isolith graph`: the graph of a store, by hand.

mod ask;
mod format;
mod import;
mod print;

use std::process::ExitCode;

use isolith_engine::{
    CypherQuery, EngineOptions, GraphImport, GraphStats, Key, StorePlace, may_change,
};
use isolith_types::Failure;

pub(crate) use ask::Question;
pub(crate) use format::Format;

use crate::output::Output;
use crate::session::Session;
use crate::told::counted;

/// What is to be done.
pub(crate) enum GraphCommand {
    Query { query: CypherQuery, format: Format, key: Option<Key> },
    Ask(Question),
    Import(GraphImport),
}

impl GraphCommand {
    /// Whether it may change the graph.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Query { query, .. } => may_change(&query.text),
            Self::Ask(_) => false,
            Self::Import(_) => true,
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
        GraphCommand::Query { query, format, key } => run_query(store, query, format, key, output)?,
        GraphCommand::Ask(question) => {
            let mut session = Session::open(store, EngineOptions::default())?;
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
    let writes = may_change(&query.text);
    let options = EngineOptions { create: writes, ..EngineOptions::default() };
    let mut session = Session::open(store, options)?;
    let mut cursor = session.run(async |engine| engine.cypher_rows(query, key).await)?;
    let shown = if output.is_json() { Format::Json } else { format };
    session.run(async |_| print::print(&mut cursor, shown).await)?;
    let is_for_people = !output.is_quiet() && !output.is_json() && format == Format::Table;
    if let Some(told) = told(cursor.stats()).filter(|_| is_for_people) {
        output.progress(&told);
    }
    if let Some(degraded) = cursor.degraded().filter(|_| is_for_people) {
        output.note(&format!("this answer could have been quicker: {degraded}"));
    }
    match writes {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(())
}

/// What was changed, in words; nothing if nothing was.
fn told(stats: &GraphStats) -> Option<String> {
    let changes = [
        (stats.nodes_created, "node", "nodes", "created"),
        (stats.nodes_deleted, "node", "nodes", "deleted"),
        (stats.relationships_created, "relationship", "relationships", "created"),
        (stats.relationships_deleted, "relationship", "relationships", "deleted"),
        (stats.properties_set, "property", "properties", "set"),
        (stats.labels_added, "label", "labels", "added"),
        (stats.labels_removed, "label", "labels", "removed"),
    ];
    let changes: Vec<String> = changes
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many, done)| format!("{} {done}", counted(*count, one, many)))
        .collect();
    (!changes.is_empty()).then(|| changes.join(", "))
}
