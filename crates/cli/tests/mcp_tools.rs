//! Which tools an agent is offered, and what they take beyond the essentials.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod project;
mod test_env;

use agent::Agent;
use project::Project;
use serde_json::{Value, json};

fn listed(agent: &mut Agent) -> Vec<String> {
    let answer = agent.ask("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn paths(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

#[test]
fn selected_tools_are_listed_and_can_be_called() {
    let project = Project::sample();
    let start =
        |selection: &[&str]| Agent::greeted(project.command(&[&["mcp"], selection].concat()));
    let mut usual = start(&[]);
    assert_eq!(listed(&mut usual).len(), 12);
    // The others are not listed, but there.
    assert_eq!(usual.call("fact_stats", json!({}))["facts"], 0);
    let mut all = start(&["--tools", "all"]);
    assert!(listed(&mut all).len() > 40);
    let mut some = start(&["--tools", "facts,admin"]);
    let names = listed(&mut some);
    assert!(names.contains(&"fact_stats".to_owned()) && names.contains(&"health".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("memory_")));
    let refused = some.ask("tools/call", json!({ "name": "memory_list", "arguments": {} }));
    assert!(refused["error"]["message"].as_str().unwrap().contains("--tools"), "{refused}");
    let wrong = project.run(&["mcp", "--tools", "facts,everything"]);
    assert_eq!(wrong.status, Some(2));
    for agent in [usual, all, some] {
        assert_eq!(agent.leave(), Some(0));
    }
}

#[test]
fn code_is_filtered_and_answers_fit_a_budget() {
    let project = Project::sample();
    project
        .write("tests/retry_test.rs", "#[test]\nfn backoff_doubles() {\n    assert!(true);\n}\n");
    project.index(&[]);
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let mut search = |arguments: Value| agent.call("search_code", arguments);
    let only = search(json!({ "query": "backoff", "tests": true }));
    assert_eq!(paths(&only), ["tests/retry_test.rs"]);
    let without = search(json!({ "query": "backoff", "tests": false }));
    assert!(!paths(&without).is_empty() && !paths(&without).contains(&"tests/retry_test.rs"));
    let classes = search(json!({ "query": "retry", "kind": "class", "mode": "keyword" }));
    let kinds = classes["hits"].as_array().unwrap().iter().map(|hit| &hit["kind"]);
    assert!(kinds.clone().count() > 0 && kinds.clone().all(|kind| kind == "class"), "{classes}");
    let named = search(json!({ "query": "how long to wait", "symbol": "backoff" }));
    assert_eq!(named["hits"][0]["symbol"], "backoff");
    assert!(paths(&search(json!({ "query": "retry", "since": "2999-01-01" }))).is_empty());
    let whole = search(json!({ "query": "records or retries" }));
    assert!(paths(&whole).len() > 1 && whole["cut"] == Value::Null);
    let cut = search(json!({ "query": "records or retries", "budget": 10 }));
    assert_eq!(paths(&cut).len(), 1);
    assert!(cut["cut"].as_str().unwrap().contains("left out"), "{cut}");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn the_graph_describes_itself() {
    let project = Project::sample();
    project.index(&[]);
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let schema = agent.call("graph_schema", json!({}));
    let labels = schema["labels"].as_array().unwrap();
    let file = labels.iter().find(|it| it["label"] == "File").unwrap();
    assert!(
        file["count"].as_u64().unwrap() > 0 && file["properties"]["path"].is_string(),
        "{file}"
    );
    let types = schema["relationships"].as_array().unwrap();
    let within = types.iter().find(|it| it["type"] == "CONTAINS").unwrap();
    assert!(within["from"].as_array().unwrap().contains(&json!("File")), "{within}");
    let size = agent.call("graph_stats", json!({}));
    assert!(size["nodes"].as_u64().unwrap() > 0 && size["edges"].as_u64().unwrap() > 0);
    let hot = agent.call("graph_hotspots", json!({ "by": "links", "path": "src" }));
    let hot = hot["hotspots"].as_array().unwrap();
    assert!(
        !hot.is_empty() && hot.iter().all(|it| it["path"].as_str().unwrap().starts_with("src/"))
    );
    let none = agent.call("graph_unused", json!({ "path": "no/such/folder" }));
    assert_eq!((&none["unused"], &none["total"]), (&json!([]), &json!(0)));
    assert_eq!(agent.call("graph_cycles", json!({}))["total"], 0);
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn a_sentence_is_found_inside_a_longer_text() {
    let project = Project::sample();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let text = "The minutes of May. Ann prefers tabs over spaces in Makefiles. We meet at noon.";
    agent.call("memory_add", json!({ "text": text, "wing": "ann", "room": "minutes" }));
    let mut check = |text: &str| agent.call("memory_check_duplicate", json!({ "text": text }));
    let found = check("Ann prefers tabs over spaces in Makefiles.");
    assert_eq!(found["duplicate"], true, "{found}");
    assert!(found["similar"][0]["similarity"].as_f64().unwrap() > 0.99);
    assert_eq!(check("The office is closed in August.")["duplicate"], false);
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn sessions_are_woken_and_files_imported() {
    let project = Project::sample();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let empty = agent.call("memory_wake_up", json!({ "wing": "shop" }));
    assert!(empty["text"].as_str().unwrap().contains("nothing about shop"), "{empty}");
    project.write("notes.md", "# Office\n\nWe decided to move the office to Bonn.\n");
    let done = agent.call("memory_import", json!({ "path": "notes.md", "wing": "shop" }));
    assert_eq!((&done["drawers"], &done["created"]), (&json!(1), &json!(1)), "{done}");
    let outside = agent.refused("memory_import", json!({ "path": "../notes.md" }));
    assert_eq!(outside["code"], "forbidden_path");
    let woken = agent.call("memory_wake_up", json!({ "wing": "shop" }));
    assert!(woken["text"].as_str().unwrap().contains("office to Bonn"), "{woken}");
    let prompt = json!({ "name": "wake_up", "arguments": { "wing": "shop" } });
    let prompt = agent.ask("prompts/get", prompt)["result"].to_string();
    assert!(prompt.contains("office to Bonn"), "{prompt}");
    let refused = agent.refused("memory_wake_up", json!({ "budget": 5 }));
    assert_eq!(refused["code"], "bad_input");
    assert_eq!(agent.leave(), Some(0));
}
