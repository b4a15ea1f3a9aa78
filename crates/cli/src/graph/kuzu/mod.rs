//! `isolith graph import --from-kuzu`: a Kuzu database, read by the `kuzu` package in a process of
//! its own.

mod read;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use isolith_engine::{
    CypherQuery, Engine, EngineOptions, GraphImport, GraphImported, Key, OnError, StorePlace,
    TableHolds,
};
use isolith_types::{Code, Failure, counted};
use serde::Serialize;

use self::read::Table;
use crate::output::Output;
use crate::session::Session;
use crate::table::table;

/// A Kuzu database to copy.
pub(crate) struct KuzuImport {
    /// The database: a file, or a folder for older versions of Kuzu.
    pub(crate) database: PathBuf,
    /// A Python that has the `kuzu` package.
    pub(crate) python: PathBuf,
}

/// What was copied.
#[derive(Default, Serialize)]
struct Copied {
    success: bool,
    tables: Vec<CopiedTable>,
    /// What has no exact counterpart.
    notes: Vec<String>,
    seconds: f64,
}

#[derive(Serialize)]
struct CopiedTable {
    table: String,
    kind: String,
    rows: u64,
    created: u64,
    /// Whether an earlier run has copied the same rows.
    repeated: bool,
}

pub(super) fn run(
    store: &StorePlace,
    import: &KuzuImport,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    if !import.database.exists() {
        let message = format!("{} does not exist", import.database.display());
        return Err(
            Failure::new(Code::NotFound, message).with_hint("pass the path of the database")
        );
    }
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let mut session = Session::open(store, options)?;
    let mut copied = session.run(async |engine| copy(engine, import, output).await)?;
    copied.success = true;
    copied.seconds = started.elapsed().as_secs_f64();
    output.result(&copied, &describe(import, &copied))?;
    session.settle()?;
    Ok(ExitCode::SUCCESS)
}

async fn copy(engine: &Engine, import: &KuzuImport, output: &Output) -> Result<Copied, Failure> {
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::new(Code::Failed, format!("cannot create a folder for the tables: {error}"))
    })?;
    let tables = read::read(import, folder.path(), |table| {
        output.progress(&format!("read {}: {}", table.table, counted(table.rows, "row")));
    })
    .await?;
    let mut copied = Copied::default();
    // A type that connects several pairs of tables has as many files.
    let notes: BTreeSet<String> =
        tables.iter().flat_map(|(table, _)| table.notes.clone()).collect();
    copied.notes.extend(notes);
    for (table, holds) in tables {
        for text in &table.constraints {
            let query = CypherQuery { text: text.clone(), ..CypherQuery::default() };
            engine.cypher(query, None).await?;
        }
        let kind = match &holds {
            TableHolds::Nodes { .. } => "nodes".to_owned(),
            TableHolds::Edges { from, to, .. } => {
                format!("relationships from {} to {}", from.label, to.label)
            }
        };
        let rows = import_table(engine, &table, holds).await?;
        let created = rows.nodes_created + rows.relationships_created;
        let expected = table.rows;
        output.progress(&format!("imported {}: {}", table.table, counted(expected, "row")));
        copied.tables.push(CopiedTable {
            table: table.table,
            kind,
            rows: expected,
            created,
            repeated: rows.repeated,
        });
    }
    Ok(copied)
}

async fn import_table(
    engine: &Engine,
    table: &Table,
    holds: TableHolds,
) -> Result<GraphImported, Failure> {
    let import = GraphImport {
        file: table.file.clone(),
        holds,
        delimiter: b',',
        on_error: OnError::Stop,
        // The same rows again: an interrupted copy continues, and no relationship is doubled.
        key: Some(Key::of_text(&format!("from-kuzu {} {}", table.table, table.sha256))),
    };
    let imported = engine.import_graph(&import, |_, _| {}).await;
    match imported.error {
        None => Ok(imported),
        Some(failure) => {
            let message = format!("table {}: {}", table.table, failure.message);
            Err(Failure { message, ..failure })
        }
    }
}

fn describe(import: &KuzuImport, copied: &Copied) -> String {
    let rows = copied.tables.iter().map(|it| {
        let new = match it.repeated {
            true => "copied before".to_owned(),
            false if it.created < it.rows => format!("{} new", it.created),
            false => String::new(),
        };
        vec![it.table.clone(), it.kind.clone(), it.rows.to_string(), new]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let tables = counted(copied.tables.len() as u64, "table");
    let database = import.database.display();
    let mut text = format!("{database}: {tables} in {:.1} s\n", copied.seconds);
    if !rows.is_empty() {
        text += &table(&["table", "kind", "rows", ""], &rows);
    }
    for note in &copied.notes {
        text += &format!("{note}\n");
    }
    text
}
