//! The server over HTTP: the protocol at `/mcp`, the API at `/v1`, and `/health` and `/metrics` for
//! monitoring; the pages at `/`.

mod accept;
mod connections;
mod ends;
mod gate;
mod hosts;
mod listen;
mod refusal;
#[cfg(test)]
mod tests;
mod token;
mod unix;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use isolith_types::{Code, Failure};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;

use crate::api;
use crate::chroma::{self, Chroma};
use crate::server::Server;
use crate::sessions::Sessions;
use crate::ui::{self, SignIn};
use accept::Listener;
use connections::{Connections, Limits};
use gate::{Gate, Gated};
use hosts::AllowedHosts;
use unix::UnixSocket;

pub use listen::Listen;
pub use token::Token;

pub(crate) use ends::Ends;
pub(crate) use refusal::answer as refusal_of;

/// Maximum size of a request's body.
const MAX_BODY_BYTES: usize = 4 << 20;

/// Length of the accept queue. When it is full, the system drops connection attempts, and clients
/// retry only after a second.
const BACKLOG: u32 = 1024;

/// Interval of keep-alive messages, which show whether a waiting client is still connected.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address to listen on.
    pub listen: Listen,
    /// Token that clients must send. Required if other machines can connect.
    pub token: Option<Token>,
    /// Accepted host names, in addition to the server's address.
    pub hosts: Vec<String>,
    /// Serve without sessions, even in revisions of the protocol that have them.
    pub stateless: bool,
    /// Serve the fixtures of the conformance suite; fails in builds that lack them.
    pub conformance: bool,
    /// Whether a client of Chroma's API may delete everything that it can reach.
    pub allow_reset: bool,
    /// Maximum number of authenticated connections.
    pub connections: usize,
}

/// A server that is listening.
pub struct HttpServer {
    listener: Listener,
    connections: Connections,
    router: Gated,
    server: Server,
    sign_in: Arc<SignIn>,
}

impl Server {
    /// Starts listening. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `usage` if other machines could connect and no token is required; an error if the address
    /// cannot be used.
    pub fn listen(&self, options: &HttpOptions) -> Result<HttpServer, Failure> {
        let HttpOptions { listen, token, .. } = options;
        if !listen.is_local() && token.is_none() {
            let message = format!("{listen} is reachable from other machines and requires a token");
            return Err(Failure::new(Code::Usage, message).with_hint(
                "leave out --no-token, or listen on 127.0.0.1 or a Unix socket (unix:PATH)",
            ));
        }
        if options.conformance && !cfg!(feature = "conformance") {
            return Err(Failure::new(Code::Usage, "this build has no conformance fixtures")
                .with_hint("only test builds have them"));
        }
        let listener = bind(listen)?;
        let hosts = match listen {
            Listen::Tcp(address) => AllowedHosts::of(address.ip(), &options.hosts),
            Listen::Unix(_) => AllowedHosts::any(),
        };
        let sign_in = Arc::new(SignIn::new(token.clone()));
        let routes = self.router(options).merge(ui::routes(Arc::clone(&sign_in)));
        let gated = Gate::new(hosts, Arc::clone(&sign_in)).around(routes);
        let router = gated.counted_by(self);
        let connections = Connections::new(Limits::of(options.connections));
        let counted = connections.clone();
        self.monitoring().count_connections(move || counted.count());
        Ok(HttpServer { listener, connections, router, server: self.clone(), sign_in })
    }

    fn router(&self, options: &HttpOptions) -> Router {
        #[cfg(feature = "conformance")]
        if options.conformance {
            return self.router_for(crate::conformance::ConformanceServer(self.clone()), options);
        }
        self.router_for(self.clone(), options)
    }

    fn router_for(&self, handler: impl ServerHandler + Clone, options: &HttpOptions) -> Router {
        let sessions = Sessions::new();
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(sessions.clone()),
            self.protocol_config(options),
        );
        let end_sessions = middleware::from_fn_with_state(sessions, end_session);
        let mcp = Router::new().fallback_service(service).layer(end_sessions);
        let chroma = chroma::routes(Chroma::new(self.clone(), options.allow_reset));
        Router::new()
            .nest_service("/mcp", mcp)
            .nest("/v1", api::router(self))
            .merge(chroma)
            .route("/health", get(health))
            .merge(crate::metrics::routes(self))
    }

    fn protocol_config(&self, options: &HttpOptions) -> StreamableHttpServerConfig {
        StreamableHttpServerConfig::default()
            // The gate has already checked names and origins for all routes.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(!options.stateless)
            .with_json_response(options.stateless)
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_cancellation_token(self.stopping())
    }
}

fn bind(listen: &Listen) -> Result<Listener, Failure> {
    match listen {
        Listen::Tcp(address) => listen_on(*address).map(Listener::Tcp).map_err(|error| {
            let message = format!("cannot listen on {address}: {error}");
            Failure::new(Code::Failed, message)
                .with_hint("choose another address with --listen; port 0 selects a free port")
        }),
        Listen::Unix(path) => UnixSocket::bind(path).map(Listener::Unix),
    }
}

/// Must be called within a tokio runtime.
fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Lets a server restart while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl HttpServer {
    /// The URL of the MCP endpoint. For a Unix socket, the host name is arbitrary.
    ///
    /// # Errors
    /// If the system does not report the address.
    pub fn url(&self) -> Result<String, Failure> {
        match &self.listener {
            Listener::Unix(_) => Ok("http://localhost/mcp".to_owned()),
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(address) => Ok(format!("http://{address}/mcp")),
                Err(error) => Err(Failure::new(
                    Code::Failed,
                    format!("cannot determine the address: {error}"),
                )),
            },
        }
    }

    /// The URL of the pages with a secret that signs a browser in, once and within five minutes.
    /// Without a token there is no secret in it.
    ///
    /// # Errors
    /// If the system does not report the address, or has no random numbers.
    pub fn sign_in_url(&self) -> Result<String, Failure> {
        let url = self.url()?;
        let root = url.trim_end_matches("mcp");
        // Browsers do not send what follows the #, and name it to nobody.
        Ok(match self.sign_in.new_link(Instant::now())? {
            Some(secret) => format!("{root}#sign-in={secret}"),
            None => root.to_owned(),
        })
    }

    /// Serves until the server is stopped.
    pub async fn serve(self) {
        let Self { listener, connections, router, server, .. } = self;
        server.warm_up_soon();
        accept::serve(&listener, &connections, &router, &server.stopping()).await;
    }
}

/// Answers a DELETE, which ends a session, with a status that all clients accept: some accept only
/// 200 and 204.
async fn end_session(State(sessions): State<Sessions>, request: Request, next: Next) -> Response {
    if request.method() != Method::DELETE {
        return next.run(request).await;
    }
    let id = request.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
    if let Some(id) = id.map(SessionId::from)
        && !sessions.has_session(&id).await.unwrap_or(false)
    {
        return (StatusCode::NOT_FOUND, "no such session").into_response();
    }
    let mut response = next.run(request).await;
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

async fn health() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, format!("{{\"ok\":true,\"version\":\"{version}\"}}\n")).into_response()
}
