//! Checks that every request must pass before any route sees it.
//!
//! The gate wraps the whole router and is not a layer of its routes: connections are only served
//! with a [`Gated`] router, so no route can bypass it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant, timeout_at};

use super::BODY_BYTES;
use super::connections::{Connection, Limits, Underway};
use super::names::Names;
use super::refused::{Refused, explained};
use super::token::Token;

/// Served without a token, and without reading a body.
const OPEN: &str = "/health";

/// Maximum size of all headers of a request.
const HEAD_BYTES: usize = 64 << 10;

/// How much of an oversized body is read and discarded, so that the client gets to read the
/// answer.
const DISCARDED_BYTES: usize = 4 * BODY_BYTES;

/// Total size of all bodies being read, in units of [`UNIT`].
const BODIES_BYTES: usize = 64 << 20;
const UNIT: usize = 1 << 10;

/// The gate's checks.
pub(crate) struct Gate {
    names: Names,
    token: Option<Token>,
    bodies: Semaphore,
}

impl Gate {
    pub(crate) fn new(names: Names, token: Option<Token>) -> Self {
        Self { names, token, bodies: Semaphore::new(BODIES_BYTES / UNIT) }
    }

    /// Puts routes behind the gate.
    pub(crate) fn around(self, router: Router) -> Gated {
        // The gate applies its own limit to all routes.
        let router = router.layer(DefaultBodyLimit::disable());
        Gated { gate: Arc::new(self), router: TowerToHyperService::new(router) }
    }
}

/// A router behind the gate.
#[derive(Clone)]
pub(crate) struct Gated {
    gate: Arc<Gate>,
    router: TowerToHyperService<Router>,
}

impl Gated {
    /// Answers a request. The request is in progress until the answer's body is dropped.
    pub(crate) async fn answer<B>(
        &self,
        request: Request<B>,
        connection: &Arc<Connection>,
    ) -> Response<Answer>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let underway = connection.begin();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut response = match self.gate.admit(request, connection).await {
            Ok(request) => match self.router.call(request).await {
                Ok(response) => explained(response, &method, &path).await,
                Err(never) => match never {},
            },
            Err(refused) => {
                tracing::debug!(%method, path, ?refused, "request refused");
                refused.into_response()
            }
        };
        if !connection.is_admitted() {
            // Slots for strangers are few.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response.map(|body| Answer { body, _underway: underway })
    }
}

impl Gate {
    /// Checks a request and reads its whole body.
    async fn admit<B>(
        &self,
        request: Request<B>,
        connection: &Connection,
    ) -> Result<Request<Body>, Refused>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        if head_bytes(&parts) > HEAD_BYTES {
            return Err(Refused::LargeHead);
        }
        self.names.check(&parts)?;
        let shown = self.token.as_ref().map(|token| token.matches(&parts.headers));
        if shown == Some(true) {
            connection.admit()?;
        }
        if is_open(&parts) {
            return Ok(Request::from_parts(parts, Body::empty()));
        }
        if shown == Some(false) {
            return Err(Refused::NoToken);
        }
        let bytes = self.read(&parts.headers, body, connection.limits()).await?;
        // If no token is required, one complete request is enough to be admitted.
        connection.admit()?;
        Ok(Request::from_parts(parts, Body::from(bytes)))
    }

    /// Reads a body within its limits of size and time.
    async fn read<B>(
        &self,
        headers: &HeaderMap,
        mut body: B,
        limits: &Limits,
    ) -> Result<Bytes, Refused>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let declared =
            body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let impatient = headers.contains_key(header::EXPECT);
        if declared.is_some_and(|size| size > DISCARDED_BYTES || size > BODY_BYTES && impatient) {
            return Err(Refused::LargeBody);
        }
        let began = Instant::now();
        let units = declared.unwrap_or(BODY_BYTES).min(BODY_BYTES).div_ceil(UNIT);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let room = timeout_at(began + limits.body, self.bodies.acquire_many(units)).await;
        let _room = room.map_err(|_| Refused::TooManyConnections)?;
        let (mut bytes, mut seen) = (Vec::with_capacity(declared.unwrap_or(0).min(BODY_BYTES)), 0);
        loop {
            let earned = seen as u64 * 1000 / (limits.body_bytes_per_second as u64).max(1);
            let end = began + limits.body + Duration::from_millis(earned);
            let frame = timeout_at(end, poll_fn(|context| Pin::new(&mut body).poll_frame(context)));
            let frame = match frame.await.map_err(|_| Refused::SlowBody)? {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Err(Refused::BrokenBody),
                None => break,
            };
            let Ok(data) = frame.into_data() else { continue };
            seen += data.len();
            if seen > DISCARDED_BYTES || seen > BODY_BYTES && impatient {
                return Err(Refused::LargeBody);
            }
            if seen <= BODY_BYTES {
                bytes.extend_from_slice(&data);
            }
        }
        if seen > BODY_BYTES { Err(Refused::LargeBody) } else { Ok(bytes.into()) }
    }
}

fn is_open(request: &Parts) -> bool {
    request.uri.path() == OPEN && (request.method == Method::GET || request.method == Method::HEAD)
}

fn head_bytes(request: &Parts) -> usize {
    let line = request.uri.path_and_query().map_or(0, |it| it.as_str().len());
    let headers = request.headers.iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// The body of an answer. The request is in progress as long as it lives.
pub(crate) struct Answer {
    body: Body,
    _underway: Underway,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
