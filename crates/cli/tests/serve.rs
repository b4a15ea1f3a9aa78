//! `isolith serve` as clients on the network see it, with requests written by hand.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use project::Project;
use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{Ran, TestEnv, children, send, wait_until};

const TOKEN: &str = "a-token-of-some-length-0123456789";

/// The headers of all requests with a message.
const USUAL: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

/// A server that listens, and is killed at the end of the test.
struct Server {
    child: Child,
    port: u16,
    /// The token that it has generated, which every request shows that shows no other.
    token: Option<String>,
    announcement: Value,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announcement: Value = serde_json::from_str(&line).unwrap();
        let url = announcement["url"].as_str().unwrap();
        // A Unix socket has none.
        let port = url.strip_suffix("/mcp").unwrap().rsplit(':').next().unwrap().parse();
        let token = announcement["token_file"].as_str().map(std::fs::read_to_string);
        let token = token.map(|token| token.unwrap().trim().to_owned());
        Self { child, port: port.unwrap_or(0), token, announcement }
    }

    /// Sends a request; the response is still to be read.
    fn begin(&self, request: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut text = format!("{request} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        if let Some(token) = &self.token
            && !headers.iter().any(|(name, _)| *name == "Authorization")
        {
            text += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(text.as_bytes()).unwrap();
        // A server that refuses a body need not read all of it.
        let _ = stream.write_all(body.as_bytes());
        stream
    }

    fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let last = [("Connection", "close")];
        let mut stream = self.begin(request, &[&last, headers].concat(), body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        Answer::of(&text)
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST /mcp", &[&USUAL, headers].concat(), &message.to_string())
    }
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// The code of a refusal.
    fn code(&self) -> String {
        let document: Value = serde_json::from_str(&self.body).unwrap();
        assert!(document["error"]["hint"].is_string(), "{document}");
        document["error"]["code"].as_str().unwrap().to_owned()
    }

    /// The message with an id, from an event stream or a plain body.
    fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let message = messages.find(|message| message.get("jsonrpc").is_some());
        message.unwrap_or_else(|| panic!("{}\n{}", self.head, self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').unwrap().1.trim())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served(env: &TestEnv, more: &[&str]) -> Server {
    let arguments = [&["serve", "--json", "--listen", "127.0.0.1:0"], more].concat();
    Server::start(env.command(&arguments))
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn hello(version: &str) -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    request("initialize", params)
}

#[test]
fn sessions_begin_and_end() {
    let env = TestEnv::new();
    let server = served(&env, &[]);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let welcome = server.post(&[], &hello(version));
        assert_eq!(welcome.status, 200, "{}", welcome.body);
        assert_eq!(welcome.message()["result"]["protocolVersion"], version);
        let session = welcome.header("mcp-session-id").unwrap().to_owned();
        let session = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", version)];
        let listed = server.post(&session, &request("tools/list", json!({})));
        assert!(listed.message()["result"]["tools"].as_array().unwrap().len() > 10);
        let call = json!({ "name": "health", "arguments": {} });
        let health = server.post(&session, &request("tools/call", call)).message();
        assert_eq!(health["result"]["structuredContent"]["ok"], true, "{health}");
        assert_eq!(server.send("DELETE /mcp", &session, "").status, 204);
        assert_eq!(server.post(&session, &request("tools/list", json!({}))).status, 404);
        let unknown = server.send("DELETE /mcp", &session, "");
        assert_eq!((unknown.status, unknown.code().as_str()), (404, "not_found"));
    }
}

#[test]
fn the_newest_revision_needs_no_session() {
    let env = TestEnv::new();
    let server = served(&env, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let ask = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        server.post(&headers, &request(method, params))
    };
    let discovered = ask("server/discover", json!({}));
    assert_eq!(discovered.status, 200, "{}", discovered.body);
    assert!(discovered.header("mcp-session-id").is_none());
    let versions = &discovered.message()["result"]["supportedVersions"];
    assert!(versions.as_array().unwrap().contains(&json!("2026-07-28")), "{versions}");
    let add =
        json!({ "name": "memory_add", "arguments": { "text": "a", "wing": "w", "room": "r" } });
    let added = ask("tools/call", add).message();
    assert_eq!(added["result"]["structuredContent"]["created"], true, "{added}");
    assert_eq!(ask("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } })).status, 404);
}

/// A session, as the headers that its client sends.
fn session(server: &Server) -> [(&'static str, String); 2] {
    let welcome = server.post(&[], &hello("2025-11-25"));
    let id = welcome.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", "2025-11-25".to_owned())];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post(&borrowed(&headers), &ready).status, 202);
    headers
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// Begins a call, and goes away as soon as the server has begun to answer: the id of the
/// event that came first.
fn call_and_leave(
    server: &Server,
    headers: &[(&str, &str)],
    tool: &str,
    arguments: Value,
) -> String {
    let call = request("tools/call", json!({ "name": tool, "arguments": arguments }));
    let stream = server.begin("POST /mcp", &[&USUAL, headers].concat(), &call.to_string());
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut ids = lines.filter_map(|line| Some(line.strip_prefix("id:")?.trim().to_owned()));
    ids.next().unwrap()
}

#[test]
fn a_client_that_goes_away_leaves_no_call_running() {
    for with_session in [true, false] {
        let env = TestEnv::new();
        let mut command = env.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
        // Far longer than the test waits: it is not the deadline that ends the job.
        command.args(["--timeout", "600"]).env("ISOLITH_FAULT", "read.memory:hang");
        if !with_session {
            command.arg("--stateless");
        }
        let server = Server::start(command);
        let version = [("MCP-Protocol-Version", "2025-06-18".to_owned())];
        let headers = if with_session { session(&server).to_vec() } else { version.to_vec() };
        let headers = borrowed(&headers);
        let call = |name: &str, arguments: Value| {
            request("tools/call", json!({ "name": name, "arguments": arguments }))
        };
        let tool = |name: &str, arguments: Value| {
            let answer = server.post(&headers, &call(name, arguments)).message();
            answer["result"]["structuredContent"].clone()
        };
        let add = || tool("memory_add", json!({ "text": "a", "wing": "w", "room": "r" }));
        assert_eq!(add()["created"], true);
        let search = call("memory_search", json!({ "query": "a" }));
        let client =
            server.begin("POST /mcp", &[&USUAL, &headers[..]].concat(), &search.to_string());
        let busy = || {
            let workers = env.json(&["status"])["workers"].clone();
            workers.as_array().unwrap().iter().any(|it| it["job"]["kind"] == "memory")
        };
        wait_until(busy);
        drop(client);
        wait_until(|| !busy());
        // Other clients are not affected.
        assert_eq!(add()["created"], false);
    }
}

#[test]
fn a_client_that_comes_back_gets_its_answer() {
    let project = Project::large(200);
    let command = project.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    let server = Server::start(command);
    let session = session(&server);
    let last = call_and_leave(&server, &borrowed(&session), "index_project", json!({}));
    let mut headers = borrowed(&session);
    headers.extend([("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())]);
    let stream = server.begin("GET /mcp", &headers, "");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut messages = lines.filter_map(|line| {
        let data = line.strip_prefix("data:")?.trim().to_owned();
        serde_json::from_str::<Value>(&data).ok().filter(|it| it.get("id").is_some())
    });
    let answer = messages.next().unwrap();
    assert_eq!(answer["result"]["structuredContent"]["files"]["indexed"], 200, "{answer}");
}

#[test]
fn the_session_idle_for_longest_is_evicted() {
    let env = TestEnv::new();
    let server = served(&env, &[]);
    let first = session(&server);
    let second = session(&server);
    let list = request("tools/list", json!({}));
    // With the first two there are as many as there may be.
    for _ in 0..254 {
        assert_eq!(server.post(&[], &hello("2025-11-25")).status, 200);
    }
    assert_eq!(server.post(&borrowed(&first), &list).status, 200);
    assert_eq!(server.post(&[], &hello("2025-11-25")).status, 200);
    assert_eq!(server.post(&borrowed(&second), &list).status, 404);
    assert_eq!(server.post(&borrowed(&first), &list).status, 200);
}

#[test]
fn unauthenticated_requests_are_refused() {
    let env = TestEnv::new();
    let server = served(&env, &[]);
    assert_eq!(server.send("GET /health", &[], "").status, 200);
    for (name, value) in [
        ("Host", "evil.example"),
        ("Host", "127.0.0.1.evil.example"),
        ("Origin", "http://evil.example"),
        ("Origin", "https://localhost.evil.example"),
        ("Origin", "null"),
    ] {
        for answer in [
            server.post(&[(name, value)], &hello("2025-11-25")),
            server.send("GET /health", &[(name, value)], ""),
            server.send("GET /nothing", &[(name, value)], ""),
        ] {
            let found = (answer.status, answer.code());
            assert_eq!(found, (403, "forbidden".to_owned()), "{name}: {value}");
        }
    }
    let page = [("Origin", "http://localhost:3000")];
    assert_eq!(server.post(&page, &hello("2025-11-25")).status, 200);
    let large = request("tools/list", json!({ "x": "x".repeat(5 << 20) }));
    assert_eq!(server.post(&[], &large).status, 413);
}

#[test]
fn a_token_is_generated_once_and_required() {
    let env = TestEnv::new();
    let command = || env.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    let server = Server::start(command());
    let file = env.path("home/.local/state/isolith/token");
    assert_eq!(server.announcement["token_file"], json!(file));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = server.token.clone().unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    for other in ["", "Basic abc", "Bearer", "Bearer a-token-that-somebody-made-up", &token] {
        let answer = server.post(&[("Authorization", other)], &hello("2025-11-25"));
        assert_eq!((answer.status, answer.code()), (401, "unauthorized".to_owned()), "{other}");
        assert_eq!(answer.header("www-authenticate"), Some("bearer"));
        assert!(!answer.body.contains(&token));
    }
    assert_eq!(server.send("GET /health", &[("Authorization", "")], "").status, 200);
    assert_eq!(server.send("GET /nothing", &[("Authorization", "")], "").status, 401);
    assert_eq!(server.send("GET /nothing", &[], "").status, 404);
    assert_eq!(server.post(&[], &hello("2025-11-25")).status, 200);
    // The next server uses the same one, and does not print it unless standard error is a terminal.
    let mut other = command();
    let mut other = other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(other.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let mut stdout = BufReader::new(other.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(line.contains("serving") && !line.contains(&token), "{line}");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
}

#[test]
fn a_token_may_be_given() {
    let env = TestEnv::new();
    let file = env.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let flag = ["serve", "--token-file", file.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    env.fails(&flag, 2, "usage");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = env.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.env("ISOLITH_TOKEN", TOKEN);
    for server in
        [Server::start(env.command(&[&flag[..], &["--json"]].concat())), Server::start(command)]
    {
        let wrong = [("Authorization", "Bearer another-token-of-some-length")];
        assert_eq!(server.post(&wrong, &hello("2025-11-25")).status, 401);
        let right = format!("Bearer {TOKEN}");
        assert_eq!(server.post(&[("Authorization", &right)], &hello("2025-11-25")).status, 200);
    }
    assert!(!env.path("home/.local/state/isolith/token").exists(), "none was needed");
    // Where none can be kept, the ways out are named.
    let mut homeless = env.command(&["serve", "--listen", "127.0.0.1:0"]);
    homeless.env_remove("HOME");
    let refused = env.fails_as(homeless, 1, "store_refused");
    assert!(refused["hint"].as_str().unwrap().contains("--token-file"), "{refused}");
}

#[test]
fn no_token_is_for_loopback_only() {
    let env = TestEnv::new();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let refused = env.fails(&["serve", "--no-token", "--listen", listen], 2, "usage");
        assert!(refused["hint"].as_str().unwrap().contains("--no-token"), "{refused}");
    }
    let server = served(&env, &["--no-token"]);
    assert_eq!(server.token, None);
    assert_eq!(server.post(&[], &hello("2025-11-25")).status, 200);
    assert_eq!(server.post(&[("Host", "evil.example")], &hello("2025-11-25")).status, 403);
}

#[test]
fn silent_connections_do_not_block_others() {
    let env = TestEnv::new();
    for flags in [&[][..], &["--no-token"]] {
        let server = served(&env, flags);
        let connect = || TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let mut silent: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
        let session = session(&server);
        silent.extend((0..300).map(|_| connect()));
        let call = json!({ "name": "health", "arguments": {} });
        let health = server.post(&borrowed(&session), &request("tools/call", call)).message();
        assert_eq!(health["result"]["structuredContent"]["ok"], true, "{health}");
        assert_eq!(server.send("GET /health", &[], "").status, 200);
        // The oldest ones had to go.
        silent[0].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    }
}

/// Sends a request over a Unix socket.
fn send_over(socket: &std::path::Path, headers: &str, message: &Value) -> Answer {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = message.to_string();
    let length = body.len();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    Answer::of(&text)
}

#[test]
fn a_unix_socket_needs_no_token() {
    let env = TestEnv::new();
    let socket = env.path("server.sock");
    let listen = format!("unix:{}", socket.display());
    let arguments = ["serve", "--json", "--listen", &listen];
    let mut server = Server::start(env.command(&arguments));
    assert_eq!(server.announcement, json!({ "url": "http://localhost/mcp", "socket": socket }));
    let metadata = std::fs::symlink_metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(!env.path("home/.local/state/isolith/token").exists(), "none was needed");
    assert_eq!(send_over(&socket, "", &hello("2025-11-25")).status, 200);
    let page = "Origin: http://evil.example\r\n";
    assert_eq!(send_over(&socket, page, &hello("2025-11-25")).status, 403);
    // The path is taken as long as it lives, and free when it has ended, however it did.
    env.fails(&["serve", "--listen", &listen], 1, "failed");
    assert_eq!(send_over(&socket, "", &hello("2025-11-25")).status, 200);
    send(server.child.id(), Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(143));
    assert!(!socket.exists());
    let mut killed = Server::start(env.command(&arguments));
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(socket.exists());
    let last = Server::start(env.command(&arguments));
    assert_eq!(send_over(&socket, "", &hello("2025-11-25")).status, 200);
    drop(last);
    // Only stale sockets are removed.
    let file = env.path("file");
    std::fs::write(&file, "precious").unwrap();
    env.fails(&["serve", "--listen", &format!("unix:{}", file.display())], 2, "usage");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let long = format!("unix:{}", env.path(&"s".repeat(120)).display());
    let refused = env.fails(&["serve", "--listen", &long], 2, "usage");
    assert!(refused["message"].as_str().unwrap().contains("107"), "{refused}");
}

#[test]
fn a_reachable_socket_still_refuses_other_users() {
    if !rustix::process::geteuid().is_root() {
        // Only root can switch users.
        return;
    }
    let env = TestEnv::new();
    let socket = env.path("server.sock");
    let _server = Server::start(env.command(&[
        "serve",
        "--json",
        "--listen",
        &format!("unix:{}", socket.display()),
    ]));
    for (path, mode) in [(env.path(""), 0o755), (socket.clone(), 0o777)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                  s.sendall(b'GET /health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(65536).decode())";
    let mut other = Command::new("/usr/bin/python3");
    std::os::unix::process::CommandExt::uid(&mut other, 65534);
    let Ok(ran) = other.args(["-c", script]).arg(&socket).current_dir("/").output() else { return };
    let message = String::from_utf8_lossy(&ran.stdout).into_owned();
    let failed = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(message.starts_with("HTTP/1.1 403"), "{message}\n{failed}");
}

#[test]
fn a_signal_stops_the_server_and_its_workers() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let env = TestEnv::new();
        let mut server = served(&env, &["--stateless"]);
        let add =
            json!({ "name": "memory_add", "arguments": { "text": "a", "wing": "w", "room": "r" } });
        let added =
            server.post(&[("MCP-Protocol-Version", "2025-06-18")], &request("tools/call", add));
        assert_eq!(
            added.message()["result"]["structuredContent"]["created"],
            true,
            "{}",
            added.body
        );
        let workers = children(server.child.id());
        assert!(!workers.is_empty());
        send(server.child.id(), signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(status));
        wait_until(|| {
            workers.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
        });
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let env = TestEnv::new();
    let server = served(&env, &[]);
    let address = format!("127.0.0.1:{}", server.port);
    let ran = Ran::of(&env.command(&["serve", "--listen", &address]).output().unwrap());
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains(&address), "{}", ran.stderr);
}

#[test]
fn fixtures_exist_only_with_the_conformance_flag() {
    let env = TestEnv::new();
    let names = |server: &Server, method: &str, field: &str, key: &str| -> Vec<String> {
        let version = [("MCP-Protocol-Version", "2025-06-18")];
        let listed = server.post(&version, &request(method, json!({}))).message();
        let listed = listed["result"][field].as_array().unwrap().clone();
        listed.iter().map(|it| it[key].as_str().unwrap().to_owned()).collect()
    };
    let all = |server: &Server| {
        let mut all = names(server, "tools/list", "tools", "name");
        all.extend(names(server, "prompts/list", "prompts", "name"));
        all.extend(names(server, "resources/list", "resources", "uri"));
        let templates = "resources/templates/list";
        all.extend(names(server, templates, "resourceTemplates", "uriTemplate"));
        all
    };
    let usual = served(&env, &["--stateless"]);
    let shown = all(&usual);
    assert!(
        !shown.iter().any(|name| name.contains("test") || name.contains("schema")),
        "{shown:?}"
    );
    let version = [("MCP-Protocol-Version", "2025-06-18")];
    for (method, params) in [
        ("tools/call", json!({ "name": "test_simple_text", "arguments": {} })),
        ("prompts/get", json!({ "name": "test_simple_prompt" })),
        ("resources/read", json!({ "uri": "test://static-text" })),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "test://watched-resource" })),
    ] {
        let answer = usual.post(&version, &request(method, params)).message();
        assert!(answer["error"].is_object(), "{method}: {answer}");
    }
    // This is the tests' build: it has them, if they are asked for.
    let rehearsal = served(&env, &["--stateless", "--conformance"]);
    assert!(all(&rehearsal).contains(&"test_simple_text".to_owned()));
}

#[test]
fn a_missing_database_is_said_at_the_start() {
    let env = TestEnv::new();
    let mut command = env.command(&["serve", "--listen", "127.0.0.1:0", "--database", "team/nope"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(line.starts_with("isolith: there is no database team/nope; calls"), "{line}");
}
