//! Indexing a folder and searching it, as a user does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::fs;

use project::{Project, counts};
use serde_json::{Value, json};
use test_env::{Ran, Running};

#[test]
fn a_folder_is_indexed_and_searched() {
    let project = Project::sample();
    let report = project.index(&[]);
    assert_eq!(counts(&report), json!([6, 6, 0, 0, 0]));
    assert!(report["chunks"].as_u64().unwrap() >= 6);
    assert_eq!(report["interrupted"], false);
    for stage in ["total", "walk", "parse", "fold"] {
        assert!(report["seconds"][stage].as_f64().unwrap() >= 0.0, "{stage}");
    }
    assert!(report["peak_pss_bytes"].as_u64().unwrap() > 1_000_000);

    let found = project.search(&["where are retries with back-off handled"]);
    let hit = &found["hits"][0];
    assert_eq!(hit["path"], "src/retry.rs");
    assert_eq!(hit["root"], project.folder().to_str().unwrap());
    assert_eq!(hit["language"], "rust");
    assert_eq!(hit["stale"], false);
    assert!(hit["snippet"].as_str().unwrap().contains("backoff"));
    assert!(hit["why"].as_array().unwrap().len() >= 2, "{}", hit["why"]);
    assert_eq!(found["degraded"], Value::Null);
    assert!(found["took_ms"].as_f64().unwrap() > 0.0);
    // Several files before several hits of one.
    assert_ne!(found["hits"][1]["path"], "src/retry.rs");
}

#[test]
fn every_mode_finds_by_name() {
    let project = Project::sample();
    project.index(&[]);
    for mode in ["hybrid", "keyword", "vector"] {
        let found = project.search(&["RetryPolicy", "--mode", mode]);
        assert_eq!(found["hits"][0]["path"], "src/retry.rs", "{mode}");
    }
    let hit = &project.search(&["RetryPolicy"])["hits"][0];
    assert_eq!(hit["symbol"], "RetryPolicy");
    assert!(hit["why"].to_string().contains("defines RetryPolicy"), "{}", hit["why"]);
}

#[test]
fn filters_narrow_the_search() {
    let project = Project::sample();
    project.index(&[]);
    let paths = |arguments: &[&str]| project.paths(&[&["retry backoff parse"], arguments].concat());
    assert_eq!(paths(&["--lang", "py"]), ["tools/parse.py"]);
    assert_eq!(paths(&["--path", "src/**"]), ["src/retry.rs"]);
    assert_eq!(paths(&["--path", "*.py"]), ["tools/parse.py"]);
    assert_eq!(paths(&["--path", "tools/"]), ["tools/parse.py"]);
    assert_eq!(paths(&["--symbol", "parse_header"]), ["tools/parse.py"]);
    assert_eq!(paths(&["--tests"]), ["tests/retry_test.rs"]);
    assert!(!paths(&["--no-tests"]).contains(&"tests/retry_test.rs".to_owned()));
    assert_eq!(paths(&["--kind", "section"]), ["README.md"]);
    assert_eq!(paths(&["--since", "2999-01-01"]), Vec::<String>::new());
    assert!(paths(&["--since", "1h"]).len() >= 4);
    let root = project.folder().to_str().unwrap().to_owned();
    assert!(paths(&["--root", &root]).len() >= 4);
    project.fails(&["search", "x", "--root", "/nowhere"], 4, "not_found");
    project.fails(&["search", "x", "--kind", "klingon"], 2, "usage");
    project.fails(&["search", "x", "--lang", "klingon"], 3, "bad_input");
    project.fails(&["search", "x", "--path", "[a"], 3, "bad_input");
    project.fails(&["search", " "], 3, "bad_input");
}

#[test]
fn results_come_as_lines_files_or_text() {
    let project = Project::sample();
    project.index(&[]);
    let lines = project.run(&["search", "retry", "--jsonl", "--limit", "2"]);
    let hits: Vec<Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(hits.len(), 2);
    let files = project.run(&["search", "retry", "--files-only", "--limit", "1"]);
    assert_eq!(files.stdout, "src/retry.rs\n");
    let files = project.run(&["search", "retry", "--files-only", "--limit", "1", "--jsonl"]);
    let file: Value = serde_json::from_str(&files.stdout).unwrap();
    assert_eq!(file["path"], "src/retry.rs");
    let text = project.run(&["search", "retry", "policy", "--limit", "1"]);
    assert!(text.stdout.starts_with("src/retry.rs:"), "{}", text.stdout);
    assert!(!text.stdout.contains('\x1b'), "no colours in a pipe");
    let narrow = project.search(&["RetryPolicy", "--context", "0"]);
    let hit = &narrow["hits"][0];
    assert_eq!(hit["snippet"].as_str().unwrap().lines().count(), 1);
    assert_eq!(hit["snippet_line"], hit["symbol_line"]);
    let nothing = project.run(&["search", "zzzzqqqq", "--mode", "keyword"]);
    assert_eq!((nothing.status, nothing.stdout.as_str()), (Some(0), "no results\n"));
}

#[test]
fn only_what_changed_is_indexed_again() {
    let project = Project::sample();
    project.index(&[]);
    assert_eq!(counts(&project.index(&[])), json!([6, 0, 6, 0, 0]));
    project.write("src/store.rs", "pub fn vacuum_everything() { /* sweep */ }\n");
    project.write("src/new.rs", "pub fn brand_new_function() {}\n");
    fs::remove_file(project.folder().join("tools/parse.py")).unwrap();
    // Another age and the same content is not a change.
    let text = fs::read(project.folder().join("README.md")).unwrap();
    project.write("README.md", text);
    assert_eq!(counts(&project.index(&[])), json!([6, 2, 4, 1, 0]));
    assert_eq!(project.paths(&["vacuum everything"])[0], "src/store.rs");
    assert!(!project.paths(&["parse header"]).contains(&"tools/parse.py".to_owned()));
}

#[test]
fn everything_can_be_indexed_again() {
    let project = Project::sample();
    project.index(&[]);
    let before = project.content();
    fs::remove_file(project.folder().join("README.md")).unwrap();
    assert_eq!(counts(&project.index(&["--rebuild"])), json!([5, 5, 0, 1, 0]));
    let after: Vec<_> = before.into_iter().filter(|row| row.0 != "README.md").collect();
    assert_eq!(project.content(), after);
}

#[test]
fn a_renamed_file_keeps_its_chunks_and_is_found_by_its_new_name() {
    let project = Project::sample();
    project.index(&[]);
    let folder = project.folder();
    fs::create_dir(folder.join("lib")).unwrap();
    fs::rename(folder.join("src/retry.rs"), folder.join("lib/zebra.rs")).unwrap();
    let report = project.index(&[]);
    assert_eq!(counts(&report), json!([6, 0, 5, 0, 1]));
    assert_eq!(project.paths(&["zebra"])[0], "lib/zebra.rs");
    assert_eq!(project.paths(&["RetryPolicy"])[0], "lib/zebra.rs");
    // The vectors are those of a fresh index.
    let moved = project.search(&["exponential delay between attempts", "--mode", "vector"]);
    project.index(&["--rebuild"]);
    let fresh = project.search(&["exponential delay between attempts", "--mode", "vector"]);
    assert_eq!(moved["hits"], fresh["hits"]);
}

#[test]
fn changed_ignore_rules_take_effect() {
    let project = Project::sample();
    project.index(&[]);
    project.write(".isolithignore", "tools/\n");
    assert_eq!(counts(&project.index(&[])), json!([5, 0, 5, 1, 0]));
    fs::remove_file(project.folder().join(".isolithignore")).unwrap();
    assert_eq!(counts(&project.index(&[])), json!([6, 1, 5, 0, 0]));
}

#[test]
fn a_subfolder_is_updated_alone() {
    let project = Project::sample();
    project.index(&[]);
    project.write("src/store.rs", "pub fn changed_in_src() {}\n");
    project.write("tools/parse.py", "def changed_in_tools(): pass\n");
    assert_eq!(counts(&project.index(&["src"])), json!([2, 1, 1, 0, 0]));
    assert_eq!(counts(&project.index(&["tools/parse.py"])), json!([1, 1, 0, 0, 0]));
    assert_eq!(counts(&project.index(&["tools/parse.py"])), json!([1, 0, 1, 0, 0]));
    assert_eq!(counts(&project.index(&[])), json!([6, 0, 6, 0, 0]));
}

#[test]
fn ignore_rules_apply_to_subfolders() {
    let project = Project::sample();
    project.write(".gitignore", "build/\n");
    project.write("build/out.rs", "pub fn built_by_a_machine() {}\n");
    project.write(".env", "PASSWORD=correcthorse\n");
    project.index(&[]);
    project.fails(&["index", "build/out.rs"], 3, "bad_input");
    assert_eq!(counts(&project.index(&[".env"])), json!([0, 0, 0, 0, 0]));
    assert_eq!(counts(&project.index(&[])), json!([6, 0, 6, 0, 0]));
}

#[test]
fn the_index_of_a_deleted_folder_stays_until_removed() {
    let project = Project::sample();
    let store = project.env.path("store");
    let store = ["--store", store.to_str().unwrap()];
    project.index(&[&["src"], &store[..]].concat());
    fs::remove_dir_all(project.folder().join("src")).unwrap();
    assert_eq!(project.paths(&[&["RetryPolicy"], &store[..]].concat())[0], "retry.rs");
    assert!(project.json(&[&["status"], &store[..]].concat())["warnings"][0].is_string());
    project.index(&[&["--remove", "src"], &store[..]].concat());
    project.fails(&[&["search", "RetryPolicy"], &store[..]].concat(), 4, "not_found");
}

#[test]
fn a_file_that_lost_chunks_is_indexed_again() {
    let project = Project::sample();
    project.index(&[]);
    let whole = project.content();
    let truth = project.truth();
    let hash = [0u8; 32];
    truth.execute("UPDATE file SET hash = ?1 WHERE path = 'src/retry.rs'", [&hash[..]]).unwrap();
    drop(truth);
    assert_eq!(counts(&project.index(&[])), json!([6, 1, 5, 0, 0]));
    assert_eq!(project.content(), whole);
}

#[test]
fn files_of_an_earlier_parser_are_parsed_again() {
    let project = Project::sample();
    project.index(&[]);
    let made_by = |parser: u32, path: &str| {
        let sql = "UPDATE file SET parser = ?1, language = 'old' WHERE path = ?2";
        assert_eq!(project.truth().execute(sql, (parser, path)).unwrap(), 1);
    };
    let language = |path: &str| -> String {
        let sql = "SELECT language FROM file WHERE path = ?1";
        project.truth().query_row(sql, [path], |row| row.get(0)).unwrap()
    };
    made_by(0, "src/retry.rs");
    // One that a newer program has parsed is left to it.
    made_by(u32::MAX, "src/store.rs");
    assert_eq!(counts(&project.index(&[])), json!([6, 1, 5, 0, 0]));
    assert_eq!((language("src/retry.rs"), language("src/store.rs")), ("rust".into(), "old".into()));
    assert_eq!(counts(&project.index(&[])), json!([6, 0, 6, 0, 0]));
    assert_eq!(project.paths(&["back-off"])[0], "src/retry.rs");

    // The same under another name: the known content is not reused.
    made_by(0, "src/retry.rs");
    fs::rename(project.folder().join("src/retry.rs"), project.folder().join("src/again.rs"))
        .unwrap();
    assert_eq!(counts(&project.index(&[])), json!([6, 1, 5, 1, 0]));
    assert_eq!(language("src/again.rs"), "rust");
}

#[test]
fn a_store_holds_several_roots() {
    let project = Project::sample();
    project.index(&["src"]);
    let src = project.folder().join("src");
    // The store was created in `src`; other commands need its path.
    let store = src.join(".isolith");
    let store = store.to_str().unwrap();
    project.index(&["tools", "--store", store]);
    let found = project.search(&["parse header retry", "--store", store]);
    let roots: Vec<&str> =
        found["hits"].as_array().unwrap().iter().map(|it| it["root"].as_str().unwrap()).collect();
    assert!(roots.contains(&src.to_str().unwrap()) && roots.len() >= 3, "{roots:?}");
    project.fails(&["index", ".", "--store", store], 3, "bad_input");
    fs::create_dir(project.folder().join("tools/part")).unwrap();
    project.fails(&["index", "--remove", "tools/part", "--store", store], 3, "bad_input");
    project.index(&["--remove", "tools", "--store", store]);
    project.fails(&["index", "--remove", "tools", "--store", store], 4, "not_found");
    let left = project.search(&["parse header", "--store", store]);
    assert!(left["hits"].as_array().unwrap().iter().all(|it| it["root"] == src.to_str().unwrap()));
}

#[test]
fn a_project_may_be_moved_with_its_store() {
    let project = Project::sample();
    project.index(&[]);
    let elsewhere = project.env.path("elsewhere");
    fs::rename(project.folder(), &elsewhere).unwrap();
    let mut command = project.env.bare(&["search", "RetryPolicy", "--json"]);
    let ran = Ran::of(&command.current_dir(&elsewhere).output().unwrap());
    let hit = &ran.document()["hits"][0];
    assert_eq!((&hit["root"], &hit["stale"]), (&json!(elsewhere), &json!(false)));
}

#[test]
fn a_missing_folder_does_not_empty_the_index() {
    let project = Project::sample();
    project.fails(&["search", "x"], 4, "no_store");
    for command in ["index", "watch"] {
        project.fails(&[command, "missing"], 4, "not_found");
        project.fails(&[command, "README.md"], 3, "bad_input");
    }
    assert!(!project.folder().join("missing").exists(), "nothing was made");
    assert!(!project.folder().join(".isolith").exists(), "nothing was made");
    project.index(&[]);
    for name in ["src", "tests", "tools", "README.md", "Cargo.toml"] {
        let path = project.folder().join(name);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    project.fails(&["index"], 3, "bad_input");
    project.fails(&["index", "--rebuild"], 3, "bad_input");
    assert_eq!(project.paths(&["RetryPolicy"])[0], "src/retry.rs");
    let hit = &project.search(&["RetryPolicy"])["hits"][0];
    assert_eq!(hit["stale"], true, "its file is gone");
}

#[test]
fn an_empty_index_is_reported() {
    let project = Project::empty();
    fs::create_dir(project.folder().join(".isolith")).unwrap();
    project.fails(&["search", "x"], 4, "no_store");
    project.index(&[]);
    project.fails(&["search", "x"], 4, "not_found");
}

#[test]
fn an_incomplete_index_is_reported() {
    let project = Project::sample();
    project.index(&[]);
    project.truth().execute("UPDATE root SET indexed_at = NULL", []).unwrap();
    let degraded = project.search(&["RetryPolicy"])["degraded"].as_str().unwrap().to_owned();
    assert!(degraded.contains("isolith index"), "{degraded}");
    project.index(&[]);
    assert_eq!(project.search(&["RetryPolicy"])["degraded"], Value::Null);
}

#[test]
fn a_store_is_hidden_from_git_again() {
    let project = Project::sample();
    project.index(&[]);
    let ignore = project.folder().join(".isolith/.gitignore");
    fs::remove_file(&ignore).unwrap();
    project.index(&[]);
    assert_eq!(fs::read_to_string(ignore).unwrap(), "*\n");
}

#[test]
fn a_changed_file_is_marked_stale() {
    let project = Project::sample();
    project.index(&[]);
    let path = project.folder().join("src/retry.rs");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("// one more line\n{text}")).unwrap();
    let hit = &project.search(&["RetryPolicy"])["hits"][0];
    assert_eq!(hit["stale"], true);
    let shown = project.run(&["search", "RetryPolicy"]);
    assert!(shown.stdout.contains("stale"), "{}", shown.stdout);
    // The same content again, only younger, is not.
    fs::write(&path, text).unwrap();
    assert_eq!(project.search(&["RetryPolicy"])["hits"][0]["stale"], false);
}

#[test]
fn skipped_files_are_listed() {
    let project = Project::sample();
    project.write(".env", "PASSWORD=correcthorse");
    project.write("deploy/id_rsa", "-----BEGIN PRIVATE KEY-----");
    project.write("big.rs", "// big\n".repeat(40_000));
    project.write("blob.rs", b"fn a() {}\0\0\0");
    project.write("latin.py", b"# caf\xE9\ndef coffee_machine(): pass\n");
    let report = project.index(&["--max-file-size", "200K"]);
    let problems: Vec<(&str, &str)> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["path"].as_str().unwrap(), it["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        problems,
        [(".env", "secret"), ("big.rs", "too_large"), ("deploy/id_rsa", "secret")]
    );
    assert_eq!(project.paths(&["coffee machine"])[0], "latin.py");
    assert!(project.paths(&["correcthorse", "--mode", "keyword"]).is_empty());
}

#[test]
fn pipes_are_skipped_and_long_lines_indexed() {
    let project = Project::sample();
    let pipe = project.folder().join("pipe.rs");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    project.write("line.js", format!("var data = \"{}\";", "needle_in_hay ".repeat(60_000)));
    project.write("deep.js", "(".repeat(100_000));
    project.index(&[]);
    assert_eq!(project.paths(&["needle_in_hay", "--mode", "keyword"])[0], "line.js");
}

#[test]
fn similar_code_is_found() {
    let project = Project::sample();
    project.index(&[]);
    project.write(
        "other.rs",
        "/// Waits longer after each failed attempt.\npub fn backoff_delay(attempt: u32) -> u64 { 100 << attempt }\n",
    );
    let column = project.json(&["similar", "other.rs:2:7"]);
    let found = project.json(&["similar", "other.rs:2"]);
    assert_eq!(column["hits"], found["hits"]);
    assert_eq!(found["hits"][0]["path"], "src/retry.rs");
    let found = project.json(&["similar", "src/retry.rs:5"]);
    let own = |hit: &Value| {
        let within =
            hit["start_line"].as_u64().unwrap() <= 5 && hit["end_line"].as_u64().unwrap() >= 5;
        hit["path"] == "src/retry.rs" && within
    };
    assert!(!found["hits"].as_array().unwrap().iter().any(own), "not itself");
    project.fails(&["similar", "nothing.rs:1"], 4, "not_found");
    project.fails(&["similar", "src/retry.rs:9999"], 4, "not_found");
    project.fails(&["similar", "src/retry.rs:x"], 3, "bad_input");
}

#[test]
fn another_model_is_refused_until_reembedding() {
    let project = Project::sample();
    project.index(&[]);
    let model: String =
        project.truth().query_row("SELECT model FROM collection", [], |row| row.get(0)).unwrap();
    project.truth().execute("UPDATE collection SET model = 'other@1'", []).unwrap();
    let error = project.fails(&["index"], 3, "model_mismatch");
    assert!(error["hint"].as_str().unwrap().contains("--reembed"), "{error}");
    let found = project.search(&["RetryPolicy"]);
    assert_eq!(found["hits"][0]["path"], "src/retry.rs");
    assert!(found["degraded"].as_str().unwrap().contains("--reembed"), "{found}");
    project.fails(&["search", "x", "--mode", "vector"], 3, "model_mismatch");
    // Another root of the same store loses its vectors, too, and gets new ones.
    let other = project.env.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("pear.py"), "def pear_tree(): pass\n").unwrap();
    project.truth().execute("UPDATE collection SET model = ?1", [&model]).unwrap();
    let store = project.folder().join(".isolith");
    project.index(&[other.to_str().unwrap(), "--store", store.to_str().unwrap()]);
    project.truth().execute("UPDATE collection SET model = 'other@1'", []).unwrap();
    assert_eq!(counts(&project.index(&["--reembed"])), json!([7, 7, 0, 0, 0]));
    assert_eq!(project.search(&["RetryPolicy"])["degraded"], Value::Null);
    assert_eq!(project.paths(&["pear tree", "--all-roots"])[0], "pear.py");
}

#[test]
fn the_code_index_is_not_listed_as_a_collection() {
    let project = Project::sample();
    project.index(&[]);
    let status = project.json(&["status"]);
    assert_eq!(status["collections"][0]["name"], "@code");
    project.fails(&["collection", "delete", "@code"], 3, "bad_input");
    project.fails(&["collection", "create", "@mine"], 3, "bad_input");
    let out = project.env.path("out");
    project.json(&["export", "--out", out.to_str().unwrap()]);
    assert_eq!(test_env::files_in(&out), Vec::<std::path::PathBuf>::new());
    let health = project.json(&["doctor"]);
    assert_eq!(health["ok"], true, "{health}");
}

#[test]
fn collections_of_the_embedded_model_take_texts() {
    let project = Project::sample();
    let mut rows = String::new();
    for (id, at) in [("first", 0), ("second", 1)] {
        let vector: Vec<f32> = (0..256).map(|n| if n == at { 1.0 } else { 0.0 }).collect();
        rows += &format!("{}\n", json!({ "id": id, "embedding": vector }));
    }
    project.write("rows.jsonl", rows);
    let load = ["ingest", "rows.jsonl", "--collection", "texts", "--user", "--model"];
    project.json(&[&load[..], &["static-code-256"]].concat());
    let query = ["collection", "query", "texts", "--user", "--text"];
    let found = project.json(&[&query[..], &["parse a header"]].concat());
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
    project.fails(&[&query[..], &["\u{200b}"]].concat(), 3, "bad_input");
}

#[test]
fn a_watcher_keeps_the_index_fresh() {
    let project = Project::sample();
    let mut watching = Running::start(project.command(&["watch"]));
    assert!(watching.prints("watching"));
    // As editors save: written aside, then renamed.
    project.write("src/store.rs.tmp", "pub fn freshly_saved_function() {}\n");
    let at = |name: &str| project.folder().join(name);
    fs::rename(at("src/store.rs.tmp"), at("src/store.rs")).unwrap();
    let first = |question: &str| project.paths(&[question]).first().cloned().unwrap_or_default();
    test_env::wait_until(|| {
        first("freshly_saved_function") == "src/store.rs" && {
            let hit = &project.search(&["freshly_saved_function"])["hits"][0];
            hit["symbol"] == "freshly_saved_function"
        }
    });
    // A folder that goes and comes again, deeper than before.
    fs::remove_dir_all(at("tools")).unwrap();
    test_env::wait_until(|| {
        !project.paths(&["parse header"]).contains(&"tools/parse.py".to_owned())
    });
    project.write("tools/deep/er/again.py", "def came_again_at_last(): pass\n");
    test_env::wait_until(|| first("came_again_at_last") == "tools/deep/er/again.py");
    // A switch of branches.
    for number in 0..500 {
        project.write(&format!("many/f{number}.py"), format!("def branch_{number}(): pass\n"));
    }
    test_env::wait_until(|| first("branch_499") == "many/f499.py");
    let logs = test_env::files_in(&project.folder().join(".isolith/logs"));
    let log = fs::read_to_string(&logs[0]).unwrap();
    let started = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started = started.filter(|it| it["fields"]["message"] == "worker started").count();
    assert!(started >= 3, "{log}");
    watching.signal(rustix::process::Signal::INT);
    assert_eq!(watching.finish().status, Some(130));
}

#[test]
fn a_watcher_does_not_see_its_own_store() {
    let project = Project::sample();
    let mut watching = Running::start(project.command(&["watch", "--store", "visible", "--json"]));
    assert!(watching.prints("watching"));
    project.write("src/store.rs", "pub fn saved_once() {}\n");
    let found = || project.search(&["saved_once", "--store", "visible"]);
    test_env::wait_until(|| found()["hits"][0]["symbol"] == "saved_once");
    // Long enough for some more passes, if each called for the next.
    std::thread::sleep(std::time::Duration::from_secs(2));
    watching.signal(rustix::process::Signal::TERM);
    let passes = watching.finish().document()["passes"].as_u64().unwrap();
    assert!((2..=3).contains(&passes), "{passes}");
}

#[test]
fn one_watcher_works_on_a_folder() {
    let project = Project::sample();
    let mut first = Running::start(project.command(&["watch"]));
    assert!(first.prints("watching"));
    let mut second = Running::start(project.command(&["watch"]));
    assert!(second.prints("waiting"));
    first.signal(rustix::process::Signal::TERM);
    assert_eq!(first.finish().status, Some(143));
    assert!(second.prints("watching"), "it takes over");
    second.signal(rustix::process::Signal::TERM);
    assert_eq!(second.finish().status, Some(143));
}
