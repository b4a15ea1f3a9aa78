//! Tools for the records of collections.

use std::fmt::Write as _;

use isolith_engine::{
    Page, Patch, RecordsUpdated, Selection, Sort, StoredRecord, Which, is_built_in,
};
use isolith_types::{Code, Failure, Filter, Metadata, counted};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::text::{one_line, truncate};
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};
use crate::tools::collections::{
    Access, bad_record, embed_patches, embeds_documents, filter, open_collection,
};
use crate::tools::drawer::object;
use crate::vector::GivenVector;

/// Maximum size of a document in an answer.
const MAX_DOCUMENT_BYTES: usize = 4 << 10;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "collection_get",
            Effect::Read,
            "Get records of a collection by ids or filter, or a page of all. Use it to look at what is stored. To search by content use collection_query. Example: {\"collection\":\"papers\",\"ids\":[\"1\"]}",
            collection_get,
        ),
        Tool::new(
            "collection_delete",
            Effect::Change,
            "Delete records of a collection by ids or filter, or with all the collection itself. Use it when the user asks to. To change records use collection_add. Example: {\"collection\":\"papers\",\"ids\":[\"1\"]}",
            collection_delete,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionGet {
    /// Its name
    collection: String,
    /// These records
    ids: Option<Vec<String>>,
    /// Metadata filter
    r#where: Option<JsonObject>,
    /// Metadata key
    sort: Option<String>,
    /// Largest first
    descending: Option<bool>,
    /// 1-100, default 10
    limit: Option<u32>,
    /// How many to skip
    offset: Option<u64>,
}

async fn collection_get(call: Call, arguments: CollectionGet) -> Result<RecordsShown, Failure> {
    let CollectionGet { collection, ids, r#where, sort, descending, limit, offset } = arguments;
    let limit = call.limit(limit, Limits::RESULTS)?;
    let page = Page { after_row: 0, offset: offset.unwrap_or(0), limit: limit.into() };
    let (which, sort) = ((ids, filter(r#where)?), sorted_by(sort, descending)?);
    let found = get_records(&call, &collection, which, sort, page, false).await?;
    Ok(RecordsShown { records: found.into_iter().map(RecordShown::from).collect() })
}

/// The order of records: by a metadata key, or that of their insertion.
pub(crate) fn sorted_by(
    key: Option<String>,
    descending: Option<bool>,
) -> Result<Option<Sort>, Failure> {
    match (key, descending) {
        (Some(key), descending) => Ok(Some(Sort { key, descending: descending.unwrap_or(false) })),
        (None, Some(true)) => Err(Failure::new(Code::BadInput, "descending needs sort")
            .with_hint("pass the metadata key to sort by as sort")),
        (None, Some(false) | None) => Ok(None),
    }
}

/// Gets records by ids or by a filter, or a page of all.
pub(crate) async fn get_records(
    call: &Call,
    collection: &str,
    which: (Option<Vec<String>>, Option<Filter>),
    sort: Option<Sort>,
    page: Page,
    vectors: bool,
) -> Result<Vec<StoredRecord>, Failure> {
    let which = match which {
        (Some(_), Some(_)) => {
            let message = "pass either ids or filters, not both";
            return Err(Failure::new(Code::BadInput, message));
        }
        (Some(ids), None) => Selection::Ids(ids),
        (None, Some(filter)) => Selection::Matching(filter),
        (None, None) => Selection::All,
    };
    let (_, engine, state) = open_collection(call, collection, Access::Read).await?;
    engine.get_sorted(&state.name, which, sort, page, vectors).await
}

#[derive(Serialize, JsonSchema)]
struct RecordsShown {
    records: Vec<RecordShown>,
}

#[derive(Serialize, JsonSchema)]
struct RecordShown {
    id: String,
    document: Option<String>,
    metadata: JsonObject,
}

impl From<StoredRecord> for RecordShown {
    fn from(StoredRecord { record, .. }: StoredRecord) -> Self {
        let document = record.document;
        Self {
            id: record.id,
            document: document.map(|text| truncate(&text, MAX_DOCUMENT_BYTES).to_owned()),
            metadata: object(&record.metadata),
        }
    }
}

impl ToolAnswer for RecordsShown {
    fn text(&self) -> String {
        if self.records.is_empty() {
            return "no records".to_owned();
        }
        let mut text = String::new();
        for record in &self.records {
            let document = one_line(record.document.as_deref().unwrap_or_default(), 160);
            let _ = writeln!(text, "{} {document}", record.id);
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.records.is_empty()
    }
}

/// Changes of a record; what is omitted is kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordChange {
    /// Of the record
    pub(crate) id: String,
    /// Null removes it
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    pub(crate) document: Option<Option<String>>,
    /// Merged; null removes a key
    pub(crate) metadata: Option<JsonObject>,
    /// Numbers
    pub(crate) vector: Option<GivenVector>,
}

/// Tells null from a field that is not there.
pub(crate) fn given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Changes parts of records, and counts the records of the collection. In one that embeds its
/// documents, a changed document gets a new vector.
pub(crate) async fn change_records(
    call: &Call,
    collection: &str,
    records: Vec<RecordChange>,
    most: usize,
) -> Result<(RecordsChanged, u64), Failure> {
    if records.is_empty() || records.len() > most {
        let message = format!("pass 1 to {most} records, not {}", records.len());
        return Err(Failure::new(Code::BadInput, message));
    }
    let (_, engine, state) = open_collection(call, collection, Access::Write).await?;
    let embedded = is_built_in(state.model.as_deref());
    let mut patches = Vec::with_capacity(records.len());
    for RecordChange { id, document, metadata, vector } in records {
        if embedded && vector.is_some() {
            return Err(embeds_documents(collection));
        }
        let metadata = metadata.map(|json| Metadata::from_json(Value::Object(json))).transpose();
        let metadata = metadata.map_err(|error| bad_record(&id, &error.to_string()))?;
        patches.push(Patch { id, document, metadata, vector: vector.map(|it| it.0) });
    }
    if embedded {
        embed_patches(&engine, &mut patches).await?;
    }
    let RecordsUpdated { updated, unchanged, missing } =
        engine.update(&state.name, patches, call.key).await?.done.reply;
    Ok((RecordsChanged { updated, unchanged, missing }, state.records))
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecordsChanged {
    pub(crate) updated: u64,
    pub(crate) unchanged: u64,
    /// Number of ids that do not exist.
    pub(crate) missing: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionDelete {
    /// Its name
    collection: String,
    /// These records
    ids: Option<Vec<String>>,
    /// Metadata filter
    r#where: Option<JsonObject>,
    /// Delete the collection itself
    all: Option<bool>,
}

async fn collection_delete(
    call: Call,
    arguments: CollectionDelete,
) -> Result<RecordsGone, Failure> {
    let CollectionDelete { collection, ids, r#where, all } = arguments;
    let which = match (ids, filter(r#where)?, all.unwrap_or(false)) {
        (Some(ids), None, false) => Which::Ids(ids),
        (None, Some(filter), false) => Which::Matching(filter),
        (None, None, true) => {
            let deleted = delete_collection(&call, &collection).await?;
            return Ok(RecordsGone { deleted, missing: 0, whole: Some(collection) });
        }
        _ => {
            let message = "pass exactly one of ids, where and all";
            return Err(Failure::new(Code::BadInput, message));
        }
    };
    delete_records(&call, &collection, which).await
}

/// Deletes a collection, and returns how many records it had.
pub(crate) async fn delete_collection(call: &Call, collection: &str) -> Result<u64, Failure> {
    let (_, engine, state) = open_collection(call, collection, Access::Write).await?;
    Ok(engine.delete_collection(&state.name).await?.done.reply.deleted)
}

/// Deletes records.
pub(crate) async fn delete_records(
    call: &Call,
    collection: &str,
    which: Which,
) -> Result<RecordsGone, Failure> {
    let (_, engine, state) = open_collection(call, collection, Access::Write).await?;
    let done = engine.delete(&state.name, which, call.key).await?.done.reply;
    Ok(RecordsGone { deleted: done.deleted, missing: done.missing, whole: None })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecordsGone {
    deleted: u64,
    /// Number of ids that do not exist.
    missing: u64,
    /// The collection, if it is gone as well.
    #[serde(skip)]
    whole: Option<String>,
}

impl ToolAnswer for RecordsGone {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let records = counted(self.deleted, "record");
        match (&self.whole, self.missing) {
            (Some(collection), _) => format!("deleted the collection {collection} with {records}"),
            (None, 0) => format!("deleted {records}"),
            (None, missing) => format!("deleted {records}, {} not found", counted(missing, "id")),
        }
    }
}
