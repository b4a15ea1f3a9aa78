//! Turns parsed flags into commands with all defaults resolved.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isolith_config::{Key, PROJECT_FILE, ProjectFile, Settings};
use isolith_engine::{
    Attached, DoctorOptions, Like, PutMode, Selection, Sort, StorePlace, StoreScope, Surroundings,
    find_store, named_model, store_above,
};
use isolith_types::{Code, CollectionSpec, Failure, Filter, FilterError, Metadata, Metric};

use super::Command;
use super::settings::{Context, user_file, working_folder};
use super::typed::{
    Typed, TypedChange, TypedCollection, TypedCollectionPlace, TypedCommand, TypedCommon,
    TypedConfig, TypedDoctor, TypedDrill, TypedFilter, TypedIngest, TypedMetric, TypedOnError,
    TypedPersonal, TypedPlace, TypedQuery, TypedWhich,
};
use crate::code::SearchPlan;
use crate::collection::{
    CollectionAction, CollectionCommand, CollectionPlaces, Question, RecordChange, RecordsToGet,
    StoreOwner, read_vector,
};
use crate::config::ConfigCommand;
use crate::doctor::DoctorCommand;
use crate::drill::DrillPlan;
use crate::ingest::IngestPlan;
use crate::transfer::{ExportPlan, ImportPlan};

/// Default number of records shown by `collection get` and `collection query`.
const DEFAULT_PAGE: u32 = 10;

/// A resolved command, with its log filter and warnings.
pub(super) struct Decided {
    pub(super) command: Command,
    /// The log filter that the user has set.
    pub(super) log: Option<String>,
    /// Warnings to print before the command runs.
    pub(super) warnings: Vec<String>,
}

/// Resolves everything that the flags leave open.
pub(super) fn decide(typed: Typed) -> Result<Decided, Failure> {
    let Typed { command, common } = typed;
    let context = Context::new(&common);
    let command = meaning(command, &common, &context)?;
    Ok(Decided { command, log: context.log(), warnings: context.warnings() })
}

fn meaning(
    command: TypedCommand,
    common: &TypedCommon,
    context: &Context<'_>,
) -> Result<Command, Failure> {
    Ok(match command {
        TypedCommand::Index(typed) => {
            let path = folder(typed.path.clone());
            context.of_folder(&path)?;
            let (store, merged) = match typed.merge {
                true => {
                    let (above, inner) = stores_to_merge(context, &path)?;
                    (above, Some(inner))
                }
                false => (code_store(context, Some(&path))?, None),
            };
            Command::Index(store, typed.plan(path, context.layers()?.clone(), merged))
        }
        TypedCommand::Watch(typed) => {
            let path = folder(typed.path.clone());
            context.of_folder(&path)?;
            let store = code_store(context, Some(&path))?;
            Command::Watch(store, typed.plan(path, context.layers()?.clone()))
        }
        TypedCommand::Search(typed) => {
            let plan = typed.plan(context)?;
            search(context, plan)?
        }
        TypedCommand::Similar(typed) => {
            let plan = typed.plan(context)?;
            search(context, plan)?
        }
        TypedCommand::Memory(typed) => {
            let store = personal_store(context, typed.place())?;
            Command::Memory(store, typed.command(context)?)
        }
        TypedCommand::Fact(typed) => {
            let store = personal_store(context, typed.place())?;
            Command::Fact(store, typed.command(context)?)
        }
        TypedCommand::Graph(typed) => {
            let command = typed.command(context)?;
            // A query that writes may create the store.
            let new = command.may_write().then(|| folder(None));
            Command::Graph(code_store(context, new.as_deref())?, command)
        }
        TypedCommand::Collection(typed) => {
            let places = collection_places(context, typed.place())?;
            Command::Collection(places, collection(typed, context)?)
        }
        TypedCommand::Ingest(typed) => {
            let places = collection_places(context, &typed.place)?;
            Command::Ingest(places, ingest(typed, context)?)
        }
        TypedCommand::Export { collection, out, place } => {
            let plan = export(collection, out, common.json)?;
            Command::Export(collection_places(context, &place)?, plan)
        }
        TypedCommand::Import { paths, collection, place } => {
            let places = collection_places(context, &place)?;
            Command::Import(places, ImportPlan { paths, collection })
        }
        TypedCommand::Adopt { yes, place } => Command::Adopt(store(context, &place)?, yes),
        TypedCommand::Doctor(typed) => {
            let store = store(context, &typed.place)?;
            Command::Doctor(store, doctor(typed)?)
        }
        TypedCommand::Status { check, place } => Command::Status(store(context, &place)?, check),
        TypedCommand::Mcp(typed) => Command::Mcp(typed.plan(context)?),
        TypedCommand::Serve(typed) => {
            let (plan, http) = typed.plan(context)?;
            Command::Serve(plan, Box::new(http))
        }
        TypedCommand::Ui(typed) => {
            let (plan, http) = typed.plan(context)?;
            Command::Serve(plan, Box::new(http))
        }
        TypedCommand::Config(TypedConfig::Show) => {
            Command::Config(ConfigCommand::Show(context.here()?.clone()))
        }
        TypedCommand::Config(TypedConfig::Path) => Command::Config(ConfigCommand::Path {
            user: user_file(),
            project: ProjectFile::folder_of(&working_folder()?).map(|it| it.join(PROJECT_FILE)),
        }),
        TypedCommand::Hook(typed) => Command::Hook(typed.plan(context)?),
        TypedCommand::Setup(typed) => Command::Setup(typed.plan(common.store.as_deref())?),
        TypedCommand::Drill(TypedDrill { count, seed, jsonl }) => Command::Drill(DrillPlan {
            count,
            lines: jsonl,
            seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        }),
        TypedCommand::Completions { shell } => Command::Completions(shell),
        TypedCommand::Man { folder } => Command::Man(folder),
    })
}

/// The given folder, or the working folder.
fn folder(path: Option<PathBuf>) -> PathBuf {
    path.unwrap_or_else(|| PathBuf::from("."))
}

/// The store of code: the project's. A folder to index gets a new one if there is none.
fn code_store(context: &Context<'_>, indexed: Option<&Path>) -> Result<StorePlace, Failure> {
    let scope = indexed.map_or(StoreScope::Project, StoreScope::Indexed);
    find_store(&context.surroundings(false)?, scope)
}

/// A search in the project's store, which may not be the only one for this code.
fn search(context: &Context<'_>, plan: SearchPlan) -> Result<Command, Failure> {
    let store = code_store(context, None)?;
    let is_given = context.surroundings(false)?.given.is_some();
    let store_above = if is_given { None } else { store_above(store.path()) };
    Ok(Command::Search(store, SearchPlan { store_above, ..plan }))
}

/// The store above a folder, and the folder's own.
fn stores_to_merge(
    context: &Context<'_>,
    folder: &Path,
) -> Result<(StorePlace, StorePlace), Failure> {
    let surroundings = context.surroundings(false)?;
    let own = surroundings.working_folder.join(folder).join(".isolith");
    if !own.is_dir() {
        let message = format!("{} has no store of its own to merge", folder.display());
        return Err(Failure::new(Code::NotFound, message));
    }
    let own = find_store(
        &Surroundings { given: Some(own), ..surroundings.clone() },
        StoreScope::Project,
    )?;
    Ok((find_store(&surroundings, StoreScope::Above(folder))?, own))
}

fn store(context: &Context<'_>, place: &TypedPlace) -> Result<StorePlace, Failure> {
    let scope = if place.user { StoreScope::User } else { StoreScope::ProjectThenUser };
    find_store(&context.surroundings(place.user)?, scope)
}

/// The stores of collections: the project's and the user's, unless a flag names one.
fn collection_places(
    context: &Context<'_>,
    typed: &TypedCollectionPlace,
) -> Result<CollectionPlaces, Failure> {
    let TypedCollectionPlace { user, project, database } = typed;
    let surroundings = context.surroundings(*user || *project)?;
    let scope = match (user, project) {
        (true, _) => StoreScope::User,
        (false, true) => StoreScope::Project,
        (false, false) => StoreScope::ProjectThenUser,
    };
    let store = find_store(&surroundings, scope)?;
    let users = find_store(&surroundings, StoreScope::User).ok();
    let users = users.filter(|users| users.path() != store.path());
    let owner = match (&surroundings.given, &users) {
        (Some(_), _) => StoreOwner::Given,
        (None, Some(_)) => StoreOwner::Project,
        (None, None) if *project => StoreOwner::Project,
        (None, None) => StoreOwner::User,
    };
    let database = database.clone().unwrap_or_default();
    Ok(CollectionPlaces { store, owner, users: users.filter(|_| !project), database })
}

/// The store of memory and facts: the user's, unless --project is given.
fn personal_store(context: &Context<'_>, place: &TypedPersonal) -> Result<StorePlace, Failure> {
    let scope = if place.project { StoreScope::Project } else { StoreScope::User };
    find_store(&context.surroundings(place.project)?, scope)
}

impl TypedCollection {
    fn place(&self) -> &TypedCollectionPlace {
        match self {
            Self::List { place }
            | Self::Create { place, .. }
            | Self::Delete { place, .. }
            | Self::Update { place, .. }
            | Self::Rename { place, .. }
            | Self::Count { place, .. }
            | Self::Get { place, .. }
            | Self::Values { place, .. }
            | Self::Query { place, .. } => place,
        }
    }
}

fn collection(typed: TypedCollection, context: &Context<'_>) -> Result<CollectionCommand, Failure> {
    let (name, action) = match typed {
        TypedCollection::List { .. } => return Ok(CollectionCommand::List),
        TypedCollection::Create { name, dimension, metric, model, .. } => {
            let users = context.users()?;
            let metric = metric.map(Metric::from).or_else(|| default_metric(&users));
            let metric = metric.unwrap_or_default();
            let model = model.or_else(|| users.text(Key::CollectionModel).map(str::to_owned));
            let model = model.map(named_model);
            let spec = CollectionSpec { name, dimension, metric, model };
            return Ok(CollectionCommand::Create(spec));
        }
        TypedCollection::Delete { name, which, yes, .. } => (name, deletion(which, yes)?),
        TypedCollection::Update { name, what, .. } => {
            (name, CollectionAction::Update(record_change(what)?))
        }
        TypedCollection::Rename { name, new_name, .. } => {
            (name, CollectionAction::Rename { new_name })
        }
        TypedCollection::Count { name, .. } => (name, CollectionAction::Count),
        TypedCollection::Get { name, which, sort, descending, limit, offset, vectors, .. } => {
            let named = u32::try_from(which.ids.len()).unwrap_or(u32::MAX);
            let limit = limit.unwrap_or(if named > 0 { named } else { DEFAULT_PAGE });
            let which = selection(which)?;
            let sort = sort.map(|key| Sort { key, descending });
            (name, CollectionAction::Get(RecordsToGet { which, sort, limit, offset, vectors }))
        }
        TypedCollection::Values { name, key, limit, filter: typed, .. } => {
            let (filter, limit) = (filter(typed)?, limit.unwrap_or(DEFAULT_PAGE));
            (name, CollectionAction::Values { key, filter, limit })
        }
        TypedCollection::Query { name, what, limit, filter: typed, .. } => {
            let (filter, limit) = (filter(typed)?, context.results(limit, DEFAULT_PAGE)?);
            (name, CollectionAction::Query { question: question(what)?, limit, filter })
        }
    };
    Ok(CollectionCommand::On { name, action })
}

fn deletion(typed: TypedWhich, yes: bool) -> Result<CollectionAction, Failure> {
    let filtered = typed.filter.metadata.is_some() || typed.filter.document.is_some();
    match selection(typed)? {
        // Probably a script whose filter turned out empty: do not delete everything.
        Selection::All if filtered => {
            Err(Failure::new(Code::BadInput, "the filter is empty and would match all records")
                .with_hint("to delete the whole collection, leave out the filter"))
        }
        Selection::All => Ok(CollectionAction::Delete { yes }),
        which => Ok(CollectionAction::DeleteRecords { which }),
    }
}

fn record_change(typed: TypedChange) -> Result<RecordChange, Failure> {
    let TypedChange { ids, metadata, document } = typed;
    let metadata = metadata.map(|text| Metadata::parse(&text)).transpose();
    let metadata =
        metadata.map_err(|error| Failure::new(Code::BadInput, format!("--metadata: {error}")))?;
    Ok(RecordChange { ids, metadata, document })
}

fn question(typed: TypedQuery) -> Result<Question, Failure> {
    let TypedQuery { vector, text, keywords } = typed;
    let vector = vector.as_deref().map(read_vector).transpose()?;
    Ok(match (vector, text, keywords) {
        (Some(vector), _, None) => Question::Vector(vector),
        (Some(vector), _, Some(words)) => Question::Hybrid(Like::Vector(vector), words),
        (None, Some(text), Some(words)) => Question::Hybrid(Like::Text(text), words),
        (None, None, Some(words)) => Question::Keywords(words),
        (None, text, None) => Question::Text(text.unwrap_or_default()),
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
            "the export and the JSON result cannot both go to standard output",
        )
        .with_hint("name a file with --out")),
        (Some(name), file) => Ok(ExportPlan::Collection { name, file }),
        (None, Some(folder)) => Ok(ExportPlan::All { folder }),
        (None, None) => Err(Failure::new(
            Code::Usage,
            "exporting all collections needs a folder: use --out DIR",
        )),
    }
}

fn ingest(typed: TypedIngest, context: &Context<'_>) -> Result<IngestPlan, Failure> {
    let default_metric = default_metric(&context.users()?).unwrap_or_default();
    Ok(IngestPlan {
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
        default_metric,
        model: typed.model.map(named_model),
        attached: Attached::default(),
    })
}

/// The metric of new collections, if the user has set one.
fn default_metric(users: &Settings) -> Option<Metric> {
    users.text(Key::CollectionMetric)?.parse().ok()
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
        _ => {
            Err(Failure::new(Code::Usage, "--quarantine expects list, retry ID, clear or clear ID"))
        }
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
