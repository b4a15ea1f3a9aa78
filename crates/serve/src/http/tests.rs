//! Tests with real loopback connections to a few routes behind the gate, with low limits.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use hyper::body::Frame;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::accept::{Listener, serve};
use super::connections::{Connections, Limits};
use super::gate::Gate;
use super::hosts::AllowedHosts;
use super::*;

const TOKEN: &str = "0123456789abcdef";
const BEARER: &str = "Authorization: Bearer 0123456789abcdef\r\n";

/// Long enough for anything that is expected to happen, on any machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Longer than any test.
const NO_TIMEOUT: Duration = Duration::from_secs(600);

const SHORT: Duration = Duration::from_secs(1);

/// A server that stops when dropped.
struct TestServer {
    address: SocketAddr,
    connections: Connections,
    stopping: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.task.abort();
    }
}

fn no_timeouts() -> Limits {
    Limits { head: NO_TIMEOUT, idle: NO_TIMEOUT, body: NO_TIMEOUT, ..Limits::of(100) }
}

async fn start(limits: Limits, token: Option<&str>, router: Router) -> TestServer {
    let listener = listen_on(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let token = token.map(|token| Token::new(token).unwrap());
    let router =
        Gate::new(AllowedHosts::of(address.ip(), &[]), Arc::new(SignIn::new(token))).around(router);
    let (connections, stopping) = (Connections::new(limits), CancellationToken::new());
    let (all, stop) = (connections.clone(), stopping.clone());
    let task = tokio::spawn(async move {
        serve(&Listener::Tcp(listener), &all, &router, &stop).await;
    });
    TestServer { address, connections, stopping, task }
}

fn routes() -> Router {
    Router::new()
        .route("/health", get(super::health))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/size", post(|body: Bytes| async move { body.len().to_string() }))
}

impl TestServer {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads everything up to the end of the connection.
    async fn request(&self, request: &str) -> HttpAnswer {
        let mut stream = self.connect().await;
        // A refused request may not be read completely.
        let _ = stream.write_all(request.as_bytes()).await;
        HttpAnswer::of(&read_to_end(&mut stream).await)
    }
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

#[derive(Debug)]
struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

impl HttpAnswer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn code(&self) -> String {
        let document: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let error = &document["error"];
        assert!(error["message"].is_string() && error["hint"].is_string(), "{self:?}");
        error["code"].as_str().unwrap().to_owned()
    }
}

fn request(line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads one answer, of a connection that stays open.
async fn read_one(stream: &mut TcpStream) -> HttpAnswer {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut byte)).await.unwrap().unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    HttpAnswer::of(&(head + std::str::from_utf8(&body).unwrap()))
}

#[tokio::test]
async fn no_route_bypasses_the_gate() {
    // Routes that are added in every possible way.
    let extra = Router::new()
        .route("/later", get(|| async { "private" }))
        .nest("/v9", Router::new().route("/inside", get(|| async { "private" })))
        .nest_service("/files", Router::new().fallback(|| async { "private" }))
        .merge(Router::new().route("/health/more", get(|| async { "private" })))
        .fallback(|| async { "private" });
    let server = start(no_timeouts(), Some(TOKEN), routes().merge(extra)).await;
    let paths = [
        "/later",
        "/v9/inside",
        "/files/x",
        "/health/more",
        "/health/",
        "//health",
        "/ui/later",
        "/ui/../later",
        "//",
        "/echo",
        "/%68ealth",
        "/health?x",
        "/HEALTH",
        "/../health",
        "*",
        "http://localhost/later",
    ];
    for path in paths {
        let line = format!("GET {path}");
        let open = path.split('?').next() == Some("/health");
        let without = server.request(&request(&line, "", "")).await;
        assert!(!without.body.contains("private"), "{path}: {without:?}");
        if open {
            assert_eq!(without.status, 200, "{path}");
        } else {
            assert_eq!((without.status, without.code().as_str()), (401, "unauthorized"), "{path}");
            assert!(without.head.contains("www-authenticate: bearer"), "{without:?}");
        }
        let wrong = "Authorization: Bearer 0123456789abcdeX\r\n";
        let wrong = server.request(&request(&line, wrong, "")).await;
        assert_eq!(wrong.status, if open { 200 } else { 401 }, "{path}");
        // Hosts and origins are checked even with the token.
        for (header, code) in
            [("Origin: http://evil.example\r\n", "forbidden"), ("Host: x\r\n", "bad_input")]
        {
            let foreign = server.request(&request(&line, &format!("{BEARER}{header}"), "")).await;
            assert_eq!(foreign.code(), code, "{path}: {foreign:?}");
        }
        let rebound = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n{BEARER}\r\n");
        let rebound = server.request(&rebound).await;
        assert_eq!((rebound.status, rebound.code().as_str()), (403, "forbidden"), "{path}");
    }
    let with = server.request(&request("GET /later", BEARER, "")).await;
    assert_eq!((with.status, with.body.as_str()), (200, "private"));
    assert_eq!(server.request(&request("POST /health", "", "")).await.status, 401);
}

#[tokio::test]
async fn routing_errors_have_the_common_format() {
    let server = start(no_timeouts(), Some(TOKEN), routes()).await;
    let missing = server.request(&request("GET /nowhere", BEARER, "")).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "not_found"));
    let wrong = server.request(&request("GET /echo", BEARER, "")).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (405, "bad_input"));
    assert!(wrong.head.contains("allow: post"), "{wrong:?}");
}

#[tokio::test]
async fn silent_connections_do_not_block_others() {
    let limits = Limits { pending: 64, ..no_timeouts() };
    let server = start(limits, Some(TOKEN), routes()).await;
    let mut silent = Vec::new();
    for number in 0..200 {
        silent.push(server.connect().await);
        if number % 20 == 0 {
            let answer = server.request(&request("POST /echo", BEARER, "hello")).await;
            assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        }
    }
    let mut client = server.connect().await;
    let hello = request("POST /echo", BEARER, "hello").replace("Connection: close\r\n", "");
    client.write_all(hello.as_bytes()).await.unwrap();
    assert_eq!(read_one(&mut client).await.body, "hello");
    // An admitted connection stays, however many come after it.
    for _ in 0..200 {
        silent.push(server.connect().await);
    }
    client.write_all(hello.as_bytes()).await.unwrap();
    assert_eq!(read_one(&mut client).await.body, "hello");
    let (pending, admitted) = server.connections.count();
    assert!(pending <= 64 && admitted == 1, "{pending} {admitted}");
    // The first ones were evicted.
    assert_eq!(read_to_end(&mut silent[0]).await, "");
}

#[tokio::test]
async fn an_incomplete_request_does_not_keep_its_slot() {
    let limits = Limits { pending: 1, ..no_timeouts() };
    let server = start(limits, Some(TOKEN), routes()).await;
    let mut first = server.connect().await;
    first.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
    let mut second = server.connect().await;
    // Whether it gets an answer depends on how much was read.
    let answer = read_to_end(&mut first).await;
    assert!(
        answer.is_empty() || HttpAnswer::of(&answer).code() == "too_many_connections",
        "{answer}"
    );
    second.write_all(request("GET /health", "", "").as_bytes()).await.unwrap();
    assert_eq!(HttpAnswer::of(&read_to_end(&mut second).await).status, 200);
}

#[tokio::test]
async fn pending_connections_time_out() {
    let server = start(Limits { head: SHORT, ..no_timeouts() }, Some(TOKEN), routes()).await;
    let mut silent = server.connect().await;
    assert_eq!(read_to_end(&mut silent).await, "");
    // Sending a byte now and then does not extend the time.
    let mut slow = server.connect().await;
    slow.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ").await.unwrap();
    let sending = async {
        loop {
            tokio::time::sleep(SHORT / 10).await;
            if slow.write_all(b"a").await.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, sending).await.unwrap();
    let mut cut = server.connect().await;
    cut.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
    let answer = HttpAnswer::of(&read_to_end(&mut cut).await);
    assert_eq!((answer.status, answer.code().as_str()), (408, "timeout"));
}

#[tokio::test]
async fn idle_connections_time_out_but_event_streams_do_not() {
    let (events, feed) = mpsc::channel::<&'static str>(4);
    let feed = Arc::new(std::sync::Mutex::new(Some(feed)));
    let stream = move || async move {
        let events = feed.lock().unwrap().take().unwrap();
        axum::body::Body::new(Events(events))
    };
    let router = routes().route("/events", get(stream));
    let server = start(Limits { idle: SHORT, ..no_timeouts() }, Some(TOKEN), router).await;
    let mut listening = server.connect().await;
    let line = format!("GET /events HTTP/1.1\r\nHost: localhost\r\n{BEARER}\r\n");
    listening.write_all(line.as_bytes()).await.unwrap();
    events.send("first").await.unwrap();
    let mut seen = String::new();
    while !seen.contains("first") {
        let mut bytes = [0; 256];
        let count =
            tokio::time::timeout(TEST_TIMEOUT, listening.read(&mut bytes)).await.unwrap().unwrap();
        seen += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    // Meanwhile another idle connection is closed.
    let mut waiting = server.connect().await;
    let hello = request("POST /echo", BEARER, "hello").replace("Connection: close\r\n", "");
    waiting.write_all(hello.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut waiting).await.ends_with("hello"));
    events.send("second").await.unwrap();
    drop(events);
    while !seen.contains("second") {
        let mut bytes = [0; 256];
        let count =
            tokio::time::timeout(TEST_TIMEOUT, listening.read(&mut bytes)).await.unwrap().unwrap();
        assert_ne!(count, 0, "{seen}");
        seen += std::str::from_utf8(&bytes[..count]).unwrap();
    }
}

/// A body of events sent one by one.
struct Events(mpsc::Receiver<&'static str>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.0.poll_recv(context);
        next.map(|event| event.map(|event| Ok(Frame::data(Bytes::from(event)))))
    }
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let server = start(no_timeouts(), Some(TOKEN), routes()).await;
    let whole = "x".repeat(MAX_BODY_BYTES);
    let answer = server.request(&request("POST /size", BEARER, &whole)).await;
    assert_eq!((answer.status, answer.body), (200, MAX_BODY_BYTES.to_string()));
    let answer = server.request(&request("POST /size", BEARER, &format!("{whole}x"))).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    let chunk = format!("{:x}\r\n{whole}x\r\n0\r\n\r\n", MAX_BODY_BYTES + 1);
    let chunked = format!(
        "Host: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n{BEARER}\r\n"
    );
    let answer = server.request(&format!("POST /size HTTP/1.1\r\n{chunked}{chunk}")).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    // A body that is declared far too large is not read at all.
    let announced = format!(
        "POST /size HTTP/1.1\r\nHost: localhost\r\n{BEARER}Content-Length: 99999999999\r\n\r\n"
    );
    assert_eq!(server.request(&announced).await.status, 413);
    let broken = "POST /size HTTP/1.1\r\n".to_owned() + &chunked + "zz\r\n";
    assert_eq!(server.request(&broken).await.status, 400);
    // Without a token, bodies are neither read nor waited for.
    let without_token = "POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(server.request(without_token).await.status, 401);
}

#[tokio::test]
async fn slow_bodies_are_cut_off() {
    let limits = Limits { body: SHORT, body_bytes_per_second: 1 << 20, ..no_timeouts() };
    let server = start(limits, Some(TOKEN), routes()).await;
    let head =
        format!("POST /size HTTP/1.1\r\nHost: localhost\r\n{BEARER}Content-Length: 99999\r\n\r\n");
    let mut slow = server.connect().await;
    slow.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = slow.split();
    let mut answer = Vec::new();
    let sending = async {
        loop {
            tokio::time::sleep(SHORT / 20).await;
            // The connection may already be answered and closed.
            let _ = writing.write_all(b"x").await;
        }
    };
    tokio::select! {
        () = sending => {}
        read = tokio::time::timeout(TEST_TIMEOUT, reading.read_to_end(&mut answer)) => { let _ = read.unwrap(); }
    }
    let answer = HttpAnswer::of(std::str::from_utf8(&answer).unwrap());
    assert_eq!((answer.status, answer.code().as_str()), (408, "timeout"));
}

#[tokio::test]
async fn malformed_requests_are_refused() {
    let server = start(no_timeouts(), Some(TOKEN), routes()).await;
    let long = |bytes: usize| {
        format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: {}\r\n\r\n", "a".repeat(bytes))
    };
    let many = "X-A: b\r\n".repeat(2_000);
    for (request, status) in [
        (long(100_000), 431),
        (long(1_000_000), 431),
        (format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000)), 414),
        ("GET /health HTTP/1.0\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n".to_owned(), 200),
        ("GET /health HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(), 400),
        ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
        ("GET\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\n broken\r\n\r\n".to_owned(), 400),
        ("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
        ("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_owned(), 400),
        ("\u{16}\u{3}\u{1} TLS to a plain port\r\n\r\n".to_owned(), 400),
    ] {
        let answer = server.request(&request).await;
        let shown: String = request.chars().take(60).collect();
        if status == 414 {
            assert!([414, 431].contains(&answer.status), "{shown:?}: {answer:?}");
        } else {
            assert_eq!(answer.status, status, "{shown:?}: {:?}", answer.head);
        }
    }
    assert_eq!(server.request(&long(100_000)).await.code(), "too_large");
    let answer = server.request(&request("POST /echo", BEARER, "hello")).await;
    assert_eq!(answer.body, "hello");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = start(no_timeouts(), Some(TOKEN), routes()).await;
    let more =
        |body: &str| request("POST /echo", BEARER, body).replace("Connection: close\r\n", "");
    let mut stream = server.connect().await;
    let all = more("one") + &more("two") + &request("POST /echo", BEARER, "three");
    stream.write_all(all.as_bytes()).await.unwrap();
    for body in ["one", "two", "three"] {
        assert_eq!(read_one(&mut stream).await.body, body);
    }
    assert_eq!(read_to_end(&mut stream).await, "");
    // A pending connection gets one answer; further requests are ignored.
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answers = server.request(&health.repeat(50)).await;
    assert!(answers.head.contains("connection: close"), "{answers:?}");
    assert_eq!(answers.body.matches("\"ok\":true").count(), 1, "{answers:?}");
}

#[tokio::test]
async fn without_a_token_a_complete_request_is_admitted() {
    let server = start(no_timeouts(), None, routes()).await;
    let mut half = server.connect().await;
    half.write_all(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe")
        .await
        .unwrap();
    let mut health = server.connect().await;
    health.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(HttpAnswer::of(&read_to_end(&mut health).await).status, 200);
    assert_eq!(server.connections.count().1, 0);
    half.write_all(b"llo").await.unwrap();
    assert_eq!(read_one(&mut half).await.body, "hello");
    assert_eq!(server.connections.count().1, 1);
    let rebound = "POST /echo HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(server.request(rebound).await.status, 403);
}

#[tokio::test]
async fn too_many_admitted_connections_are_refused() {
    let limits = Limits { admitted: 2, ..no_timeouts() };
    let server = start(limits, Some(TOKEN), routes()).await;
    let hello = request("POST /echo", BEARER, "hello").replace("Connection: close\r\n", "");
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect().await;
        stream.write_all(hello.as_bytes()).await.unwrap();
        assert_eq!(read_one(&mut stream).await.status, 200);
        kept.push(stream);
    }
    let refused = server.request(&hello).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "too_many_connections"));
    assert_eq!(server.request(&request("GET /health", "", "")).await.status, 200);
    drop(kept.pop());
    let again = async {
        while server.request(&request("POST /echo", BEARER, "hello")).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, again).await.unwrap();
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_finishes_answers() {
    let (answer, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = Arc::new(tokio::sync::Mutex::new(Some(wait)));
    let (began, begin) = tokio::sync::oneshot::channel::<()>();
    let began = Arc::new(std::sync::Mutex::new(Some(began)));
    let slow = move || async move {
        let _ = began.lock().unwrap().take().unwrap().send(());
        wait.lock().await.take().unwrap().await.unwrap();
        "done"
    };
    let mut server = start(no_timeouts(), Some(TOKEN), routes().route("/slow", get(slow))).await;
    let mut silent = server.connect().await;
    let mut busy = server.connect().await;
    let line = format!("GET /slow HTTP/1.1\r\nHost: localhost\r\n{BEARER}\r\n");
    busy.write_all(line.as_bytes()).await.unwrap();
    begin.await.unwrap();
    server.stopping.cancel();
    assert_eq!(read_to_end(&mut silent).await, "");
    answer.send(()).unwrap();
    assert!(read_to_end(&mut busy).await.ends_with("done"));
    tokio::time::timeout(TEST_TIMEOUT, &mut server.task).await.unwrap().unwrap();
}
