//! Endpoints for the records of collections.

use isolith_engine::{Page, PutMode, StoredRecord, Which};
use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collections::both_filters;
use super::endpoint::{Endpoint, Verb};
use crate::tool::{Call, Limits};
use crate::tools::collections::{CollectionAdd, RecordsAdded, add_records};
use crate::tools::drawer::object;
use crate::tools::records::{
    RecordChange, RecordsChanged, RecordsGone, change_records, delete_records as remove_records,
    get_records as find_records, sorted_by,
};
use crate::vector::{ShownVector, VectorEncoding};

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
    /// Vectors as lists of numbers (the default), or as base64 of little-endian f32.
    encoding: Option<VectorEncoding>,
}

async fn list_records(call: Call, arguments: RecordPage) -> Result<RecordList, Failure> {
    let RecordPage { collection, limit, offset, sort, descending, vectors, encoding } = arguments;
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
        encoding,
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
    /// Vectors as lists of numbers (the default), or as base64 of little-endian f32.
    encoding: Option<VectorEncoding>,
}

async fn get_records(call: Call, arguments: RecordsToGet) -> Result<RecordList, Failure> {
    let limit = call.limit(arguments.limit, PAGE)?;
    let filter = both_filters(arguments.r#where, arguments.where_document)?;
    let sort = sorted_by(arguments.sort, arguments.descending)?;
    let offset = arguments.offset.unwrap_or(0);
    let page = Page { after_row: 0, offset, limit: limit.into() };
    let vectors = arguments.vectors.unwrap_or(false);
    let encoding = vectors.then(|| arguments.encoding.unwrap_or_default());
    let which = (arguments.ids, filter);
    let found = find_records(&call, &arguments.collection, which, sort, page, vectors).await?;
    let shown = |stored| RecordAnswer::of(stored, encoding);
    Ok(RecordList { records: found.into_iter().map(shown).collect() })
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
    vector: Option<ShownVector>,
}

impl RecordAnswer {
    fn of(StoredRecord { record, .. }: StoredRecord, vectors: Option<VectorEncoding>) -> Self {
        Self {
            metadata: object(&record.metadata),
            id: record.id,
            document: record.document,
            vector: vectors.map(|encoding| ShownVector::of(record.vector, encoding)),
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
    let which = (Some(vec![id.clone()]), None);
    let found = find_records(&call, &name, which, None, Page::default(), true).await?.pop();
    let shown = |stored| RecordAnswer::of(stored, Some(VectorEncoding::Numbers));
    found.map(shown).ok_or_else(|| no_record(&name, &id))
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
    records: Vec<RecordChange>,
}

async fn update_records(call: Call, arguments: Changes) -> Result<RecordsChanged, Failure> {
    let Changes { collection, records } = arguments;
    Ok(change_records(&call, &collection, records, MAX_RECORDS).await?.0)
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
    remove_records(&call, &arguments.collection, which).await
}

async fn delete_record(call: Call, arguments: RecordId) -> Result<RecordsGone, Failure> {
    let which = Which::Ids(vec![arguments.id]);
    remove_records(&call, &arguments.collection, which).await
}
