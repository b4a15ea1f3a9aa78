//! Endpoints for collections.

use isolith_engine::{Hits, Receipt, Rejected};
use isolith_types::{Code, Collection, Failure, Filter, Hit};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::endpoint::{Endpoint, Verb};
use crate::arguments::NoArguments;
use crate::stores::StoreOwner;
use crate::tool::Call;
use crate::tools::collections::{
    Access, CollectionMade, MetricName, Question, filter, find_records, list_collections,
    make_collection, open_collection,
};
use crate::tools::drawer::object;
use crate::tools::ingest::{IngestFile, load_file};
use crate::tools::records::delete_collection;
use crate::vector::GivenVector;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new((Verb::Get, "/collections"), "collection_list", "List the collections", list),
        Endpoint::new(
            (Verb::Post, "/collections"),
            "collection_create",
            "Create a collection",
            create,
        ),
        Endpoint::new(
            (Verb::Get, "/collections/{collection}"),
            "collection_get",
            "Get the properties of a collection",
            get,
        ),
        Endpoint::new(
            (Verb::Patch, "/collections/{collection}"),
            "collection_rename",
            "Rename a collection",
            rename,
        ),
        Endpoint::new(
            (Verb::Delete, "/collections/{collection}"),
            "collection_delete",
            "Delete a collection and its records",
            delete,
        ),
        Endpoint::new(
            (Verb::Get, "/collections/{collection}/count"),
            "collection_count",
            "Count the records",
            count,
        ),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/query"),
            "collection_query",
            "Find records by text or vector, by keywords, or by both",
            query,
        ),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/ingest"),
            "ingest_file",
            "Load a file of embeddings on the server's machine",
            ingest,
        )
        .job(),
    ]
}

async fn list(call: Call, _: NoArguments) -> Result<CollectionList, Failure> {
    let collections = list_collections(&call).await?;
    Ok(CollectionList { collections: collections.into_iter().map(Described::from).collect() })
}

#[derive(Serialize, JsonSchema)]
struct CollectionList {
    collections: Vec<Described>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Collection")]
struct Described {
    name: String,
    records: u64,
    /// The length of its vectors; null until the first one if it was not given.
    dimension: Option<u32>,
    metric: String,
    /// The model of its vectors.
    model: Option<String>,
    generation: u64,
    /// Changes since the generation.
    tail: u64,
    /// Whose store it is in: `project` or `user`.
    store: String,
}

impl From<(StoreOwner, Collection)> for Described {
    fn from((owner, collection): (StoreOwner, Collection)) -> Self {
        let Collection { name, dimension, metric, model, records, generation, tail } = collection;
        let (metric, store) = (metric.name().to_owned(), owner.name().to_owned());
        Self { name, records, dimension, metric, model, generation, tail, store }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewCollection {
    #[schemars(length(min = 1))]
    name: String,
    /// The length of its vectors; by default that of the first one.
    #[schemars(range(min = 1))]
    dimension: Option<u32>,
    /// How vectors are compared, by default cosine.
    metric: Option<MetricName>,
    /// The model of its vectors: any name, or `built-in` to have documents embedded here.
    model: Option<String>,
    /// Accept an existing collection with the same properties.
    if_missing: Option<bool>,
}

async fn create(call: Call, arguments: NewCollection) -> Result<CollectionMade, Failure> {
    let NewCollection { name, dimension, metric, model, if_missing } = arguments;
    let properties = (dimension, metric, model);
    make_collection(&call, name, properties, if_missing.unwrap_or(false)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionName {
    collection: String,
}

async fn get(call: Call, arguments: CollectionName) -> Result<Described, Failure> {
    let name = arguments.collection;
    let (owner, _, state) = open_collection(&call, &name, Access::Read).await?;
    Ok((owner, Collection { name, ..state.summary() }).into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Renaming {
    collection: String,
    /// The new name.
    #[schemars(length(min = 1))]
    name: String,
}

async fn rename(call: Call, arguments: Renaming) -> Result<Described, Failure> {
    let Renaming { collection, name } = arguments;
    let (owner, engine, state) = open_collection(&call, &collection, Access::Write).await?;
    engine.rename_in(call.server.stores().database(), &collection, &name).await?;
    Ok((owner, Collection { name, ..state.summary() }).into())
}

async fn delete(call: Call, arguments: CollectionName) -> Result<CollectionGone, Failure> {
    let deleted = delete_collection(&call, &arguments.collection).await?;
    Ok(CollectionGone { collection: arguments.collection, deleted })
}

#[derive(Serialize, JsonSchema)]
struct CollectionGone {
    collection: String,
    /// Number of records that it had.
    deleted: u64,
}

async fn count(call: Call, arguments: CollectionName) -> Result<Count, Failure> {
    let (_, _, state) = open_collection(&call, &arguments.collection, Access::Read).await?;
    Ok(Count { collection: arguments.collection, count: state.records })
}

#[derive(Serialize, JsonSchema)]
struct Count {
    collection: String,
    count: u64,
}

/// A query: text or vector, keywords, or both, whose rankings are then fused.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    collection: String,
    /// Embedded with the built-in model, if the collection's vectors come from it. Not together
    /// with a vector.
    text: Option<String>,
    /// Ranked with BM25.
    keywords: Option<String>,
    vector: Option<GivenVector>,
    /// Maximum number of hits: 1 to 1000, by default 10.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Only records whose metadata match, such as {"year": {"$gte": 2024}}.
    r#where: Option<JsonObject>,
    /// Only records whose documents match, such as {"$contains": "word"}.
    where_document: Option<JsonObject>,
}

async fn query(call: Call, arguments: Query) -> Result<QueryAnswer, Failure> {
    let Query { collection: name, text, keywords, vector, limit, r#where, where_document } =
        arguments;
    let filter = both_filters(r#where, where_document)?;
    let question = Question { text, keywords, vector: vector.map(|it| it.0) };
    let Hits { hits, degraded } = find_records(&call, &name, question, limit, filter).await?;
    Ok(QueryAnswer { hits: hits.into_iter().map(HitAnswer::from).collect(), degraded })
}

/// What matches both filters; `None` if there is none.
pub(super) fn both_filters(
    r#where: Option<JsonObject>,
    where_document: Option<JsonObject>,
) -> Result<Option<Filter>, Failure> {
    let documents = match where_document {
        Some(json) => Filter::from_where_document(&Value::Object(json))
            .map_err(|error| Failure::new(Code::BadInput, format!("where_document: {error}")))?,
        None => None,
    };
    let filters: Vec<Filter> = filter(r#where)?.into_iter().chain(documents).collect();
    Ok((!filters.is_empty()).then_some(Filter::And(filters)))
}

#[derive(Serialize, JsonSchema)]
struct QueryAnswer {
    /// The best first.
    hits: Vec<HitAnswer>,
    /// Why the answer is incomplete, or took longer than it should.
    degraded: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecordHit")]
struct HitAnswer {
    id: String,
    /// For text and vector; smaller is nearer.
    distance: Option<f32>,
    /// For keywords; larger is better. Null if the keywords did not find the record.
    score: Option<f32>,
    /// For both together, what the hits are ordered by: at most 1, larger is better.
    fused: Option<f32>,
    /// For both together, what contributed to that.
    why: Vec<String>,
    document: Option<String>,
    metadata: JsonObject,
}

impl From<Hit> for HitAnswer {
    fn from(Hit { id, distance, score, fused, why, document, metadata }: Hit) -> Self {
        Self { id, distance, score, fused, why, document, metadata: object(&metadata) }
    }
}

async fn ingest(call: Call, arguments: IngestFile) -> Result<LoadReceipt, Failure> {
    load_file(call, arguments).await.map(LoadReceipt::from)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IngestReceipt")]
struct LoadReceipt {
    collection: String,
    /// Number of rows in the file.
    rows: u64,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    /// The first rejected rows.
    rejected: Vec<RejectedRow>,
    rejected_rows: u64,
    count_before: u64,
    count_after: u64,
    seconds: f64,
}

#[derive(Serialize, JsonSchema)]
struct RejectedRow {
    row: u64,
    reason: String,
}

impl From<Receipt> for LoadReceipt {
    fn from(receipt: Receipt) -> Self {
        let rejected = receipt.rejected.into_iter();
        let rejected = rejected.map(|Rejected { row, reason }| RejectedRow { row, reason });
        Self {
            collection: receipt.collection,
            rows: receipt.rows,
            inserted: receipt.inserted,
            updated: receipt.updated,
            unchanged: receipt.unchanged,
            rejected: rejected.collect(),
            rejected_rows: receipt.rejected_rows,
            count_before: receipt.count_before,
            count_after: receipt.count_after,
            seconds: receipt.seconds,
        }
    }
}
