//! Which queries create a store, and which process gets them: the parser decides, in a worker.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod test_env;

use std::fs;
use std::path::Path;

use agent::Agent;
use serde_json::{Value, json};
use test_env::{Ran, TestEnv, files_in};

/// They read, whatever words are in them.
const READS: [&str; 5] = [
    "MATCH (n) RETURN n.set",
    "RETURN 'please create, merge or delete' AS advice",
    "MATCH (n:`create`) RETURN n",
    "MATCH (n) RETURN n // then SET it",
    "MATCH (n {remove: 1}) RETURN n",
];

/// They write, however they are written.
const WRITES: [&str; 3] =
    ["create (:A {set: 1})", "MATCH(n:A)SET n.b=2", "UNWIND [3]AS x MATCH(n:A)SET n.c=x"];

#[test]
fn a_query_that_reads_creates_no_store() {
    let env = TestEnv::new();
    fs::create_dir(env.path("project")).unwrap();
    for query in READS {
        env.fails(&["graph", "query", query], 4, "no_store");
        let mut here = env.bare(&["graph", "query", query]);
        here.current_dir(env.path("project"));
        env.fails_as(here, 4, "no_store");
    }
    env.fails(&["graph", "query", "CREATE (:A) RETURN"], 3, "bad_input");
    assert!(!env.store().exists());
    assert_eq!(files_in(&env.path("project")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_query_that_writes_creates_one_and_reads_do_not_need_the_writer() {
    let env = TestEnv::new();
    fs::create_dir(env.path("project")).unwrap();
    let json_in_project = |query: &str, fault: Option<&str>| -> Value {
        let mut command = env.bare(&["graph", "query", query, "--json"]);
        command.current_dir(env.path("project"));
        if let Some(fault) = fault {
            command.env("ISOLITH_FAULT", fault);
        }
        let ran = Ran::of(&command.output().unwrap());
        assert_eq!(ran.status, Some(0), "{query}: {} {}", ran.stdout, ran.stderr);
        ran.document()
    };
    for query in WRITES {
        let stats = &json_in_project(query, None)["stats"];
        let changed =
            stats["nodes_created"].as_u64().unwrap() + stats["properties_set"].as_u64().unwrap();
        assert!(changed > 0, "{query}: {stats}");
    }
    assert!(env.path("project/.isolith/truth.sqlite").exists());
    for query in READS {
        json_in_project(query, Some("write:abort"));
    }
    let found = json_in_project("MATCH (n:A) RETURN n.set, n.b, n.c", Some("write:abort"));
    assert_eq!(found["rows"], json!([[1, 2, 3]]));
}

/// The worker dies of the query; the command says so, and there is still no store.
#[test]
fn a_crashing_parser_creates_no_store() {
    let env = TestEnv::new();
    let mut command = env.command(&["graph", "query", "CREATE (:A)"]);
    command.env("ISOLITH_FAULT", "cypher:segfault");
    let error = env.fails_as(command, 70, "quarantined");
    assert_eq!(error["death"]["class"], "crash", "{error}");
    assert!(!env.store().exists());
}

#[test]
fn agents_create_no_store_by_reading() {
    let env = TestEnv::new();
    let mut agent = Agent::greeted(env.command(&["mcp"]));
    for query in READS {
        let error = agent.refused("graph_query", json!({ "query": query }));
        assert_eq!(error["code"], "no_store", "{query}");
    }
    assert!(!has_truth(&env.store()));
    agent.call("graph_query", json!({ "query": WRITES[0] }));
    assert!(has_truth(&env.store()));
    let found = agent.call("graph_query", json!({ "query": "MATCH (n:A) RETURN n.set" }));
    assert_eq!((&found["rows"], &found["degraded"]), (&json!([[1]]), &Value::Null));
    assert_eq!(agent.leave(), Some(0));
}

fn has_truth(store: &Path) -> bool {
    store.join("truth.sqlite").exists()
}

/// A walk over a graph whose segment is damaged is answered from the truth, and says so: in
/// JSON, to people, and to agents.
#[test]
fn a_degraded_answer_says_why() {
    let env = TestEnv::new();
    env.json(&["graph", "query", "CREATE (:N {n: 0})"]);
    let many = "UNWIND range(1, 10500) AS n CREATE (:N {n: n})-[:NEXT]->(:N {n: -n})";
    env.json(&["graph", "query", many]);
    let walk = "MATCH (:N {n: 1})-[:NEXT*1..3]->(m) RETURN m.n";
    env.json(&["graph", "query", walk]);
    let segments = files_in(&env.store().join("segments"));
    let graph =
        segments.iter().find(|file| file.extension().is_some_and(|it| it == "adj")).unwrap();
    let mut bytes = fs::read(graph).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(graph, bytes).unwrap();

    let found = env.json(&["graph", "query", walk]);
    assert_eq!(found["rows"], json!([[-1]]));
    assert!(found["degraded"].is_string(), "{found}");
    for format in ["table", "csv"] {
        let people = env.run(&["graph", "query", walk, "--format", format]);
        assert!(people.stderr.contains("slower than usual"), "{format}: {}", people.stderr);
    }
    let mut agent = Agent::greeted(env.command(&["mcp"]));
    let found = agent.call("graph_query", json!({ "query": walk }));
    assert_eq!(found["rows"], json!([[-1]]));
    assert!(found["degraded"].is_string(), "{found}");
    assert_eq!(agent.leave(), Some(0));
    let quiet = env.run(&["graph", "query", walk, "--quiet"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(0), ""));
}
