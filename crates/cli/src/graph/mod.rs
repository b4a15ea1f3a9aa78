//! `isolith graph`: the graph of a store, by hand.

mod ask;
mod format;
mod import;

use std::process::ExitCode;

use isolith_engine::{
    CypherQuery, Datum, EngineOptions, GraphImport, GraphStats, Key, StorePlace, may_change,
};
use isolith_types::Failure;
use serde_json::json;

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
    let answer = session.run(async |engine| engine.cypher(query, key).await)?;
    let rows: Vec<Vec<Datum>> = answer.rows().collect::<Result<_, _>>()?;
    let document = || {
        let rows: Vec<Vec<_>> =
            rows.iter().map(|row| row.iter().map(Datum::to_json).collect()).collect();
        let (columns, stats, degraded) = (&answer.columns, &answer.stats, &answer.degraded);
        json!({ "columns": columns, "rows": rows, "stats": stats, "degraded": degraded })
    };
    match format {
        Format::Json => Output::json().result(&document(), "")?,
        _ if output.is_json() => output.result(&document(), "")?,
        Format::Jsonl => output.json_lines(&format.text(&answer.columns, &rows))?,
        _ => output.result(&(), &format.text(&answer.columns, &rows))?,
    }
    let is_for_people = !output.is_quiet() && !output.is_json() && format == Format::Table;
    if let Some(told) = told(&answer.stats).filter(|_| is_for_people) {
        output.progress(&told);
    }
    if let Some(degraded) = answer.degraded.as_deref().filter(|_| is_for_people) {
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
