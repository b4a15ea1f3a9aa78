//! Errors in the form that Chroma's clients expect.

use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use isolith_types::{Code, Failure};
use serde_json::json;

use super::reply::json_reply;

const TRACE_ID: &str = "chroma-trace-id";
const NO_TRACE: &str = "00000000000000000000000000000000";

pub(super) type Reply<T> = Result<T, ChromaError>;

/// An error with its status and the name by which clients choose an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChromaError {
    status: StatusCode,
    name: &'static str,
    message: String,
}

impl ChromaError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, name: name_of(status), message: message.into() }
    }

    /// A request that can never succeed.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A value that the request's validation refuses.
    pub(super) fn validation(message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("Validation error: {message}"))
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Something that a single server of Chroma does not do either.
    pub(super) fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// JSON of the wrong form.
    pub(super) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    pub(super) fn media_type() -> Self {
        let message = "Expected request with `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// An error of the gate or of the router.
    pub(crate) fn of_status(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, message)
    }
}

/// Chroma has names for a few kinds of errors only.
fn name_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "InvalidArgumentError",
        StatusCode::NOT_FOUND => "NotFoundError",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        _ => "ChromaError",
    }
}

impl From<Failure> for ChromaError {
    fn from(failure: Failure) -> Self {
        let status = match failure.code {
            Code::BadInput | Code::Usage | Code::TooLarge => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::AlreadyExists => StatusCode::CONFLICT,
            Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Code::Draining | Code::LockHeld | Code::BreakerOpen | Code::TooManyConnections => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, failure.message)
    }
}

impl IntoResponse for ChromaError {
    fn into_response(self) -> Response {
        let Self { status, name, message } = self;
        let mut response = json_reply(status, &json!({ "error": name, "message": message }));
        // Clients look for an id. There are no traces.
        response.headers_mut().insert(TRACE_ID, HeaderValue::from_static(NO_TRACE));
        response
    }
}
