//! What it means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolith_engine::{
    DoctorOptions, PutMode, Scope, Selection, StorePlace, Surroundings, find_store,
};
use isolith_types::{Code, CollectionSpec, Failure, Filter, FilterError, Metric};

use super::Command;
use super::typed::{
    Typed, TypedCollection, TypedCommand, TypedCommon, TypedDoctor, TypedDrill, TypedFilter,
    TypedIngest, TypedMetric, TypedOnError, TypedPersonal, TypedPlace, TypedQuery, TypedWhich,
};
use crate::collection::{CollectionCommand, Question, read_vector};
use crate::doctor::DoctorCommand;
use crate::drill::Plan;
use crate::ingest::IngestPlan;
use crate::transfer::{ExportPlan, ImportPlan};

/// Records that `collection get` shows unless told otherwise.
const DEFAULT_PAGE: u32 = 10;

/// Decides everything that the flags leave open.
pub(super) fn decide(typed: Typed) -> Result<Command, Failure> {
    let common = &typed.common;
    Ok(match typed.command {
        TypedCommand::Index(typed) => {
            let path = folder(typed.path.clone());
            Command::Index(code_store(common, Some(&path))?, typed.plan(path))
        }
        TypedCommand::Watch(typed) => {
            let path = folder(typed.path.clone());
            Command::Watch(code_store(common, Some(&path))?, typed.options(path))
        }
        TypedCommand::Search(typed) => {
            let plan = typed.plan()?;
            Command::Search(code_store(common, None)?, plan)
        }
        TypedCommand::Similar(typed) => {
            let plan = typed.plan()?;
            Command::Search(code_store(common, None)?, plan)
        }
        TypedCommand::Memory(typed) => {
            let store = personal_store(common, typed.place())?;
            Command::Memory(store, typed.command()?)
        }
        TypedCommand::Fact(typed) => {
            let store = personal_store(common, typed.place())?;
            Command::Fact(store, typed.command()?)
        }
        TypedCommand::Graph(typed) => {
            let command = typed.command()?;
            // One that writes may be the first that needs a store.
            let new = command.may_write().then(|| folder(None));
            Command::Graph(code_store(common, new.as_deref())?, command)
        }
        TypedCommand::Collection(typed) => {
            let store = store(common, typed.place())?;
            Command::Collection(store, collection(typed)?)
        }
        TypedCommand::Ingest(typed) => {
            let store = store(common, &typed.place)?;
            Command::Ingest(store, ingest(typed))
        }
        TypedCommand::Export { collection, out, place } => {
            let plan = export(collection, out, common.json)?;
            Command::Export(store(common, &place)?, plan)
        }
        TypedCommand::Import { paths, collection, place } => {
            Command::Import(store(common, &place)?, ImportPlan { paths, collection })
        }
        TypedCommand::Adopt { yes, place } => Command::Adopt(store(common, &place)?, yes),
        TypedCommand::Doctor(typed) => {
            let store = store(common, &typed.place)?;
            Command::Doctor(store, doctor(typed)?)
        }
        TypedCommand::Status { place } => Command::Status(store(common, &place)?),
        TypedCommand::Mcp(typed) => Command::Mcp(typed.plan(surroundings(common, false)?)?),
        TypedCommand::Setup(typed) => Command::Setup(typed.plan(common.store.as_deref())?),
        TypedCommand::Serve(typed) => {
            let (plan, http) = typed.plan(surroundings(common, false)?)?;
            Command::Serve(plan, http)
        }
        TypedCommand::Drill(TypedDrill { count, seed }) => {
            Command::Drill(Plan { count, seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)) })
        }
        TypedCommand::Completions { shell } => Command::Completions(shell),
    })
}

/// The folder that is meant if none is named.
fn folder(path: Option<PathBuf>) -> PathBuf {
    path.unwrap_or_else(|| PathBuf::from("."))
}

/// The store of code: the project's. One that is to be indexed gets a new one.
fn code_store(common: &TypedCommon, indexed: Option<&Path>) -> Result<StorePlace, Failure> {
    let surroundings = surroundings(common, false)?;
    find_store(&surroundings, indexed.map_or(Scope::Project, Scope::Indexed))
}

fn store(common: &TypedCommon, place: &TypedPlace) -> Result<StorePlace, Failure> {
    let surroundings = surroundings(common, place.user)?;
    find_store(&surroundings, if place.user { Scope::User } else { Scope::ProjectThenUser })
}

/// The store of memory and facts: the user's, unless the project's is asked for.
fn personal_store(common: &TypedCommon, place: &TypedPersonal) -> Result<StorePlace, Failure> {
    let surroundings = surroundings(common, place.project)?;
    find_store(&surroundings, if place.project { Scope::Project } else { Scope::User })
}

fn surroundings(common: &TypedCommon, named: bool) -> Result<Surroundings, Failure> {
    let working_folder = std::env::current_dir().map_err(|error| {
        Failure::new(Code::Failed, format!("the working folder cannot be found: {error}"))
    })?;
    // What was typed counts more than the environment, --user and --project included.
    let given = common.store.clone();
    let given = given.or_else(|| variable("ISOLITH_STORE").map(PathBuf::from));
    Ok(Surroundings {
        given: given.filter(|_| !named),
        working_folder,
        data_home: variable("XDG_DATA_HOME").map(PathBuf::from),
        state_home: variable("XDG_STATE_HOME").map(PathBuf::from),
        secret_file: variable("ISOLITH_SECRET_FILE").map(PathBuf::from),
        home: variable("HOME").map(PathBuf::from),
    })
}

/// A variable of the environment. An empty one counts as none.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

impl TypedCollection {
    fn place(&self) -> &TypedPlace {
        match self {
            Self::List { place }
            | Self::Create { place, .. }
            | Self::Delete { place, .. }
            | Self::Rename { place, .. }
            | Self::Count { place, .. }
            | Self::Get { place, .. }
            | Self::Query { place, .. } => place,
        }
    }
}

fn collection(typed: TypedCollection) -> Result<CollectionCommand, Failure> {
    Ok(match typed {
        TypedCollection::List { .. } => CollectionCommand::List,
        TypedCollection::Create { name, dimension, metric, model, .. } => {
            let metric = metric.into();
            CollectionCommand::Create(CollectionSpec { name, dimension, metric, model })
        }
        TypedCollection::Delete { name, which, .. } => {
            let filtered = which.filter.metadata.is_some() || which.filter.document.is_some();
            match selection(which)? {
                // A script whose filter came out empty did not mean the whole collection.
                Selection::All if filtered => {
                    return Err(Failure::new(
                        Code::BadInput,
                        "the filter is empty: it matches all",
                    )
                    .with_hint("leave it out to delete the collection itself"));
                }
                Selection::All => CollectionCommand::Delete { name },
                which => CollectionCommand::DeleteRecords { name, which },
            }
        }
        TypedCollection::Rename { name, new_name, .. } => {
            CollectionCommand::Rename { name, new_name }
        }
        TypedCollection::Count { name, .. } => CollectionCommand::Count { name },
        TypedCollection::Get { name, which, limit, offset, vectors, .. } => {
            let named = u32::try_from(which.ids.len()).unwrap_or(u32::MAX);
            let limit = limit.unwrap_or(if named > 0 { named } else { DEFAULT_PAGE });
            let which = selection(which)?;
            CollectionCommand::Get { name, which, limit, offset, vectors }
        }
        TypedCollection::Query { name, what, limit, filter: typed, .. } => {
            let filter = filter(typed)?;
            CollectionCommand::Query { name, question: question(what)?, limit, filter }
        }
    })
}

fn question(typed: TypedQuery) -> Result<Question, Failure> {
    Ok(match typed {
        TypedQuery { vector: Some(file), .. } => Question::Vector(read_vector(&file)?),
        TypedQuery { keywords: Some(words), .. } => Question::Keywords(words),
        TypedQuery { text, .. } => Question::Text(text.unwrap_or_default()),
    })
}

fn selection(typed: TypedWhich) -> Result<Selection, Failure> {
    if !typed.ids.is_empty() {
        return Ok(Selection::Ids(typed.ids));
    }
    Ok(filter(typed.filter)?.map_or(Selection::All, Selection::Matching))
}

fn filter(typed: TypedFilter) -> Result<Option<Filter>, Failure> {
    Ok(Filter::both(
        read_filter("--where", typed.metadata, Filter::from_where)?,
        read_filter("--where-document", typed.document, Filter::from_where_document)?,
    ))
}

fn read_filter(
    flag: &str,
    text: Option<String>,
    read: fn(&serde_json::Value) -> Result<Option<Filter>, FilterError>,
) -> Result<Option<Filter>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let bad = |reason: String| Failure::new(Code::BadInput, format!("{flag}: {reason}"));
    let json = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    read(&json).map_err(|error| bad(error.to_string()))
}

fn export(
    collection: Option<String>,
    out: Option<PathBuf>,
    json: bool,
) -> Result<ExportPlan, Failure> {
    match (collection, out) {
        (Some(_), None) if json => Err(Failure::new(
            Code::Usage,
            "the export and --json cannot both go to standard output",
        )
        .with_hint("name a file with --out")),
        (Some(name), file) => Ok(ExportPlan::Collection { name, file }),
        (None, Some(folder)) => Ok(ExportPlan::All { folder }),
        (None, None) => {
            Err(Failure::new(Code::Usage, "say where all collections go: a folder, with --out"))
        }
    }
}

fn ingest(typed: TypedIngest) -> IngestPlan {
    IngestPlan {
        files: typed.files,
        collection: typed.collection,
        mode: match typed.add {
            true => PutMode::Add { skip_existing: matches!(typed.on_error, TypedOnError::Skip) },
            false => PutMode::Upsert,
        },
        on_error: typed.on_error.into(),
        patience: Duration::from_secs(typed.timeout),
        dimension: None,
        metric: typed.metric.map(Metric::from),
        model: typed.model,
    }
}

fn doctor(typed: TypedDoctor) -> Result<DoctorCommand, Failure> {
    let TypedDoctor { repair, full, timeout, quarantine, .. } = typed;
    let words: Vec<&str> = quarantine.iter().flatten().map(String::as_str).collect();
    let id = words.get(1).map(|id| (*id).to_owned());
    match (words.first().copied(), id) {
        (None, _) => Ok(DoctorCommand::Examine(DoctorOptions {
            full,
            repair,
            deadline: timeout.map(Duration::from_secs),
            program: None,
            ..DoctorOptions::default()
        })),
        (Some("list"), None) => Ok(DoctorCommand::ListJobs),
        (Some("retry"), Some(id)) => Ok(DoctorCommand::ReleaseJobs { id: Some(id) }),
        (Some("clear"), id) => Ok(DoctorCommand::ReleaseJobs { id }),
        _ => Err(Failure::new(Code::Usage, "--quarantine takes: list, retry ID, clear, clear ID")),
    }
}

impl From<TypedMetric> for Metric {
    fn from(typed: TypedMetric) -> Self {
        match typed {
            TypedMetric::Cosine => Metric::Cosine,
            TypedMetric::L2 => Metric::L2,
            TypedMetric::Dot => Metric::Dot,
        }
    }
}
