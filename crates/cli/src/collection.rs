//! `isolith collection`.

mod query;
mod values;
mod vector;

use std::fmt::Write as _;
use std::process::ExitCode;

use isolith_engine::{
    Engine, EngineOptions, Page, Selection, Sort, StorePlace, StoredRecord, Which,
};
use isolith_types::{Code, Collection, CollectionSpec, Failure, Filter, Metadata, counted};
use serde::Serialize;
use serde_json::json;

pub(crate) use self::query::Question;
use self::query::query;
use self::values::values;
pub(crate) use self::vector::read_vector;

use crate::output::Output;
use crate::session::Session;
use crate::table::table;
use crate::terminal::one_line;

/// A command on collections.
pub(crate) enum CollectionCommand {
    List,
    Create(CollectionSpec),
    Delete { name: String },
    DeleteRecords { name: String, which: Selection },
    Rename { name: String, new_name: String },
    Count { name: String },
    Get(RecordsToGet),
    Values { name: String, key: String, filter: Option<Filter>, limit: u32 },
    Query { name: String, question: Question, limit: u32, filter: Option<Filter> },
}

/// Which records to show, and how.
pub(crate) struct RecordsToGet {
    pub(crate) name: String,
    pub(crate) which: Selection,
    pub(crate) sort: Option<Sort>,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    pub(crate) vectors: bool,
}

/// Characters of a document that fit on a line.
const EXCERPT: usize = 72;

pub(crate) fn run(
    store: &StorePlace,
    command: CollectionCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let create = matches!(command, CollectionCommand::Create(_));
    let writes = match command {
        CollectionCommand::Create(_)
        | CollectionCommand::Delete { .. }
        | CollectionCommand::DeleteRecords { .. }
        | CollectionCommand::Rename { .. } => true,
        CollectionCommand::List
        | CollectionCommand::Count { .. }
        | CollectionCommand::Get(_)
        | CollectionCommand::Values { .. }
        | CollectionCommand::Query { .. } => false,
    };
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
async fn perform(
    engine: &Engine,
    command: CollectionCommand,
) -> Result<(serde_json::Value, String), Failure> {
    match command {
        CollectionCommand::List => {
            let collections = engine.collections().await?;
            let text = list(&collections);
            Ok((json!({ "collections": collections }), text))
        }
        CollectionCommand::Create(spec) => {
            let name = spec.name.clone();
            engine.create_collection(spec, false).await?;
            let text = format!("created {name}\n");
            Ok((json!({ "collection": name, "created": true }), text))
        }
        CollectionCommand::Delete { name } => {
            let written = engine.delete_collection(&name).await?;
            let records = written.done.reply.deleted;
            let text = format!("deleted {name} with {}\n", counted(records, "record"));
            Ok((json!({ "collection": name, "deleted": records }), text))
        }
        CollectionCommand::DeleteRecords { name, which } => {
            delete_records(engine, &name, which).await
        }
        CollectionCommand::Rename { name, new_name } => {
            engine.rename_collection(&name, &new_name).await?;
            let text = format!("renamed {name} to {new_name}\n");
            Ok((json!({ "collection": new_name, "renamed_from": name }), text))
        }
        CollectionCommand::Count { name } => {
            let count = engine.collection(&name).await?.records;
            Ok((json!({ "collection": name, "count": count }), format!("{count}\n")))
        }
        CollectionCommand::Get(asked) => get(engine, asked).await,
        CollectionCommand::Values { name, key, filter, limit } => {
            values(engine, &name, &key, filter, limit).await
        }
        CollectionCommand::Query { name, question, limit, filter } => {
            query(engine, &name, question, limit, filter).await
        }
    }
}

async fn get(engine: &Engine, asked: RecordsToGet) -> Result<(serde_json::Value, String), Failure> {
    let RecordsToGet { name, which, sort, limit, offset, vectors } = asked;
    let page = Page { after_row: 0, offset, limit: u64::from(limit) };
    let records = engine.get_sorted(&name, which, sort, page, vectors).await?;
    let shown: Vec<Shown> = records.iter().map(|stored| Shown::of(stored, vectors)).collect();
    Ok((json!({ "records": shown }), show_records(&records)))
}

async fn delete_records(
    engine: &Engine,
    name: &str,
    which: Selection,
) -> Result<(serde_json::Value, String), Failure> {
    let which = match which {
        Selection::Ids(ids) => Which::Ids(ids),
        Selection::Matching(filter) => Which::Matching(filter),
        Selection::All => {
            return Err(Failure::new(Code::Usage, "no records given: use --id or --where"));
        }
    };
    let outcome = engine.delete(name, which, None).await?.done.reply;
    let mut text = format!("deleted {} from {name}\n", counted(outcome.deleted, "record"));
    if outcome.missing > 0 {
        let _ = writeln!(text, "{} not found", counted(outcome.missing, "id"));
    }
    let document =
        json!({ "collection": name, "deleted": outcome.deleted, "missing": outcome.missing });
    Ok((document, text))
}

/// A record as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    document: Option<&'a str>,
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<Vec<f64>>,
}

/// The number with as few digits as possible: as a 64-bit JSON number, 0.1 would become
/// 0.10000000149011612.
fn plain(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

impl<'a> Shown<'a> {
    fn of(stored: &'a StoredRecord, vectors: bool) -> Self {
        let record = &stored.record;
        Self {
            id: &record.id,
            document: record.document.as_deref(),
            metadata: &record.metadata,
            vector: vectors.then(|| record.vector.iter().copied().map(plain).collect()),
        }
    }
}

fn list(collections: &[Collection]) -> String {
    if collections.is_empty() {
        return "no collections\n".to_owned();
    }
    let rows: Vec<Vec<String>> = collections
        .iter()
        .map(|it| {
            vec![
                it.name.clone(),
                it.records.to_string(),
                it.dimension.map_or("-".to_owned(), |dimension| dimension.to_string()),
                it.metric.to_string(),
                it.model.clone().unwrap_or_else(|| "-".to_owned()),
                it.generation.to_string(),
                it.tail.to_string(),
            ]
        })
        .collect();
    let headings = ["NAME", ">RECORDS", ">DIMENSION", "METRIC", "MODEL", ">GENERATION", ">TAIL"];
    table(&headings, &rows)
}

fn show_records(records: &[StoredRecord]) -> String {
    if records.is_empty() {
        return "no records\n".to_owned();
    }
    let rows: Vec<Vec<String>> = records
        .iter()
        .map(|stored| {
            let record = &stored.record;
            let document = excerpt(record.document.as_deref());
            vec![record.id.clone(), excerpt(Some(record.metadata.as_str())), document]
        })
        .collect();
    table(&["ID", "METADATA", "DOCUMENT"], &rows)
}

/// The beginning of a text, on one line.
pub(crate) fn excerpt(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let mut start = one_line(&text.chars().take(EXCERPT).collect::<String>());
    if text.chars().nth(EXCERPT).is_some() {
        start.push('…');
    }
    start
}
