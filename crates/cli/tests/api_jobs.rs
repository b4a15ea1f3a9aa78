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
