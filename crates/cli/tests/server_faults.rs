//! Everything that the drill does to workers, done to those of a server while a client
//! talks to it: the client is answered, the server lives, nothing is lost or there twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod test_env;

use std::sync::Mutex;

use agent::Agent;
use isolate::misbehave::Fault;
use serde_json::{Value, json};
use test_env::TestEnv;

/// How many servers are tried at the same time.
const AT_ONCE: usize = 4;

/// A server whose workers go wrong at a point: at each worker's `nth` passage.
fn server(env: &TestEnv, point: &str, fault: Fault, nth: u32) -> Agent {
    // Hanging workers are killed soon; to fill its memory takes a worker longer.
    let timeout = if fault.needs_deadline() { "4" } else { "60" };
    let mut command = env.command(&["mcp", "--timeout", timeout]);
    command.env("ISOLITH_FAULT", format!("{point}:{}:{nth}", name(fault)));
    Agent::greeted(command)
}

fn name(fault: Fault) -> String {
    serde_json::to_value(fault).unwrap().as_str().unwrap().to_owned()
}

/// Faults that happen in a job, not before the worker is ready.
fn in_jobs() -> Vec<Fault> {
    let at_start = [Fault::DeathBeforeReady, Fault::SlowStart];
    Fault::ALL.into_iter().filter(|fault| !at_start.contains(fault)).collect()
}

/// Tries all of them, some at the same time.
fn each(faults: Vec<Fault>, check: impl Fn(Fault) + Sync) {
    let left = Mutex::new(faults);
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(fault) = next() {
                    check(fault);
                }
            });
        }
    });
}

fn add(agent: &mut Agent, text: &str) -> Value {
    agent.call("memory_add", json!({ "text": text, "wing": "w", "room": "r" }))
}

/// The deaths that were seen, by class.
fn crashes(agent: &mut Agent) -> Value {
    agent.call("health", json!({}))["stores"][0]["crashes"].clone()
}

fn assert_seen(agent: &mut Agent, fault: Fault) {
    let crashes = crashes(agent);
    match fault.expected() {
        Some(class) => {
            let class = serde_json::to_value(class).unwrap();
            let seen = crashes[class.as_str().unwrap()].as_u64();
            assert!(seen.is_some_and(|seen| seen > 0), "{fault:?}: {crashes}");
        }
        None => assert_eq!(crashes, json!({}), "{fault:?}"),
    }
}

#[test]
fn queries_survive_every_fault_of_readers() {
    each(in_jobs(), |fault| {
        let env = TestEnv::new();
        let mut agent = server(&env, "read", fault, 3);
        add(&mut agent, "the parser dies of deep nesting");
        for _ in 0..6 {
            let found = agent.call("memory_search", json!({ "query": "deep nesting" }));
            assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{fault:?}: {found}");
        }
        assert_seen(&mut agent, fault);
        assert_eq!(agent.leave(), Some(0), "{fault:?}");
    });
}

#[test]
fn acknowledged_writes_survive_every_fault_of_writers() {
    for point in ["write", "write.committed"] {
        each(in_jobs(), |fault| {
            let env = TestEnv::new();
            let mut agent = server(&env, point, fault, 2);
            let texts = ["one", "two", "three", "four"];
            for text in texts {
                assert_eq!(add(&mut agent, text)["created"], true, "{point} {fault:?}: {text}");
            }
            let listed = agent.call("memory_list", json!({}));
            let mut stored: Vec<&str> = listed["drawers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["text"].as_str().unwrap())
                .collect();
            stored.sort_unstable();
            assert_eq!(stored, ["four", "one", "three", "two"], "{point} {fault:?}");
            assert_seen(&mut agent, fault);
            assert_eq!(agent.leave(), Some(0), "{point} {fault:?}");
        });
    }
}

#[test]
fn workers_that_never_become_ready_are_reported() {
    let env = TestEnv::new();
    let mut agent = server(&env, "read.start", Fault::DeathBeforeReady, 1);
    assert_eq!(add(&mut agent, "kept all the same")["created"], true);
    for _ in 0..3 {
        let error = agent.refused("memory_search", json!({ "query": "kept" }));
        assert!(error["hint"].is_string(), "{error}");
    }
    assert!(crashes(&mut agent)["start_failure"].as_u64().unwrap() > 0);
    assert_eq!(add(&mut agent, "and this too")["created"], true);
    assert_eq!(agent.leave(), Some(0));
    let mut agent = server(&env, "read.start", Fault::SlowStart, 1);
    let found = agent.call("memory_search", json!({ "query": "kept" }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(agent.leave(), Some(0));
}
