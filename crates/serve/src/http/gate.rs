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
use axum::http::{HeaderValue, Method, Request, header};
use axum::middleware::from_fn;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Duration, Instant, timeout_at};

use super::MAX_BODY_BYTES;
use super::connections::{Connection, Limits, RequestGuard};
use super::hosts::AllowedHosts;
use super::refusal::{Refusal, with_json_error};
use crate::api;
use crate::chroma;
use crate::metrics::note_route;
use crate::server::Server;
use crate::ui::{self, Passage, SignIn};

/// Served without a token, and without reading a body, as are the files of the pages.
const PUBLIC_PATH: &str = "/health";

/// Maximum size of all headers of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How much of an oversized body is read and discarded beyond the limit, so that the client can
/// read the answer.
const DISCARDED_BYTES: usize = 3 * MAX_BODY_BYTES;

/// Maximum total size of the bodies being read, counted in units of [`BODY_UNIT`]. Large ones count
/// until they are answered.
const MAX_BODIES_BYTES: usize = 160 << 20;
const BODY_UNIT: usize = 1 << 10;

pub(crate) struct Gate {
    hosts: AllowedHosts,
    sign_in: Arc<SignIn>,
    bodies: Semaphore,
}

impl Gate {
    pub(crate) fn new(hosts: AllowedHosts, sign_in: Arc<SignIn>) -> Self {
        Self { hosts, sign_in, bodies: Semaphore::new(MAX_BODIES_BYTES / BODY_UNIT) }
    }

    /// Puts routes behind the gate.
    pub(crate) fn around(self, router: Router) -> Gated {
        // The gate applies its own limit to all routes.
        let router = router.layer(DefaultBodyLimit::disable()).layer(from_fn(note_route));
        Gated { gate: Arc::new(self), router: TowerToHyperService::new(router), server: None }
    }
}

/// A router behind the gate.
#[derive(Clone)]
pub(crate) struct Gated {
    gate: Arc<Gate>,
    router: TowerToHyperService<Router>,
    /// The server that counts its requests.
    server: Option<Server>,
}

impl Gated {
    /// Counts all requests.
    pub(crate) fn counted_by(self, server: &Server) -> Self {
        Self { server: Some(server.clone()), ..self }
    }

    /// Answers a request. It counts as in progress until the answer's body is dropped.
    pub(crate) async fn answer<B>(
        &self,
        request: Request<B>,
        connection: &Arc<Connection>,
    ) -> Response<GuardedBody>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let (guard, began) = (connection.begin(), Instant::now());
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut response = match self.gate.admit(request, connection).await {
            Ok((request, permit)) => {
                let _held = permit.filter(|_| large_body_limit(&path).is_some());
                match self.router.call(request).await {
                    Ok(response) => with_json_error(response, &method, &path).await,
                    Err(never) => match never {},
                }
            }
            Err(refusal) => {
                tracing::debug!(%method, path, ?refusal, "request refused");
                refusal.answer(&path)
            }
        };
        if let Some(server) = &self.server {
            server.monitoring().requests.add(&method, &response, began.elapsed());
        }
        if !connection.is_admitted() {
            // Slots for pending connections are few.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response.map(|body| GuardedBody { body, _guard: guard })
    }
}

impl Gate {
    /// Checks a request and reads its whole body. The permit counts the body as being read.
    async fn admit<B>(
        &self,
        request: Request<B>,
        connection: &Connection,
    ) -> Result<(Request<Body>, Option<SemaphorePermit<'_>>), Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        if head_bytes(&parts) > MAX_HEAD_BYTES {
            return Err(Refusal::LargeHead);
        }
        self.hosts.check(&parts)?;
        let passage = self.sign_in.check(&parts, Instant::now());
        match passage {
            Passage::Granted => connection.admit()?,
            Passage::Foreign => return Err(Refusal::ForbiddenOrigin),
            Passage::Open | Passage::Refused => {}
        }
        if is_public(&parts) {
            return Ok((Request::from_parts(parts, Body::empty()), None));
        }
        if passage == Passage::Refused && !ui::is_sign_in(&parts) {
            return Err(Refusal::NoToken);
        }
        let (bytes, permit) = self.read_body(&parts, body, connection.limits()).await?;
        // If no token is required, a complete request is enough to be admitted.
        if passage == Passage::Open {
            connection.admit()?;
        }
        Ok((Request::from_parts(parts, Body::from(bytes)), Some(permit)))
    }

    /// Reads a body within the limits of size and time.
    async fn read_body<B>(
        &self,
        request: &Parts,
        mut body: B,
        limits: &Limits,
    ) -> Result<(Bytes, SemaphorePermit<'_>), Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let declared =
            body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let expects_continue = request.headers.contains_key(header::EXPECT);
        let most = body_limit(request);
        let is_refused = |size| size > most + DISCARDED_BYTES || size > most && expects_continue;
        if declared.is_some_and(is_refused) {
            return Err(Refusal::LargeBody { limit: most });
        }
        let began = Instant::now();
        let units = declared.unwrap_or(most).min(most).div_ceil(BODY_UNIT);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let permit = timeout_at(began + limits.body, self.bodies.acquire_many(units)).await;
        let permit = permit.ok().and_then(Result::ok).ok_or(Refusal::TooManyConnections)?;
        // A length that is only claimed takes no more memory than what arrives.
        let capacity = declared.unwrap_or(0).min(MAX_BODY_BYTES);
        let (mut bytes, mut received) = (Vec::with_capacity(capacity), 0);
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
            if is_refused(received) {
                return Err(Refusal::LargeBody { limit: most });
            }
            if received <= most {
                bytes.extend_from_slice(&data);
            }
        }
        if received > most {
            Err(Refusal::LargeBody { limit: most })
        } else {
            Ok((bytes.into(), permit))
        }
    }
}

/// Maximum size of the body of a request.
fn body_limit(request: &Parts) -> usize {
    match large_body_limit(request.uri.path()) {
        Some(limit) => limit,
        None if ui::is_sign_in(request) => ui::MAX_SIGN_IN_BYTES,
        None => MAX_BODY_BYTES,
    }
}

/// The limit of requests that may have larger bodies than others.
fn large_body_limit(path: &str) -> Option<usize> {
    match path {
        path if path.starts_with(chroma::PREFIX) => Some(chroma::MAX_BODY_BYTES),
        path if api::is_import(path) => Some(api::MAX_IMPORT_BYTES),
        _ => None,
    }
}

fn is_public(request: &Parts) -> bool {
    let reads = request.method == Method::GET || request.method == Method::HEAD;
    (reads && request.uri.path() == PUBLIC_PATH) || ui::is_asset(request)
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
