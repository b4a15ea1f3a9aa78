//! Adding, changing and deleting records.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use isolith_engine::{PutMode, Which};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Chroma;
use super::backend::Addressed;
use super::databases::database_name;
use super::embedding;
use super::error::{ChromaError, Reply};
use super::filters::combined;
use super::metadata::{MetadataChange, NewMetadata};
use super::records::{Columns, Repeated};
use super::reply::{json_reply, nothing, ok};
use super::request::{collection_uuid, parse};
use super::vectors::{ChangedVectors, NewVectors, Vectors};

/// The columns of a body, with the types that its route accepts.
#[derive(Deserialize)]
struct Body<V, M> {
    ids: Vec<String>,
    embeddings: V,
    documents: Option<Vec<Option<String>>>,
    uris: Option<Vec<Option<String>>>,
    metadatas: Option<Vec<Option<M>>>,
}

type Added = Body<NewVectors, NewMetadata>;
type Upserted = Body<NewVectors, MetadataChange>;
type Updated = Body<Option<ChangedVectors>, MetadataChange>;

/// Records without vectors, for a collection that embeds its documents.
type Texts<M> = Body<Option<()>, M>;

#[derive(Deserialize)]
struct Deleted {
    ids: Option<Vec<String>>,
    limit: Option<u32>,
    #[serde(default)]
    r#where: Json,
    #[serde(default)]
    where_document: Json,
}

/// The path of a collection.
pub(super) type CollectionPath = Path<(String, String, String)>;

/// Checks the path; the collection's uuid is what counts.
pub(super) fn uuid_of(Path((tenant, database, collection)): CollectionPath) -> Reply<String> {
    database_name(tenant, database)?;
    collection_uuid(&collection)
}

/// Existing records stay as they are.
pub(super) async fn add(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let columns = match parse::<Added>(&headers, body.clone()).await {
        Ok(body) => {
            let (vectors, body) = body.split();
            body.with(Some(vectors.0))
        }
        Err(error) => {
            let texts = parse::<Texts<NewMetadata>>(&headers, body).await;
            texts_or(&chroma, &uuid, texts, error).await?
        }
    };
    put(&chroma, &uuid, columns, PutMode::Add { skip_existing: true }).await?;
    Ok(json_reply(StatusCode::CREATED, &json!({})))
}

/// Existing records get a new vector; their text and metadata are changed where given.
pub(super) async fn upsert(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let columns = match parse::<Upserted>(&headers, body.clone()).await {
        Ok(body) => {
            let (vectors, body) = body.split();
            body.with(Some(vectors.0))
        }
        Err(error) => {
            let texts = parse::<Texts<MetadataChange>>(&headers, body).await;
            texts_or(&chroma, &uuid, texts, error).await?
        }
    };
    put(&chroma, &uuid, columns, PutMode::Merge).await?;
    Ok(nothing())
}

/// Records without vectors, if the collection embeds; otherwise the error of the request.
async fn texts_or<M: Into<MetadataChange>>(
    chroma: &Chroma,
    uuid: &str,
    texts: Reply<Texts<M>>,
    error: ChromaError,
) -> Reply<Columns> {
    let Ok(texts) = texts else { return Err(error) };
    let (backend, _call) = chroma.reading()?;
    let embeds = match backend.engine() {
        Some(engine) => chroma.schemas.embeds(engine, uuid).await?,
        None => false,
    };
    if embeds { Ok(texts.split().1.with(None)) } else { Err(error) }
}

impl<V, M: Into<MetadataChange>> Body<V, M> {
    fn split(self) -> (V, Body<(), M>) {
        let Self { ids, embeddings, documents, uris, metadatas } = self;
        (embeddings, Body { ids, embeddings: (), documents, uris, metadatas })
    }

    fn with(self, vectors: Option<Vectors>) -> Columns {
        let Self { ids, documents, uris, metadatas, .. } = self;
        let metadatas = metadatas.map(|list| list.into_iter().map(|it| it.map(M::into)).collect());
        Columns { ids, vectors, documents, uris, metadatas }
    }
}

async fn put(chroma: &Chroma, uuid: &str, columns: Columns, mode: PutMode) -> Reply<()> {
    columns.validate()?;
    let dimension = columns.dimension()?;
    let repeated = match mode {
        PutMode::Add { .. } => Repeated::First,
        PutMode::Upsert | PutMode::Merge => Repeated::All,
    };
    let has_vectors = columns.vectors.is_some();
    let mut records = columns.into_records(repeated)?;
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, uuid)?;
    match chroma.schemas.embeds(collection.engine, uuid).await? {
        true if has_vectors => return Err(embedding::unwanted()),
        true => embedding::embed_records(collection.engine, &mut records).await?,
        false => {}
    }
    match collection.engine.put(&collection.name, records, mode, None).await {
        Ok(_) => Ok(()),
        Err(failure) => Err(collection.explain(failure, dimension).await),
    }
}

/// Records that do not exist are ignored.
pub(super) async fn update(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let Body { ids, embeddings, documents, uris, metadatas }: Updated =
        parse(&headers, body).await?;
    let vectors = embeddings.map(|vectors| vectors.0);
    let columns = Columns { ids, vectors, documents, uris, metadatas };
    columns.validate()?;
    let dimension = columns.dimension()?;
    let mut patches = columns.into_patches()?;
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, &uuid)?;
    if chroma.schemas.embeds(collection.engine, &uuid).await? {
        if dimension.is_some() {
            return Err(embedding::unwanted());
        }
        embedding::embed_patches(collection.engine, &mut patches).await?;
    }
    match collection.engine.update(&collection.name, patches, None).await {
        Ok(_) => Ok(nothing()),
        Err(failure) => Err(collection.explain(failure, dimension).await),
    }
}

/// Deletes by ids, by a filter, or by both. The reply counts ids that do not exist, too, unless
/// there is a filter.
pub(super) async fn delete(
    State(chroma): State<Chroma>,
    path: CollectionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let uuid = uuid_of(path)?;
    let Deleted { ids, limit, r#where, where_document } = parse(&headers, body).await?;
    let has_filter = !(r#where.is_null() && where_document.is_null());
    let filter = combined(&r#where, &where_document, ids.clone())?;
    if limit.is_some() && !has_filter {
        return Err(ChromaError::validation(
            "limit, where: limit can only be specified when a where clause is provided",
        ));
    }
    let (which, given) = match (filter, ids) {
        (Some(filter), _) if has_filter => (Which::Matching(filter), None),
        (_, Some(ids)) => {
            let count = ids.len() as u64;
            (Which::Ids(ids), Some(count))
        }
        (_, None) => return Ok(ok(&json!({ "deleted": 0 }))),
    };
    let (backend, _call) = chroma.reading()?;
    let collection = Addressed::new(&backend, &uuid)?;
    let engine = collection.engine;
    chroma.schemas.check(engine, &uuid, &r#where, &where_document).await?;
    match engine.delete_some(&collection.name, which, limit.map(u64::from)).await {
        Ok(written) => {
            let deleted = given.unwrap_or(written.done.reply.deleted);
            Ok(ok(&json!({ "deleted": deleted })))
        }
        Err(failure) => Err(collection.explain(failure, None).await),
    }
}
