//! The server over HTTP: the protocol at `/mcp`, and `/health` for whoever only wants to
//! know whether it is there.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use isolith_types::{Code, Failure};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::door::Door;
use crate::server::Server;
use crate::sessions::Sessions;

/// The largest request.
const BODY_BYTES: usize = 4 << 20;

/// How often something is sent to a client that waits: whether it is still there shows
/// only then.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// A token that is easily guessed is none.
const SHORTEST_TOKEN: usize = 16;

/// Pages that may speak to a server on the same machine.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Names of this machine, for itself.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Where a server listens, and to whom.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address; port 0 stands for any that is free.
    pub listen: SocketAddr,
    /// What clients have to show.
    pub token: Option<Token>,
    /// Names under which the server is known, beside its address.
    pub hosts: Vec<String>,
    /// Whether every request stands for itself, also in revisions of the protocol that
    /// know sessions.
    pub stateless: bool,
    /// Whether the fixtures of the conformance suite are there too; only in builds that
    /// have them.
    pub conformance: bool,
}

/// A secret that clients show.
#[derive(Clone)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token of some length.
    ///
    /// # Errors
    /// `usage` if it is too short, or has letters that no header can carry.
    pub fn new(text: &str) -> Result<Self, Failure> {
        if text.len() < SHORTEST_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message =
                format!("a token has at least {SHORTEST_TOKEN} plain letters, digits or signs");
            return Err(Failure::new(Code::Usage, message)
                .with_hint("`openssl rand -hex 32` makes a good one"));
        }
        Ok(Self(blake3::hash(text.as_bytes())))
    }

    /// Whether a request shows it. Hashes are compared in constant time.
    fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && blake3::hash(token.trim().as_bytes()) == self.0
        })
    }
}

/// A server that listens.
pub struct HttpServer {
    listener: TcpListener,
    router: Router,
    server: Server,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// `usage` if others than this machine could connect and no token is asked for; that
    /// the address cannot be used.
    pub async fn listen(&self, options: &HttpOptions) -> Result<HttpServer, Failure> {
        let HttpOptions { listen, token, .. } = options;
        if !listen.ip().is_loopback() && token.is_none() {
            let message = format!("others could connect to {listen}, and no token is asked for");
            return Err(Failure::new(Code::Usage, message).with_hint(
                "give a token with --token-file or ISOLITH_TOKEN, or listen on 127.0.0.1",
            ));
        }
        if options.conformance && !cfg!(feature = "conformance") {
            return Err(Failure::new(Code::Usage, "this build has no fixtures in it")
                .with_hint("only the tests' build has them"));
        }
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            Failure::new(Code::Failed, format!("{listen} cannot be listened on: {error}"))
                .with_hint("choose another address with --listen; port 0 takes any that is free")
        })?;
        let server = self.clone();
        Ok(HttpServer { listener, router: self.router(options), server })
    }

    fn router(&self, options: &HttpOptions) -> Router {
        #[cfg(feature = "conformance")]
        if options.conformance {
            return self.router_of(crate::conformance::Rehearsal(self.clone()), options);
        }
        self.router_of(self.clone(), options)
    }

    fn router_of(&self, handler: impl ServerHandler + Clone, options: &HttpOptions) -> Router {
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(Sessions::new()),
            self.protocol(options),
        );
        let mcp = Router::new().fallback_service(service).layer(middleware::from_fn(say_goodbye));
        let mcp = match options.token.clone() {
            Some(token) => mcp.layer(middleware::from_fn_with_state(token, ask_for_token)),
            None => mcp,
        };
        Router::new().nest("/mcp", mcp).route("/health", get(health))
    }

    fn protocol(&self, options: &HttpOptions) -> StreamableHttpServerConfig {
        StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts(options))
            .with_allowed_origins(LOCAL_ORIGINS)
            .enforce_origin_validation()
            .with_legacy_session_mode(!options.stateless)
            .with_json_response(options.stateless)
            .with_max_request_body_bytes(BODY_BYTES)
            .with_sse_keep_alive(Some(SIGN_OF_LIFE))
            .with_cancellation_token(self.stopping())
    }
}

impl HttpServer {
    /// Where it listens.
    ///
    /// # Errors
    /// That the system does not know.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.listener.local_addr().map_err(|error| {
            Failure::new(Code::Failed, format!("the address is not known: {error}"))
        })
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    /// That it cannot listen any more.
    pub async fn serve(self) -> Result<(), Failure> {
        let Self { listener, router, server } = self;
        server.warm_up_soon();
        let stopping = server.stopping();
        axum::serve(Door::of(listener), router)
            .with_graceful_shutdown(async move { stopping.cancelled().await })
            .await
            .map_err(|error| Failure::new(Code::Failed, format!("listening failed: {error}")))
    }
}

/// What requests may call the server: a page whose name was made to lead here by its own
/// server calls it something else. Whoever listens on all addresses cannot know its names,
/// but asks for a token, which no page has.
fn hosts(options: &HttpOptions) -> Vec<String> {
    let ip: IpAddr = options.listen.ip();
    if ip.is_unspecified() && options.hosts.is_empty() {
        return Vec::new();
    }
    let local = LOCAL_HOSTS.map(str::to_owned).into_iter();
    local.chain([ip.to_string()]).chain(options.hosts.iter().cloned()).collect()
}

/// The end of a session is accepted; there are clients that take only 200 and 204 for that.
async fn say_goodbye(request: Request, next: Next) -> Response {
    let ends = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

async fn ask_for_token(State(token): State<Token>, request: Request, next: Next) -> Response {
    if token.is_shown(request.headers()) {
        return next.run(request).await;
    }
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, scheme, "a bearer token is asked for\n").into_response()
}

async fn health() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, format!("{{\"ok\":true,\"version\":\"{version}\"}}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn shown(value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        for (value, expected) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef", true),
            ("Bearer 0123456789abcdeg", false),
            ("Bearer 0123456789abcde", false),
            ("Bearer ", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
        ] {
            assert_eq!(token.is_shown(&shown(value)), expected, "{value}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
        for bad in ["", "short", "with spaces in the middle", "0123456789abcdeé"] {
            assert_eq!(Token::new(bad).unwrap_err().code, Code::Usage, "{bad}");
        }
    }

    #[test]
    fn a_server_knows_its_names() {
        let names = |listen: &str, extra: &[&str]| {
            let hosts = extra.iter().map(|name| (*name).to_owned()).collect();
            let listen = listen.parse().unwrap();
            super::hosts(&HttpOptions {
                listen,
                token: None,
                hosts,
                stateless: false,
                conformance: false,
            })
        };
        assert!(names("127.0.0.1:80", &[]).contains(&"localhost".to_owned()));
        assert!(names("10.1.2.3:80", &[]).contains(&"10.1.2.3".to_owned()));
        assert!(names("0.0.0.0:80", &[]).is_empty(), "any name will do");
        assert!(names("0.0.0.0:80", &["box.lan"]).contains(&"box.lan".to_owned()));
    }
}
