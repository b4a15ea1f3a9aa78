//! `/metrics`: what a server counts and measures, in the formats of Prometheus and OpenMetrics.
//!
//! A scrape opens no store. What has to be asked of a worker is measured at most every few seconds,
//! see [`FiguresCache`].

mod families;
mod figures;
mod process;
mod requests;
mod scrape;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::server::Server;

pub(crate) use figures::FiguresCache;
pub(crate) use requests::{RequestCounts, note_route};
pub(crate) use text::Format;

/// What a server counts by itself; stores and pools have their own counts.
#[derive(Default)]
pub(crate) struct Monitoring {
    pub(crate) figures: FiguresCache,
    pub(crate) requests: RequestCounts,
    alerts: Mutex<AlertCounts>,
    /// Numbers of pending and admitted connections.
    connections: OnceLock<ConnectionCount>,
}

type ConnectionCount = Box<dyn Fn() -> (usize, usize) + Send + Sync>;

/// Alerts raised, by cause, and hooks that failed, by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlertCounts {
    pub(crate) raised: std::collections::BTreeMap<&'static str, u64>,
    pub(crate) failed: std::collections::BTreeMap<&'static str, u64>,
}

impl Monitoring {
    pub(crate) fn alerts(&self) -> MutexGuard<'_, AlertCounts> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets where the numbers of connections come from.
    pub(crate) fn count_connections(
        &self,
        count: impl Fn() -> (usize, usize) + Send + Sync + 'static,
    ) {
        // A server listens once; a second listener would not be counted.
        let _ = self.connections.set(Box::new(count));
    }

    fn connections(&self) -> Option<(usize, usize)> {
        self.connections.get().map(|count| count())
    }
}

/// The route of `/metrics`.
pub(crate) fn routes(server: &Server) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(Arc::new(server.clone()))
}

async fn metrics(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let text = server.scrape(format).await;
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}
