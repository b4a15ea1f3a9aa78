//! `isolith graph import --from-kuzu`: a Kuzu database, read by the `kuzu` package in a process of
//! its own.

mod read;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use isolith_engine::{
    CypherQuery, Datum, Engine, EngineOptions, GraphImport, OnError, StorePlace, TableHolds,
};
use isolith_types::{Code, Failure, counted};
use serde::Serialize;

use self::read::Table;
use crate::output::Output;
use crate::session::{Session, interrupted, setup};
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
    /// How many of them were not there before.
    created: u64,
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
    // A database that cannot be read leaves no store behind.
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::new(Code::Failed, format!("cannot create a folder for the tables: {error}"))
    })?;
    let tables = read_tables(import, folder.path(), output)?;
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let mut session = Session::open(store, options)?;
    let mut copied = session.run(async |engine| copy(engine, tables, output).await)?;
    copied.success = true;
    copied.seconds = started.elapsed().as_secs_f64();
    output.result(&copied, &describe(import, &copied))?;
    session.settle()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the tables into files in a folder.
fn read_tables(
    import: &KuzuImport,
    folder: &Path,
    output: &Output,
) -> Result<Vec<(Table, TableHolds)>, Failure> {
    let (runtime, mut signals) = setup()?;
    let read = read::read(import, folder, |table| {
        output.progress(&format!("read {}: {}", table.table, counted(table.rows, "row")));
    });
    runtime.block_on(async {
        tokio::select! {
            tables = read => tables,
            signal = signals.next() => {
                let failure = interrupted(signal);
                Err(Failure { hint: None, ..failure })
            }
        }
    })
}

async fn copy(
    engine: &Engine,
    tables: Vec<(Table, TableHolds)>,
    output: &Output,
) -> Result<Copied, Failure> {
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
            TableHolds::Nodes { .. } | TableHolds::NewNodes { .. } => "nodes".to_owned(),
            TableHolds::Edges { from, to, .. } => {
                format!("relationships from {} to {}", from.label, to.label)
            }
        };
        let created = match is_copied(engine, &table, &holds).await? {
            true => 0,
            false => import_table(engine, &table, holds).await?,
        };
        output.progress(&format!("imported {}: {created} new", table.table));
        copied.tables.push(CopiedTable { table: table.table, kind, rows: table.rows, created });
    }
    Ok(copied)
}

/// Whether the relationships of a table are there. Without keys they cannot be told apart, so a table
/// is copied as a whole or not at all.
async fn is_copied(engine: &Engine, table: &Table, holds: &TableHolds) -> Result<bool, Failure> {
    let TableHolds::Edges { kind, from, to } = holds else { return Ok(false) };
    let [from, kind, to] = [&from.label, kind, &to.label].map(|name| name.replace('`', "``"));
    let pattern = format!("MATCH (:`{from}`)-[r:`{kind}`]->(:`{to}`)");
    let query =
        CypherQuery { text: format!("{pattern} RETURN count(r)"), ..CypherQuery::default() };
    let answer = engine.cypher(query, None).await?;
    let row = answer.rows().next().transpose()?.unwrap_or_default();
    let Some(Datum::Integer(there)) = row.first() else { return Ok(false) };
    match there.unsigned_abs() {
        0 => Ok(false),
        there if there == table.rows => Ok(true),
        there => {
            let message = format!(
                "{} has {} from :{from} to :{to}, but the graph has {there} already",
                table.table,
                counted(table.rows, "relationship")
            );
            Err(Failure::new(Code::AlreadyExists, message).with_hint(format!(
                "delete them, if they were copied before: isolith graph query '{pattern} DELETE r'; \
                 or copy into a new store"
            )))
        }
    }
}

/// Imports a table and returns how many nodes or relationships are new.
async fn import_table(engine: &Engine, table: &Table, holds: TableHolds) -> Result<u64, Failure> {
    let import = GraphImport {
        file: table.file.clone(),
        holds,
        delimiter: b',',
        on_error: OnError::Stop,
        key: None,
    };
    let imported = engine.import_graph(&import, |_, _| {}).await;
    match imported.error {
        None => Ok(imported.nodes_created + imported.relationships_created),
        Some(failure) => {
            let message = format!("table {}: {}", table.table, failure.message);
            Err(Failure { message, ..failure })
        }
    }
}

fn describe(import: &KuzuImport, copied: &Copied) -> String {
    let rows = copied.tables.iter().map(|it| {
        let new = match it.created {
            0 if it.rows > 0 => "copied before".to_owned(),
            created if created < it.rows => format!("{created} new"),
            _ => String::new(),
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
