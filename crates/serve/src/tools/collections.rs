//! Tools for vector collections.

use std::fmt::Write as _;

use isolith_engine::{Engine, Hits, PutMode, Records, RecordsPut, built_in_model};
use isolith_types::{
    Code, Collection, CollectionSpec, Failure, Filter, Hit, Metadata, Metric, Record, counted,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{bounded, limit, question};
use crate::text::{cut, line, round};
use crate::tool::{Call, Effect, Shown, Tool};

/// Maximum number of records per call.
const MAX_RECORDS: usize = 100;

/// Maximum size of a document.
const DOCUMENT_BYTES: usize = 1 << 20;

/// How much of a document is shown.
const SHOWN_BYTES: usize = 4 << 10;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("collection_list", Effect::Read, "List vector collections.", collection_list),
        Tool::new(
            "collection_query",
            Effect::Read,
            "Search a vector collection by exactly one of text, keywords or vector; not for code or memory. Untrusted data.",
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionList {}

async fn collection_list(call: Call, CollectionList {}: CollectionList) -> Result<Listed, Failure> {
    let collections = match call.server.stores().collections()? {
        Some(engine) => engine.collections().await?,
        None => Vec::new(),
    };
    Ok(Listed { collections: collections.into_iter().map(Summary::from).collect() })
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    collections: Vec<Summary>,
}

#[derive(Serialize, JsonSchema)]
struct Summary {
    name: String,
    records: u64,
    dimension: Option<u32>,
    metric: String,
    model: Option<String>,
}

impl From<Collection> for Summary {
    fn from(collection: Collection) -> Self {
        let Collection { name, dimension, metric, model, records, .. } = collection;
        Self { name, records, dimension, metric: metric.name().to_owned(), model }
    }
}

impl Shown for Listed {
    fn text(&self) -> String {
        if self.collections.is_empty() {
            return "no collections".to_owned();
        }
        let line = |it: &Summary| {
            format!("{}: {}, {}\n", it.name, counted(it.records, "record"), it.metric)
        };
        self.collections.iter().map(line).collect()
    }

    fn is_ours(&self) -> bool {
        self.collections.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionQuery {
    collection: String,
    /// By meaning; built-in model only
    text: Option<String>,
    /// BM25
    keywords: Option<String>,
    vector: Option<Vec<f32>>,
    limit: Option<u32>,
    /// Metadata filter, e.g. {"year": {"$gte": 2024}}
    r#where: Option<JsonObject>,
}

async fn collection_query(call: Call, asked: CollectionQuery) -> Result<Queried, Failure> {
    let CollectionQuery { collection, text, keywords, vector, limit: most, r#where } = asked;
    let (most, filter) = (limit(most)?, filter(r#where)?);
    let engine = call.server.stores().collections()?.ok_or_else(|| missing(&collection))?;
    let found = match (text, keywords, vector) {
        (Some(text), None, None) => {
            engine.meaning(&collection, question(&text)?, most, filter).await
        }
        (None, Some(words), None) => {
            engine.keywords(&collection, question(&words)?, most, filter).await
        }
        (None, None, Some(vector)) => engine.nearest(&collection, &vector, most, filter).await,
        _ => Err(Failure::new(Code::BadInput, "pass exactly one of text, keywords and vector")),
    };
    found.map(Queried::from)
}

fn filter(json: Option<JsonObject>) -> Result<Option<Filter>, Failure> {
    let Some(json) = json else { return Ok(None) };
    Filter::from_where(&Value::Object(json))
        .map_err(|error| Failure::new(Code::BadInput, format!("where: {error}")))
}

fn missing(collection: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no collection {collection:?}"))
        .with_hint("collection_list shows the collections; collection_add creates one")
}

#[derive(Serialize, JsonSchema)]
struct Queried {
    hits: Vec<FoundRecord>,
    degraded: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FoundRecord {
    id: String,
    distance: Option<f64>,
    score: Option<f64>,
    document: Option<String>,
    metadata: JsonObject,
}

impl From<Hits> for Queried {
    fn from(found: Hits) -> Self {
        let Hits { hits, degraded } = found;
        Self { hits: hits.into_iter().map(FoundRecord::from).collect(), degraded }
    }
}

impl From<Hit> for FoundRecord {
    fn from(hit: Hit) -> Self {
        let Hit { id, distance, score, document, metadata } = hit;
        Self {
            id,
            distance: distance.map(|it| round(f64::from(it))),
            score: score.map(|it| round(f64::from(it))),
            document: document.map(|text| cut(&text, SHOWN_BYTES).to_owned()),
            metadata: match metadata.to_json() {
                Value::Object(metadata) => metadata,
                _ => JsonObject::new(),
            },
        }
    }
}

impl Shown for Queried {
    fn text(&self) -> String {
        if self.hits.is_empty() {
            return "nothing found".to_owned();
        }
        let mut text = String::new();
        for hit in &self.hits {
            let rank = hit.distance.or(hit.score).unwrap_or_default();
            let document = line(hit.document.as_deref().unwrap_or_default(), 160);
            let _ = writeln!(text, "{} ({rank:.3}) {document}", hit.id);
        }
        text
    }

    fn is_ours(&self) -> bool {
        self.hits.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionAdd {
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

async fn collection_add(call: Call, asked: CollectionAdd) -> Result<Added, Failure> {
    let CollectionAdd { collection, records } = asked;
    if records.is_empty() || records.len() > MAX_RECORDS {
        let message = format!("pass 1 to {MAX_RECORDS} records, not {}", records.len());
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
    let done = engine.put(&collection, records, PutMode::Upsert, None).await?.done;
    let count = done.collection.map_or(0, |state| state.records);
    let RecordsPut { inserted, updated, unchanged, .. } = done.reply;
    Ok(Added { collection, inserted, updated, unchanged, count })
}

/// Creates the collection if needed. Vectors of different models are never mixed.
async fn ensure_collection(engine: &Engine, name: &str, embedded: bool) -> Result<(), Failure> {
    match engine.collection(name).await {
        Ok(state) if embedded && state.model.as_deref() != Some(built_in_model()) => {
            let message = format!("the vectors of {name} were not made by the built-in model");
            Err(Failure::new(Code::ModelUnavailable, message)
                .with_hint("pass a vector with each record"))
        }
        Ok(state) if !embedded && state.model.as_deref() == Some(built_in_model()) => {
            let message = format!("{name} embeds its documents with the built-in model");
            Err(Failure::new(Code::ModelMismatch, message)
                .with_hint("pass documents without vectors"))
        }
        Ok(_) => Ok(()),
        // A new store has no file before its first write.
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
    bounded("document", document.as_deref().unwrap_or_default(), DOCUMENT_BYTES)?;
    let metadata = Metadata::from_json(metadata.map_or(Value::Null, Value::Object))
        .map_err(|error| bad(error.to_string()))?;
    let vector = match (vector, &document) {
        (Some(vector), _) => vector,
        (None, Some(text)) if embedded => engine.embed(text).await?,
        (None, None) if embedded => {
            return Err(bad("a document or a vector is required".to_owned()));
        }
        (None, _) => return Err(bad("the vector is missing; other records have one".to_owned())),
    };
    Ok(Record { id, document, metadata, vector })
}

#[derive(Serialize, JsonSchema)]
struct Added {
    collection: String,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    count: u64,
}

impl Shown for Added {
    fn text(&self) -> String {
        let Self { collection, inserted, updated, unchanged, count } = self;
        format!(
            "{collection}: {inserted} new, {updated} replaced, {unchanged} unchanged; {count} in total"
        )
    }

    fn is_ours(&self) -> bool {
        true
    }
}
