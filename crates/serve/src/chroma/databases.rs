//! Tenants and databases.

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use isolith_types::{Code, Database, DatabaseName, Failure};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Chroma;
use super::collections::check_name;
use super::error::{ChromaError, Reply};
use super::reply::{nothing, ok};
use super::request::{Paging, paging, parse};

/// The shortest name of a tenant or a database.
const MIN_NAME_LEN: usize = 3;

#[derive(Deserialize)]
struct NewTenant {
    name: String,
}

#[derive(Deserialize)]
struct TenantChange {
    resource_name: String,
}

#[derive(Deserialize)]
struct NewDatabase {
    name: String,
}

pub(super) async fn create_tenant(
    State(chroma): State<Chroma>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let NewTenant { name } = parse(&headers, body).await?;
    if name.chars().count() < MIN_NAME_LEN {
        let shown = json!(name);
        return Err(ChromaError::validation(format!(
            "name: Validation error: length [{{\"value\": String({shown}), \"min\": Number(3)}}]"
        )));
    }
    let (backend, _call) = chroma.writing()?;
    if let Some(engine) = backend.engine() {
        let exists = || ChromaError::conflict(format!("Tenant [{name}] already exists"));
        engine.create_tenant(&name).await.map_err(|failure| existing(failure, exists))?;
    }
    Ok(nothing())
}

pub(super) async fn get_tenant(
    State(chroma): State<Chroma>,
    Path(name): Path<String>,
) -> Reply<Response> {
    let (backend, _call) = chroma.reading()?;
    let tenant = backend.tenant(&name).await?.ok_or_else(|| no_tenant(&name))?;
    Ok(ok(&json!({ "name": tenant.name, "resource_name": tenant.resource_name })))
}

pub(super) async fn update_tenant(
    State(chroma): State<Chroma>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let TenantChange { resource_name } = parse(&headers, body).await?;
    let (backend, _call) = chroma.writing()?;
    if let Some(engine) = backend.engine() {
        let missing = || no_tenant(&name);
        let updated = engine.update_tenant(&name, &resource_name).await;
        updated.map_err(|failure| absent(failure, missing))?;
    }
    Ok(nothing())
}

pub(super) async fn list(
    State(chroma): State<Chroma>,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
) -> Reply<Response> {
    let Paging { limit, offset } = paging(query.as_deref())?;
    let (backend, _call) = chroma.reading()?;
    let databases = backend.databases(&tenant, offset, limit).await?;
    Ok(ok(&databases.iter().map(shown).collect::<Vec<_>>()))
}

pub(super) async fn create(
    State(chroma): State<Chroma>,
    Path(tenant): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply<Response> {
    let NewDatabase { name } = parse(&headers, body).await?;
    check_name(&name).map_err(ChromaError::invalid)?;
    let (backend, _call) = chroma.writing()?;
    if let Some(engine) = backend.engine() {
        let database = DatabaseName { tenant: tenant.clone(), database: name.clone() };
        engine.create_database(database).await.map_err(|failure| match failure.code {
            Code::NotFound => no_tenant(&tenant),
            _ => existing(failure, || {
                ChromaError::conflict(format!("Database [{name}] already exists"))
            }),
        })?;
    }
    Ok(nothing())
}

pub(super) async fn get(
    State(chroma): State<Chroma>,
    Path((tenant, name)): Path<(String, String)>,
) -> Reply<Response> {
    let database = database_name(tenant, name)?;
    let name = database.database.clone();
    let (backend, _call) = chroma.reading()?;
    let found = backend.database(database).await?.ok_or_else(|| {
        ChromaError::not_found(format!("Database [{name}] not found. Are you sure it exists?"))
    })?;
    Ok(ok(&shown(&found)))
}

pub(super) async fn delete(
    State(chroma): State<Chroma>,
    Path((tenant, name)): Path<(String, String)>,
) -> Reply<Response> {
    let database = database_name(tenant, name)?;
    let name = database.database.clone();
    let (backend, _call) = chroma.writing()?;
    if let Some(engine) = backend.engine() {
        let missing = || ChromaError::not_found(format!("Database [{name}] not found"));
        let deleted = engine.delete_database(database).await;
        deleted.map_err(|failure| absent(failure, missing))?;
    }
    Ok(nothing())
}

/// The database of a request.
pub(super) fn database_name(tenant: String, database: String) -> Reply<DatabaseName> {
    if database.chars().count() < MIN_NAME_LEN {
        return Err(ChromaError::invalid("database name must be at least 3 characters"));
    }
    Ok(DatabaseName { tenant, database })
}

fn shown(database: &Database) -> Json {
    let DatabaseName { tenant, database: name } = &database.name;
    json!({ "id": database.uuid, "name": name, "tenant": tenant })
}

fn no_tenant(name: &str) -> ChromaError {
    ChromaError::not_found(format!("Tenant [{name}] not found"))
}

/// Words the error for something that exists.
pub(super) fn existing(failure: Failure, exists: impl FnOnce() -> ChromaError) -> ChromaError {
    if failure.code == Code::AlreadyExists { exists() } else { failure.into() }
}

/// Words the error for something that does not exist.
pub(super) fn absent(failure: Failure, missing: impl FnOnce() -> ChromaError) -> ChromaError {
    if failure.code == Code::NotFound { missing() } else { failure.into() }
}
