//! Reasons to refuse a request, and the answers.

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use isolith_types::{Code, Failure};
use serde_json::json;

use crate::chroma::{self, ChromaError};
use crate::hints::for_agents;

/// Maximum length of an error text of a library that is passed on.
const MAX_ERROR_BYTES: usize = 4096;

/// Why a request or connection is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no valid `Host` header, or more than one.
    BadHost,
    /// The `Host` header does not name this server.
    ForbiddenHost,
    /// The request comes from a foreign web page.
    ForbiddenOrigin,
    NoToken,
    /// The client of a Unix socket runs as another user.
    ForbiddenUser,
    TooManyConnections,
    LargeHead,
    LargeBody {
        /// In bytes.
        limit: usize,
    },
    /// The client disconnected, or the body is malformed.
    BrokenBody,
    SlowHead,
    SlowBody,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadHost | Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::ForbiddenHost | Self::ForbiddenOrigin | Self::ForbiddenUser => {
                StatusCode::FORBIDDEN
            }
            Self::SlowHead | Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::LargeBody { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::LargeHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn failure(&self) -> Failure {
        let (code, message, hint) = match self {
            Self::BadHost => (
                Code::BadInput,
                "the request needs exactly one valid Host header".to_owned(),
                "send the address that the server listens on as the Host header",
            ),
            Self::ForbiddenHost => (
                Code::Forbidden,
                "the Host header does not name this server".to_owned(),
                "use the server's address, or add the name with `isolith serve --host NAME`",
            ),
            Self::ForbiddenOrigin => (
                Code::Forbidden,
                "requests from this web page are not allowed".to_owned(),
                "only pages on this machine (http://localhost) may use the server",
            ),
            Self::NoToken => (
                Code::Unauthorized,
                "the request has no valid token".to_owned(),
                "send the header `Authorization: Bearer TOKEN`; \
                 `isolith serve` shows the token, or the file it is in, when it starts",
            ),
            Self::ForbiddenUser => (
                Code::Forbidden,
                "the socket belongs to another user".to_owned(),
                "start a server of your own",
            ),
            Self::TooManyConnections => (
                Code::TooManyConnections,
                "the server has too many connections".to_owned(),
                "try again later; reuse connections and close unused ones",
            ),
            Self::LargeHead => (
                Code::TooLarge,
                "the headers of the request are too large".to_owned(),
                "send fewer or shorter headers",
            ),
            Self::LargeBody { limit } => (
                Code::TooLarge,
                format!("the body of the request is larger than {limit} bytes"),
                "split the request",
            ),
            Self::BrokenBody => (
                Code::BadInput,
                "the body of the request is incomplete".to_owned(),
                "send as many bytes as Content-Length says, or valid chunked encoding",
            ),
            Self::SlowHead => (
                Code::Timeout,
                "the headers of the request did not arrive in time".to_owned(),
                "send the whole request at once",
            ),
            Self::SlowBody => (
                Code::Timeout,
                "the body of the request did not arrive in time".to_owned(),
                "send the whole request at once",
            ),
        };
        Failure::new(code, message).with_hint(hint)
    }

    /// The answer to a request for this path.
    pub(crate) fn answer(self, path: &str) -> Response {
        if !path.starts_with(chroma::PREFIX) {
            return self.into_response();
        }
        let Failure { message, hint, .. } = self.failure();
        let message = match hint {
            Some(hint) => format!("{message}; {}", for_agents(&hint)),
            None => message,
        };
        ChromaError::of_status(self.status(), message).into_response()
    }

    /// The complete HTTP response, for connections without a parsed request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (status, body) = (self.status(), document(&self.failure()));
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = answer(self.status(), &self.failure());
        if self == Self::NoToken {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// Converts errors of the router and of libraries to the common JSON format.
pub(crate) async fn with_json_error(response: Response, method: &Method, path: &str) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let json = kind.is_some_and(|kind| kind.starts_with(b"application/json"));
    if json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, MAX_ERROR_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if path.starts_with(chroma::PREFIX) {
        let Failure { message, .. } = explanation(status, text.trim(), method, path);
        let (_, body) = ChromaError::of_status(status, message).into_response().into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        return Response::from_parts(parts, body);
    }
    let (_, body) = answer(status, &explanation(status, text.trim(), method, path)).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, body)
}

fn explanation(status: StatusCode, text: &str, method: &Method, path: &str) -> Failure {
    let code = match status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        status if status.is_client_error() => Code::BadInput,
        _ => Code::Failed,
    };
    let failure = match (status, text) {
        (StatusCode::NOT_FOUND, "") => Failure::new(code, format!("nothing is served at {path}"))
            .with_hint("the Model Context Protocol is at /mcp, the API at /v1 (GET /v1/docs)"),
        (StatusCode::METHOD_NOT_ALLOWED, _) => {
            Failure::new(code, format!("{path} does not support {method}"))
                .with_hint("the Allow header lists the supported methods")
        }
        (_, "") => Failure::new(code, status.to_string()),
        (_, text) => Failure::new(code, text),
    };
    match failure.hint {
        None => failure.with_hint("see docs/http.md for what the server expects"),
        Some(_) => failure,
    }
}

/// An error in the common format.
pub(crate) fn answer(status: StatusCode, failure: &Failure) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, Body::from(document(failure))).into_response()
}

fn document(failure: &Failure) -> String {
    json!({ "error": failure }).to_string() + "\n"
}
