//! Jobs of the API of `isolith serve`: progress, cancellation, and what ends or dies meanwhile.
#![allow(clippy::unwrap_used, clippy::panic)]

mod http_client;
mod project;
mod test_env;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use http_client::ApiServer;
use project::Project;
use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{TestEnv, send, wait_until, workers};

const SERVE: [&str; 4] = ["serve", "--json", "--listen", "127.0.0.1:0"];

fn of_project(project: &Project) -> ApiServer {
    ApiServer::start(project.command(&SERVE))
}

/// The events of a stream up to its end, as names with their data.
fn events(stream: TcpStream) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    let mut name = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(text) = line.strip_prefix("event: ") {
            text.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            let is_last = matches!(name.as_str(), "result" | "error");
            events.push((name.clone(), serde_json::from_str(data).unwrap()));
            if is_last {
                break;
            }
        }
    }
    events
}

/// The state comes at once, then each second, and the last one says that there will be no other.
#[test]
fn the_state_of_workers_comes_as_events() {
    let project = Project::large(3);
    let server = of_project(&project);
    server.run("/v1/code/index", &Value::Null);
    let stream = server.begin("GET /v1/status/events?seconds=2", &[("Connection", "close")], "");
    let all = events(stream);
    assert!(all.len() >= 2 && all.iter().all(|(name, _)| name == "status"), "{all:?}");
    let (_, last) = all.last().unwrap();
    let store =
        last["stores"].as_array().unwrap().iter().find(|it| it["whose"] == "project").unwrap();
    let writer =
        store["workers"].as_array().unwrap().iter().find(|it| it["role"] == "store-writer");
    assert!(writer.is_some_and(|it| it["pid"].is_u64()), "{store}");
    assert_eq!(store["processes"][0]["pid"], server.pid(), "{store}");
    let role =
        store["roles"].as_array().unwrap().iter().find(|it| it["role"] == "store-writer").unwrap();
    let buckets = role["run"]["buckets"].as_array().unwrap();
    let in_buckets: u64 = buckets.iter().map(|it| it.as_u64().unwrap()).sum();
    assert!(role["jobs"]["answered"].as_u64().unwrap() > 0, "{role}");
    assert_eq!(role["run"]["count"], in_buckets, "{role}");
    let refused = server.ask("GET /v1/status/events?seconds=0", &Value::Null);
    assert_eq!(refused.refused().0, 400);
}

#[test]
fn a_drill_reports_each_fault() {
    let env = TestEnv::new();
    let server = ApiServer::start(env.command(&SERVE));
    let kind = [
        ("Content-Type", "application/json"),
        ("Accept", "text/event-stream"),
        ("Connection", "close"),
    ];
    let all = events(server.begin("POST /v1/drill", &kind, r#"{"count": 28}"#));
    let (name, report) = all.last().unwrap();
    assert_eq!(
        (name.as_str(), &report["passed"], &report["injected"]),
        ("result", &json!(true), &json!(28)),
        "{report}"
    );
    let steps: Vec<&Value> =
        all.iter().filter(|(name, _)| name == "progress").map(|(_, data)| data).collect();
    let items = steps.last().unwrap()["items"].as_array().unwrap();
    assert!(items.iter().all(|it| it["passed"] == true && it["title"].is_string()), "{items:?}");
    // A second one has to wait; one that is cancelled makes room.
    let first = server.ask("POST /v1/drill", &json!({ "count": 280 }));
    assert_eq!(first.status, 202, "{}", first.body);
    let second = server.ask("POST /v1/drill", &json!({ "count": 1 }));
    let place = second.header("location").unwrap().to_owned();
    let refused = server.get(&format!("{place}?wait=60"));
    assert_eq!(refused["error"]["code"], "queue_full", "{refused}");
    let place = first.header("location").unwrap().to_owned();
    server.ask(&format!("DELETE {place}"), &Value::Null).done();
    assert_eq!(server.run("/v1/drill", &json!({ "count": 1 }))["passed"], true);
}

/// A server whose parsers hang.
fn hanging(project: &Project) -> ApiServer {
    let mut command = project.command(&SERVE);
    command.env("ISOLITH_FAULT", "parse:hang");
    ApiServer::start(command)
}

#[test]
fn progress_comes_as_events() {
    let project = Project::large(200);
    let server = of_project(&project);
    let accept = [("Accept", "text/event-stream"), ("Connection", "close")];
    let all = events(server.begin("POST /v1/code/index", &accept, ""));
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("job", "result"), "{names:?}");
    let result = &all.last().unwrap().1;
    assert_eq!(result["files"]["indexed"], 200, "{result}");
    let fractions = all.iter().filter(|(name, _)| name == "progress");
    let fractions: Vec<f64> = fractions.map(|(_, it)| it["fraction"].as_f64().unwrap()).collect();
    assert!(fractions.is_sorted(), "{fractions:?}");
    // The events of a job that has ended begin and end at once.
    let id = all[0].1["id"].as_str().unwrap();
    let place = format!("GET /v1/jobs/{id}/events");
    let after = events(server.begin(&place, &[("Connection", "close")], ""));
    assert_eq!(&after.last().unwrap().1, result);
    let missing = server.ask("GET /v1/jobs/none/events", &Value::Null);
    assert_eq!(missing.refused(), (404, "not_found".to_owned()));
}

#[test]
fn jobs_are_cancelled() {
    let project = Project::sample();
    let server = hanging(&project);
    let started = server.ask("POST /v1/code/index", &Value::Null);
    let place = started.header("location").unwrap().to_owned();
    wait_until(|| server.get(&place)["progress"]["stage"] != "");
    assert_eq!(server.get(&format!("{place}?wait=0"))["state"], "running");
    let cancelled = server.ask(&format!("DELETE {place}"), &Value::Null).done();
    assert_eq!(cancelled["state"], "cancelled");
    // A client that listens to events and goes away cancels its job.
    let accept = [("Accept", "text/event-stream")];
    let stream = server.begin("POST /v1/code/index", &accept, "");
    let running = || server.get("/v1/jobs")["jobs"][0]["state"] == "running";
    wait_until(running);
    drop(stream);
    wait_until(|| !running());
    let jobs = server.get("/v1/jobs");
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1, "the first one is forgotten: {jobs}");
    let wrong = json!({ "rebuild": "yes" });
    assert_eq!(server.ask("POST /v1/code/index", &wrong).refused(), (400, "bad_input".to_owned()));
    // Only so many run at a time, and only so many are kept.
    let statuses: Vec<u16> =
        (0..9).map(|_| server.ask("POST /v1/code/index", &Value::Null).status).collect();
    assert_eq!(statuses, [202, 202, 202, 202, 202, 202, 202, 202, 503]);
}

#[test]
fn a_signal_ends_the_server_with_its_jobs() {
    let project = Project::sample();
    let server = hanging(&project);
    let accept = [("Accept", "text/event-stream")];
    let stream = server.begin("POST /v1/code/index", &accept, "");
    wait_until(|| !workers(server.pid(), "parse").is_empty());
    send(server.pid(), Signal::TERM);
    let end = events(stream).pop().unwrap();
    assert!(matches!(end.0.as_str(), "result" | "error"), "{end:?}");
    assert_eq!(server.ends(), Some(143));
}

#[test]
fn a_server_ends_with_the_process_that_it_was_started_for() {
    let project = Project::sample();
    let mut owner = Command::new("sleep").arg("600").spawn().unwrap();
    let mut command = project.command(&SERVE);
    command.args(["--exit-with", &owner.id().to_string()]).env("ISOLITH_FAULT", "parse:hang");
    let server = ApiServer::start(command);
    server.ask("POST /v1/code/index", &Value::Null);
    let parsers = || workers(server.pid(), "parse");
    wait_until(|| !parsers().is_empty());
    let parsers = parsers();
    owner.kill().unwrap();
    owner.wait().unwrap();
    // Its job hangs for longer than the test waits.
    assert_eq!(server.ends(), Some(0));
    wait_until(|| parsers.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
    let gone = owner.id().to_string();
    project.fails(&["serve", "--listen", "127.0.0.1:0", "--exit-with", &gone], 4, "not_found");
}

#[test]
fn deaths_of_workers_can_be_looked_up() {
    let env = TestEnv::new();
    let mut command = env.command(&SERVE);
    command.env("ISOLITH_FAULT", "read.memory:segfault");
    let server = ApiServer::start(command);
    server.post("/v1/memory/drawers", &json!({ "text": "a", "wing": "w", "room": "r" }));
    assert_eq!(server.get("/v1/crashes"), json!({ "crashes": [] }));
    let refused = server.ask("GET /v1/memory/search?query=a", &Value::Null);
    assert_eq!(refused.refused(), (422, "quarantined".to_owned()));
    let death = serde_json::from_str::<Value>(&refused.body).unwrap()["error"]["death"].clone();
    assert_eq!((&death["class"], &death["signal"]), (&json!("crash"), &json!(11)), "{death}");
    let all = server.get("/v1/crashes?limit=10");
    assert_eq!(all["crashes"].as_array().unwrap().len(), 2, "{all}");
    let found = server.get(&format!("/v1/crashes?worker_pid={}", death["worker_pid"]));
    let crash = &found["crashes"][0];
    assert_eq!(found["crashes"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(crash["job"]["kind"], "memory", "{found}");
    assert_eq!((&crash["signal"], &crash["action"]), (&json!(11), &json!("quarantined")));
    assert!(env.store().join("crashes").join(crash["report"].as_str().unwrap()).exists());
    let quarantine = server.get("/v1/quarantine");
    let job = &quarantine["jobs"][0];
    assert_eq!(quarantine["jobs"].as_array().unwrap().len(), 1, "{quarantine}");
    assert_eq!((&job["kind"], &job["class"]), (&json!("memory"), &json!("crash")), "{quarantine}");
    assert_eq!(job["id"], crash["job"]["input_hash"], "{quarantine}");
    let id = job["id"].as_str().unwrap();
    let other = server.ask("POST /v1/quarantine/release", &json!({ "id": "ffff000011112222" }));
    assert_eq!(other.refused(), (404, "not_found".to_owned()));
    let released =
        server.post("/v1/quarantine/release", &json!({ "id": &id[..16], "whose": job["whose"] }));
    assert_eq!(released["released"][0]["id"], job["id"], "{released}");
    assert_eq!(server.get("/v1/quarantine")["jobs"], json!([]));
    let pools = server.get("/v1/status")["stores"][0]["processes"][0]["pools"].clone();
    let reader = pools.as_array().unwrap().iter().find(|it| it["role"] == "store-reader").unwrap();
    assert_eq!((&reader["last_death"]["class"], &reader["restarts"]), (&json!("crash"), &json!(2)));
}

#[test]
fn a_client_that_goes_away_leaves_no_call_running() {
    let env = TestEnv::new();
    let mut command = env.command(&SERVE);
    // Far longer than the test waits: it is not the deadline that ends the job.
    command.args(["--timeout", "600"]).env("ISOLITH_FAULT", "read.memory:hang");
    let server = ApiServer::start(command);
    server.post("/v1/memory/drawers", &json!({ "text": "a", "wing": "w", "room": "r" }));
    let client = server.begin("GET /v1/memory/search?query=a", &[], "");
    let busy = || {
        let workers = env.json(&["status"])["workers"].clone();
        workers.as_array().unwrap().iter().any(|it| it["job"]["kind"] == "memory")
    };
    wait_until(busy);
    drop(client);
    wait_until(|| !busy());
}
