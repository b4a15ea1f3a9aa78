//! Collections as people and their scripts use them: the JSON, the exit codes, the
//! messages, and where the store is.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use test_env::{Ran, TestEnv, ids_of, vector};

/// The keys of an object, in alphabetical order.
fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn counts_agree_with_their_nouns() {
    let env = TestEnv::new();
    for (rows, names) in [(0..1, ["row", "record"]), (1..3, ["rows", "records"])] {
        let count = rows.end - rows.start;
        let [row, record] = names.map(|name| format!("{count} {name}"));
        let file = env.write_rows("rows.jsonl", rows, 4);
        let loaded = env.run(&["ingest", &file, "--collection", "notes"]).stdout;
        assert!(loaded.contains(&format!("loaded {row} into notes")), "{loaded}");
        assert!(loaded.contains(&format!("the collection has {record}")), "{loaded}");
        let exported = env.run(&["export", "--out", "exported"]).stdout;
        assert!(exported.contains(&record), "{exported}");
        let deleted = env.run(&["collection", "delete", "notes", "--yes"]).stdout;
        assert_eq!(deleted, format!("deleted notes with {record}\n"));
    }
    let query = "CREATE (:A)-[:R]->(:B)";
    let noted = env.run(&["graph", "query", query]).stderr;
    assert!(noted.contains("2 nodes created, 1 relationship created"), "{noted}");
    let failed = env.run(&["graph", "query", "RETURN abs(1, 2)"]).stderr;
    assert!(failed.contains("abs() takes 1 argument, not 2"), "{failed}");
}

#[test]
fn json_has_the_documented_fields() {
    let env = TestEnv::new();
    let created = env.json(&["collection", "create", "notes", "--dimension", "4"]);
    assert_eq!(created, json!({ "collection": "notes", "created": true }));
    let file = env.write_rows("rows.jsonl", 0..20, 4);
    let receipt = env.json(&["ingest", &file, "--collection", "notes"]);
    for key in [
        "success",
        "collection",
        "rows",
        "inserted",
        "updated",
        "unchanged",
        "rejected",
        "count_before",
        "count_after",
        "seconds",
        "worker_pid",
        "retries",
        "error",
    ] {
        assert!(receipt.get(key).is_some(), "{key} is missing in {receipt}");
    }
    assert_eq!((&receipt["success"], &receipt["rows"]), (&json!(true), &json!(20)));
    assert_eq!((&receipt["count_before"], &receipt["count_after"]), (&json!(0), &json!(20)));

    let listed = &env.json(&["collection", "list"])["collections"][0];
    assert_eq!(
        keys(listed),
        ["dimension", "generation", "metric", "model", "name", "records", "store", "tail"]
    );
    let count = env.json(&["collection", "count", "notes"]);
    assert_eq!(count, json!({ "collection": "notes", "count": 20 }));

    let query = env.write("query.json", json!(vector(3, 4)).to_string());
    let found = env.json(&["collection", "query", "notes", "--vector", &query, "--limit", "3"]);
    assert_eq!(found["degraded"], Value::Null);
    assert_eq!(found["hits"].as_array().unwrap().len(), 3);
    let hit = &found["hits"][0];
    for key in ["id", "distance", "document", "metadata"] {
        assert!(hit.get(key).is_some(), "{key} is missing in {hit}");
    }
    assert_eq!(hit["id"], "r3");
    assert!(hit["distance"].as_f64().unwrap() < 1e-6);

    let record = &env.json(&["collection", "get", "notes", "--id", "r3"])["records"][0];
    assert_eq!(keys(record), ["document", "id", "metadata"]);
    let renamed = env.json(&["collection", "rename", "notes", "Notizen"]);
    assert_eq!(renamed, json!({ "collection": "Notizen", "renamed_from": "notes" }));
    let deleted = env.json(&["collection", "delete", "Notizen", "--id", "r1", "--id", "not there"]);
    assert_eq!(deleted, json!({ "collection": "Notizen", "deleted": 1, "missing": 1 }));
    let deleted = env.json(&["collection", "delete", "Notizen", "--yes"]);
    assert_eq!(deleted, json!({ "collection": "Notizen", "deleted": 19 }));
    assert_eq!(env.json(&["collection", "list"]), json!({ "collections": [] }));
}

#[test]
fn errors_have_a_code_and_an_exit_status() {
    let env = TestEnv::new();
    env.fails(&["collection", "list"], 4, "no_store");
    assert!(!env.store().exists(), "looking makes nothing");
    env.fails(&["export", "--out", "there"], 4, "no_store");
    env.json(&["collection", "create", "a", "--dimension", "2"]);
    let short = env.write("short", "[1]");
    let zero = env.write("zero", "[0, 0]");
    let huge = env.write("huge", "[1e39, 0]");
    let words = env.write("words", "[\"a\", \"b\"]");
    let good = env.write("good", "[1, 2]");
    let long = "x".repeat(513);
    for (arguments, status, code) in [
        (&["collection", "create", "a"][..], 3, "already_exists"),
        (&["collection", "create", ""], 3, "bad_input"),
        (&["collection", "create", "a\nb"], 3, "bad_input"),
        (&["collection", "create", &long], 3, "bad_input"),
        (&["collection", "create", "b", "--dimension", "0"], 2, "usage"),
        (&["collection", "create", "b", "--metric", "l3"], 2, "usage"),
        (&["collection", "count", "b"], 4, "not_found"),
        (&["collection", "delete", "b"], 4, "not_found"),
        (&["collection", "rename", "b", "c"], 4, "not_found"),
        (&["collection", "rename", "a", ""], 3, "bad_input"),
        (&["collection", "get", "b"], 4, "not_found"),
        (&["collection", "get", "a", "--where", "{"], 3, "bad_input"),
        (&["collection", "get", "a", "--where", "[]"], 3, "bad_input"),
        (&["collection", "get", "a", "--where", r#"{"n":{"$near":1}}"#], 3, "bad_input"),
        (&["collection", "get", "a", "--where-document", r#"{"$regex":"(["}"#], 3, "bad_input"),
        (&["collection", "get", "a", "--id", "x", "--where", "{}"], 2, "usage"),
        (&["collection", "query", "a"], 2, "usage"),
        (&["collection", "query", "a", "--text", "t"], 3, "model_unavailable"),
        (&["collection", "query", "b", "--text", "t"], 4, "not_found"),
        (&["collection", "query", "a", "--vector", "nowhere"], 4, "not_found"),
        (&["collection", "query", "a", "--vector", "home"], 3, "bad_input"),
        (&["collection", "query", "a", "--vector", &short], 3, "bad_input"),
        (&["collection", "query", "a", "--vector", &zero], 3, "bad_input"),
        (&["collection", "query", "a", "--vector", &huge], 3, "bad_input"),
        (&["collection", "query", "a", "--vector", &words], 3, "bad_input"),
        (&["collection", "query", "a", "--vector", &good, "--limit", "0"], 2, "usage"),
        (&["export", "b", "--out", "file"], 4, "not_found"),
        (&["export", "a"], 2, "usage"),
        (&["import", "nowhere"], 4, "not_found"),
        (&["import", "good"], 3, "bad_input"),
    ] {
        env.fails(arguments, status, code);
    }
    let similar = env.fails(&["collection", "count", "A"], 4, "not_found");
    assert!(similar["hint"].as_str().unwrap().contains("\"a\""), "{similar}");
    assert!(!env.path("file").exists());
}

/// A filter that came out empty must not cost the collection.
#[test]
fn deleting_by_an_empty_filter_deletes_nothing() {
    let env = TestEnv::new();
    let file = env.write_rows("rows.jsonl", 0..5, 2);
    env.json(&["ingest", &file, "--collection", "a"]);
    for flag in ["--where", "--where-document"] {
        env.fails(&["collection", "delete", "a", flag, "{}"], 3, "bad_input");
    }
    assert_eq!(env.count("a"), 5);
}

#[test]
fn every_filter_operator_works() {
    let env = TestEnv::new();
    let records = [
        json!({"id":"one","vector":[1,0],"document":"The first one",
            "metadata":{"n":1,"half":0.5,"name":"Ünal","on":true,"tags":["x","y"]}}),
        json!({"id":"two","vector":[0,1],"document":"The second",
            "metadata":{"n":2,"half":-1.5,"name":"bob","on":false,"tags":["y"],"nums":[1,2.5]}}),
        json!({"id":"three","vector":[1,1],"document":null,"metadata":{"n":"1"}}),
        json!({"id":"four","vector":[-1,1],"metadata":null}),
    ];
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    let file = env.write("rows.jsonl", lines.join("\n"));
    env.json(&["ingest", &file, "--collection", "a"]);
    let get = |flag, filter: &str| env.ids(&["collection", "get", "a", flag, filter]).join(" ");
    for (filter, expected) in [
        (r#"{}"#, "one two three four"),
        (r#"{"n":1}"#, "one"),
        (r#"{"n":{"$eq":1.0}}"#, "one"),
        (r#"{"n":"1"}"#, "three"),
        (r#"{"n":{"$ne":1}}"#, "two three four"),
        (r#"{"n":{"$lt":2}}"#, "one"),
        (r#"{"n":{"$lte":2}}"#, "one two"),
        (r#"{"n":{"$gt":1}}"#, "two"),
        (r#"{"n":{"$gte":1}}"#, "one two"),
        (r#"{"half":{"$lt":0}}"#, "two"),
        (r#"{"name":{"$gt":"bob"}}"#, "one"),
        (r#"{"name":"Ünal"}"#, "one"),
        (r#"{"on":false}"#, "two"),
        (r#"{"n":{"$in":[2,"1"]}}"#, "two three"),
        (r#"{"n":{"$nin":[2,"1"]}}"#, "one four"),
        (r#"{"tags":{"$contains":"y"}}"#, "one two"),
        (r#"{"tags":{"$not_contains":"x"}}"#, "two three four"),
        (r#"{"nums":{"$contains":2.5}}"#, "two"),
        (r#"{"n":1,"on":true}"#, "one"),
        (r#"{"$and":[{"n":{"$gte":1}},{"on":false}]}"#, "two"),
        (r#"{"$or":[{"n":2},{"n":"1"}]}"#, "two three"),
        (r#"{"$not":{"$or":[{"n":2},{"n":"1"}]}}"#, "one four"),
        (r##"{"#document":{"$contains":"first"}}"##, "one"),
        (r#"{"no such key":{"$gt":0}}"#, ""),
    ] {
        assert_eq!(get("--where", filter), expected, "{filter}");
    }
    for (filter, expected) in [
        (r#"{"$contains":"The"}"#, "one two"),
        (r#"{"$contains":"the"}"#, ""),
        (r#"{"$not_contains":"first"}"#, "two three four"),
        (r#"{"$regex":"(?i)THE \\w+ one$"}"#, "one"),
        (r#"{"$not_regex":"^The"}"#, "three four"),
        (r#"{"$or":[{"$contains":"first"},{"$contains":"second"}]}"#, "one two"),
        (r#"{"$and":[{"$contains":"The"},{"$not_contains":"first"}]}"#, "two"),
    ] {
        assert_eq!(get("--where-document", filter), expected, "{filter}");
    }
    // Filters narrow queries of both kinds in the same way.
    let query = env.write("query", "[1, 0.1]");
    let narrow = ["--where", r#"{"n":{"$gte":1}}"#, "--where-document", r#"{"$contains":"sec"}"#];
    for question in [["--vector", &query], ["--keywords", "second first"]] {
        let arguments = [&["collection", "query", "a"][..], &question, &narrow].concat();
        assert_eq!(env.ids(&arguments), ["two"]);
    }
}

#[test]
fn ten_thousand_ids_in_one_call_work() {
    let env = TestEnv::new();
    let file = env.write_rows("rows.jsonl", 0..1_000, 2);
    env.json(&["ingest", &file, "--collection", "a"]);
    let ids: Vec<String> = (0..10_000).rev().map(|number| format!("r{number}")).collect();
    let flags: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
    // Ids that are named are all shown, in the order asked for.
    let found = env.ids(&[&["collection", "get", "a"][..], &flags].concat());
    assert_eq!(found, ids[9_000..]);
    let numbers: Vec<u32> = (500..10_500).collect();
    let filter = json!({ "n": { "$in": numbers } }).to_string();
    let found = env.ids(&["collection", "get", "a", "--where", &filter, "--limit", "10000"]);
    assert_eq!(found.len(), 500);
    let deleted = env.json(&[&["collection", "delete", "a"][..], &flags[..19_800]].concat());
    assert_eq!((&deleted["deleted"], &deleted["missing"]), (&json!(900), &json!(9_000)));
    assert_eq!(env.count("a"), 100);
}

#[test]
fn pages_have_the_requested_length() {
    let env = TestEnv::new();
    let file = env.write_rows("rows.jsonl", 0..30, 2);
    env.json(&["ingest", &file, "--collection", "a"]);
    let get = |more: &[&str]| env.ids(&[&["collection", "get", "a"][..], more].concat());
    assert_eq!(get(&[]).len(), 10);
    assert_eq!(get(&["--limit", "3", "--offset", "28"]), ["r28", "r29"]);
    assert_eq!(get(&["--id", "r9", "--id", "nobody", "--id", "r2"]), ["r9", "r2"]);
    let text = env.run(&["collection", "get", "a", "--limit", "2"]).stdout;
    assert!(text.starts_with("ID") && text.contains("r1"), "{text}");
}

#[test]
fn the_store_is_found_by_flag_variable_and_folder() {
    let env = TestEnv::new();
    let deep = env.path("project/a/b");
    fs::create_dir_all(&deep).unwrap();
    let create = |name: &str, more: &[&str], variable: Option<&str>| {
        let mut command = env.bare(&[&["collection", "create", name, "--json"][..], more].concat());
        command.current_dir(&deep);
        if let Some(value) = variable {
            command.env("ISOLITH_STORE", value);
        }
        let ran = Ran::of(&command.output().unwrap());
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
    };
    let users = env.path("home/.local/share/isolith");
    create("users", &[], None);
    assert!(users.join("truth.sqlite").exists());
    let projects = env.path("project/.isolith");
    fs::create_dir(&projects).unwrap();
    create("projects", &[], None);
    assert_eq!(fs::read_to_string(projects.join(".gitignore")).unwrap(), "*\n");
    create("users too", &["--user"], None);
    let named = env.path("from the environment");
    create("environments", &[], named.to_str());
    create("typed", &["--store", "../typed ü"], named.to_str());
    // What was typed counts more than the environment; an empty variable is none.
    create("users as well", &["--user"], named.to_str());
    create("projects too", &[], Some(""));
    let both = [&["collection", "list", "--user", "--store", "x"][..]].concat();
    env.fails_as(env.bare(&both), 2, "usage");

    for (store, expected) in [
        (users, "users,users as well,users too"),
        (projects, "projects,projects too"),
        (named, "environments"),
        (env.path("project/a/typed ü"), "typed"),
    ] {
        let mut command = env.bare(&["collection", "list", "--json", "--store"]);
        let listed = Ran::of(&command.arg(&store).output().unwrap()).document();
        let names: Vec<&str> = listed["collections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names.join(","), expected);
        let mode = |name: &str| store.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("truth.sqlite"), 0o600);
        assert_eq!(mode("segments"), 0o700);
    }
}

/// A store in a folder that has other things in it leaves them visible to git.
#[test]
fn a_folder_with_other_files_gets_no_gitignore() {
    let env = TestEnv::new();
    fs::create_dir(env.store()).unwrap();
    fs::write(env.store().join("thesis.tex"), "…").unwrap();
    env.json(&["collection", "create", "a"]);
    assert!(!env.store().join(".gitignore").exists());
}

#[test]
fn an_export_can_be_imported_unchanged() {
    let env = TestEnv::new();
    let tricky = [
        json!({"id":"ünïcode \u{1F980}\u{0}","vector":[1.1754944e-38,-0.1,9.8e17],
            "document":"a\u{2028}b\t\"\\\u{1F980}","metadata":{"ключ":"値","list":[1,2.5],"no":null}}),
        json!({"id":" ","vector":[1e-45,0.33333334,-1],"document":"","metadata":{}}),
        json!({"id":"big","vector":[16777217,1,0],"document":null,
            "metadata":{"int":9007199254740993_i64,"float":1e300,"neg":-0.0,"on":true}}),
    ];
    let lines: Vec<String> = tricky.iter().map(Value::to_string).collect();
    let file = env.write("tricky.jsonl", lines.join("\n"));
    for metric in ["l2", "dot", "cosine"] {
        let name = format!("{metric} / ü");
        let flags = ["--metric", metric, "--model", "some/model@1"];
        env.json(&[&["ingest", &file, "--collection", &name][..], &flags].concat());
    }
    let empty = ["collection", "create", "empty", "--dimension", "7", "--metric", "dot"];
    env.json(&empty);
    env.json(&["collection", "create", "without a dimension"]);
    let exported = env.json(&["export", "--out", "all of it"]);
    assert_eq!(exported["collections"].as_array().unwrap().len(), 5);

    let other = |arguments: &[&str]| {
        let mut command = env.bare(arguments);
        let output = command.args(["--json", "--store", "other"]).output().unwrap();
        let ran = Ran::of(&output);
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    };
    other(&["import", "all of it"]);
    let described = |listed: Value| -> Vec<Value> {
        let mut all = listed["collections"].as_array().unwrap().clone();
        for collection in &mut all {
            collection
                .as_object_mut()
                .unwrap()
                .retain(|key, _| key != "generation" && key != "tail");
        }
        all
    };
    let ours = described(env.json(&["collection", "list"]));
    assert_eq!(ours, described(other(&["collection", "list"])));
    for collection in ours {
        let get = ["collection", "get", collection["name"].as_str().unwrap(), "--vectors"];
        assert_eq!(env.json(&get), other(&get));
    }
    // Exported again, it is the same to the byte.
    other(&["export", "--out", "again"]);
    for file in test_env::files_in(&env.path("all of it")) {
        let again = env.path("again").join(file.file_name().unwrap());
        assert_eq!(fs::read(&file).unwrap(), fs::read(again).unwrap(), "{}", file.display());
    }
    // One collection, through a pipe, under another name.
    let text = env.run(&["export", "l2 / ü"]).stdout;
    env.write("one.jsonl", text);
    other(&["import", "one.jsonl", "--collection", "renamed"]);
    let vectors = ["collection", "get", "renamed", "--vectors"];
    assert_eq!(ids_of(&other(&vectors)).len(), 3);
}

#[test]
fn quiet_is_quiet_and_results_go_to_stdout() {
    let env = TestEnv::new();
    let file = env.write_rows("rows.jsonl", 0..300, 2);
    let message = env.run(&["ingest", &file, "--collection", "a"]);
    assert!(message.stderr.contains("writing"), "{}", message.stderr);
    assert!(message.stdout.contains("300 new"), "{}", message.stdout);
    let quiet = env.run(&["ingest", &file, "--collection", "a", "--quiet"]);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("nothing changed"), "{}", quiet.stdout);
    let list = env.run(&["collection", "list"]);
    assert_eq!(list.stderr, "");
    assert!(list.stdout.contains("a") && list.stdout.contains("300"), "{}", list.stdout);
    let failed = env.run(&["collection", "count", "b", "--quiet"]);
    assert_eq!(failed.stdout, "");
    assert!(failed.stderr.contains("there is no collection"), "{}", failed.stderr);
}
