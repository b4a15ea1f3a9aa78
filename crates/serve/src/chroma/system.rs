//! Routes about the server itself, and those that only a cluster of Chroma serves.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use isolith_types::DatabaseName;
use serde_json::json;

use super::error::{ChromaError, Reply};
use super::reply::{json_reply, ok};
use super::{Chroma, MAX_BATCH};

/// The version of the API, not of this program.
const API_VERSION: &str = "1.0.0";

pub(super) async fn heartbeat() -> Response {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ok(&json!({ "nanosecond heartbeat": u64::try_from(now.as_nanos()).unwrap_or(u64::MAX) }))
}

pub(super) async fn healthcheck() -> Response {
    ok(&json!({ "is_executor_ready": true, "is_log_client_ready": true }))
}

pub(super) async fn version() -> Response {
    ok(&API_VERSION)
}

pub(super) async fn pre_flight_checks() -> Response {
    ok(&json!({ "max_batch_size": MAX_BATCH, "supports_base64_encoding": true }))
}

pub(super) async fn identity() -> Response {
    let DatabaseName { tenant, database } = DatabaseName::default();
    ok(&json!({ "user_id": "", "tenant": tenant, "databases": [database] }))
}

pub(super) async fn reset(State(chroma): State<Chroma>) -> Reply<Response> {
    if !chroma.allow_reset {
        return Err(ChromaError::forbidden("Reset is disabled by config"));
    }
    let (backend, _call) = chroma.reading()?;
    if let Some(engine) = backend.engine() {
        engine.reset_databases().await?;
    }
    Ok(ok(&true))
}

pub(super) async fn first_version(method: Method) -> Response {
    if method == Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message = "The v1 API is deprecated. Please use /v2 apis";
    json_reply(StatusCode::GONE, &json!({ "error": "Unimplemented", "message": message }))
}

pub(super) async fn search() -> ChromaError {
    ChromaError::unimplemented(
        "Error executing plan: Not implemented: Search operation is not implemented for local \
         executor",
    )
}

pub(super) async fn fork() -> ChromaError {
    ChromaError::unimplemented("Collection forking is unsupported for local chroma")
}

pub(super) async fn fork_count() -> ChromaError {
    ChromaError::unimplemented("Count forks is unsupported for local chroma")
}

pub(super) async fn indexing_status() -> ChromaError {
    ChromaError::internal("Method scout_logs is not implemented")
}

pub(super) async fn attach_function() -> ChromaError {
    ChromaError::unimplemented("Attached functions are unsupported for local chroma")
}

pub(super) async fn detach_function() -> ChromaError {
    ChromaError::unimplemented("Attached functions are unsupported for local chroma")
}

pub(super) async fn get_function() -> ChromaError {
    ChromaError::not_found("Attached function not found")
}
