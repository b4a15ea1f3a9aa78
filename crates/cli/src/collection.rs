//! `isolith collection`.

mod change;
mod list;
mod place;
mod query;
mod values;
mod vector;

use std::process::ExitCode;

use isolith_engine::{
    AddCollection, CollectionState, Engine, EngineOptions, NO_SETTINGS, Page, Selection, Sort,
    StoredRecord,
};
use isolith_types::{CollectionSpec, Failure, Filter, Metadata};
use serde::Serialize;
use serde_json::json;

pub(crate) use self::change::RecordChange;
pub(crate) use self::place::{CollectionPlaces, StoreOwner};
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
    /// Something done with one collection.
    On {
        name: String,
        action: CollectionAction,
    },
}

/// What to do with a collection.
pub(crate) enum CollectionAction {
    Delete { yes: bool },
    DeleteRecords { which: Selection },
    Update(RecordChange),
    Rename { new_name: String },
    Count,
    Get(RecordsToGet),
    Values { key: String, filter: Option<Filter>, limit: u32 },
    Query { question: Question, limit: u32, filter: Option<Filter> },
}

/// Which records to show, and how.
pub(crate) struct RecordsToGet {
    pub(crate) which: Selection,
    pub(crate) sort: Option<Sort>,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    pub(crate) vectors: bool,
}

/// Characters of a document that fit on a line.
const EXCERPT: usize = 72;

impl CollectionAction {
    /// Whether it leaves the collection as it is.
    fn reads(&self) -> bool {
        match self {
            Self::Delete { .. }
            | Self::DeleteRecords { .. }
            | Self::Update(_)
            | Self::Rename { .. } => false,
            Self::Count | Self::Get(_) | Self::Values { .. } | Self::Query { .. } => true,
        }
    }
}

pub(crate) fn run(
    places: &CollectionPlaces,
    command: CollectionCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match command {
        CollectionCommand::List => list::list(places, output),
        CollectionCommand::Create(spec) => create(places, spec, output),
        CollectionCommand::On { name, action } => run_on(places, &name, action, output),
    }
}

fn create(
    places: &CollectionPlaces,
    spec: CollectionSpec,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let mut session = Session::open(&places.store, options)?;
    let name = spec.name.clone();
    let new = AddCollection {
        database: places.database.clone(),
        spec,
        metadata: None,
        settings: NO_SETTINGS.to_owned(),
        get_or_create: false,
    };
    session.run(async |engine| engine.ensure_collection(new).await)?;
    let document = json!({ "collection": name, "created": true });
    output.result(&document, &format!("created {name}\n"))?;
    session.settle()?;
    Ok(ExitCode::SUCCESS)
}

fn run_on(
    places: &CollectionPlaces,
    name: &str,
    action: CollectionAction,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let reads = action.reads();
    let (mut session, state) = places.find(name, reads, output)?;
    if let CollectionAction::Delete { yes: false } = action
        && !change::confirm_deletion(&mut session, &state, name, output)?
    {
        session.close();
        return Ok(ExitCode::SUCCESS);
    }
    let collection = OpenCollection { name, state: &state, places };
    let (document, text) = session.run(async |engine| collection.perform(engine, action).await)?;
    output.result(&document, &text)?;
    match reads {
        false => session.settle()?,
        true => session.close(),
    }
    Ok(ExitCode::SUCCESS)
}

/// A collection that was found.
struct OpenCollection<'a> {
    /// Its name in its database, for results.
    name: &'a str,
    /// Its state, with the name for operations.
    state: &'a CollectionState,
    places: &'a CollectionPlaces,
}

impl OpenCollection<'_> {
    /// The result as JSON and as text.
    async fn perform(
        &self,
        engine: &Engine,
        action: CollectionAction,
    ) -> Result<(serde_json::Value, String), Failure> {
        let Self { name, state, places } = self;
        match action {
            CollectionAction::Delete { .. } => change::delete(engine, state, name).await,
            CollectionAction::DeleteRecords { which } => {
                change::delete_records(engine, state, name, which).await
            }
            CollectionAction::Update(change) => {
                change::update_records(engine, state, name, change).await
            }
            CollectionAction::Rename { new_name } => {
                engine.rename_in(&places.database, name, &new_name).await?;
                let text = format!("renamed {name} to {new_name}\n");
                Ok((json!({ "collection": new_name, "renamed_from": name }), text))
            }
            CollectionAction::Count => {
                let count = state.records;
                Ok((json!({ "collection": name, "count": count }), format!("{count}\n")))
            }
            CollectionAction::Get(asked) => get(engine, &state.name, asked).await,
            CollectionAction::Values { key, filter, limit } => {
                values(engine, &state.name, &key, filter, limit).await
            }
            CollectionAction::Query { question, limit, filter } => {
                query(engine, &state.name, question, limit, filter).await
            }
        }
    }
}

async fn get(
    engine: &Engine,
    name: &str,
    asked: RecordsToGet,
) -> Result<(serde_json::Value, String), Failure> {
    let RecordsToGet { which, sort, limit, offset, vectors } = asked;
    let page = Page { after_row: 0, offset, limit: u64::from(limit) };
    let records = engine.get_sorted(name, which, sort, page, vectors).await?;
    let shown: Vec<Shown> = records.iter().map(|stored| Shown::of(stored, vectors)).collect();
    Ok((json!({ "records": shown }), show_records(&records)))
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
