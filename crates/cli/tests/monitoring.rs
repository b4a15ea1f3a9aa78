//! `/metrics` and the alerts of `isolith serve`, as monitoring sees them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_env::{TestEnv, children, wait_until};

/// A server without sessions, killed at the end of the test.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(env: &TestEnv, more: &[&str], fault: Option<&str>) -> Self {
        let usual = ["serve", "--json", "--stateless", "--listen", "127.0.0.1:0"];
        let mut command = env.command(&[&usual, more].concat());
        command.envs(fault.map(|fault| ("ISOLITH_FAULT", fault)));
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announcement: Value = serde_json::from_str(&line).unwrap();
        let url = announcement["url"].as_str().unwrap().strip_suffix("/mcp").unwrap();
        let token = fs::read_to_string(announcement["token_file"].as_str().unwrap()).unwrap();
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        Self { child, port, token: token.trim().to_owned() }
    }

    /// The status, the head and the body of an answer.
    fn send(&self, line: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (port, length) = (self.port, body.len());
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let headers = self.bearer()
            + "MCP-Protocol-Version: 2025-06-18\r\nContent-Type: application/json\r\n\
               Accept: application/json, text/event-stream\r\n";
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (status, _, body) = self.send("POST /mcp", &headers, &call.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["result"]["structuredContent"].clone()
    }

    fn scrape(&self) -> Scrape {
        let (status, head, body) = self.send("GET /metrics", &self.bearer(), "");
        assert_eq!(status, 200, "{body}");
        assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
        Scrape(body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Metrics in the text format.
struct Scrape(String);

impl Scrape {
    /// The value of a series; `None` if there is none.
    fn value(&self, series: &str) -> Option<f64> {
        let values = self.0.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let values: Vec<&str> = values.collect();
        assert!(values.len() < 2, "{series} is there twice");
        values.first().map(|value| value.parse().unwrap())
    }

    fn at_least(&self, series: &str, least: f64) {
        let value = self.value(series);
        assert!(value.is_some_and(|value| value >= least), "{series} {value:?}\n{}", self.0);
    }

    /// The names of the families, with their types.
    fn families(&self) -> Vec<(&str, &str)> {
        let types = self.0.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.map(|family| family.split_once(' ').unwrap()).collect()
    }

    /// The names that samples can have.
    fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (family, kind) in self.families() {
            let suffixes: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            names.extend(suffixes.iter().map(|suffix| format!("{family}{suffix}")));
        }
        names
    }
}

/// A store with a collection, a drawer and an index of a small project.
fn filled() -> TestEnv {
    let env = TestEnv::new();
    let file = env.write_rows("rows.jsonl", 0..30, 4);
    env.json(&["ingest", &file, "--collection", "a \"quoted\" name"]);
    fs::create_dir_all(env.path("project/.git")).unwrap();
    env.write("project/backoff.py", "def backoff(attempt):\n    return 2 ** attempt\n");
    env
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A server that has done a little of everything.
fn busy(env: &TestEnv) -> Server {
    let server = Server::start(env, &["--allow", env.path("project").to_str().unwrap()], None);
    let indexed = server.call("index_project", &json!({ "path": env.path("project") }));
    assert_eq!(indexed["files"]["indexed"], 1, "{indexed}");
    let found = server.call("search_code", &json!({ "query": "backoff" }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
    server.call("memory_add", &json!({ "text": "likes tea", "wing": "w", "room": "r" }));
    server.call("memory_search", &json!({ "query": "tea" }));
    server
}

#[test]
fn a_scrape_counts_what_was_done() {
    let env = filled();
    let server = busy(&env);
    assert_eq!(server.send("GET /metrics", "", "").0, 401, "it needs the token");
    assert_eq!(server.send("GET /secret/path", &server.bearer(), "").0, 404);
    assert_eq!(server.send("BREW /health", "", "").0, 401);
    server.scrape();
    // Figures of stores are measured every few seconds.
    wait_until(|| {
        server.scrape().value("isolith_collection_records{store=\"user\",collection=\"@memory\"}")
            == Some(1.0)
    });
    let scrape = server.scrape();
    for (series, least) in [
        ("isolith_jobs_total{store=\"user\",role=\"store-reader\",outcome=\"answered\"}", 3.0),
        ("isolith_job_run_seconds_count{store=\"user\",role=\"store-writer\"}", 2.0),
        ("isolith_worker_starts_total{store=\"user\",role=\"parse\"}", 1.0),
        ("isolith_worker_memory_bytes{store=\"user\",role=\"store-reader\"}", 1e6),
        ("isolith_writes_total{store=\"user\",operation=\"add_drawers\",outcome=\"ok\"}", 1.0),
        ("isolith_reads_total{store=\"user\",operation=\"overview\",outcome=\"ok\"}", 1.0),
        ("isolith_searches_total{store=\"user\",operation=\"code\",outcome=\"complete\"}", 1.0),
        ("isolith_search_seconds_count{store=\"user\",operation=\"memory\"}", 1.0),
        ("isolith_index_runs_total{store=\"user\",outcome=\"complete\"}", 1.0),
        ("isolith_index_files_total{store=\"user\",outcome=\"indexed\"}", 1.0),
        ("isolith_http_requests_total{method=\"POST\",route=\"/mcp\",status=\"200\"}", 4.0),
        ("isolith_http_requests_total{method=\"GET\",route=\"/metrics\",status=\"200\"}", 1.0),
        ("isolith_http_requests_total{method=\"GET\",route=\"(refused)\",status=\"401\"}", 1.0),
        ("isolith_http_requests_total{method=\"other\",route=\"(refused)\",status=\"401\"}", 1.0),
        ("isolith_http_requests_total{method=\"GET\",route=\"(unmatched)\",status=\"404\"}", 1.0),
        ("isolith_http_request_seconds_count{route=\"/mcp\"}", 4.0),
        ("isolith_http_connections{state=\"admitted\"}", 1.0),
        ("isolith_store_size_bytes{store=\"user\"}", 1e4),
        ("isolith_store_disk_free_bytes{store=\"user\"}", 1.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_start_time_seconds", 1.7e9),
    ] {
        scrape.at_least(series, least);
    }
    for (series, value) in [
        ("isolith_store_readable{store=\"user\"}", 1.0),
        ("isolith_collection_records{store=\"user\",collection=\"a \\\"quoted\\\" name\"}", 30.0),
        ("isolith_collection_generation{store=\"user\",collection=\"a \\\"quoted\\\" name\"}", 1.0),
        ("isolith_collection_rebuild_due{store=\"user\",collection=\"@code\"}", 0.0),
        ("isolith_breaker_state{store=\"user\",role=\"store-writer\"}", 0.0),
        ("isolith_quarantined_jobs{store=\"user\"}", 0.0),
        ("isolith_damage_errors_total{store=\"user\"}", 0.0),
    ] {
        assert_eq!(scrape.value(series), Some(value), "{series}");
    }
    assert!(!scrape.0.contains("/secret"), "raw paths are not labels");
    let open = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let (_, head, body) = server.send("GET /metrics", &(server.bearer() + open), "");
    assert!(head.to_lowercase().contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n") && body.contains("# TYPE isolith_jobs counter\n"));
}

#[test]
fn a_scrape_opens_no_store() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[], None);
    let scrape = server.scrape();
    assert!(!scrape.0.contains("store=\""), "{}", scrape.0);
    assert!(!env.store().exists());
    assert!(children(server.child.id()).is_empty());
}

/// The names of metrics in a text.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words =
        text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let words = words.filter(|word| {
        ["isolith_", "process_"].iter().any(|prefix| word.starts_with(prefix)) && word.len() > 8
    });
    words.map(str::to_owned).collect()
}

#[test]
fn rules_dashboard_and_manual_name_metrics_that_exist() {
    let env = filled();
    let server = busy(&env);
    server.scrape();
    let scrape = server.scrape();
    let names = scrape.names();
    for file in ["alerts.yml", "alerts.test.yml", "dashboard.json"] {
        let text = fs::read_to_string(root("docs/monitoring").join(file)).unwrap();
        let named = mentioned(&text);
        assert!(named.len() > 5, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&names).collect();
        assert!(unknown.is_empty(), "{file} names metrics that are not there: {unknown:?}");
    }
    let manual = fs::read_to_string(root("docs/monitoring.md")).unwrap();
    let described = manual.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let described: BTreeSet<&str> = described
        .filter(|name| name.starts_with("isolith_") || name.starts_with("process_"))
        .map(|name| name.split('{').next().unwrap())
        .collect();
    let families: BTreeSet<&str> = scrape.families().into_iter().map(|(name, _)| name).collect();
    assert_eq!(described, families, "docs/monitoring.md describes all families");
    let dashboard = fs::read_to_string(root("docs/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let ids: Vec<u64> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids of panels are unique");
}

/// `cargo xtask check --all` runs this if promtool is installed.
#[test]
#[ignore = "needs promtool"]
fn promtool_accepts_a_scrape() {
    let env = filled();
    let server = busy(&env);
    server.scrape();
    let file = env.path("scrape");
    fs::write(&file, server.scrape().0).unwrap();
    let checked = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.is_empty(), "{said}");
}

/// Queries are checked as rules, without the dashboard's variables.
#[test]
#[ignore = "needs promtool"]
fn promtool_accepts_the_queries_of_the_dashboard() {
    let text = fs::read_to_string(root("docs/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(number, target)| {
            let query = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
            json!({ "record": format!("query{number}"), "expr": query })
        })
        .collect();
    assert!(rules.len() > 25, "{}", rules.len());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    let rules = json!({ "groups": [{ "name": "queries", "rules": rules }] });
    fs::write(&file, rules.to_string()).unwrap();
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// A listener that answers every call with 204; the bodies it received.
fn webhook() -> (String, std::sync::mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/alerts", listener.local_addr().unwrap());
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                let header = line.to_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            (&stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            if sender.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, received)
}

/// The next alerts, by cause.
fn alerts(received: &std::sync::mpsc::Receiver<Value>, count: usize) -> Vec<String> {
    let next = || received.recv_timeout(Duration::from_secs(60)).unwrap();
    let mut causes: Vec<String> =
        (0..count).map(|_| next()["cause"].as_str().unwrap().to_owned()).collect();
    causes.sort();
    causes
}

#[test]
fn a_nearly_full_disk_is_told_to_a_command_and_a_webhook_once() {
    let env = filled();
    let script = env.path("told");
    let seen = env.path("seen");
    let text = format!(
        "#!/bin/sh\ncat > '{0}.part'\necho \"$1 $ISOLITH_ALERT_CAUSE $ISOLITH_TOKEN\" >> '{0}.part'\nmv '{0}.part' '{0}'\n",
        seen.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let (url, received) = webhook();
    // From the user's configuration; the flag for the limit.
    let folder = env.path("home/.config/isolith");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[server]\nalert_command = \"'{}' --now\"\nalert_webhook = \"{url}\"\n",
        script.display()
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    let server = Server::start(&env, &["--alert-disk-free", "1024T"], None);
    let alert = received.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(alert["cause"], "disk_nearly_full", "{alert}");
    assert_eq!(alert["folder"], env.store().to_str().unwrap());
    assert!(alert["message"].as_str().unwrap().contains("MB are free"), "{alert}");
    wait_until(|| seen.exists());
    let told = fs::read_to_string(&seen).unwrap();
    let (told, words) = told.split_once('\n').unwrap();
    assert_eq!(serde_json::from_str::<Value>(told).unwrap(), alert);
    assert_eq!(words, "--now disk_nearly_full \n");
    let scrape = server.scrape();
    assert_eq!(scrape.value("isolith_alerts_total{cause=\"disk_nearly_full\"}"), Some(1.0));
    // The next check finds the same and says nothing.
    assert!(received.recv_timeout(Duration::from_secs(7)).is_err());
    assert_eq!(
        server.scrape().value("isolith_alerts_total{cause=\"disk_nearly_full\"}"),
        Some(1.0)
    );
    assert_eq!(server.scrape().value("isolith_alert_failures_total{hook=\"command\"}"), None);
}

#[test]
fn dying_workers_and_failing_jobs_raise_alerts() {
    let env = filled();
    let (url, received) = webhook();
    let server = Server::start(&env, &["--alert-webhook", &url], Some("read.memory:crash"));
    server.call("memory_add", &json!({ "text": "likes tea", "wing": "w", "room": "r" }));
    // The breaker closes again after a while, so jobs must fail until somebody has looked.
    let (is_told, end) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
    std::thread::scope(|scope| {
        let (server, is_told) = (&server, &is_told);
        let goes_on = move || !is_told.load(Ordering::Relaxed) && Instant::now() < end;
        scope.spawn(move || {
            for number in (0..).take_while(|_| goes_on()) {
                server.call("memory_search", &json!({ "query": format!("tea {number}") }));
            }
        });
        assert_eq!(alerts(&received, 2), ["breaker_open", "failure_rate"]);
        is_told.store(true, Ordering::Relaxed);
    });
    let scrape = server.scrape();
    scrape.at_least(
        "isolith_worker_deaths_total{store=\"user\",role=\"store-reader\",class=\"crash\"}",
        5.0,
    );
    scrape.at_least(
        "isolith_jobs_total{store=\"user\",role=\"store-reader\",outcome=\"breaker_open\"}",
        1.0,
    );
}

#[test]
fn a_damaged_store_raises_an_alert_and_a_failing_hook_is_logged() {
    let env = filled();
    let truth = env.store().join("truth.sqlite");
    let length = truth.metadata().unwrap().len() as usize;
    fs::write(&truth, vec![7; length]).unwrap();
    let (url, received) = webhook();
    let arguments = ["--alert-webhook", &url, "--alert-command", "/does/not/exist"];
    let server = Server::start(&env, &arguments, None);
    assert_eq!(alerts(&received, 1), ["store_damaged"]);
    let failed = "isolith_alert_failures_total{hook=\"command\"}";
    wait_until(|| server.scrape().value(failed) == Some(1.0));
    let scrape = server.scrape();
    assert_eq!(scrape.value("isolith_store_readable{store=\"user\"}"), Some(0.0));
    scrape.at_least("isolith_damage_errors_total{store=\"user\"}", 1.0);
}

/// Nothing is written: the searches notice the damage and go on until it is repaired.
#[test]
fn reads_alone_repair_damaged_segments() {
    let env = filled();
    drop(busy(&env));
    let damaged: Vec<PathBuf> =
        env.segments().into_iter().filter(|file| file.extension().is_some()).collect();
    assert!(damaged.len() >= 3, "{damaged:?}");
    for file in &damaged {
        fs::File::options().write(true).open(file).unwrap().set_len(100).unwrap();
    }
    let server = Server::start(&env, &["--allow", env.path("project").to_str().unwrap()], None);
    for mode in ["hybrid", "exact"] {
        wait_until(|| {
            let search = json!({ "query": "backoff", "mode": mode });
            let found = server.call("search_code", &search);
            assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
            found["degraded"].is_null()
        });
    }
    let scrape = server.scrape();
    let searches = |outcome: &str| {
        format!("isolith_searches_total{{store=\"user\",operation=\"code\",outcome=\"{outcome}\"}}")
    };
    scrape.at_least(&searches("degraded"), 1.0);
    assert_eq!(scrape.value(&searches("complete")), Some(1.0), "the last one");
    let due = "isolith_collection_rebuild_due{store=\"user\",collection=\"@code\"}";
    wait_until(|| server.scrape().value(due) == Some(0.0));
}

#[test]
fn unusable_hooks_are_refused_at_the_start() {
    let env = TestEnv::new();
    let error = env.fails(&["serve", "--alert-webhook", "https://example.com/x"], 2, "usage");
    assert!(error["hint"].as_str().unwrap().contains("--alert-command 'curl"), "{error}");
    env.fails(&["serve", "--alert-command", "say 'it"], 2, "usage");
    // A project cannot set programs to run.
    fs::create_dir(env.path(".git")).unwrap();
    env.write(".isolith.toml", "[server]\nalert_command = \"touch owned\"\n");
    let settings = env.json(&["config", "show"]);
    let settings = settings["settings"].as_array().unwrap();
    let command = settings.iter().find(|it| it["key"] == "server.alert_command").unwrap();
    assert_eq!(command["value"], Value::Null);
}
