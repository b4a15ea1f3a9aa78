//! Collections of a database.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use isolith_engine::{AddCollection, ChangeCollection, WhichCollection, built_in_model};
use isolith_types::{Code, CollectionInfo, CollectionSpec, DatabaseName, Metadata, by_uuid};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::Chroma;
use super::backend::no_collection;
use super::config::{ConfigurationChange, NewConfiguration, Settings};
use super::databases::{absent, database_name, existing};
use super::embedding;
use super::error::{ChromaError, Reply};
use super::metadata::{MetadataChange, NewMetadata, stored};
use super::reply::{nothing, ok};
use super::request::{Paging, collection_uuid, paging, parse, uuid};

#[derive(Deserialize)]
#[serde(rename = "CreateCollectionPayload")]
struct NewCollection {
    name: String,
    schema: Option<Json>,
    configuration: Option<NewConfiguration>,
    metadata: Option<NewMetadata>,
    #[serde(default)]
    get_or_create: bool,
}

#[derive(Deserialize)]
#[serde(rename = "UpdateCollectionPayload")]
struct CollectionChange {
    new_name: Option<String>,
    new_metadata: Option<MetadataChange>,
    new_configuration: Option<ConfigurationChange>,
}

pub(super) async fn create(
    State(chroma): State<Chroma>,
    Path((tenant, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let new: NewCollection = parse(&headers, body).await?;
    let NewCollection { name: collection, schema, configuration, metadata, get_or_create } = new;
    let (metric, settings) = Settings::create(configuration, metadata.as_ref(), schema)?;
    let database = database_name(tenant, name)?;
    check_name(&collection)
        .map_err(|problem| ChromaError::validation(format!("name: {problem}")))?;
    if let Some(metadata) = &metadata {
        metadata.check_for_collection()?;
    }
    let (backend, _call) = chroma.writing()?;
    let Some(engine) = backend.engine() else { return Ok(nothing()) };
    let missing = database.database.clone();
    let model = embedding::is_wanted(metadata.as_ref())?.then(|| built_in_model().to_owned());
    let spec = CollectionSpec { name: collection.clone(), dimension: None, metric, model };
    let metadata = metadata.map(|metadata| stored(metadata.0)).transpose()?;
    let settings = settings.to_text()?;
    let add = AddCollection { database, spec, metadata, settings, get_or_create };
    let added = engine.add_collection(add).await.map_err(|failure| match failure.code {
        Code::AlreadyExists => {
            ChromaError::conflict(format!("Collection [{collection}] already exists"))
        }
        Code::NotFound => ChromaError::invalid(format!("Database [{missing}] does not exist")),
        _ => failure.into(),
    })?;
    Ok(ok(&shown(&added.collection)))
}

pub(super) async fn list(
    State(chroma): State<Chroma>,
    Path((tenant, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Reply<Response> {
    let Paging { limit, offset } = paging(query.as_deref())?;
    let database = database_name(tenant, name)?;
    let (backend, _call) = chroma.reading()?;
    let collections = backend.collections(database, offset, limit).await?;
    Ok(ok(&collections.iter().map(shown).collect::<Vec<_>>()))
}

pub(super) async fn count(
    State(chroma): State<Chroma>,
    Path((tenant, name)): Path<(String, String)>,
) -> Reply<Response> {
    let database = database_name(tenant, name)?;
    let (backend, _call) = chroma.reading()?;
    Ok(ok(&backend.count_collections(database).await?))
}

/// The last part of the path is a name.
pub(super) async fn get(
    State(chroma): State<Chroma>,
    Path((tenant, database, collection)): Path<(String, String, String)>,
) -> Reply<Response> {
    named(&chroma, tenant, database, collection).await
}

/// `tenant:database:collection`.
pub(super) async fn get_by_resource_name(
    State(chroma): State<Chroma>,
    Path(name): Path<String>,
) -> Reply<Response> {
    let mut parts = name.splitn(3, ':').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(tenant), Some(database), Some(collection)) => {
            named(&chroma, tenant, database, collection).await
        }
        _ => Err(ChromaError::invalid(format!("Invalid CRN: {name}"))),
    }
}

async fn named(
    chroma: &Chroma,
    tenant: String,
    database: String,
    collection: String,
) -> Reply<Response> {
    let found = find_named(chroma, tenant, database, &collection).await?;
    Ok(ok(&shown(&found)))
}

async fn find_named(
    chroma: &Chroma,
    tenant: String,
    database: String,
    collection: &str,
) -> Reply<CollectionInfo> {
    let database = database_name(tenant, database)?;
    let (backend, _call) = chroma.reading()?;
    let which = WhichCollection::Named(database, collection.to_owned());
    backend
        .find(which)
        .await?
        .ok_or_else(|| ChromaError::not_found(format!("Collection [{collection}] does not exist")))
}

pub(super) async fn get_by_id(
    State(chroma): State<Chroma>,
    Path((tenant, database, collection)): Path<(String, String, String)>,
) -> Reply<Response> {
    database_name(tenant, database)?;
    let uuid = uuid(&collection).ok_or_else(|| {
        ChromaError::validation("collection_id: Invalid collection ID format, expected UUID")
    })?;
    let (backend, _call) = chroma.reading()?;
    let found = backend.find(WhichCollection::Uuid(uuid.clone())).await?;
    Ok(ok(&shown(&found.ok_or_else(|| no_collection(&uuid))?)))
}

pub(super) async fn modify(
    State(chroma): State<Chroma>,
    Path((tenant, database, collection)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let change: CollectionChange = parse(&headers, body).await?;
    let CollectionChange { new_name, new_metadata, new_configuration } = change;
    database_name(tenant, database)?;
    let uuid = collection_uuid(&collection)?;
    if let Some(name) = &new_name {
        check_name(name)
            .map_err(|problem| ChromaError::validation(format!("new_name: {problem}")))?;
    }
    let metadata = match new_metadata {
        Some(metadata) => {
            metadata.check_for_collection()?;
            let kept = metadata.0.into_iter().filter(|(_, value)| !value.is_null());
            Some(stored(kept.collect::<Map<_, _>>())?)
        }
        None => None,
    };
    let (backend, _call) = chroma.reading()?;
    let found = backend.find(WhichCollection::Uuid(uuid.clone())).await?;
    let found = found.ok_or_else(|| no_collection(&uuid))?;
    let Some(engine) = backend.engine() else { return Err(no_collection(&uuid)) };
    let settings = match new_configuration {
        Some(change) => {
            let mut settings = Settings::of(&found);
            settings.change(change)?;
            Some(settings.to_text()?)
        }
        None => None,
    };
    let change =
        ChangeCollection { collection: by_uuid(&uuid), name: new_name.clone(), metadata, settings };
    engine.change_collection(change).await.map_err(|failure| {
        let name = new_name.unwrap_or_default();
        existing(failure, || ChromaError::conflict(format!("Collection [{name}] already exists")))
    })?;
    Ok(nothing())
}

/// The last part of the path is a name.
pub(super) async fn delete(
    State(chroma): State<Chroma>,
    Path((tenant, database, collection)): Path<(String, String, String)>,
) -> Reply<Response> {
    let found = find_named(&chroma, tenant, database, &collection).await?;
    let (backend, _call) = chroma.writing()?;
    if let Some(engine) = backend.engine() {
        let deleted = engine.delete_collection(&by_uuid(&found.uuid)).await;
        deleted.map_err(|failure| {
            absent(failure, || {
                ChromaError::not_found(format!("Collection [{collection}] does not exist"))
            })
        })?;
    }
    Ok(nothing())
}

fn shown(collection: &CollectionInfo) -> Json {
    let CollectionInfo { uuid, name, database, dimension, metric, metadata, .. } = collection;
    let settings = Settings::of(collection);
    let DatabaseName { tenant, database } = database;
    let metadata = metadata.as_ref().map(Metadata::to_json);
    json!({
        "id": uuid,
        "name": name,
        "configuration_json": settings.configuration(*metric),
        "schema": settings.schema(collection),
        "metadata": metadata.filter(|metadata| metadata.as_object().is_some_and(|it| !it.is_empty())),
        "dimension": dimension,
        "tenant": tenant,
        "database": database,
        "log_position": 0,
        "version": 0,
    })
}

/// Checks the name of a collection or a database. A name may begin with that of a topology and a
/// plus sign.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if let Some((topology, rest)) = name.split_once('+') {
        if name.len() > 512 {
            let length = name.len();
            return Err(format!("Expected a name containing 3-512 characters. Got: {length}"));
        }
        if rest.contains('+') {
            let problem =
                "Expected a name to contain at most one topology:  Got two `+` characters.";
            return Err(problem.to_owned());
        }
        check_name(topology)?;
        return check_name(rest);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().last()];
    let good_ends = ends.iter().flatten().all(u8::is_ascii_alphanumeric);
    if !(3..=512).contains(&name.len()) || !name.bytes().all(allowed) || !good_ends {
        return Err(format!(
            "Expected a name containing 3-512 characters from [a-zA-Z0-9._-], starting and ending \
             with a character in [a-zA-Z0-9]. Got: {name}"
        ));
    }
    if name.contains("..") {
        return Err(format!(
            "Expected a name that does not contains two consecutive periods (..). Got {name}"
        ));
    }
    if name.parse::<IpAddr>().is_ok() {
        return Err(format!("Expected a name that is not a valid ip address. Got {name}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_follow_chromas_rules() {
        for name in ["abc", "a.b", "A-1_b", "abc+def"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(513);
        for name in
            ["", "ab", "-ab", "ab-", "a b", "a..b", "1.2.3.4", "äbc", "ab+c", "abc+def+ghi", &long]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
