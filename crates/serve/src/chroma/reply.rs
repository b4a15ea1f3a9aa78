//! JSON replies.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// A reply of this status.
pub(super) fn json_reply(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => bytes_reply(status, bytes),
        Err(error) => {
            let document = json!({ "error": "InternalError", "message": error.to_string() });
            bytes_reply(StatusCode::INTERNAL_SERVER_ERROR, document.to_string().into_bytes())
        }
    }
}

pub(super) fn bytes_reply(status: StatusCode, bytes: Vec<u8>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, Body::from(bytes)).into_response()
}

/// A successful reply.
pub(super) fn ok(document: &impl Serialize) -> Response {
    json_reply(StatusCode::OK, document)
}

/// What operations without a result reply.
pub(super) fn nothing() -> Response {
    ok(&json!({}))
}
