//! Counts requests by route and status.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use isolate::Spread;

/// The route of requests that the gate refused.
const REFUSED: &str = "(refused)";

/// The route of requests that no route matched.
const UNMATCHED: &str = "(unmatched)";

/// Maximum number of different routes, methods and statuses that are counted apart.
const MAX_SERIES: usize = 2_000;

/// Requests of a server.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts(Mutex<Counts>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// By method, route and status.
    pub(crate) requests: BTreeMap<(&'static str, String, u16), u64>,
    /// Seconds until the answer began, by route.
    pub(crate) seconds: BTreeMap<String, Spread>,
}

/// The template of the route that answered, in the extensions of a response.
#[derive(Debug, Clone)]
struct Route(String);

/// A layer that notes the template of the route in the response.
pub(crate) async fn note_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| template(path.as_str()));
    let route = route.unwrap_or_else(|| UNMATCHED.to_owned());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(Route(route));
    response
}

/// Nested services match a path of their own below their prefix.
fn template(path: &str) -> String {
    let path = path.split("/{*__private").next().unwrap_or(path);
    path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path).to_owned()
}

impl RequestCounts {
    /// Counts an answer.
    pub(crate) fn add<B>(
        &self,
        method: &Method,
        response: &axum::http::Response<B>,
        took: Duration,
    ) {
        let route = response.extensions().get::<Route>();
        let route = route.map_or(REFUSED, |Route(route)| route.as_str());
        self.count(method_name(method), route, response.status(), took);
    }

    fn count(&self, method: &'static str, route: &str, status: StatusCode, took: Duration) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series = (method, route.to_owned(), status.as_u16());
        if counts.requests.len() >= MAX_SERIES && !counts.requests.contains_key(&series) {
            return;
        }
        *counts.requests.entry(series).or_default() += 1;
        counts.seconds.entry(route.to_owned()).or_default().add(took.as_secs_f64());
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Clients can send any method.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_cannot_create_series_at_will() {
        let counts = RequestCounts::default();
        let odd = Method::from_bytes(b"BREW").unwrap();
        assert_eq!(method_name(&odd), "other");
        for number in 0..MAX_SERIES + 10 {
            counts.count("GET", &format!("/{number}"), StatusCode::OK, Duration::ZERO);
        }
        counts.count("GET", "/1", StatusCode::OK, Duration::ZERO);
        let counts = counts.counts();
        assert_eq!(counts.requests.len(), MAX_SERIES);
        assert_eq!(counts.requests[&("GET", "/1".to_owned(), 200)], 2);
    }

    #[test]
    fn templates_of_nested_services_are_their_prefix() {
        for (path, expected) in [
            ("/mcp", "/mcp"),
            ("/mcp/", "/mcp"),
            ("/mcp/{*__private__axum_nest_tail_param}", "/mcp"),
            ("/api/v2/collections/{id}", "/api/v2/collections/{id}"),
            ("/", "/"),
        ] {
            assert_eq!(template(path), expected);
        }
    }
}
