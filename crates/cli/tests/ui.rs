//! The pages as a browser sees them: signing in, what a cookie can do, and `isolith ui`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod http_client;
mod test_env;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http_client::{ApiAnswer, ApiServer};
use serde_json::{Value, json};
use test_env::{TestEnv, wait_until};

/// The client sends the server's token unless a request has another one.
const NO_TOKEN: (&str, &str) = ("Authorization", "none");
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn started(env: &TestEnv) -> ApiServer {
    ApiServer::start(env.command(&["serve", "--json", "--listen", "127.0.0.1:0"]))
}

fn token(env: &TestEnv) -> String {
    let file = env.path("home").join(".local/state/isolith/token");
    fs::read_to_string(file).unwrap().trim().to_owned()
}

fn sign_in(server: &ApiServer, credential: &Value) -> ApiAnswer {
    server.send("POST /ui/session", &[NO_TOKEN, JSON], &credential.to_string())
}

/// The cookie as a browser sends it back, and the key.
fn session(answer: &ApiAnswer) -> (String, String) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let key: Value = serde_json::from_str(&answer.body).unwrap();
    (cookie.split(';').next().unwrap().to_owned(), key["key"].as_str().unwrap().to_owned())
}

#[test]
fn the_pages_need_no_token_and_show_nothing_without() {
    let env = TestEnv::new();
    let server = started(&env);
    // What the page loads, if the program was built with the pages.
    let page = server.send("GET /", &[NO_TOKEN], "").body;
    let loaded = page.split('"').filter(|text| text.starts_with("/ui/assets/"));
    for path in std::iter::once("/").chain(loaded) {
        let answer = server.send(&format!("GET {path}"), &[NO_TOKEN], "");
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            answer.header("content-security-policy"),
            Some(
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                 img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
            )
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let cached = if path == "/" { "no-cache" } else { "public, max-age=31536000, immutable" };
        assert_eq!(answer.header("cache-control"), Some(cached), "{path}");
        assert_eq!(answer.header("content-encoding"), None, "nothing asked for gzip");
        let tag = answer.header("etag").unwrap();
        let again = server.send(&format!("GET {path}"), &[NO_TOKEN, ("If-None-Match", tag)], "");
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
    }
    for path in ["/ui/nowhere.js", "/ui/", "/v1/status", "/ui/..%2fv1/status"] {
        let answer = server.send(&format!("GET {path}"), &[NO_TOKEN], "");
        assert_eq!(answer.refused(), (401, "unauthorized".to_owned()), "{path}");
    }
    let foreign = [NO_TOKEN, ("Origin", "http://evil.example")];
    assert_eq!(server.send("GET /", &foreign, "").status, 403);
}

#[test]
fn the_token_is_exchanged_for_a_session() {
    let env = TestEnv::new();
    let server = started(&env);
    let wrong = sign_in(&server, &json!({ "token": "not-the-token-of-this-server" }));
    assert_eq!(wrong.refused(), (401, "unauthorized".to_owned()));
    assert!(wrong.header("set-cookie").is_none());
    let (cookie, key) = session(&sign_in(&server, &json!({ "token": token(&env) })));
    let (cookie, key) = (("Cookie", cookie.as_str()), ("X-Isolith-UI", key.as_str()));
    let ask = |request: &str, more: &[(&str, &str)], body: &str| {
        server.send(request, &[&[NO_TOKEN, JSON][..], more].concat(), body)
    };
    assert_eq!(ask("GET /v1/status", &[cookie, key], "").status, 200);
    let drawer = json!({ "text": "a", "wing": "w", "room": "r" }).to_string();
    let write = "POST /v1/memory/drawers";
    assert_eq!(ask(write, &[cookie, key], &drawer).status, 200);
    // Neither half is enough, for writes or for reads.
    assert_eq!(ask(write, &[cookie], &drawer).refused().0, 401);
    assert_eq!(ask(write, &[key], &drawer).refused().0, 401);
    assert_eq!(ask("GET /v1/status", &[cookie], "").refused().0, 401);
    // Other pages are refused, also those of other servers on this machine.
    for foreign in [
        ("Origin", "http://evil.example"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let refused = ask(write, &[cookie, key, foreign], &drawer).refused();
        assert_eq!(refused, (403, "forbidden".to_owned()), "{foreign:?}");
    }
    assert_eq!(ask("POST /mcp", &[cookie, key], "{}").refused().0, 401);
    assert_eq!(ask("GET /metrics", &[cookie, key], "").refused().0, 401);
    assert_eq!(ask("DELETE /ui/session", &[cookie, key], "").status, 204);
    assert_eq!(ask("GET /v1/status", &[cookie, key], "").refused().0, 401);
    // The token still works as a header.
    assert_eq!(server.get("/v1/status")["ok"], true);
}

#[test]
fn other_requests_to_sign_in_are_refused() {
    let env = TestEnv::new();
    let server = started(&env);
    let body = json!({ "token": token(&env) }).to_string();
    let form = [NO_TOKEN, ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(server.send("POST /ui/session", &form, &body).refused().0, 415);
    let foreign = [NO_TOKEN, JSON, ("Origin", "http://evil.example")];
    assert_eq!(server.send("POST /ui/session", &foreign, &body).refused().0, 403);
    let large = json!({ "token": "x".repeat(5000) });
    assert_eq!(sign_in(&server, &large).refused(), (413, "too_large".to_owned()));
    for bad in [json!({}), json!({ "token": 1 }), json!({ "token": "a", "link": "b" })] {
        assert_eq!(sign_in(&server, &bad).refused(), (400, "bad_input".to_owned()), "{bad}");
    }
    let in_query = format!("GET /?token={}", token(&env));
    let page = server.send(&in_query, &[NO_TOKEN], "");
    assert!(page.status == 200 && page.header("set-cookie").is_none());
}

/// `isolith ui`, which is killed at the end of the test.
struct Pages {
    child: Child,
    url: String,
}

impl Pages {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap();
        Self { child, url: announced["url"].as_str().unwrap().to_owned() }
    }

    /// Posts the secret of the link; the status of the answer.
    fn exchange(&self) -> u16 {
        let (address, secret) = self.url.split_once("/#sign-in=").unwrap();
        let address = address.strip_prefix("http://").unwrap();
        let body = json!({ "link": secret }).to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST /ui/session HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_link_signs_in_once() {
    let env = TestEnv::new();
    let pages = Pages::start(env.command(&["ui", "--no-browser", "--json"]));
    assert!(pages.url.starts_with("http://127.0.0.1:"), "{}", pages.url);
    assert!(!pages.url.contains(&token(&env)), "the link has a secret of its own");
    assert_eq!(pages.exchange(), 200);
    assert_eq!(pages.exchange(), 401, "the second time");
}

#[test]
fn the_browser_is_opened_on_a_desktop() {
    let env = TestEnv::new();
    let programs = env.path("programs");
    fs::create_dir(&programs).unwrap();
    let opened = env.path("opened");
    let script =
        format!("#!/bin/sh\necho \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n", opened.display());
    fs::write(programs.join("xdg-open"), script).unwrap();
    fs::set_permissions(programs.join("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = env.command(&["ui", "--json"]);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("DISPLAY", ":0");
    let pages = Pages::start(command);
    wait_until(|| opened.exists());
    assert_eq!(fs::read_to_string(&opened).unwrap().trim(), pages.url);
}

#[test]
fn other_machines_cannot_be_served() {
    let env = TestEnv::new();
    let error = env.fails(&["ui", "--no-browser", "--listen", "0.0.0.0:0"], 2, "usage");
    assert!(error["hint"].as_str().unwrap().contains("isolith serve"), "{error}");
}
