//! Tools for vector collections. Those for their records are in `records`.

use std::fmt::Write as _;

use isolith_engine::{
    AddCollection, CollectionState, Engine, Hits, Like, NO_SETTINGS, Patch, PutMode, Records,
    RecordsPut, built_in_model, is_built_in, named_model,
};
use isolith_types::{
    Code, Collection, CollectionSpec, DatabaseName, Failure, Filter, Hint, Hit, Metadata, Metric,
    Record, counted,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{NoArguments, check_length, check_query};
use crate::stores::StoreOwner;
use crate::text::{one_line, round, truncate};
use crate::tool::{Call, Effect, Limits, Surface, Tool, ToolAnswer};
use crate::tools::records::{RecordChange, RecordsChanged, change_records, given};
use crate::vector::GivenVector;

/// Maximum number of records per call.
const MAX_RECORDS: usize = 100;

/// The same, for programs.
const MAX_PROGRAM_RECORDS: usize = 10_000;

const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Maximum size of a document in an answer.
const MAX_RESULT_BYTES: usize = 4 << 10;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "collection_list",
            Effect::Read,
            "List vector collections with their sizes. Use it to learn their names. To search one use collection_query. Example: {}",
            collection_list,
        ),
        Tool::new(
            "collection_query",
            Effect::Read,
            "Search a collection of documents or vectors by text, keywords or a vector. Use it for data that was loaded into a collection. Not for code (search_code) or conversations (memory_search). Example: {\"collection\":\"papers\",\"text\":\"graph databases\"}",
            collection_query,
        ),
        Tool::new(
            "collection_add",
            Effect::Change,
            "Add, replace or update records in a collection, which is created if needed. Use it for a few records; without vectors documents are embedded. For a file use ingest_file. Example: {\"collection\":\"papers\",\"records\":[{\"id\":\"1\",\"document\":\"On graphs\"}]}",
            collection_add,
        ),
        Tool::new(
            "collection_create",
            Effect::AddOnce,
            "Create an empty collection with a metric or model. Use it only if the defaults do not fit. Otherwise collection_add creates the collection. Example: {\"name\":\"papers\",\"model\":\"built-in\"}",
            collection_create,
        ),
    ]
}

async fn collection_list(call: Call, _: NoArguments) -> Result<CollectionSummaries, Failure> {
    let collections = list_collections(&call).await?;
    Ok(CollectionSummaries {
        collections: collections.into_iter().map(CollectionSummary::from).collect(),
    })
}

/// The collections of the project's store and of the user's.
pub(crate) async fn list_collections(
    call: &Call,
) -> Result<Vec<(StoreOwner, Collection)>, Failure> {
    let stores = call.server.stores();
    let (mut listed, mut missing) = (Vec::new(), None);
    for store in stores.with_collections() {
        let (owner, engine) = store?;
        match engine.collections_of(stores.database()).await {
            Ok(collections) => listed.extend(collections.into_iter().map(|it| (owner, it))),
            // The database may exist in the other store only.
            Err(failure) if failure.code == Code::NotFound => missing = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    match missing {
        Some(failure) if listed.is_empty() => Err(failure),
        _ => Ok(listed),
    }
}

/// What is done with a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A collection and its store: the project's if it has one of this name, else the user's, where it
/// can only be read if the project has a store. Code and memory are not among them, whose names begin
/// with `@`. Operations find the collection under the name in its state.
pub(crate) async fn open_collection(
    call: &Call,
    name: &str,
    access: Access,
) -> Result<(StoreOwner, Engine, CollectionState), Failure> {
    let stores = call.server.stores();
    if name.starts_with('@') {
        return Err(not_found(name));
    }
    let mut missing = None;
    for store in stores.with_collections() {
        let (owner, engine) = store?;
        match engine.collection_in(stores.database(), name).await {
            Ok(_) if access == Access::Write && missing.is_some() => {
                let message = format!("the collection {name:?} is in the user's store");
                return Err(Failure::new(Code::NotFound, message)
                    .with_hint("a project's server only reads the user's collections"));
            }
            Ok(state) => return Ok((owner, engine, state)),
            Err(failure) if failure.code == Code::NotFound => drop(missing.get_or_insert(failure)),
            Err(failure) => return Err(failure),
        }
    }
    Err(missing.unwrap_or_else(|| not_found(name)))
}

#[derive(Serialize, JsonSchema)]
struct CollectionSummaries {
    collections: Vec<CollectionSummary>,
}

#[derive(Serialize, JsonSchema)]
struct CollectionSummary {
    name: String,
    records: u64,
    dimension: Option<u32>,
    metric: String,
    model: Option<String>,
    store: String,
}

impl From<(StoreOwner, Collection)> for CollectionSummary {
    fn from((owner, collection): (StoreOwner, Collection)) -> Self {
        let Collection { name, dimension, metric, model, records, .. } = collection;
        let (metric, store) = (metric.name().to_owned(), owner.name().to_owned());
        Self { name, records, dimension, metric, model, store }
    }
}

impl ToolAnswer for CollectionSummaries {
    fn text(&self) -> String {
        if self.collections.is_empty() {
            return "no collections".to_owned();
        }
        let line = |it: &CollectionSummary| {
            let records = counted(it.records, "record");
            format!("{}: {records}, {}\n", it.name, it.metric)
        };
        self.collections.iter().map(line).collect()
    }

    fn is_trusted(&self) -> bool {
        self.collections.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionQuery {
    /// Its name
    collection: String,
    /// Search by meaning; built-in model only
    text: Option<String>,
    /// Search by words (BM25)
    keywords: Option<String>,
    /// A vector of the collection's model
    vector: Option<Vec<f32>>,
    /// 1-100, default 10
    limit: Option<u32>,
    /// Metadata filter, e.g. {"year": {"$gte": 2024}}
    r#where: Option<JsonObject>,
}

async fn collection_query(call: Call, arguments: CollectionQuery) -> Result<QueryResults, Failure> {
    let CollectionQuery { collection, text, keywords, vector, limit, r#where } = arguments;
    let filter = filter(r#where)?;
    let question = Question { text, keywords, vector };
    find_records(&call, &collection, question, limit, filter).await.map(QueryResults::from)
}

/// What to search a collection by: a text or a vector, keywords, or both.
pub(crate) struct Question {
    pub(crate) text: Option<String>,
    pub(crate) keywords: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// Searches a collection.
pub(crate) async fn find_records(
    call: &Call,
    collection: &str,
    question: Question,
    limit: Option<u32>,
    filter: Option<Filter>,
) -> Result<Hits, Failure> {
    let limit = call.limit(limit, Limits::RESULTS)?;
    let (_, engine, state) = open_collection(call, collection, Access::Read).await?;
    let collection = state.name.as_str();
    let Question { text, keywords, vector } = question;
    for query in [&text, &keywords].into_iter().flatten() {
        check_query(query)?;
    }
    let like = match (text, vector) {
        (Some(_), Some(_)) => {
            return Err(Failure::new(Code::BadInput, "pass either text or vector, not both"));
        }
        (Some(text), None) => Some(Like::Text(text)),
        (None, vector) => vector.map(Like::Vector),
    };
    match (like, keywords) {
        (Some(Like::Text(text)), None) => engine.meaning(collection, &text, limit, filter).await,
        (Some(Like::Vector(vector)), None) => {
            engine.nearest(collection, &vector, limit, filter).await
        }
        (Some(like), Some(words)) => engine.hybrid(collection, &like, &words, limit, filter).await,
        (None, Some(words)) => engine.keywords(collection, &words, limit, filter).await,
        (None, None) => Err(Failure::new(Code::BadInput, "pass text, vector or keywords")),
    }
}

pub(crate) fn filter(json: Option<JsonObject>) -> Result<Option<Filter>, Failure> {
    let Some(json) = json else { return Ok(None) };
    Filter::from_where(&Value::Object(json))
        .map_err(|error| Failure::new(Code::BadInput, format!("where: {error}")))
}

pub(crate) fn not_found(collection: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no collection {collection:?}"))
        .with_hint(Hint::ListCollections)
}

#[derive(Serialize, JsonSchema)]
struct QueryResults {
    hits: Vec<RecordHit>,
    degraded: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct RecordHit {
    id: String,
    distance: Option<f64>,
    score: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
    document: Option<String>,
    metadata: JsonObject,
}

impl From<Hits> for QueryResults {
    fn from(found: Hits) -> Self {
        let Hits { hits, degraded } = found;
        Self { hits: hits.into_iter().map(RecordHit::from).collect(), degraded }
    }
}

impl From<Hit> for RecordHit {
    fn from(hit: Hit) -> Self {
        let Hit { id, distance, score, fused: _, why, document, metadata } = hit;
        Self {
            id,
            distance: distance.map(|it| round(f64::from(it))),
            score: score.map(|it| round(f64::from(it))),
            why,
            document: document.map(|text| truncate(&text, MAX_RESULT_BYTES).to_owned()),
            metadata: match metadata.to_json() {
                Value::Object(metadata) => metadata,
                _ => JsonObject::new(),
            },
        }
    }
}

impl ToolAnswer for QueryResults {
    fn text(&self) -> String {
        if self.hits.is_empty() {
            return "nothing found".to_owned();
        }
        let mut text = String::new();
        for hit in &self.hits {
            let rank = match hit.why.as_slice() {
                [] => format!("{:.3}", hit.distance.or(hit.score).unwrap_or_default()),
                why => why.join(", "),
            };
            let document = one_line(hit.document.as_deref().unwrap_or_default(), 160);
            let _ = writeln!(text, "{} ({rank}) {document}", hit.id);
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.hits.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionCreate {
    /// Its name
    name: String,
    /// Default: that of the first vector
    dimension: Option<u32>,
    /// Default cosine
    metric: Option<MetricName>,
    /// built-in embeds documents
    model: Option<String>,
}

/// The name of a metric in requests.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetricName {
    Cosine,
    L2,
    Dot,
}

impl From<MetricName> for Metric {
    fn from(name: MetricName) -> Self {
        match name {
            MetricName::Cosine => Self::Cosine,
            MetricName::L2 => Self::L2,
            MetricName::Dot => Self::Dot,
        }
    }
}

async fn collection_create(
    call: Call,
    arguments: CollectionCreate,
) -> Result<CollectionMade, Failure> {
    let CollectionCreate { name, dimension, metric, model } = arguments;
    make_collection(&call, name, (dimension, metric, model), true).await
}

/// Creates a collection. With `if_missing`, an existing one with the same properties is accepted.
pub(crate) async fn make_collection(
    call: &Call,
    name: String,
    (dimension, metric, model): (Option<u32>, Option<MetricName>, Option<String>),
    if_missing: bool,
) -> Result<CollectionMade, Failure> {
    let metric = metric.map_or(Metric::Cosine, Metric::from);
    let spec =
        CollectionSpec { name: name.clone(), dimension, metric, model: model.map(named_model) };
    let stores = call.server.stores();
    let new = new_collection(stores.database(), spec, if_missing);
    let created = stores.collections_to_write()?.ensure_collection(new).await?;
    Ok(CollectionMade { collection: name, created })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CollectionMade {
    collection: String,
    created: bool,
}

impl ToolAnswer for CollectionMade {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let outcome = if self.created { "created" } else { "existed already" };
        format!("{}: {outcome}", self.collection)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionAdd {
    /// Its name
    collection: String,
    /// Up to 100
    records: Vec<NewRecord>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRecord {
    /// Unique in the collection
    id: String,
    /// Text
    document: Option<String>,
    /// Numbers
    vector: Option<GivenVector>,
    /// To filter by
    metadata: Option<JsonObject>,
}

/// As [`CollectionAdd`], with changes, for which programs have a request of their own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordsToStore {
    /// Its name
    collection: String,
    /// Up to 100
    records: Vec<RecordToStore>,
    /// Only change existing records: omitted fields are kept, metadata is merged, null removes
    update: Option<bool>,
}

// A doc comment would be part of the tool list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordToStore {
    /// Unique in the collection
    id: String,
    /// Text
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    document: Option<Option<String>>,
    /// Numbers
    vector: Option<Vec<f32>>,
    /// To filter by
    metadata: Option<JsonObject>,
}

async fn collection_add(call: Call, arguments: RecordsToStore) -> Result<RecordsStored, Failure> {
    let RecordsToStore { collection, records, update } = arguments;
    if update.unwrap_or(false) {
        let change = |RecordToStore { id, document, vector, metadata }| RecordChange {
            id,
            document,
            metadata,
            vector: vector.map(GivenVector),
        };
        let changes = records.into_iter().map(change).collect();
        let (changed, count) = change_records(&call, &collection, changes, MAX_RECORDS).await?;
        let RecordsChanged { updated, unchanged, missing } = changed;
        return Ok(RecordsStored { collection, inserted: 0, updated, unchanged, missing, count });
    }
    let new = |RecordToStore { id, document, vector, metadata }| NewRecord {
        id,
        document: document.flatten(),
        vector: vector.map(GivenVector),
        metadata,
    };
    let records = records.into_iter().map(new).collect();
    let added = add_records(call, CollectionAdd { collection, records }, PutMode::Upsert).await?;
    let RecordsAdded { collection, inserted, updated, unchanged, count } = added;
    Ok(RecordsStored { collection, inserted, updated, unchanged, missing: 0, count })
}

#[derive(Serialize, JsonSchema)]
struct RecordsStored {
    collection: String,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    missing: u64,
    count: u64,
}

impl ToolAnswer for RecordsStored {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let Self { collection, inserted, updated, unchanged, missing, count } = self;
        let missing = if *missing > 0 { format!(", {missing} not found") } else { String::new() };
        format!(
            "{collection}: {inserted} new, {updated} replaced, {unchanged} unchanged{missing}; {count} in total"
        )
    }
}

/// Adds records, and creates the collection if needed.
pub(crate) async fn add_records(
    call: Call,
    arguments: CollectionAdd,
    mode: PutMode,
) -> Result<RecordsAdded, Failure> {
    let CollectionAdd { collection, records } = arguments;
    let max = match call.surface {
        Surface::Agent => MAX_RECORDS,
        Surface::Program => MAX_PROGRAM_RECORDS,
    };
    if records.is_empty() || records.len() > max {
        let message = format!("pass 1 to {max} records, not {}", records.len());
        return Err(Failure::new(Code::BadInput, message));
    }
    let embedded = records.iter().all(|record| record.vector.is_none());
    let mut ready = records.into_iter().map(ready_record).collect::<Result<Vec<_>, _>>()?;
    let stores = call.server.stores();
    let engine = stores.collections_to_write()?;
    let known = find_for(&engine, stores.database(), &collection, embedded).await?;
    check_vectors(&ready, embedded)?;
    let stored = match known {
        Some(stored) => stored,
        None => create_for(&engine, stores.database(), &collection, embedded).await?,
    };
    if embedded {
        embed_records(&engine, &mut ready).await?;
    }
    let records = Records::from_records(ready);
    let done = engine.put(&stored, records, mode, call.key).await?.done;
    let count = done.collection.map_or(0, |state| state.records);
    let RecordsPut { inserted, updated, unchanged, .. } = done.reply;
    Ok(RecordsAdded { collection, inserted, updated, unchanged, count })
}

/// The name for operations of a collection to which records are added, if it exists. Refuses to mix
/// vectors of different models.
async fn find_for(
    engine: &Engine,
    database: &DatabaseName,
    name: &str,
    embedded: bool,
) -> Result<Option<String>, Failure> {
    match engine.collection_in(database, name).await {
        Ok(state) if embedded && !is_built_in(state.model.as_deref()) => {
            let message = format!("{name} does not use the built-in model");
            Err(Failure::new(Code::ModelUnavailable, message)
                .with_hint("pass a vector with each record"))
        }
        Ok(state) if !embedded && is_built_in(state.model.as_deref()) => {
            Err(embeds_documents(name))
        }
        Ok(state) => Ok(Some(state.name)),
        // A new store has no file until its first write.
        Err(failure) if matches!(failure.code, Code::NotFound | Code::NoStore) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Creates a collection for records, and returns its name for operations.
async fn create_for(
    engine: &Engine,
    database: &DatabaseName,
    name: &str,
    embedded: bool,
) -> Result<String, Failure> {
    let model = embedded.then(|| built_in_model().to_owned());
    let (name, metric) = (name.to_owned(), Metric::Cosine);
    let spec = CollectionSpec { name: name.clone(), dimension: None, metric, model };
    engine.ensure_collection(new_collection(database, spec, true)).await?;
    Ok(engine.collection_in(database, &name).await?.name)
}

/// A new collection to which nothing is attached.
pub(crate) fn new_collection(
    database: &DatabaseName,
    spec: CollectionSpec,
    get_or_create: bool,
) -> AddCollection {
    let (database, settings) = (database.clone(), NO_SETTINGS.to_owned());
    AddCollection { database, spec, metadata: None, settings, get_or_create }
}

/// Refuses a vector for a collection whose documents are embedded.
pub(crate) fn embeds_documents(collection: &str) -> Failure {
    let message = format!("{collection} embeds its documents with the built-in model");
    Failure::new(Code::ModelMismatch, message).with_hint("pass documents without vectors")
}

/// The record, whose vector is empty if there is none.
fn ready_record(record: NewRecord) -> Result<Record, Failure> {
    let NewRecord { id, document, vector, metadata } = record;
    check_length("document", document.as_deref().unwrap_or_default(), MAX_DOCUMENT_BYTES)?;
    let metadata = Metadata::from_json(metadata.map_or(Value::Null, Value::Object))
        .map_err(|error| bad_record(&id, &error.to_string()))?;
    Ok(Record { id, document, metadata, vector: vector.map(|it| it.0).unwrap_or_default() })
}

pub(crate) fn bad_record(id: &str, reason: &str) -> Failure {
    Failure::new(Code::BadInput, format!("record {id:?}: {reason}"))
}

/// Either all records have a vector, or all have a document to embed.
fn check_vectors(records: &[Record], embedded: bool) -> Result<(), Failure> {
    for Record { id, document, vector, .. } in records {
        if embedded && document.is_none() {
            return Err(bad_record(id, "a document or a vector is required"));
        }
        if !embedded && vector.is_empty() {
            return Err(bad_record(id, "no vector, although other records have one"));
        }
    }
    Ok(())
}

/// Computes the vectors of records that have documents.
async fn embed_records(engine: &Engine, records: &mut [Record]) -> Result<(), Failure> {
    let texts = records.iter().map(|record| record.document.as_deref().unwrap_or_default());
    let vectors = engine.embed(&texts.collect::<Vec<_>>()).await?;
    for (record, vector) in records.iter_mut().zip(vectors) {
        record.vector = vector.ok_or_else(|| bad_record(&record.id, NO_WORDS))?;
    }
    Ok(())
}

const NO_WORDS: &str = "the document has no words to embed";

/// Computes the vectors of patches that replace documents.
pub(crate) async fn embed_patches(engine: &Engine, patches: &mut [Patch]) -> Result<(), Failure> {
    let mut changed: Vec<&mut Patch> =
        patches.iter_mut().filter(|patch| matches!(patch.document, Some(Some(_)))).collect();
    let texts = changed.iter().map(|patch| patch.document.iter().flatten().next());
    let texts: Vec<&str> = texts.map(|text| text.map_or("", String::as_str)).collect();
    let vectors = engine.embed(&texts).await?;
    for (patch, vector) in changed.iter_mut().zip(vectors) {
        patch.vector = Some(vector.ok_or_else(|| bad_record(&patch.id, NO_WORDS))?);
    }
    Ok(())
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecordsAdded {
    collection: String,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    count: u64,
}
