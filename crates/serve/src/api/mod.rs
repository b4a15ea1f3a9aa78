//! Our own API, `/v1`: the operations of the tools, and more, as JSON over HTTP.
//!
//! An [`Endpoint`] is defined once, with the types that it takes and answers. Routes, the
//! description at `/v1/openapi.json` and the page at `/v1/docs` come from the same list.

mod answer;
mod code;
mod collections;
mod crashes;
mod docs;
mod drill;
mod endpoint;
mod events;
mod facts;
mod graph;
mod graph_import;
mod jobs;
mod live;
mod map;
mod memory;
mod openapi;
mod projection;
mod quarantine;
mod records;
mod request;
mod schema;
mod status;
mod values;

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use isolith_types::{Code, Failure};
use serde_json::value::to_raw_value;

use crate::progress::Progress;
use crate::server::Server;
use crate::tool::{Call, Surface};
use answer::{ApiError, json_response, success};
use endpoint::{Endpoint, Kind, Verb};

pub(crate) use graph::SymbolAnswer;
pub(crate) use graph_import::{MAX_IMPORT_BYTES, is_import};
pub(crate) use jobs::Jobs;

/// All endpoints, in the order of the description.
fn endpoints() -> Vec<Endpoint> {
    let groups = [
        code::endpoints(),
        map::endpoints(),
        graph::endpoints(),
        graph_import::endpoints(),
        memory::endpoints(),
        facts::endpoints(),
        collections::endpoints(),
        records::endpoints(),
        values::endpoints(),
        projection::endpoints(),
        status::endpoints(),
        crashes::endpoints(),
        quarantine::endpoints(),
        drill::endpoints(),
    ];
    groups.into_iter().flatten().collect()
}

/// The routes below `/v1`.
pub(crate) fn router(server: &Server) -> Router {
    let endpoints = endpoints();
    let description = openapi::document(&endpoints);
    let (page, description): (Arc<str>, Arc<str>) =
        (docs::page(&description).into(), description.to_string().into());
    let mut router = Router::new()
        .route(
            "/openapi.json",
            get(move || async move { json_response(StatusCode::OK, description.to_string()) }),
        )
        .route("/docs", get(move || async move { docs::response(page.to_string()) }));
    for endpoint in endpoints {
        let (server, endpoint) = (server.clone(), Arc::new(endpoint));
        let (verb, path) = (endpoint.verb, endpoint.path);
        let handler = move |path: RawPathParams, request: Request| {
            let (server, endpoint) = (server.clone(), Arc::clone(&endpoint));
            async move { answer(&server, &endpoint, &path, request).await.into_response() }
        };
        router = router.route(path, on(filter(verb), handler));
    }
    router.fallback(not_found)
}

fn filter(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Put => MethodFilter::PUT,
        Verb::Patch => MethodFilter::PATCH,
        Verb::Delete => MethodFilter::DELETE,
    }
}

async fn answer(
    server: &Server,
    endpoint: &Endpoint,
    path: &RawPathParams,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    // The gate has read and limited the body.
    let body = axum::body::to_bytes(body, usize::MAX)
        .await
        .map_err(|error| Failure::new(Code::BadInput, format!("cannot read the body: {error}")))?;
    let arguments = request::arguments(endpoint, path, parts.uri.query(), &parts.headers, &body)?;
    let run = endpoint.prepare(arguments)?;
    let key = request::idempotency_key(endpoint, &parts.headers)?;
    let call = |progress| Call { server: server.clone(), progress, surface: Surface::Program, key };
    match endpoint.kind {
        Kind::Plain => {
            let _guard = server.begin_call();
            Ok(success(&run(call(Progress::Nobody)).await?))
        }
        Kind::Events => {
            run(call(Progress::Nobody)).await?;
            let id = path.iter().next().map_or("", |(_, id)| id);
            // It runs on when the client goes.
            Ok(events::response(server.jobs().find(id)?, false))
        }
        Kind::Live => {
            let first = run(call(Progress::Nobody)).await?;
            Ok(live::response(server.clone(), &first))
        }
        Kind::Job => {
            let run = |steps| run(call(Progress::Job(steps)));
            let job = server.jobs().start(server, endpoint.name, run)?;
            let accept = parts.headers.get_all(header::ACCEPT).iter();
            let mut accept = accept.filter_map(|kinds| kinds.to_str().ok());
            if accept.any(|kinds| kinds.contains("text/event-stream")) {
                return Ok(events::response(job, true));
            }
            let report = to_raw_value(&job.report()).map_err(|error| {
                Failure::new(Code::Failed, format!("cannot serialize the job: {error}"))
            })?;
            let mut response = json_response(StatusCode::ACCEPTED, report.get().to_owned());
            if let Ok(place) = HeaderValue::from_str(&format!("/v1/jobs/{}", job.id)) {
                response.headers_mut().insert(header::LOCATION, place);
            }
            Ok(response)
        }
    }
}

async fn not_found(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {method} /v1{}", uri.path());
    Failure::new(Code::NotFound, message)
        .with_hint("GET /v1/docs and GET /v1/openapi.json list what there is")
        .into()
}

#[cfg(test)]
mod tests;
