//! `isolith mcp` in worktrees.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod checkout;
mod project;
mod test_env;

use std::fs;
use std::path::Path;

use agent::Agent;
use checkout::Checkout;
use serde_json::{Value, json};
use test_env::wait_until;

fn agent_in(it: &Checkout, folder: &Path) -> Agent {
    Agent::greeted(it.command(folder, &["mcp"]))
}

fn places(found: &Value) -> Vec<(&str, &str)> {
    let hits = found["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["root"].as_str().unwrap(), hit["path"].as_str().unwrap())).collect()
}

#[test]
fn a_server_answers_for_the_worktree_it_is_started_in() {
    for place in [".claude/worktrees/feat", "../beside"] {
        let it = Checkout::new();
        let main = it.main();
        it.index(&main);
        let feat = it.worktree(&main.join(place));
        let mut agent = agent_in(&it, &feat);
        let error = agent.refused("search_code", json!({ "query": "parse_envelope" }));
        assert_eq!(error["code"], "not_found", "{place}: {error}");
        assert!(error["hint"].as_str().unwrap().contains("index_project"), "{error}");

        let report = agent.call("index_project", json!({}));
        assert_eq!(report["path"], feat.to_str().unwrap(), "{place}");
        assert_eq!(report["files"]["indexed"], 6, "{place}");
        let found = agent.call("search_code", json!({ "query": "parse_envelope" }));
        let hits = places(&found);
        assert_eq!(hits[0], (feat.to_str().unwrap(), "tools/parse.py"), "{place}");
        assert!(hits.iter().all(|hit| hit.0 == feat.to_str().unwrap()), "{place}: {hits:?}");
        for path in [".", "tools", "./tools"] {
            let arguments = json!({ "query": "parse_envelope", "path": path });
            assert_eq!(places(&agent.call("search_code", arguments))[0].1, "tools/parse.py");
        }
        let chunk = agent.call("read_chunk", json!({ "path": "tools/parse.py", "line": 5 }));
        assert_eq!(chunk["root"], feat.to_str().unwrap(), "{place}");
        let around = agent.call("graph_neighbours", json!({ "symbol": "parse_envelope" }));
        assert_eq!(around["found"].as_array().unwrap().len(), 1, "{place}: {around}");
        assert_eq!(
            agent.refused("graph_neighbours", json!({ "symbol": "parse_header" }))["code"],
            "not_found"
        );
        let similar = agent.call("search_similar", json!({ "path": "src/retry.rs", "line": 3 }));
        assert!(places(&similar).iter().all(|hit| hit.0 == feat.to_str().unwrap()), "{similar}");

        // Changes are indexed in this worktree.
        fs::write(feat.join("src/added.rs"), "pub fn added_here() {}\n").unwrap();
        wait_until(|| {
            let found = agent.call("search_code", json!({ "query": "added_here" }));
            places(&found).contains(&(feat.to_str().unwrap(), "src/added.rs"))
        });
        assert_eq!(agent.leave(), Some(0));

        // And a server in the main checkout does not see it.
        let mut agent = agent_in(&it, &main);
        let found = agent.call("search_code", json!({ "query": "parse_header" }));
        assert!(places(&found).iter().all(|hit| hit.0 == main.to_str().unwrap()), "{found}");
        let text = "MATCH (p:Project) RETURN count(p)";
        let projects = agent.call("graph_query", json!({ "query": text }));
        assert_eq!(projects["rows"], json!([[2]]), "{place}");
        assert_eq!(agent.leave(), Some(0));
    }
}

#[test]
fn a_server_beside_the_main_checkout_reads_no_files_there() {
    let it = Checkout::new();
    let main = it.main();
    it.index(&main);
    let feat = it.worktree(&it.beside("feat"));
    it.index(&feat);
    fs::write(main.join("rows.jsonl"), "{}\n").unwrap();
    let mut agent = agent_in(&it, &feat);
    let outside = json!({ "path": main.join("rows.jsonl"), "collection": "c" });
    assert_eq!(agent.refused("ingest_file", outside)["code"], "forbidden_path");
    let outside = json!({ "path": main.join("src/retry.rs") });
    assert_eq!(agent.refused("read_chunk", outside)["code"], "forbidden_path");
    let roots = agent.call("index_status", json!({}));
    let watched = |root: &Value| root["watched"].as_str().unwrap() != "no";
    let watched: Vec<_> =
        roots["roots"].as_array().unwrap().iter().filter(|it| watched(it)).collect();
    assert!(watched.iter().all(|it| it["root"] == feat.to_str().unwrap()), "{roots}");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn a_server_in_a_folder_with_a_false_git_file_has_no_store() {
    let it = Checkout::new();
    it.index(&it.main());
    let real = it.worktree(&it.beside("real"));
    let copy = it.beside("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(real.join(".git"), copy.join(".git")).unwrap();
    let mut agent = agent_in(&it, &copy);
    let error = agent.refused("search_code", json!({ "query": "retry" }));
    assert_eq!(error["code"], "no_store");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn a_server_says_that_a_store_above_may_hold_the_same_code() {
    let it = Checkout::new();
    let src = it.main().join("src");
    it.index(&src);
    it.json(&it.main(), &["index"]);
    let mut agent = agent_in(&it, &src);
    let found = agent.call("search_code", json!({ "query": "retry" }));
    let notice = found["notice"].as_str().unwrap();
    assert!(notice.contains("isolith index --merge"), "{notice}");
    assert_eq!(agent.leave(), Some(0));
}
