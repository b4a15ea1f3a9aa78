//! Answers and errors over HTTP.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use isolith_types::{Code, Failure, ShownFailure};
use serde_json::json;
use serde_json::value::RawValue;

use crate::hints::for_programs;

/// When to repeat a request that failed for a temporary reason, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A failure with its status.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    failure: Box<Failure>,
}

impl ApiError {
    /// With another status than that of the code.
    pub(super) fn with_status(status: StatusCode, failure: Failure) -> Self {
        Self { status, failure: Box::new(failure) }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        Self::with_status(status_of(failure.code), failure)
    }
}

/// The status of each code.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Usage | Code::BadInput => StatusCode::BAD_REQUEST,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden | Code::ForbiddenPath => StatusCode::FORBIDDEN,
        Code::NotFound | Code::NoStore => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::AlreadyApplied | Code::ModelMismatch => StatusCode::CONFLICT,
        Code::CursorExpired => StatusCode::GONE,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::ModelUnavailable | Code::KeyReused | Code::Quarantined => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Code::Failed | Code::WorkerDied | Code::StartFailure | Code::Corrupt => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Code::TooManyConnections
        | Code::StoreReplaced
        | Code::StoreNewer
        | Code::StoreRefused
        | Code::StoreForeign
        | Code::ReadOnly
        | Code::LockHeld
        | Code::BreakerOpen
        | Code::QueueFull
        | Code::Draining
        | Code::Interrupted
        | Code::Terminated => StatusCode::SERVICE_UNAVAILABLE,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Code::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// Whether the same request may succeed in a moment.
fn is_temporary(code: Code) -> bool {
    matches!(
        code,
        Code::TooManyConnections
            | Code::StoreReplaced
            | Code::LockHeld
            | Code::BreakerOpen
            | Code::QueueFull
            | Code::Draining
    )
}

/// The failure in the words for programs. There is always a hint.
pub(super) fn shown(failure: Failure) -> ShownFailure {
    let mut shown = failure.worded(for_programs);
    if shown.hint.is_empty() {
        let hint = match status_of(shown.code) {
            _ if is_temporary(shown.code) => "try again in a second",
            status if status.is_client_error() => "GET /v1/docs describes what each endpoint takes",
            _ => "the server's log says more",
        };
        hint.clone_into(&mut shown.hint);
    }
    shown
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.failure.code;
        let document = json!({ "error": shown(*self.failure) }).to_string();
        let mut response = json_response(self.status, document);
        if is_temporary(code) {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

/// An answer, of the status 200.
pub(super) fn success(answer: &RawValue) -> Response {
    json_response(StatusCode::OK, answer.get().to_owned())
}

pub(super) fn json_response(status: StatusCode, document: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, Body::from(document + "\n")).into_response()
}

#[cfg(test)]
mod tests {
    use isolith_types::Hint;

    use super::*;

    #[test]
    fn errors_have_a_status_and_a_hint() {
        let table = [
            (
                Failure::new(Code::BadInput, "x"),
                400,
                "GET /v1/docs describes what each endpoint takes",
            ),
            (
                Failure::new(Code::NoStore, "x").with_hint(Hint::IndexProject),
                404,
                "POST /v1/code/index indexes the project",
            ),
            (Failure::new(Code::Corrupt, "x"), 500, "the server's log says more"),
            (Failure::new(Code::Draining, "x"), 503, "try again in a second"),
        ];
        for (failure, status, hint) in table {
            assert_eq!(status_of(failure.code).as_u16(), status);
            assert_eq!(shown(failure).hint, hint);
        }
        let busy = ApiError::from(Failure::new(Code::QueueFull, "x")).into_response();
        assert_eq!(busy.status().as_u16(), 503);
        assert_eq!(busy.headers()[header::RETRY_AFTER], "1");
    }
}
