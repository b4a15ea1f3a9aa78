//! The HTTP API of Chroma 1.5, version 2, as a single server of Chroma answers it. Its clients work
//! with it unchanged.
//!
//! Requests are checked and converted to the engine's operations here; nothing is stored here.

mod backend;
mod change;
mod collections;
mod config;
mod databases;
mod embedding;
mod error;
mod filters;
mod indexed;
mod metadata;
mod read;
mod records;
mod reply;
mod request;
mod schema;
mod system;
mod vectors;

use axum::Router;
use axum::routing::{any, get, post};

use crate::server::{CallGuard, Server};
use backend::Backend;
use error::Reply;
use indexed::Schemas;

pub(crate) use error::ChromaError;

/// What paths of this API begin with.
pub(crate) const PREFIX: &str = "/api/";

/// Maximum size of a request's body: a batch of [`MAX_BATCH`] vectors of 1,536 numbers in base64,
/// with documents.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// The number of records that clients send at once, which is Chroma's.
const MAX_BATCH: u32 = 5461;

/// The state of the routes.
#[derive(Clone)]
pub(crate) struct Chroma {
    server: Server,
    allow_reset: bool,
    schemas: Schemas,
}

impl Chroma {
    pub(crate) fn new(server: Server, allow_reset: bool) -> Self {
        Self { server, allow_reset, schemas: Schemas::default() }
    }

    /// The store to read, if it exists.
    fn reading(&self) -> Reply<(Backend, CallGuard)> {
        let call = self.server.begin_call();
        Ok((Backend::reading(self.server.stores())?, call))
    }

    /// The store to write to, created if needed.
    fn writing(&self) -> Reply<(Backend, CallGuard)> {
        let call = self.server.begin_call();
        Ok((Backend::writing(self.server.stores())?, call))
    }
}

/// All routes.
pub(crate) fn routes(chroma: Chroma) -> Router {
    let collection = Router::new()
        .route("/", get(collections::get).put(collections::modify).delete(collections::delete))
        .route("/add", post(change::add))
        .route("/upsert", post(change::upsert))
        .route("/update", post(change::update))
        .route("/delete", post(change::delete))
        .route("/get", post(read::get))
        .route("/query", post(read::query))
        .route("/search", post(system::search))
        .route("/count", get(read::count))
        .route("/fork", post(system::fork))
        .route("/fork_count", get(system::fork_count))
        .route("/indexing_status", get(system::indexing_status))
        .route("/functions/attach", post(system::attach_function))
        .route("/functions/{name}", get(system::get_function))
        .route("/attached_functions/{name}/detach", post(system::detach_function));
    let database = Router::new()
        .route("/", get(databases::get).delete(databases::delete))
        .route("/collections", get(collections::list).post(collections::create))
        .route("/collections_count", get(collections::count))
        .route("/collections/by-id/{collection}", get(collections::get_by_id))
        .nest("/collections/{collection}", collection);
    let tenants = Router::new()
        .route("/", post(databases::create_tenant))
        .route("/{tenant}", get(databases::get_tenant).patch(databases::update_tenant))
        .route("/{tenant}/databases", get(databases::list).post(databases::create))
        .nest("/{tenant}/databases/{database}", database);
    let api = Router::new()
        .route("/", get(system::heartbeat))
        .route("/heartbeat", get(system::heartbeat))
        .route("/healthcheck", get(system::healthcheck))
        .route("/version", get(system::version))
        .route("/pre-flight-checks", get(system::pre_flight_checks))
        .route("/auth/identity", get(system::identity))
        .route("/reset", post(system::reset))
        .route("/collections/{name}", get(collections::get_by_resource_name))
        .nest("/tenants", tenants);
    Router::new()
        .nest("/api/v2", api)
        .route("/api/v1/{*rest}", any(system::first_version))
        .with_state(chroma)
}
