//! `isolith search --mode exact` and `--mode regex`, as a user runs them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod project;
mod test_env;

use std::fs;

use agent::Agent;
use project::Project;
use serde_json::{Value, json};

fn indexed() -> Project {
    let project = Project::sample();
    project.write(
        "src/lock.rs",
        "//! Locks.\n\n\n   \npub struct Pool;\n\nimpl Pool {\n    pub fn take_lock(&self) {\n        \
         self.inner.lock();\n    }\n\n    pub fn free_lock(&self) { self.lock(); self.lock(); }\n}\n",
    );
    project.index(&[]);
    project
}

fn places(found: &Value) -> Vec<(String, u64, u64)> {
    let place = |hit: &Value| {
        let number = |field: &str| hit[field].as_u64().unwrap();
        (hit["path"].as_str().unwrap().to_owned(), number("line"), number("column"))
    };
    found["hits"].as_array().unwrap().iter().map(place).collect()
}

#[test]
fn every_match_is_found_with_its_place() {
    let project = indexed();
    let found = project.search(&["--mode", "exact", "lock()"]);
    assert_eq!(found["matches"], json!({ "total": 3, "lines": 2, "files": 1 }));
    assert_eq!(places(&found), [("src/lock.rs".into(), 9, 20), ("src/lock.rs".into(), 12, 36)]);
    assert_eq!((&found["degraded"], &found["weak"]), (&Value::Null, &json!(false)));
    assert!(found["took_ms"].as_f64().unwrap() > 0.0);
    let hit = &found["hits"][0];
    assert_eq!(hit["root"], project.folder().to_str().unwrap());
    assert_eq!(hit["snippet"], "        self.inner.lock();");
    assert_eq!((&hit["symbol"], &hit["symbol_line"]), (&json!("take_lock"), &json!(8)));
    assert_eq!((&hit["kind"], &hit["language"]), (&json!("method"), &json!("rust")));
    assert_eq!((&hit["stale"], &hit["also"]), (&json!(false), &json!([])));
    assert!(hit["start_line"].as_u64().unwrap() <= 9 && hit["end_line"].as_u64().unwrap() >= 9);
    assert_eq!(found["hits"][1]["columns"], json!([36, 49]));

    let regex = project.search(&["--mode", "regex", r"fn \w+_lock\("]);
    assert_eq!(places(&regex), [("src/lock.rs".into(), 8, 9), ("src/lock.rs".into(), 12, 9)]);
    // Several arguments are one text.
    assert_eq!(
        project.search(&["--mode", "exact", "pub", "struct", "Pool;"])["matches"]["total"],
        1
    );
}

#[test]
fn blank_lines_and_trailing_blanks_are_part_of_the_text() {
    let project = indexed();
    let blank = project.search(&["--mode", "regex", "^$", "--path", "src/lock.rs"]);
    assert_eq!(blank["matches"]["lines"], 4);
    let trailing = project.search(&["--mode", "regex", r"^\s+$", "--path", "src/lock.rs"]);
    assert_eq!(places(&trailing), [("src/lock.rs".into(), 4, 1)]);
    let across = project.search(&["--mode", "regex", r"Locks\.\n\n\n\s+pub struct"]);
    let hit = &across["hits"][0];
    assert_eq!((&hit["line"], &hit["last_line"]), (&json!(1), &json!(5)));
}

#[test]
fn case_limit_context_and_filters_are_honored() {
    let project = indexed();
    let matches = |arguments: &[&str]| project.search(arguments)["matches"]["total"].clone();
    assert_eq!(matches(&["--mode", "exact", "LOCK()"]), 0);
    assert_eq!(matches(&["--mode", "exact", "-i", "LOCK()"]), 3);
    assert_eq!(matches(&["--mode", "regex", "--ignore-case", r"LOCK\(\)"]), 3);
    let first = project.search(&["--mode", "exact", "lock", "-n", "1", "-C", "1"]);
    assert_eq!(first["hits"].as_array().unwrap().len(), 1);
    assert!(first["matches"]["lines"].as_u64().unwrap() > 1);
    let hit = &first["hits"][0];
    assert_eq!((&hit["line"], &hit["snippet_line"]), (&json!(8), &json!(7)));
    assert_eq!(hit["snippet"].as_str().unwrap().lines().count(), 3);

    let paths = |arguments: &[&str]| {
        let found = project.search(&[&["--mode", "regex", "(?i)retry"], arguments].concat());
        let mut paths: Vec<String> = places(&found).into_iter().map(|(path, ..)| path).collect();
        paths.dedup();
        paths
    };
    let all = paths(&["-n", "1000"]);
    assert!(all.is_sorted() && all.len() >= 3, "{all:?}");
    assert_eq!(paths(&["--path", "src/**"]), ["src/retry.rs"]);
    assert_eq!(paths(&["--tests"]), ["tests/retry_test.rs"]);
    assert!(!paths(&["--no-tests", "-n", "1000"]).contains(&"tests/retry_test.rs".to_owned()));
    assert_eq!(paths(&["--kind", "section"]), ["README.md"]);
    assert_eq!(paths(&["--lang", "python"]), Vec::<String>::new());
    assert_eq!(paths(&["--symbol", "RetryPolicy"]), ["src/retry.rs"]);
    assert_eq!(paths(&["--since", "2999-01-01"]), Vec::<String>::new());
    let root = project.folder().to_str().unwrap().to_owned();
    assert_eq!(paths(&["--root", &root, "-n", "1000"]), all);
}

#[test]
fn matches_come_as_text_lines_or_files() {
    let project = indexed();
    let text = project.run(&["search", "--mode", "exact", "lock();", "-C", "1"]);
    insta::assert_snapshot!(text.stdout, @r"
    src/lock.rs
         8-     pub fn take_lock(&self) {
         9:20:         self.inner.lock();  [Pool › take_lock]
        10-     }
        11-
        12:36:     pub fn free_lock(&self) { self.lock(); self.lock(); }  [Pool › free_lock]
        13- }

    3 matches on 2 lines in 1 file
    ");
    let text = project.run(&["search", "--mode", "exact", "lock();", "-n", "1"]);
    assert!(
        text.stdout.ends_with("in 1 file; 1 not shown, --limit shows more\n"),
        "{}",
        text.stdout
    );
    let lines = project.run(&["search", "--mode", "exact", "lock();", "--jsonl"]);
    assert_eq!(lines.stdout.lines().count(), 2);
    assert!(lines.stderr.contains("3 matches on 2 lines in 1 file"), "{}", lines.stderr);
    let files = project.run(&["search", "--mode", "regex", "(?i)retry", "--files-only", "-n", "2"]);
    assert_eq!(files.stdout, "README.md\nsrc/retry.rs\n");
    let files = project.search(&["--mode", "exact", "lock();", "--files-only"]);
    assert_eq!(
        (&files["hits"][0]["path"], &files["hits"][0]["matches"]),
        (&json!("src/lock.rs"), &json!(3))
    );
    let none = project.run(&["search", "--mode", "exact", "nowhere to be found"]);
    assert_eq!((none.status, none.stdout.as_str()), (Some(0), "no matches\n"));
}

#[test]
fn bad_patterns_are_refused_with_a_hint() {
    let project = indexed();
    for pattern in ["fn foo(", "[a", r"\p{Nope}", "(?=a)"] {
        let error = project.fails(&["search", "--mode", "regex", pattern], 3, "bad_input");
        assert!(error["message"].as_str().unwrap().starts_with("invalid regex: "), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("--mode exact"), "{error}");
    }
    project.fails(&["search", "--mode", "exact", ""], 3, "bad_input");
    project.fails(&["search", "x", "--limit", "5000"], 2, "usage");
    assert_eq!(
        project.search(&["--mode", "exact", "fn foo(", "--limit", "5000"])["matches"]["total"],
        0
    );
}

#[test]
fn changed_and_new_files_are_searched_before_and_after_folds() {
    let project = indexed();
    let total = || project.search(&["--mode", "exact", "okapi_lock"])["matches"].clone();
    project.write("src/new.rs", "fn okapi_lock() {}\n");
    project.write("src/lock.rs", "fn okapi_lock() { okapi_lock() }\n");
    assert_eq!(total()["total"], 0, "they are not indexed yet");
    project.index(&[]);
    assert_eq!(total(), json!({ "total": 3, "lines": 2, "files": 2 }));
    fs::remove_file(project.folder().join("src/new.rs")).unwrap();
    project.index(&[]);
    assert_eq!(total(), json!({ "total": 2, "lines": 1, "files": 1 }));
    project.index(&["--rebuild"]);
    assert_eq!(total(), json!({ "total": 2, "lines": 1, "files": 1 }));
    assert_eq!(project.search(&["--mode", "exact", "take_lock"])["matches"]["total"], 0);
    // A file that changed since it was indexed is marked.
    project.write("src/lock.rs", "\nfn okapi_lock() {}\n");
    assert_eq!(project.search(&["--mode", "exact", "okapi_lock"])["hits"][0]["stale"], true);
}

#[test]
fn a_damaged_segment_costs_only_time() {
    let project = indexed();
    let ask = ["--mode", "regex", r"\w+_lock|retry", "-n", "1000"];
    let sound = project.search(&ask);
    let segments = project.folder().join(".isolith/segments");
    let source = fs::read_dir(&segments).unwrap().map(|entry| entry.unwrap().path());
    let source: Vec<_> =
        source.filter(|path| path.extension().is_some_and(|it| it == "src")).collect();
    assert_eq!(source.len(), 1, "{source:?}");
    let mut bytes = fs::read(&source[0]).unwrap();
    bytes[100] ^= 1;
    fs::write(&source[0], bytes).unwrap();
    let damaged = project.search(&ask);
    assert_eq!((&damaged["hits"], &damaged["matches"]), (&sound["hits"], &sound["matches"]));
    assert!(
        damaged["degraded"].as_str().unwrap().contains("a segment cannot be used"),
        "{damaged}"
    );
    // The next index run builds it again.
    project.index(&[]);
    let again = project.search(&ask);
    assert_eq!((&again["hits"], &again["degraded"]), (&sound["hits"], &Value::Null));
}

#[test]
fn a_store_without_source_segments_is_searched_and_rebuilt() {
    let project = indexed();
    let ask = ["--mode", "exact", "lock();"];
    let found = project.search(&ask);
    // As an earlier version left it.
    project.truth().execute("DELETE FROM segment WHERE kind = 'source'", []).unwrap();
    let without = project.search(&ask);
    assert_eq!((&without["hits"], &without["degraded"]), (&found["hits"], &Value::Null));
    project.write("src/more.rs", "fn more() { x.lock(); }\n");
    project.index(&[]);
    let count = "SELECT count(*) FROM segment WHERE kind = 'source'";
    let segments: u64 = project.truth().query_row(count, [], |row| row.get(0)).unwrap();
    assert!(segments >= 1);
    assert_eq!(project.search(&ask)["matches"]["total"], 4);
}

#[test]
fn agents_find_matches() {
    let project = indexed();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let ask = |query: &str, mode: &str| json!({ "query": query, "mode": mode, "limit": 2 });
    let found = agent.call("search_code", ask("lock()", "exact"));
    assert_eq!(found["matches"], json!({ "total": 3, "lines": 2, "files": 1 }));
    assert_eq!((&found["hits"][0]["line"], &found["hits"][0]["column"]), (&json!(9), &json!(20)));
    let mut regex = ask(r"FN \w+_LOCK\(", "regex");
    regex["ignore_case"] = json!(true);
    regex["context"] = json!(1);
    let found = agent.call("search_code", regex);
    assert_eq!(found["matches"]["lines"], 2);
    assert_eq!(found["hits"][0]["snippet"].as_str().unwrap().lines().count(), 3);
    let error = agent.refused("search_code", ask("fn foo(", "regex"));
    assert_eq!(error["code"], "bad_input");
    assert!(error["hint"].as_str().unwrap().contains("mode \"exact\""), "{error}");
    assert_eq!(agent.refused("search_code", ask("x", "fuzzy"))["code"], "bad_input");
    // A changed file among the hits is indexed again first.
    project.write("src/lock.rs", "fn new_lock() { inner.lock() }\n");
    let found = agent.call("search_code", ask("lock()", "exact"));
    assert_eq!(found["matches"]["total"], 2, "{found}");
    assert_eq!(agent.leave(), Some(0));
}
