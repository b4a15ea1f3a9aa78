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

use super::MAX_BODY_BYTES;
use super::connections::{Connection, Limits, RequestGuard};
use super::hosts::AllowedHosts;
use super::refusal::{Refusal, with_json_error};
use super::token::Token;

/// Served without a token, and without reading a body.
const PUBLIC_PATH: &str = "/health";

/// Maximum size of all headers of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How much of an oversized body is read and discarded, so that the client can read the answer.
const DISCARDED_BYTES: usize = 4 * MAX_BODY_BYTES;

/// Maximum total size of the bodies being read, counted in units of [`BODY_UNIT`].
const MAX_BODIES_BYTES: usize = 64 << 20;
const BODY_UNIT: usize = 1 << 10;

pub(crate) struct Gate {
    hosts: AllowedHosts,
    token: Option<Token>,
    bodies: Semaphore,
}

impl Gate {
    pub(crate) fn new(hosts: AllowedHosts, token: Option<Token>) -> Self {
        Self { hosts, token, bodies: Semaphore::new(MAX_BODIES_BYTES / BODY_UNIT) }
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
    /// Answers a request. It counts as in progress until the answer's body is dropped.
    pub(crate) async fn answer<B>(
        &self,
        request: Request<B>,
        connection: &Arc<Connection>,
    ) -> Response<GuardedBody>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let guard = connection.begin();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut response = match self.gate.admit(request, connection).await {
            Ok(request) => match self.router.call(request).await {
                Ok(response) => with_json_error(response, &method, &path).await,
                Err(never) => match never {},
            },
            Err(refusal) => {
                tracing::debug!(%method, path, ?refusal, "request refused");
                refusal.into_response()
            }
        };
        if !connection.is_admitted() {
            // Slots for pending connections are few.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response.map(|body| GuardedBody { body, _guard: guard })
    }
}

impl Gate {
    /// Checks a request and reads its whole body.
    async fn admit<B>(
        &self,
        request: Request<B>,
        connection: &Connection,
    ) -> Result<Request<Body>, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        if head_bytes(&parts) > MAX_HEAD_BYTES {
            return Err(Refusal::LargeHead);
        }
        self.hosts.check(&parts)?;
        let token_matches = self.token.as_ref().map(|token| token.matches(&parts.headers));
        if token_matches == Some(true) {
            connection.admit()?;
        }
        if is_public(&parts) {
            return Ok(Request::from_parts(parts, Body::empty()));
        }
        if token_matches == Some(false) {
            return Err(Refusal::NoToken);
        }
        let bytes = self.read_body(&parts.headers, body, connection.limits()).await?;
        // Without a token, a complete request is enough to be admitted.
        connection.admit()?;
        Ok(Request::from_parts(parts, Body::from(bytes)))
    }

    /// Reads a body within the limits of size and time.
    async fn read_body<B>(
        &self,
        headers: &HeaderMap,
        mut body: B,
        limits: &Limits,
    ) -> Result<Bytes, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let declared =
            body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let expects_continue = headers.contains_key(header::EXPECT);
        if declared
            .is_some_and(|size| size > DISCARDED_BYTES || size > MAX_BODY_BYTES && expects_continue)
        {
            return Err(Refusal::LargeBody);
        }
        let began = Instant::now();
        let units = declared.unwrap_or(MAX_BODY_BYTES).min(MAX_BODY_BYTES).div_ceil(BODY_UNIT);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let permit = timeout_at(began + limits.body, self.bodies.acquire_many(units)).await;
        let _permit = permit.map_err(|_| Refusal::TooManyConnections)?;
        let (mut bytes, mut received) =
            (Vec::with_capacity(declared.unwrap_or(0).min(MAX_BODY_BYTES)), 0);
        loop {
            let extra = received as u64 * 1000 / (limits.body_bytes_per_second as u64).max(1);
            let end = began + limits.body + Duration::from_millis(extra);
            let frame = timeout_at(end, poll_fn(|context| Pin::new(&mut body).poll_frame(context)));
            let frame = match frame.await.map_err(|_| Refusal::SlowBody)? {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Err(Refusal::BrokenBody),
                None => break,
            };
            let Ok(data) = frame.into_data() else { continue };
            received += data.len();
            if received > DISCARDED_BYTES || received > MAX_BODY_BYTES && expects_continue {
                return Err(Refusal::LargeBody);
            }
            if received <= MAX_BODY_BYTES {
                bytes.extend_from_slice(&data);
            }
        }
        if received > MAX_BODY_BYTES { Err(Refusal::LargeBody) } else { Ok(bytes.into()) }
    }
}

fn is_public(request: &Parts) -> bool {
    request.uri.path() == PUBLIC_PATH
        && (request.method == Method::GET || request.method == Method::HEAD)
}

fn head_bytes(request: &Parts) -> usize {
    let line = request.uri.path_and_query().map_or(0, |it| it.as_str().len());
    let headers = request.headers.iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// The body of an answer. The request counts as in progress until it is dropped.
pub(crate) struct GuardedBody {
    body: Body,
    _guard: RequestGuard,
}

impl hyper::body::Body for GuardedBody {
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
