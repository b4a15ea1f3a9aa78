//! Endpoints for the records of collections.

use isolith_engine::{Page, Patch, PutMode, Selection, Sort, StoredRecord, Which, built_in_model};
use isolith_types::{Code, Failure, Metadata};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::collections::{both_filters, collection};
use super::endpoint::{Endpoint, Verb};
use crate::tool::{Call, Limits};
use crate::tools::collections::{CollectionAdd, RecordsAdded, add_records};
use crate::tools::drawer::object;

/// Numbers of records in a page.
const PAGE: Limits = Limits { default: 100, agent: 100, program: 10_000 };

/// Maximum number of records in a request.
const MAX_RECORDS: usize = 10_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/collections/{collection}/records"),
            "record_list",
            "List records in the order of their arrival, or sorted",
            list_records,
        ),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/get"),
            "record_find",
            "Get records by their ids or by a filter",
            get_records,
        ),
        Endpoint::new(
            (Verb::Put, "/collections/{collection}/records"),
            "collection_add",
            "Add records, or replace those with the same id; creates the collection if needed",
            put_records,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/records"),
            "record_add",
            "Add records; refused if one with the same id has other content",
            new_records,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Patch, "/collections/{collection}/records"),
            "record_update",
            "Change parts of records; metadata is merged",
            update_records,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/delete"),
            "record_delete_many",
            "Delete records by their ids or by a filter",
            delete_records,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/collections/{collection}/records/{id}"),
            "record_get",
            "Get a record",
            get_record,
        ),
        Endpoint::new(
            (Verb::Delete, "/collections/{collection}/records/{id}"),
            "record_delete",
            "Delete a record",
            delete_record,
        )
        .keyed(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordPage {
    collection: String,
    /// Maximum number of records: 1 to 10000, by default 100.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
    /// Number of records to skip.
    offset: Option<u64>,
    /// A metadata key to sort by: numbers, strings, false, true, then records without a single
    /// value.
    sort: Option<String>,
    /// Sort from the highest value to the lowest; records without one still come last.
    descending: Option<bool>,
    /// Include vectors.
    vectors: Option<bool>,
}

async fn list_records(call: Call, arguments: RecordPage) -> Result<RecordList, Failure> {
    let RecordPage { collection, limit, offset, sort, descending, vectors } = arguments;
    let all = RecordsToGet {
        collection,
        ids: None,
        r#where: None,
        where_document: None,
        limit,
        offset,
        sort,
        descending,
        vectors,
    };
    get_records(call, all).await
}

/// Which records to get: by ids, or by filters, or all.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordsToGet {
    collection: String,
    /// In this order, unless sorted; unknown ids are skipped.
    ids: Option<Vec<String>>,
    /// Only records whose metadata match.
    r#where: Option<JsonObject>,
    /// Only records whose documents match.
    where_document: Option<JsonObject>,
    /// Maximum number of records: 1 to 10000, by default 100.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
    /// Number of records to skip.
    offset: Option<u64>,
    /// A metadata key to sort by: numbers, strings, false, true, then records without a single
    /// value.
    sort: Option<String>,
    /// Sort from the highest value to the lowest; records without one still come last.
    descending: Option<bool>,
    /// Include vectors.
    vectors: Option<bool>,
}

async fn get_records(call: Call, arguments: RecordsToGet) -> Result<RecordList, Failure> {
    let limit = call.limit(arguments.limit, PAGE)?;
    let filter = both_filters(arguments.r#where, arguments.where_document)?;
    let which = match (arguments.ids, filter) {
        (Some(_), Some(_)) => {
            let message = "pass either ids or filters, not both";
            return Err(Failure::new(Code::BadInput, message));
        }
        (Some(ids), None) => Selection::Ids(ids),
        (None, Some(filter)) => Selection::Matching(filter),
        (None, None) => Selection::All,
    };
    let sort = sort(arguments.sort, arguments.descending)?;
    let (engine, state) = collection(&call, &arguments.collection).await?;
    let offset = arguments.offset.unwrap_or(0);
    let page = Page { after_row: 0, offset, limit: limit.into() };
    let vectors = arguments.vectors.unwrap_or(false);
    let found = engine.get_sorted(&state.name, which, sort, page, vectors).await?;
    let shown = |stored| RecordAnswer::of(stored, vectors);
    Ok(RecordList { records: found.into_iter().map(shown).collect() })
}

fn sort(key: Option<String>, descending: Option<bool>) -> Result<Option<Sort>, Failure> {
    match (key, descending) {
        (Some(key), descending) => Ok(Some(Sort { key, descending: descending.unwrap_or(false) })),
        (None, Some(true)) => Err(Failure::new(Code::BadInput, "descending needs sort")
            .with_hint("pass the metadata key to sort by as sort")),
        (None, Some(false) | None) => Ok(None),
    }
}

#[derive(Serialize, JsonSchema)]
struct RecordList {
    records: Vec<RecordAnswer>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Record")]
struct RecordAnswer {
    id: String,
    document: Option<String>,
    metadata: JsonObject,
    /// Null unless vectors were asked for.
    vector: Option<Vec<f32>>,
}

impl RecordAnswer {
    fn of(StoredRecord { record, .. }: StoredRecord, vectors: bool) -> Self {
        Self {
            metadata: object(&record.metadata),
            id: record.id,
            document: record.document,
            vector: vectors.then_some(record.vector),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordId {
    collection: String,
    id: String,
}

async fn get_record(call: Call, arguments: RecordId) -> Result<RecordAnswer, Failure> {
    let RecordId { collection: name, id } = arguments;
    let (engine, _) = collection(&call, &name).await?;
    let which = Selection::Ids(vec![id.clone()]);
    let found = engine.get(&name, which, Page::default(), true).await?.pop();
    found.map(|stored| RecordAnswer::of(stored, true)).ok_or_else(|| no_record(&name, &id))
}

fn no_record(collection: &str, id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("{collection} has no record {id:?}"))
        .with_hint("GET /v1/collections/{collection}/records lists the records")
}

async fn put_records(call: Call, arguments: CollectionAdd) -> Result<RecordsAdded, Failure> {
    add_records(call, arguments, PutMode::Upsert).await
}

async fn new_records(call: Call, arguments: CollectionAdd) -> Result<RecordsAdded, Failure> {
    add_records(call, arguments, PutMode::Add { skip_existing: false }).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Changes {
    collection: String,
    /// Up to 10000.
    #[schemars(length(min = 1, max = 10000))]
    records: Vec<Change>,
}

/// Changes of a record; what is omitted is kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    id: String,
    /// Null removes it.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    document: Option<Option<String>>,
    /// Merged; null removes a key.
    metadata: Option<JsonObject>,
    vector: Option<Vec<f32>>,
}

/// Tells null from a field that is not there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

async fn update_records(call: Call, arguments: Changes) -> Result<RecordsChanged, Failure> {
    let Changes { collection: name, records } = arguments;
    check_count(records.len())?;
    let (engine, state) = collection(&call, &name).await?;
    let embedded = state.model.as_deref() == Some(built_in_model());
    let mut patches = Vec::with_capacity(records.len());
    for Change { id, document, metadata, vector } in records {
        let vector = match (&document, vector) {
            (_, Some(_)) if embedded => {
                let message = format!("{name} embeds its documents with the built-in model");
                return Err(Failure::new(Code::ModelMismatch, message)
                    .with_hint("pass documents without vectors"));
            }
            (Some(Some(text)), None) if embedded => Some(engine.embed(text).await?),
            (_, vector) => vector,
        };
        let metadata = metadata.map(|json| Metadata::from_json(Value::Object(json))).transpose();
        let metadata = metadata
            .map_err(|error| Failure::new(Code::BadInput, format!("record {id:?}: {error}")))?;
        patches.push(Patch { id, document, metadata, vector });
    }
    let done = engine.update(&name, patches, call.key).await?.done.reply;
    Ok(RecordsChanged { updated: done.updated, unchanged: done.unchanged, missing: done.missing })
}

#[derive(Serialize, JsonSchema)]
struct RecordsChanged {
    updated: u64,
    unchanged: u64,
    /// Number of ids that do not exist.
    missing: u64,
}

fn check_count(count: usize) -> Result<(), Failure> {
    match count {
        1..=MAX_RECORDS => Ok(()),
        _ => {
            let message = format!("pass 1 to {MAX_RECORDS} records, not {count}");
            Err(Failure::new(Code::BadInput, message))
        }
    }
}

/// Which records to delete: by ids or by filters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordsToDelete {
    collection: String,
    ids: Option<Vec<String>>,
    /// Records whose metadata match.
    r#where: Option<JsonObject>,
    /// Records whose documents match.
    where_document: Option<JsonObject>,
}

async fn delete_records(call: Call, arguments: RecordsToDelete) -> Result<RecordsGone, Failure> {
    let filter = both_filters(arguments.r#where, arguments.where_document)?;
    let which = match (arguments.ids, filter) {
        (Some(ids), None) => Which::Ids(ids),
        (None, Some(filter)) => Which::Matching(filter),
        _ => {
            let message = "pass either ids or filters";
            return Err(Failure::new(Code::BadInput, message)
                .with_hint("DELETE /v1/collections/{collection} deletes all of it"));
        }
    };
    remove(&call, &arguments.collection, which).await
}

async fn delete_record(call: Call, arguments: RecordId) -> Result<RecordsGone, Failure> {
    remove(&call, &arguments.collection, Which::Ids(vec![arguments.id])).await
}

async fn remove(call: &Call, name: &str, which: Which) -> Result<RecordsGone, Failure> {
    let (engine, _) = collection(call, name).await?;
    let done = engine.delete(name, which, call.key).await?.done.reply;
    Ok(RecordsGone { deleted: done.deleted, missing: done.missing })
}

#[derive(Serialize, JsonSchema)]
struct RecordsGone {
    deleted: u64,
    /// Number of ids that do not exist.
    missing: u64,
}
