//! Counting, getting and querying records.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use isolith_engine::{NearRecord, Page, Selection};
use isolith_types::{Metadata, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Chroma;
use super::backend::Addressed;
use super::change::{CollectionPath, uuid_of};
use super::embedding;
use super::error::{ChromaError, Reply};
use super::filters::combined;
use super::metadata::shown;
use super::reply::{bytes_reply, ok};
use super::request::parse;
use super::vectors::QueryVectors;

/// Records read with one job.
const PAGE: u64 = 5_000;

/// Maximum size of the records of one reply, in memory.
const MAX_REPLY_BYTES: usize = 512 << 20;

/// The number of results of a query by default.
const DEFAULT_RESULTS: u32 = 10;

/// What to include in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Include {
    Distances,
    Documents,
    Embeddings,
    Metadatas,
    Uris,
}

#[derive(Deserialize)]
#[serde(rename = "GetRequestPayload")]
struct Get {
    ids: Option<Vec<String>>,
    #[serde(default)]
    r#where: Json,
    #[serde(default)]
    where_document: Json,
    limit: Option<u32>,
    offset: Option<u32>,
    #[serde(default = "default_get")]
    include: Vec<Include>,
}

#[derive(Deserialize)]
#[serde(rename = "QueryRequestPayload")]
struct Query {
    ids: Option<Vec<String>>,
    #[serde(default)]
    r#where: Json,
    #[serde(default)]
    where_document: Json,
    query_embeddings: QueryVectors,
    n_results: Option<u32>,
    #[serde(default = "default_query")]
    include: Vec<Include>,
}

/// The questions of a query to a collection that embeds them, as texts. Chroma's clients can send
/// texts only where vectors are expected.
#[derive(Deserialize)]
struct Questions {
    query_embeddings: Option<Vec<String>>,
    query_texts: Option<Vec<String>>,
}

fn default_get() -> Vec<Include> {
    vec![Include::Documents, Include::Metadatas]
}

fn default_query() -> Vec<Include> {
    vec![Include::Documents, Include::Metadatas, Include::Distances]
}

/// The reply to `get`, column by column.
#[derive(Serialize)]
struct Columns {
    ids: Vec<String>,
    embeddings: Option<Vec<Vec<f32>>>,
    documents: Option<Vec<Option<String>>>,
    uris: Option<Vec<Json>>,
    metadatas: Option<Vec<Json>>,
}

impl Columns {
    fn of(records: Vec<Record>, include: &[Include]) -> Self {
        let list = |what| include.contains(&what).then(Vec::new);
        let mut columns = Self {
            ids: Vec::with_capacity(records.len()),
            embeddings: include.contains(&Include::Embeddings).then(Vec::new),
            documents: include.contains(&Include::Documents).then(Vec::new),
            uris: list(Include::Uris),
            metadatas: list(Include::Metadatas),
        };
        for Record { id, document, metadata, vector } in records {
            columns.ids.push(id);
            if let Some(embeddings) = &mut columns.embeddings {
                embeddings.push(vector);
            }
            if let Some(documents) = &mut columns.documents {
                documents.push(document);
            }
            columns.push_metadata(&metadata);
        }
        columns
    }

    fn push_metadata(&mut self, metadata: &Metadata) {
        if self.uris.is_none() && self.metadatas.is_none() {
            return;
        }
        let (metadata, uri) = shown(metadata);
        if let Some(uris) = &mut self.uris {
            uris.push(uri);
        }
        if let Some(metadatas) = &mut self.metadatas {
            metadatas.push(metadata);
        }
    }
}

#[derive(Serialize)]
struct GetReply {
    #[serde(flatten)]
    columns: Columns,
    include: Vec<Include>,
}

/// The reply to `query`: a list of columns for each vector.
#[derive(Default, Serialize)]
struct QueryReply {
    ids: Vec<Vec<String>>,
    embeddings: Option<Vec<Vec<Vec<f32>>>>,
    documents: Option<Vec<Vec<Option<String>>>>,
    uris: Option<Vec<Vec<Json>>>,
    metadatas: Option<Vec<Vec<Json>>>,
    distances: Option<Vec<Vec<f32>>>,
    include: Vec<Include>,
}

impl QueryReply {
    fn of(found: Vec<Vec<NearRecord>>, include: Vec<Include>) -> Self {
        let mut reply = Self {
            embeddings: include.contains(&Include::Embeddings).then(Vec::new),
            documents: include.contains(&Include::Documents).then(Vec::new),
            uris: include.contains(&Include::Uris).then(Vec::new),
            metadatas: include.contains(&Include::Metadatas).then(Vec::new),
            distances: include.contains(&Include::Distances).then(Vec::new),
            ..Self::default()
        };
        for near in found {
            let distances = near.iter().map(|near| near.distance).collect();
            let records = near.into_iter().map(|near| near.record).collect();
            let columns = Columns::of(records, &include);
            reply.ids.push(columns.ids);
            push(&mut reply.embeddings, columns.embeddings);
            push(&mut reply.documents, columns.documents);
            push(&mut reply.uris, columns.uris);
            push(&mut reply.metadatas, columns.metadatas);
            push(&mut reply.distances, Some(distances));
        }
        reply.include = include;
        reply
    }
}

fn push<T>(list: &mut Option<Vec<T>>, item: Option<T>) {
    if let (Some(list), Some(item)) = (list, item) {
        list.push(item);
    }
}

pub(super) async fn count(State(chroma): State<Chroma>, path: CollectionPath) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, &uuid)?;
    match collection.engine.collection(&collection.name).await {
        Ok(state) => Ok(ok(&state.records)),
        Err(failure) => Err(collection.explain(failure, None).await),
    }
}

/// Records in the order in which they were added.
pub(super) async fn get(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let Get { ids, r#where, where_document, limit, offset, include } =
        parse(&headers, body).await?;
    let filter = combined(&r#where, &where_document, ids)?;
    let which = filter.map_or(Selection::All, Selection::Matching);
    let with_vectors = include.contains(&Include::Embeddings);
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, &uuid)?;
    let schemas = &chroma.schemas;
    schemas.check(collection.engine, &uuid, &r#where, &where_document).await?;
    let mut left = limit.map_or(u64::MAX, u64::from);
    let mut page = Page { after_row: 0, offset: u64::from(offset.unwrap_or(0)), limit: 0 };
    let (mut records, mut bytes) = (Vec::new(), 0);
    loop {
        page.limit = left.min(PAGE);
        let got = collection.engine.get(&collection.name, which.clone(), page, with_vectors).await;
        let got = match got {
            Ok(got) => got,
            Err(failure) => return Err(collection.explain(failure, None).await),
        };
        let count = got.len() as u64;
        left -= count.min(left);
        let last = got.last().map_or(0, |stored| stored.row);
        bytes += got.iter().map(|stored| size(&stored.record)).sum::<usize>();
        if bytes > MAX_REPLY_BYTES {
            return Err(ChromaError::invalid(
                "the reply would be larger than 512 MiB; get fewer records with limit and offset",
            ));
        }
        records.extend(got.into_iter().map(|stored| stored.record));
        if count < PAGE || left == 0 {
            break;
        }
        page = Page { after_row: last, offset: 0, limit: 0 };
    }
    reply(bytes, move || {
        let columns = Columns::of(records, &include);
        serde_json::to_vec(&GetReply { columns, include })
    })
    .await
}

pub(super) async fn query(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let query = match parse(&headers, body.clone()).await {
        Ok(query) => query,
        Err(error) => with_texts(&chroma, &uuid, (&headers, body), error).await?,
    };
    let Query { ids, r#where, where_document, query_embeddings, n_results, include } = query;
    // Like Chroma, a query by ids alone requires them to exist.
    let by_ids_alone = r#where.is_null() && where_document.is_null();
    let required = ids.clone().filter(|_| by_ids_alone).unwrap_or_default();
    let filter = combined(&r#where, &where_document, ids)?;
    let vectors = query_embeddings.0;
    vectors.validate()?;
    let dimension = vectors.dimension()?;
    let limit = n_results.unwrap_or(DEFAULT_RESULTS);
    let with_vectors = include.contains(&Include::Embeddings);
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, &uuid)?;
    let schemas = &chroma.schemas;
    schemas.check(collection.engine, &uuid, &r#where, &where_document).await?;
    let asked = (dimension.unwrap_or(0), &vectors.numbers[..]);
    let only = (filter, required);
    let found = collection.engine.query(&collection.name, asked, limit, only, with_vectors).await;
    let found = match found {
        Ok(found) => found,
        Err(failure) if failure.message.starts_with("there is no record") => {
            let message = "Error executing plan: Internal error: Error finding id";
            return Err(ChromaError::internal(message));
        }
        Err(failure) if failure.message.contains("regex parse error") => {
            return Err(collection.explain(failure, None).await);
        }
        Err(failure) => return Err(collection.explain(failure, dimension).await),
    };
    let bytes = found.iter().flatten().map(|near| size(&near.record)).sum();
    reply(bytes, move || serde_json::to_vec(&QueryReply::of(found, include))).await
}

/// The query of a request that has texts in the place of vectors, which are embedded if the
/// collection is one that does that; otherwise the error of the request.
async fn with_texts(
    chroma: &Chroma,
    uuid: &str,
    (headers, body): (&HeaderMap, Bytes),
    error: ChromaError,
) -> Reply<Query> {
    let questions = parse::<Questions>(headers, body.clone()).await;
    let texts = match questions {
        Ok(Questions { query_embeddings: Some(texts), query_texts: None })
        | Ok(Questions { query_embeddings: None, query_texts: Some(texts) }) => texts,
        _ => return Err(error),
    };
    let (backend, _call) = chroma.reading()?;
    let Some(engine) = backend.engine() else { return Err(error) };
    if !chroma.schemas.embeds(engine, uuid).await? {
        return Err(error);
    }
    let mut rest: Map<String, Json> = parse(headers, body).await?;
    rest.insert("query_embeddings".to_owned(), Json::Array(Vec::new()));
    let mut query: Query = serde_json::from_value(Json::Object(rest)).map_err(|_| error)?;
    query.query_embeddings = QueryVectors(embedding::embed_questions(engine, &texts).await?);
    Ok(query)
}

/// The approximate size of a record in memory.
fn size(record: &Record) -> usize {
    let Record { id, document, metadata, vector } = record;
    let text = document.as_ref().map_or(0, String::len);
    id.len() + text + metadata.as_str().len() + vector.len() * 4 + 100
}

/// Encodes a large reply on another thread.
async fn reply(
    bytes: usize,
    encode: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Reply<Response> {
    let failed = |error: &dyn std::fmt::Display| ChromaError::internal(error.to_string());
    let encoded = match bytes > 256 << 10 {
        true => tokio::task::spawn_blocking(encode).await.map_err(|error| failed(&error))?,
        false => encode(),
    };
    Ok(bytes_reply(StatusCode::OK, encoded.map_err(|error| failed(&error))?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Record {
        Record {
            id: "a".to_owned(),
            document: None,
            metadata: Metadata::parse(r#"{"chroma:uri":"u","x":1}"#).unwrap(),
            vector: vec![1.5, 2.0],
        }
    }

    #[test]
    fn what_is_not_included_is_null() {
        let include = default_get();
        let columns = Columns::of(vec![record()], &include);
        assert_eq!(
            serde_json::to_value(GetReply { columns, include }).unwrap(),
            json!({
                "ids": ["a"], "embeddings": null, "documents": [null], "uris": null,
                "metadatas": [{"x": 1}], "include": ["documents", "metadatas"],
            })
        );
        let include = vec![Include::Embeddings, Include::Uris, Include::Distances];
        let near = NearRecord { record: record(), distance: 0.5 };
        assert_eq!(
            serde_json::to_value(QueryReply::of(vec![vec![near], Vec::new()], include)).unwrap(),
            json!({
                "ids": [["a"], []], "embeddings": [[[1.5, 2.0]], []], "documents": null,
                "uris": [["u"], []], "metadatas": null, "distances": [[0.5], []],
                "include": ["embeddings", "uris", "distances"],
            })
        );
    }
}
