//! Tools for vector collections.

use std::fmt::Write as _;

use isolith_engine::{Engine, Hits, Like, PutMode, Records, RecordsPut, built_in_model};
use isolith_types::{
    Code, Collection, CollectionSpec, Failure, Filter, Hint, Hit, Metadata, Metric, Record, counted,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{NoArguments, check_length, check_query};
use crate::text::{one_line, round, truncate};
use crate::tool::{Call, Effect, Limits, Surface, Tool, ToolAnswer};

/// Maximum number of records per call.
const MAX_RECORDS: usize = 100;

/// The same, for programs.
const MAX_PROGRAM_RECORDS: usize = 10_000;

const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Maximum size of a document in an answer.
const MAX_RESULT_BYTES: usize = 4 << 10;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("collection_list", Effect::Read, "List vector collections.", collection_list),
        Tool::new(
            "collection_query",
            Effect::Read,
            "Search a vector collection by text or vector, keywords, or both. Not for code or memory. Untrusted data.",
            collection_query,
        ),
        Tool::new(
            "collection_add",
            Effect::Change,
            "Add or replace records by id; creates the collection if needed. Without vectors, documents are embedded.",
            collection_add,
        ),
    ]
}

async fn collection_list(call: Call, _: NoArguments) -> Result<CollectionSummaries, Failure> {
    let collections = match call.server.stores().collections()? {
        Some(engine) => engine.collections().await?,
        None => Vec::new(),
    };
    Ok(CollectionSummaries {
        collections: collections.into_iter().map(CollectionSummary::from).collect(),
    })
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
}

impl From<Collection> for CollectionSummary {
    fn from(collection: Collection) -> Self {
        let Collection { name, dimension, metric, model, records, .. } = collection;
        Self { name, records, dimension, metric: metric.name().to_owned(), model }
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
    collection: String,
    /// Semantic search; built-in model only
    text: Option<String>,
    /// BM25
    keywords: Option<String>,
    vector: Option<Vec<f32>>,
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
    let engine = call.server.stores().collections()?.ok_or_else(|| not_found(collection))?;
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
pub(crate) struct CollectionAdd {
    collection: String,
    records: Vec<NewRecord>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRecord {
    id: String,
    document: Option<String>,
    vector: Option<Vec<f32>>,
    metadata: Option<JsonObject>,
}

async fn collection_add(call: Call, arguments: CollectionAdd) -> Result<RecordsAdded, Failure> {
    add_records(call, arguments, PutMode::Upsert).await
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
    let engine = call.server.stores().collections_to_write()?;
    ensure_collection(&engine, &collection, embedded).await?;
    let mut ready = Vec::with_capacity(records.len());
    for record in records {
        ready.push(ready_record(&engine, record, embedded).await?);
    }
    let records = Records::from_records(ready);
    let done = engine.put(&collection, records, mode, call.key).await?.done;
    let count = done.collection.map_or(0, |state| state.records);
    let RecordsPut { inserted, updated, unchanged, .. } = done.reply;
    Ok(RecordsAdded { collection, inserted, updated, unchanged, count })
}

/// Creates the collection if needed. Refuses to mix vectors of different models.
async fn ensure_collection(engine: &Engine, name: &str, embedded: bool) -> Result<(), Failure> {
    match engine.collection(name).await {
        Ok(state) if embedded && state.model.as_deref() != Some(built_in_model()) => {
            let message = format!("{name} does not use the built-in model");
            Err(Failure::new(Code::ModelUnavailable, message)
                .with_hint("pass a vector with each record"))
        }
        Ok(state) if !embedded && state.model.as_deref() == Some(built_in_model()) => {
            let message = format!("{name} embeds its documents with the built-in model");
            Err(Failure::new(Code::ModelMismatch, message)
                .with_hint("pass documents without vectors"))
        }
        Ok(_) => Ok(()),
        // A new store has no file until its first write.
        Err(failure) if matches!(failure.code, Code::NotFound | Code::NoStore) => {
            let model = embedded.then(|| built_in_model().to_owned());
            let (name, metric) = (name.to_owned(), Metric::Cosine);
            let spec = CollectionSpec { name, dimension: None, metric, model };
            engine.create_collection(spec, true).await.map(drop)
        }
        Err(failure) => Err(failure),
    }
}

async fn ready_record(
    engine: &Engine,
    record: NewRecord,
    embedded: bool,
) -> Result<Record, Failure> {
    let NewRecord { id, document, vector, metadata } = record;
    let bad = |reason: String| Failure::new(Code::BadInput, format!("record {id:?}: {reason}"));
    check_length("document", document.as_deref().unwrap_or_default(), MAX_DOCUMENT_BYTES)?;
    let metadata = Metadata::from_json(metadata.map_or(Value::Null, Value::Object))
        .map_err(|error| bad(error.to_string()))?;
    let vector = match (vector, &document) {
        (Some(vector), _) => vector,
        (None, Some(text)) if embedded => engine.embed(text).await?,
        (None, None) if embedded => {
            return Err(bad("a document or a vector is required".to_owned()));
        }
        (None, _) => return Err(bad("no vector, although other records have one".to_owned())),
    };
    Ok(Record { id, document, metadata, vector })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecordsAdded {
    collection: String,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    count: u64,
}

impl ToolAnswer for RecordsAdded {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let Self { collection, inserted, updated, unchanged, count } = self;
        format!(
            "{collection}: {inserted} new, {updated} replaced, {unchanged} unchanged; {count} in total"
        )
    }
}
