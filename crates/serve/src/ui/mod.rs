//! The pages for people: static files that show what `/v1` answers, and signing in.
//!
//! The files are compiled into the program and are the same for everybody; the gate serves them
//! without a token. Everything that they show comes from `/v1`, which needs one.

mod assets;
mod sign_in;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolith_types::{Code, Failure};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::http::{Ends, refusal_of};
use assets::NO_PAGES;

pub(crate) use sign_in::{Passage, SignIn};

/// Where a browser signs in and out.
const SESSION_PATH: &str = "/ui/session";

/// Maximum size of the body of a request to sign in.
pub(crate) const MAX_SIGN_IN_BYTES: usize = 4 << 10;

/// Only the program's own scripts and styles apply, and only this server can be asked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; \
                      base-uri 'none'; form-action 'self'";

/// Whether the gate lets a request pass without a token because it asks for a static file.
pub(crate) fn is_asset(request: &Parts) -> bool {
    let reads = request.method == Method::GET || request.method == Method::HEAD;
    // If the pages are missing, `/` says so.
    let path = request.uri.path();
    reads && (path == "/" || assets::find(path).is_some())
}

/// Whether a request signs in or out, for which it needs no token, but a small body.
pub(crate) fn is_sign_in(request: &Parts) -> bool {
    request.uri.path() == SESSION_PATH
        && (request.method == Method::POST || request.method == Method::DELETE)
}

/// The routes of the pages.
pub(crate) fn routes(sign_in: Arc<SignIn>) -> Router {
    let session = post(begin_session).delete(end_session).with_state(sign_in);
    Router::new()
        .route("/", get(asset))
        .route("/ui/{*asset}", get(asset))
        .route(SESSION_PATH, session)
}

async fn asset(request: Request) -> Response {
    let Some(asset) = assets::find(request.uri().path()) else {
        return match request.uri().path() {
            "/" => page(request.headers(), "text/html; charset=utf-8", NO_PAGES.into(), false),
            _ => StatusCode::NOT_FOUND.into_response(),
        };
    };
    let accepted = request.headers().get_all(header::ACCEPT_ENCODING).iter();
    let mut accepted = accepted.filter_map(|encodings| encodings.to_str().ok());
    let is_packed = accepted.any(|encodings| encodings.split(',').any(accepts_gzip));
    let body = match is_packed {
        true => Bytes::from_static(asset.gzipped),
        false => asset.unpacked(),
    };
    let mut response = page(request.headers(), asset.kind, body, asset.is_immutable());
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether an element of `Accept-Encoding` is gzip, and does not refuse it.
fn accepts_gzip(element: &str) -> bool {
    let (name, weight) = element.split_once(';').unwrap_or((element, ""));
    let weight = weight.trim().trim_start_matches("q=");
    name.trim() == "gzip" && weight.parse() != Ok(0.0)
}

fn page(asked: &HeaderMap, kind: &'static str, body: Bytes, is_immutable: bool) -> Response {
    let tag = format!("\"{}\"", &blake3::hash(&body).to_hex()[..32]);
    let known = asked.get_all(header::IF_NONE_MATCH).iter();
    let is_known = known.filter_map(|tags| tags.to_str().ok()).any(|tags| tags.contains(&tag));
    let (status, body) = match is_known {
        true => (StatusCode::NOT_MODIFIED, Body::empty()),
        false => (StatusCode::OK, Body::from(body)),
    };
    let cache = if is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, cache),
        (header::ETAG, &tag),
    ];
    (status, headers, body).into_response()
}

/// What a browser signs in with: the server's token, or the secret of a link, which works once.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Credential {
    Token(String),
    Link(String),
}

async fn begin_session(
    State(sign_in): State<Arc<SignIn>>,
    ends: Option<Extension<Ends>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refuse = |status, failure: &Failure| no_store(refusal_of(status, failure));
    // Forms of other pages cannot send JSON.
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let failure = Failure::new(Code::BadInput, "the body is not JSON")
            .with_hint("send Content-Type: application/json");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &failure);
    }
    let Ok(credential) = serde_json::from_slice::<Credential>(&body) else {
        let failure = Failure::new(Code::BadInput, "expected a token or a link")
            .with_hint("send {\"token\": TOKEN}");
        return refuse(StatusCode::BAD_REQUEST, &failure);
    };
    let now = Instant::now();
    // A link is on the command line of the program that opens the browser, where other users of
    // this machine can read it.
    if matches!(credential, Credential::Link(_)) && !is_own_browser(ends).await {
        let message = "the browser does not run as the user who started the server";
        let failure = Failure::new(Code::Unauthorized, message).with_hint("enter the token");
        return refuse(StatusCode::UNAUTHORIZED, &failure);
    }
    let (session, hint) = match credential {
        Credential::Token(token) => (
            sign_in.by_token(&token, now),
            "`isolith serve` shows the token, or the file it is in, when it starts",
        ),
        Credential::Link(link) => (
            sign_in.by_link(&link, now),
            "a link works once, for five minutes: run `isolith ui` again, or enter the token",
        ),
    };
    let Some(session) = session else {
        let message = "the token or link is not valid";
        let failure = Failure::new(Code::Unauthorized, message).with_hint(hint);
        return refuse(StatusCode::UNAUTHORIZED, &failure);
    };
    let name = sign_in::cookie_name(&headers);
    let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/", session.cookie);
    let document = json!({ "key": session.key }).to_string();
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::SET_COOKIE, &cookie)];
    no_store((headers, document).into_response())
}

async fn is_own_browser(ends: Option<Extension<Ends>>) -> bool {
    let Some(Extension(ends)) = ends else { return false };
    tokio::task::spawn_blocking(move || ends.is_same_user()).await.unwrap_or(false)
}

async fn end_session(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    sign_in.end(&parts.headers);
    let name = sign_in::cookie_name(&parts.headers);
    let cookie = format!("{name}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    no_store((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

fn no_store(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
