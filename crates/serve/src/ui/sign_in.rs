//! How people sign in: the token, or the secret of a link, is exchanged for a cookie.
//!
//! Browsers send cookies of a host to every port of it, and so to servers of other users on this
//! machine. A cookie alone is therefore worth nothing: requests must also have a header with the
//! session's key, which only the pages know. They keep it where only pages from the same host and
//! port can read it.

use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderValue, header};
use blake3::Hash;
use isolith_types::{Code, Failure};
use tokio::time::Instant;

use crate::http::Token;

/// The header with the session's key.
const KEY_HEADER: &str = "x-isolith-ui";

/// Cookies are accepted below this path only.
const API: &str = "/v1/";

/// How long a link can be used.
pub(super) const LINK_LIFE: Duration = Duration::from_secs(5 * 60);

/// A session ends after this time without a request.
pub(super) const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// Maximum numbers; the oldest is forgotten first.
const MAX_LINKS: usize = 16;
pub(super) const MAX_SESSIONS: usize = 64;

/// The server's token, and who has signed in with it.
pub(crate) struct SignIn {
    /// `None` if nobody needs one.
    token: Option<Token>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Secrets of links that were not used yet, the oldest first.
    links: Vec<(Hash, Instant)>,
    /// The one that was not used for longest first.
    sessions: Vec<Session>,
}

/// The hashes of a session's cookie and key.
struct Session {
    cookie: Hash,
    key: Hash,
    used: Instant,
}

/// What a browser needs for its requests.
pub(super) struct Begun {
    pub(super) cookie: String,
    pub(super) key: String,
}

/// Whether a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// No token is required.
    Open,
    /// It has the token, or the cookie and key of a session.
    Granted,
    Refused,
    /// It has the cookie of a session, but comes from another page.
    Foreign,
}

impl SignIn {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self { token, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the token, or cookie and key, of a request.
    pub(crate) fn check(&self, request: &Parts, now: Instant) -> Passage {
        let Some(token) = &self.token else { return Passage::Open };
        if token.matches(&request.headers) {
            return Passage::Granted;
        }
        let Some(cookie) = cookie(&request.headers) else { return Passage::Refused };
        if !request.uri.path().starts_with(API) {
            return Passage::Refused;
        }
        let mut state = self.state();
        state.expire(now);
        let Some(at) = state.sessions.iter().position(|it| it.cookie == cookie) else {
            return Passage::Refused;
        };
        if !is_same_origin(&request.headers) {
            return Passage::Foreign;
        }
        if hash_of(&request.headers, KEY_HEADER) != Some(state.sessions[at].key) {
            return Passage::Refused;
        }
        let session = state.sessions.remove(at);
        state.sessions.push(Session { used: now, ..session });
        Passage::Granted
    }

    /// The secret of a new link; `None` if nobody needs to sign in.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn new_link(&self, now: Instant) -> Result<Option<String>, Failure> {
        if self.token.is_none() {
            return Ok(None);
        }
        let secret = random()
            .map_err(|error| Failure::new(Code::Failed, format!("no random numbers: {error}")))?;
        let mut state = self.state();
        state.expire(now);
        if state.links.len() >= MAX_LINKS {
            state.links.remove(0);
        }
        state.links.push((blake3::hash(secret.as_bytes()), now));
        Ok(Some(secret))
    }

    /// Begins a session for who knows the token.
    pub(super) fn by_token(&self, token: &str, now: Instant) -> Option<Begun> {
        if !self.token.as_ref()?.is(token) {
            return None;
        }
        self.begin(now)
    }

    /// Begins a session for the first who uses a link in time.
    pub(super) fn by_link(&self, secret: &str, now: Instant) -> Option<Begun> {
        let secret = blake3::hash(secret.as_bytes());
        {
            let mut state = self.state();
            state.expire(now);
            let at = state.links.iter().position(|(link, _)| *link == secret)?;
            state.links.remove(at);
        }
        self.begin(now)
    }

    fn begin(&self, now: Instant) -> Option<Begun> {
        let (cookie, key) = (random().ok()?, random().ok()?);
        let session = Session {
            cookie: blake3::hash(cookie.as_bytes()),
            key: blake3::hash(key.as_bytes()),
            used: now,
        };
        let mut state = self.state();
        state.expire(now);
        if state.sessions.len() >= MAX_SESSIONS {
            state.sessions.remove(0);
        }
        state.sessions.push(session);
        Some(Begun { cookie, key })
    }

    /// Ends the session whose cookie and key a request has.
    pub(super) fn end(&self, headers: &HeaderMap) {
        let (cookie, key) = (cookie(headers), hash_of(headers, KEY_HEADER));
        let is_this = |it: &Session| Some(it.cookie) == cookie && Some(it.key) == key;
        self.state().sessions.retain(|it| !is_this(it));
    }
}

impl State {
    fn expire(&mut self, now: Instant) {
        let age = |since: Instant| now.saturating_duration_since(since);
        self.links.retain(|(_, made)| age(*made) < LINK_LIFE);
        self.sessions.retain(|session| age(session.used) < SESSION_LIFE);
    }
}

/// The name of the cookie has the port, because servers on several ports of this machine would
/// otherwise replace each other's.
pub(super) fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let port = host.and_then(|host| Authority::try_from(host).ok()).and_then(|it| it.port_u16());
    format!("isolith-session-{}", port.unwrap_or(80))
}

fn cookie(headers: &HeaderMap) -> Option<Hash> {
    let name = cookie_name(headers);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.find(|(it, _)| *it == name).map(|(_, value)| blake3::hash(value.as_bytes()))
}

fn hash_of(headers: &HeaderMap, name: &str) -> Option<Hash> {
    headers.get(name).map(|value| blake3::hash(value.as_bytes()))
}

/// Whether a request comes from a page of this server. Other ports of the machine are other sites
/// here, although browsers send them the cookie.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| Uri::try_from(origin).ok());
        let authority = origin.as_ref().and_then(Uri::authority).map(Authority::as_str);
        authority.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
    };
    site.is_none_or(|site| site == b"same-origin")
        && headers.get_all(header::ORIGIN).iter().all(is_own)
}

/// 256 random bits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
