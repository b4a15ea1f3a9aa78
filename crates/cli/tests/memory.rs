//! Memory as people and their scripts use it: the JSON, the exit codes, the messages,
//! and whose store it is.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use test_env::{Ran, TestEnv};

/// The keys of an object, in alphabetical order.
fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Runs a command that reads `input`.
fn fed(env: &TestEnv, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = env.command(arguments);
    let child = command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    // It may refuse before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    Ran::of(&child.wait_with_output().unwrap())
}

fn add(env: &TestEnv, arguments: &[&str]) -> String {
    let added = env.json(&[&["memory", "add"], arguments].concat());
    assert_eq!(added["created"], true, "{added}");
    added["id"].as_str().unwrap().to_owned()
}

fn texts(listed: &Value) -> Vec<&str> {
    let drawers = listed["drawers"].as_array().unwrap();
    drawers.iter().map(|drawer| drawer["text"].as_str().unwrap()).collect()
}

#[test]
fn json_has_the_documented_fields() {
    let env = TestEnv::new();
    let text = "We agreed on SQLite.";
    let first = ["memory", "add", text, "--wing", "acme", "--room", "decisions"];
    let added = env.json(&[&first[..], &["--tag", "db", "--date", "2026-01-31"]].concat());
    let id = added["id"].as_str().unwrap();
    assert_eq!(added, json!({ "id": id, "created": true, "duplicate_of": null }));
    let again = env.json(&first);
    assert_eq!(again, json!({ "id": id, "created": false, "duplicate_of": id }));
    let near = env.json(&["memory", "add", "We agreed on SQLite today.", "--near", "0.7"]);
    assert_eq!(near["similar"][0]["drawer"]["id"], id);
    assert!(near["similar"][0]["similarity"].as_f64().unwrap() > 0.7, "{near}");

    let got = env.json(&["memory", "get", id, "none"]);
    assert_eq!((keys(&got), &got["missing"]), (vec!["drawers", "missing"], &json!(["none"])));
    let drawer = &got["drawers"][0];
    assert_eq!(
        keys(drawer),
        [
            "author",
            "created_at",
            "date",
            "date_text",
            "id",
            "metadata",
            "position",
            "room",
            "source",
            "tags",
            "text",
            "updated_at",
            "wing"
        ]
    );
    assert_eq!((&drawer["text"], &drawer["date"]), (&json!(text), &json!("2026-01-31")));

    let listed = env.json(&["memory", "list", "--limit", "1", "--offset", "1"]);
    assert_eq!(keys(&listed), ["drawers", "offset", "total"]);
    assert_eq!((texts(&listed), &listed["total"]), (vec![text], &json!(2)));
    let wings = env.json(&["memory", "taxonomy"]);
    let room = json!({ "name": "decisions", "drawers": 1 });
    assert_eq!(wings["wings"][0], json!({ "name": "acme", "drawers": 1, "rooms": [room] }));
    assert_eq!((&wings["drawers"], &wings["wings"][1]["name"]), (&json!(2), &json!("general")));

    let updated = env.json(&["memory", "update", id, "--author", "Ada", "--room", "log"]);
    assert_eq!((keys(&updated), &updated["changed"]), (vec!["changed", "drawer"], &json!(true)));
    assert_eq!(
        (&updated["drawer"]["author"], &updated["drawer"]["id"]),
        (&json!("Ada"), &json!(id))
    );
    let same = env.json(&["memory", "update", id, "--author", "Ada"]);
    assert_eq!(same["changed"], false);
    assert_eq!(env.json(&["memory", "delete", id, "none"]), json!({ "deleted": 1, "missing": 1 }));

    let entry = env.json(&["memory", "diary", "write", "--agent", "claude", "All tests pass."]);
    assert_eq!(
        (keys(&entry), &entry["created"]),
        (vec!["created", "duplicate_of", "id"], &json!(true))
    );
    let diary = env.json(&["memory", "diary", "read", "--agent", "claude"]);
    assert_eq!(keys(&diary), ["agent", "entries"]);
    let entry = &diary["entries"][0];
    assert_eq!((&entry["wing"], &entry["room"]), (&json!("claude"), &json!("diary")));
    assert_eq!(entry["author"], "claude");

    // It is a part of the store, but no collection of anybody's.
    assert_eq!(env.json(&["collection", "list"]), json!({ "collections": [] }));
    let status = env.json(&["status"]);
    assert_eq!(status["collections"][0]["name"], "@memory");
    assert_eq!(status["memory"], json!({ "wings": 2, "drawers": 2 }));
    env.fails(&["collection", "delete", "@memory"], 3, "bad_input");
    assert_eq!(env.json(&["doctor", "--full"])["ok"], true);
}

#[test]
fn poor_matches_are_weak() {
    let env = TestEnv::new();
    add(&env, &["Deploys go out on Tuesdays; never on a Friday."]);
    add(&env, &["Ada is allergic to peanuts."]);
    add(&env, &["The build takes forty minutes."]);
    let topic = "restore a scratched photograph";
    for (question, weak) in [("peanut allergies", false), ("deploys", false), (topic, true)] {
        let found = env.json(&["memory", "search", question]);
        assert_eq!(keys(&found), ["degraded", "hits", "period", "took_ms", "weak"]);
        assert_eq!(found["weak"], weak, "{question}: {found}");
        assert!(!found["hits"].as_array().unwrap().is_empty(), "{question}: {found}");
        let shown = env.run(&["memory", "search", question]);
        assert_eq!(shown.stderr.contains("nothing fits well"), weak, "{}", shown.stderr);
    }
}

#[test]
fn texts_come_from_arguments_files_and_standard_input() {
    let env = TestEnv::new();
    let text = "Erste Zeile\r\n\tzweite \u{1F994}\n\n";
    let file = env.write("note.md", text);
    let from_file = add(&env, &["--file", &file]);
    let from_input = fed(&env, &["memory", "add", "-", "--wing", "w"], text.as_bytes());
    assert_eq!(from_input.status, Some(0), "{}", from_input.stderr);
    let from_input = from_input.document()["id"].as_str().unwrap().to_owned();
    let spoken = add(&env, &["several", "words", "in", "a", "row"]);
    let got = env.json(&["memory", "get", &from_file, &from_input, &spoken]);
    assert_eq!(texts(&got), [text, text, "several words in a row"]);
    let drawer = |at: usize| &got["drawers"][at];
    assert_eq!((&drawer(0)["source"], &drawer(1)["source"]), (&json!("note.md"), &Value::Null));
    assert_eq!((&drawer(1)["wing"], &drawer(1)["room"]), (&json!("w"), &json!("general")));

    // A pipe gets the text unescaped; `terminal.rs` tests the output on a terminal.
    let shown = env.run(&["memory", "get", &spoken, "--quiet"]);
    assert!(shown.stdout.contains("several words in a row\n"), "{}", shown.stdout);
    let id = add(&env, &["\u{1b}[2Jgone"]);
    let shown = env.run(&["memory", "get", &id]);
    assert!(shown.stdout.contains("\u{1b}[2Jgone\n"), "{:?}", shown.stdout);
}

#[test]
fn errors_have_a_code_and_an_exit_status() {
    let env = TestEnv::new();
    env.fails(&["memory", "list"], 4, "no_store");
    env.fails(&["memory", "get", "x"], 4, "no_store");
    let id = add(&env, &["a text"]);
    let other = add(&env, &["another text"]);
    for (arguments, status, code) in [
        (&["add"][..], 2, "usage"),
        (&["add", " "], 3, "bad_input"),
        (&["add", "x", "--wing", " "], 3, "bad_input"),
        (&["add", "x", "--date", "yesterday"], 3, "bad_input"),
        (&["add", "x", "--date", "2026-01-31T09:30:00"], 3, "bad_input"),
        (&["add", "x", "--metadata", "[1]"], 3, "bad_input"),
        (&["add", "x", "--near", "2"], 2, "usage"),
        (&["add", "x", "--file", "y"], 2, "usage"),
        (&["add", "--file", "no such file"], 4, "not_found"),
        (&["add", "--file", "."], 3, "bad_input"),
        (&["get"], 2, "usage"),
        (&["get", "none"], 4, "not_found"),
        (&["list", "--since", "then"], 3, "bad_input"),
        (&["list", "--all"], 2, "usage"),
        (&["update", &id], 2, "usage"),
        (&["update", "none", "text"], 4, "not_found"),
        (&["update", &id, "another text"], 3, "already_exists"),
        (&["update", &id, " "], 3, "bad_input"),
        (&["delete"], 2, "usage"),
        (&["delete", "none"], 4, "not_found"),
        (&["delete", "--wing", "general"], 2, "usage"),
        (&["delete", &id, "--wing", "general"], 2, "usage"),
        (&["diary", "write", "--agent", "a"], 2, "usage"),
        (&["diary", "write", "--agent", " ", "text"], 3, "bad_input"),
        (&["diary", "read", "--agent", "a", "--date", "today"], 3, "bad_input"),
    ] {
        env.fails(&[&["memory"], arguments].concat(), status, code);
    }
    let refused = env.fails(&["memory", "update", &id, "another text"], 3, "already_exists");
    assert!(refused["message"].as_str().unwrap().contains(&other), "{refused}");
    let date = env.fails(&["memory", "add", "x", "--date", "1.2.2026"], 3, "bad_input");
    assert!(date["message"].as_str().unwrap().contains("2026-01-31T09:30:00Z"), "{date}");

    let large = vec![b'x'; 2 << 20];
    for (input, status, code) in [
        (&b"caf\xE9"[..], 3, "bad_input"),
        (b"", 3, "bad_input"),
        (b"\n \t\n", 3, "bad_input"),
        (&large, 3, "too_large"),
    ] {
        let ran = fed(&env, &["memory", "add", "-"], input);
        let error = &ran.document()["error"];
        assert_eq!((ran.status, error["code"].as_str()), (Some(status), Some(code)), "{error}");
    }
    let file = env.write("large", &large);
    let error = env.fails(&["memory", "add", "--file", &file], 3, "too_large");
    assert!(error["hint"].as_str().unwrap().contains("split"), "{error}");
    // Nothing came of any of it.
    assert_eq!(texts(&env.json(&["memory", "list"])), ["another text", "a text"]);
    // Texts that fit are stored in one piece.
    let whole = env.write("whole", "word ".repeat((1 << 20) / 5));
    let id = add(&env, &["--file", &whole]);
    let got = env.json(&["memory", "get", &id]);
    assert_eq!(texts(&got)[0].len(), (1 << 20) / 5 * 5);
}

#[test]
fn memory_goes_to_the_users_store_unless_project_is_given() {
    let env = TestEnv::new();
    fs::create_dir(env.path(".isolith")).unwrap();
    let run = |arguments: &[&str], variable: Option<&str>| {
        let mut command = env.bare(arguments);
        if let Some(store) = variable {
            command.env("ISOLITH_STORE", env.path(store));
        }
        let ran = Ran::of(&command.arg("--json").output().unwrap());
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    };
    run(&["memory", "add", "of the user"], None);
    run(&["memory", "add", "of the project", "--project"], None);
    run(&["memory", "add", "of the variable"], Some("v"));
    run(&["memory", "add", "of the flag", "--store", "s"], Some("v"));
    for (arguments, variable, expected) in [
        (&[][..], None, "of the user"),
        (&["--project"][..], None, "of the project"),
        (&[][..], Some("v"), "of the variable"),
        (&["--project"][..], Some("v"), "of the project"),
        (&["--store", "s"][..], Some("v"), "of the flag"),
    ] {
        let listed = run(&[&["memory", "list"], arguments].concat(), variable);
        assert_eq!(texts(&listed), [expected]);
    }
    assert!(env.path("home/.local/share/isolith/truth.sqlite").exists());
    env.fails_as(env.bare(&["memory", "list", "--project", "--store", "s"]), 2, "usage");
}

#[test]
fn drawers_are_listed_and_deleted_by_filter() {
    let env = TestEnv::new();
    for (text, wing, room, source, date) in [
        ("one", "ada", "work", "chat", "2026-01-01"),
        ("two", "ada", "work", "chat", "2026-01-02"),
        ("three", "ada", "home", "mail", "2026-01-03"),
        ("four", "bob", "work", "chat", "2026-01-04"),
    ] {
        let arguments = [text, "--wing", wing, "--room", room, "--source", source, "--date", date];
        add(&env, &[&arguments[..], &["--author", "Ada", "--tag", text]].concat());
    }
    for (arguments, expected) in [
        (&[][..], &["four", "three", "two", "one"][..]),
        (&["--by-position"], &["three", "one", "two", "four"]),
        (&["--wing", "ada", "--room", "work"], &["two", "one"]),
        (&["--source", "chat", "--since", "2026-01-02"], &["four", "two"]),
        (&["--until", "2026-01-02"], &["two", "one"]),
        (&["--tag", "two"], &["two"]),
        (&["--author", "Ada", "-n", "2", "--offset", "1"], &["three", "two"]),
        (&["--author", "nobody"], &[]),
    ] {
        let listed = env.json(&[&["memory", "list"], arguments].concat());
        assert_eq!(texts(&listed), expected, "{arguments:?}");
    }
    let table = env.run(&["memory", "list", "-n", "2"]).stdout;
    assert!(table.starts_with("ID ") && table.contains("bob/work"), "{table}");
    assert!(table.ends_with("1 to 2 of 4\n"), "{table}");

    let error = env.fails(&["memory", "delete", "--wing", "ada"], 2, "usage");
    assert!(error["message"].as_str().unwrap().contains("3 drawers"), "{error}");
    let deleted = env.json(&["memory", "delete", "--source", "chat", "--wing", "ada"]);
    assert_eq!(deleted, json!({ "deleted": 2, "missing": 0 }));
    let deleted = env.json(&["memory", "delete", "--wing", "bob", "--yes"]);
    assert_eq!(deleted, json!({ "deleted": 1, "missing": 0 }));
    assert_eq!(texts(&env.json(&["memory", "list"])), ["three"]);
}

#[test]
fn updates_change_only_the_given_fields() {
    let env = TestEnv::new();
    let about = ["--author", "Ada", "--date", "2026-01-31", "--tag", "a", "--source", "chat"];
    let id = add(&env, &[&["old"][..], &about, &["--metadata", r#"{"a":1,"b":2}"#]].concat());
    let update = |arguments: &[&str]| {
        let updated = env.json(&[&["memory", "update", id.as_str()], arguments].concat());
        assert_eq!(updated["changed"], true);
        updated["drawer"].clone()
    };
    let drawer =
        update(&["new", "text", "--tag", "b", "--tag", "c", "--metadata", r#"{"b":null}"#]);
    assert_eq!((&drawer["text"], &drawer["tags"]), (&json!("new text"), &json!(["b", "c"])));
    assert_eq!((&drawer["metadata"], &drawer["author"]), (&json!({ "a": 1 }), &json!("Ada")));
    let drawer = update(&["--author", "", "--date", "", "--tag", "", "--source", ""]);
    for key in ["author", "date", "source"] {
        assert_eq!(drawer[key], Value::Null, "{key}");
    }
    assert_eq!(drawer["tags"], json!([]));
    let moved = update(&["--wing", "bob", "--date", "2026-01-31T10:00:00+01:00"]);
    assert_eq!((&moved["wing"], &moved["position"]), (&json!("bob"), &json!(1)));
    assert_eq!(moved["date"], "2026-01-31T09:00:00Z");
    assert_eq!(moved["id"], id.as_str());
}

#[test]
fn an_idempotency_key_makes_a_call_take_effect_once() {
    let env = TestEnv::new();
    let call = ["memory", "add", "once", "--key", "k1"];
    let first = env.json(&call);
    env.json(&["memory", "delete", first["id"].as_str().unwrap()]);
    assert_eq!(env.json(&call), first);
    assert_eq!(texts(&env.json(&["memory", "list"])), [""; 0]);
    env.fails(&["memory", "add", "other", "--key", "k1"], 3, "key_reused");
    let entry = ["memory", "diary", "write", "--agent", "a", "dear diary", "--key", "k2"];
    assert_eq!(env.json(&entry), env.json(&entry));
    let diary = env.json(&["memory", "diary", "read", "--agent", "a"]);
    assert_eq!(diary["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn concurrent_processes_store_each_text_once() {
    let env = TestEnv::new();
    let mut running = Vec::new();
    for process in 0..8 {
        // Each text comes from two of them.
        let text = format!("thought number {}", process / 2);
        let mut command = env.command(&["memory", "add", &text, "--json"]);
        running.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    }
    let created = running.into_iter().map(|child| {
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        ran.document()["created"].as_bool().unwrap()
    });
    assert_eq!(created.filter(|created| *created).count(), 4);
    let listed = env.json(&["memory", "list", "--by-position"]);
    let mut found = texts(&listed);
    found.sort_unstable();
    let expected: Vec<String> = (0..4).map(|number| format!("thought number {number}")).collect();
    assert_eq!(found, expected);
    let positions: Vec<&Value> =
        listed["drawers"].as_array().unwrap().iter().map(|it| &it["position"]).collect();
    assert_eq!(positions, [1, 2, 3, 4]);
}

#[test]
fn all_drawers_can_be_exported_and_imported() {
    let env = TestEnv::new();
    for number in 0..3 {
        let text = format!("text {number}");
        let tags = ["--tag", "t", "--date-text", "in spring", "--metadata", r#"{"n":1}"#];
        add(&env, &[&[text.as_str()][..], &tags].concat());
    }
    let out = env.run(&["memory", "list", "--all", "--jsonl"]);
    let lines: Vec<Value> =
        out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        json!({
            "text": "text 0", "wing": "general", "room": "general", "source": null,
            "author": null, "date": null, "date_text": "in spring", "tags": ["t"],
            "metadata": { "n": 1 },
        })
    );
    let page = env.run(&["memory", "list", "--jsonl", "-n", "2"]);
    assert_eq!(page.stdout.lines().count(), 2);

    // And recovered, with the same ids and positions.
    let other = TestEnv::new();
    let file = other.write("all.jsonl", &out.stdout);
    other.json(&["memory", "import", &file, "--format", "drawers"]);
    let drawers = |env: &TestEnv| {
        let mut listed = env.json(&["memory", "list", "--by-position"]);
        for drawer in listed["drawers"].as_array_mut().unwrap() {
            let drawer = drawer.as_object_mut().unwrap();
            assert!(drawer.remove("created_at").is_some() && drawer.remove("updated_at").is_some());
        }
        listed
    };
    assert_eq!(drawers(&other), drawers(&env));
}

#[test]
fn dates_in_a_question_narrow_the_search() {
    let env = TestEnv::new();
    for (text, date) in [
        ("The build moved to the new runner.", "2026-05-04"),
        ("The build moved back to the old runner.", "2026-10-20"),
    ] {
        env.json(&["memory", "add", text, "--date", date]);
    }
    let dates = |arguments: &[&str]| {
        let found = env.json(&[&["memory", "search"], arguments].concat());
        let hits = found["hits"].as_array().unwrap();
        let dates: Vec<_> =
            hits.iter().map(|hit| hit["date"].as_str().unwrap().to_owned()).collect();
        (dates.join(" "), found["period"].clone())
    };
    let may = json!({ "since": "2026-05-01", "until": "2026-05-31" });
    assert_eq!(dates(&["where did the build move in May 2026"]), ("2026-05-04".into(), may));
    let month = ["where did the build move last month", "--now", "2026-11-18"];
    let (found, period) = dates(&month);
    assert_eq!((found.as_str(), &period["since"]), ("2026-10-20", &json!("2026-10-01")));
    // Without drawers of that time, or with other dates, all are searched.
    let all = |arguments: &[&str]| {
        let (found, period) = dates(arguments);
        assert_eq!((found.split(' ').count(), period), (2, Value::Null), "{arguments:?}");
    };
    all(&["where did the build move in June 2020"]);
    all(&["where did the build move in May 2026", "--any-date"]);
    all(&["where did the build move in May 2026", "--since", "2026-01-01"]);
}
