//! `isolith memory import`: what it accepts, what it refuses, and how it continues
//! after whatever stopped it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{Ran, Running, TestEnv, send};

/// Wing, room, source and author of all drawers, in the order of arrival.
fn drawers(env: &TestEnv) -> Vec<[String; 4]> {
    let truth = env.truth();
    let mut rows = truth
        .prepare("SELECT wing, room, coalesce(source, '-'), coalesce(author, '-') FROM drawer ORDER BY number")
        .unwrap();
    let rows = rows.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.unwrap().map(Result::unwrap).collect()
}

fn sources(env: &TestEnv) -> Vec<String> {
    drawers(env).into_iter().map(|[_, _, source, _]| source).collect()
}

/// Created, duplicates and rejected of a receipt.
fn counts(receipt: &Value) -> [u64; 3] {
    ["created", "duplicates", "rejected"].map(|key| receipt[key].as_u64().unwrap())
}

/// An import that fails like this; its receipt.
fn refused(env: &TestEnv, arguments: &[&str], status: i32, code: &str) -> Value {
    let ran = env.run(&[&["memory", "import", "--json"][..], arguments].concat());
    let receipt = ran.document();
    let found = (ran.status, receipt["error"]["code"].as_str());
    assert_eq!(found, (Some(status), Some(code)), "{arguments:?}: {receipt} {}", ran.stderr);
    assert_eq!(receipt["success"], false);
    receipt
}

fn event(kind: &str, uuid: &str, text: &str) -> Value {
    json!({
        "type": kind, "uuid": uuid, "sessionId": "5e55-1", "cwd": "/home/anna/shop",
        "timestamp": "2026-04-08T13:10:56Z", "message": { "role": kind, "content": text },
    })
}

/// A file of each format, and the drawers that come of it.
fn samples(env: &TestEnv) -> Vec<(String, &'static str, Vec<[&'static str; 4]>)> {
    let claude = json!([{ "uuid": "c", "name": "Lisbon", "chat_messages": [
        { "uuid": "1", "sender": "human", "text": "When is it warm?" },
        { "uuid": "2", "sender": "assistant", "content": [{ "type": "text", "text": "From May." }] },
    ] }]);
    let message = |id: &str, role: &str, text: &str| json!({ "id": id, "author": { "role": role }, "content": { "content_type": "text", "parts": [text] } });
    let chatgpt = json!([{ "title": "Letters", "conversation_id": "g", "current_node": "b", "mapping": {
        "a": { "parent": null, "message": message("a", "user", "What is ü?") },
        "b": { "parent": "a", "message": message("b", "assistant", "A letter.") },
    } }]);
    let session = format!("{}\n{}\n", event("user", "1", "Why?"), event("assistant", "2", "So."));
    let rows = r#"{"text":"one","wing":"w","room":"r","source":"s","date_text":""}"#;
    vec![
        (
            env.write("claude.json", claude.to_string()),
            "claude",
            vec![
                ["conversations", "Lisbon", "claude:c:1", "user"],
                ["conversations", "Lisbon", "claude:c:2", "assistant"],
            ],
        ),
        (
            env.write("chatgpt.json", chatgpt.to_string()),
            "chatgpt",
            vec![
                ["conversations", "Letters", "chatgpt:g:a", "user"],
                ["conversations", "Letters", "chatgpt:g:b", "assistant"],
            ],
        ),
        (
            env.write("session.jsonl", session),
            "claude-code",
            vec![
                ["shop", "2026-04-08 5e55-1", "claude-code:5e55-1:1", "user"],
                ["shop", "2026-04-08 5e55-1", "claude-code:5e55-1:2", "assistant"],
            ],
        ),
        (env.write("rows.jsonl", rows), "drawers", vec![["w", "r", "s", "-"]]),
        (
            env.write("talk.md", "## User\n\nhi\n\n## Claude\n\nhello\n"),
            "markdown",
            vec![
                ["conversations", "talk", "talk.md#1", "User"],
                ["conversations", "talk", "talk.md#2", "Claude"],
            ],
        ),
        (
            env.write("notes.txt", "One.\n\nTwo.\n"),
            "text",
            vec![
                ["conversations", "notes", "notes.txt#1", "-"],
                ["conversations", "notes", "notes.txt#2", "-"],
            ],
        ),
    ]
}

#[test]
fn every_format_is_detected_and_imported_once() {
    let env = TestEnv::new();
    let mut expected = Vec::new();
    for (file, format, rows) in samples(&env) {
        let receipt = env.json(&["memory", "import", &file]);
        let count = rows.len() as u64;
        assert_eq!(counts(&receipt), [count, 0, 0], "{receipt}");
        assert_eq!(receipt["files"][0]["format"], format);
        assert_eq!((&receipt["success"], &receipt["error"]), (&json!(true), &Value::Null));
        let again = env.json(&["memory", "import", &file, "--format", format]);
        assert_eq!(counts(&again), [0, count, 0], "{again}");
        expected.extend(rows.into_iter().map(|row| row.map(str::to_owned)));
    }
    assert_eq!(drawers(&env), expected);
}

#[test]
fn several_files_are_imported_with_given_names() {
    let env = TestEnv::new();
    let files: Vec<String> = samples(&env).into_iter().map(|(file, ..)| file).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let flags = ["--wing", "anna", "--room", "talks", "--author", "user=Anna"];
    let arguments = [&["memory", "import"][..], &files, &flags].concat();
    let receipt = env.json(&arguments);
    assert_eq!(counts(&receipt), [11, 0, 0], "{receipt}");
    let text = env.run(&arguments).stdout;
    assert!(text.contains("6 files: 11 drawers, 0 new, 11 existing"), "{text}");
    let drawers = drawers(&env);
    // A drawer that specifies its wing and room keeps them.
    let elsewhere = drawers.iter().filter(|it| it[..2] != ["anna".to_owned(), "talks".to_owned()]);
    assert_eq!(elsewhere.count(), 1);
    assert_eq!(drawers.iter().filter(|[.., author]| author == "Anna").count(), 4);
}

#[test]
fn listed_drawers_can_be_imported_unchanged() {
    let env = TestEnv::new();
    for (file, ..) in samples(&env) {
        env.json(&["memory", "import", &file]);
    }
    let list = ["memory", "list", "--all", "--jsonl"];
    let listed = env.run(&list).stdout;
    assert_eq!(listed.lines().count(), 11);
    let file = env.write("listed.jsonl", &listed);
    let other = TestEnv::new();
    let path = env.path(&file).display().to_string();
    assert_eq!(counts(&other.json(&["memory", "import", &path])), [11, 0, 0]);
    assert_eq!(other.run(&list).stdout, listed);
}

#[test]
fn invalid_rows_are_skipped_and_reported() {
    let env = TestEnv::new();
    let long = "x".repeat(600);
    let file = env.write(
        "rows.jsonl",
        format!(
            "{}\n{}\nno json\n\n{}\n{}\n",
            r#"{"text":"good","source":"1"}"#,
            r#"{"text":"bad","date":"31.1.2026"}"#,
            json!({ "text": "too long a name", "wing": long }),
            r#"{"text":"good too","source":"2"}"#
        ),
    );
    let receipt = env.json(&["memory", "import", &file]);
    assert_eq!(counts(&receipt), [2, 0, 3], "{receipt}");
    let rejected = receipt["files"][0]["rejected"].as_array().unwrap();
    let rows: Vec<&Value> = rejected.iter().map(|it| &it["row"]).collect();
    assert_eq!(rows, [2, 3, 5], "{receipt}");
    assert!(rejected[0]["reason"].as_str().unwrap().contains("2026-01-31"), "{receipt}");
    assert_eq!(sources(&env), ["1", "2"]);
    let text = env.run(&["memory", "import", &file]).stdout;
    assert!(text.contains("3 parts skipped:\n    row 2: date is invalid"), "{text}");

    let none = env.write("none.jsonl", "{\"text\":\"\"}\n{\"wing\":\"w\"}\n");
    let receipt = refused(&env, &[&none, "--format", "drawers"], 3, "bad_input");
    assert_eq!(receipt["files"][0]["rejected_count"], 2);
}

#[test]
fn an_unreadable_file_is_reported_and_the_others_are_imported() {
    let env = TestEnv::new();
    let good = env.write("good.txt", "words");
    let cases = [
        ("empty.json", Vec::new(), "empty"),
        ("export.zip", b"PK\x03\x04".to_vec(), "zip"),
        ("binary.txt", vec![0, 1, 2], "binary"),
        ("user.json", br#"{"id":"u"}"#.to_vec(), "unknown format"),
        ("cut.json", br#"[{"uuid":"c","chat_messages":[{"#.to_vec(), "nothing can be used"),
    ];
    for (name, content, says) in cases {
        let bad = env.write(name, content);
        let receipt = refused(&env, &[&bad, &good], 3, "bad_input");
        let message = receipt["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && message.contains(name), "{name}: {message}");
        assert!(!receipt["error"]["hint"].as_str().unwrap().is_empty(), "{name}");
        assert_eq!(receipt["files"][1]["drawers"], 1, "{receipt}");
    }
    refused(&env, &["nowhere.json"], 4, "not_found");
    refused(&env, &["/dev/zero"], 3, "bad_input");
    assert_eq!(sources(&env), ["good.txt#1"]);
    env.fails(&["memory", "import", "home", "--format", "drawers"], 3, "bad_input");
    env.fails(&["memory", "import", "home"], 4, "not_found");
}

#[test]
fn an_overlong_line_is_skipped_without_a_crash() {
    let env = TestEnv::new();
    let path = env.path("long.jsonl");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(b"{\"text\":\"before\"}\n{\"text\":\"").unwrap();
    let block = vec![b'x'; 10 << 20];
    (0..10).for_each(|_| file.write_all(&block).unwrap());
    file.write_all(b"\"}\n{\"text\":\"after\"}\n").unwrap();
    let receipt = env.json(&["memory", "import", "long.jsonl"]);
    assert_eq!(counts(&receipt), [2, 0, 1], "{receipt}");
    assert_eq!(receipt["files"][0]["retries"], 0, "{receipt}");
}

#[test]
fn standard_input_can_be_imported() {
    let env = TestEnv::new();
    for (created, duplicates) in [(2, 0), (0, 2)] {
        let mut command = env.command(&["memory", "import", "-", "--json"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n").unwrap();
        let receipt = Ran::of(&child.wait_with_output().unwrap()).document();
        assert_eq!(counts(&receipt), [created, duplicates, 0], "{receipt}");
    }
    assert_eq!(drawers(&env)[0][..2], ["general".to_owned(), "general".to_owned()]);
    let left = test_env::files_in(&env.store().join("run"));
    assert!(left.iter().all(|file| !file.display().to_string().contains("import")), "{left:?}");
}

#[test]
fn a_folder_imports_its_sessions() {
    let env = TestEnv::new();
    let folder = env.path("projects/-home-anna-shop");
    fs::create_dir_all(folder.join("s1/subagents")).unwrap();
    let write = |name: &str, uuid: &str| {
        fs::write(folder.join(name), format!("{}\n", event("user", uuid, "words"))).unwrap();
    };
    write("b.jsonl", "2");
    write("a.jsonl", "1");
    write("agent-x.jsonl", "3");
    write("s1/subagents/agent-y.jsonl", "4");
    write("notes.txt", "5");
    let receipt = env.json(&["memory", "import", "projects"]);
    assert_eq!(counts(&receipt), [2, 0, 0], "{receipt}");
    assert_eq!(sources(&env), ["claude-code:5e55-1:1", "claude-code:5e55-1:2"]);
}

#[test]
fn a_dry_run_leaves_nothing_behind() {
    let env = TestEnv::new();
    let file = env.write("rows.jsonl", "{\"text\":\"a\"}\n{\"text\":\"\"}\n");
    let receipt = env.json(&["memory", "import", &file, "--dry-run"]);
    assert_eq!(counts(&receipt), [0, 0, 1], "{receipt}");
    assert_eq!(receipt["files"][0]["drawers"], 1);
    assert!(!env.store().exists());
}

/// Drawers that take long enough to be interrupted.
const ROWS: usize = 5_000;

fn write_many(env: &TestEnv) -> String {
    let row = |number| json!({ "text": format!("turn {number} of it"), "wing": "w", "room": "r", "source": format!("{number}") });
    let rows: Vec<String> = (0..ROWS).map(|number| row(number).to_string()).collect();
    env.write("many.jsonl", rows.join("\n"))
}

fn start(env: &TestEnv, file: &str) -> Running {
    Running::start(env.command(&["memory", "import", file, "--json"]))
}

/// All of them, each once, in the order of the file.
fn assert_complete(env: &TestEnv) {
    let expected: Vec<String> = (0..ROWS).map(|number| number.to_string()).collect();
    assert_eq!(sources(env), expected);
    let positions: u64 = env
        .truth()
        .query_row(
            "SELECT count(*) FROM drawer WHERE position = CAST(source AS INTEGER) + 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(positions, ROWS as u64);
}

#[test]
fn the_same_command_continues_an_interrupted_import() {
    for (signal, status) in
        [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)]
    {
        let env = TestEnv::new();
        let file = write_many(&env);
        let mut running = start(&env, &file);
        assert!(running.prints("importing, 10 %"));
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, status, "{signal:?}: {}", ran.stdout);
        let kept = sources(&env).len() as u64;
        assert!(kept > 0 && kept < ROWS as u64, "{signal:?}: {kept}");
        if status.is_some() {
            let receipt = ran.document();
            assert_eq!(receipt["created"], kept, "the receipt says what is kept: {receipt}");
        }
        let receipt = env.json(&["memory", "import", &file]);
        assert_eq!(counts(&receipt), [ROWS as u64 - kept, kept, 0], "{receipt}");
        assert_complete(&env);
    }
}

#[test]
fn an_import_survives_crashes_of_its_workers() {
    let env = TestEnv::new();
    let file = write_many(&env);
    let mut running = start(&env, &file);
    let mut killed = 0;
    let mut roles = ["store-writer", "intake"].iter().cycle();
    while running.prints("importing") {
        for pid in running.workers(roles.next().unwrap()) {
            send(pid, Signal::KILL);
            killed += 1;
        }
    }
    let ran = running.finish();
    assert_eq!(ran.status, Some(0), "{}", ran.stdout);
    assert!(killed >= 2, "{killed}");
    let receipt = ran.document();
    assert_eq!(counts(&receipt), [ROWS as u64, 0, 0], "{receipt}");
    assert_complete(&env);
}

#[test]
fn a_worker_that_crashes_mid_import_is_replaced() {
    // So large that they come in two batches, however quick the machine is.
    let text = "word ".repeat(20_000);
    let rows: Vec<String> = (0..24)
        .map(|number| json!({ "text": text, "source": number.to_string() }).to_string())
        .collect();
    for kind in ["crash", "panic", "kill", "corrupt", "exit"] {
        let env = TestEnv::new();
        let file = env.write("large.jsonl", rows.join("\n"));
        let mut command = env.command(&["memory", "import", &file, "--json"]);
        let output =
            command.env("ISOLITH_FAULT", format!("intake.turns:{kind}:2")).output().unwrap();
        let receipt = Ran::of(&output).document();
        assert_eq!(counts(&receipt), [24, 0, 0], "{kind}: {receipt}");
        assert_eq!(receipt["files"][0]["retries"], 1, "{kind}: {receipt}");
        let expected: Vec<String> = (0..24).map(|number| number.to_string()).collect();
        assert_eq!(sources(&env), expected, "{kind}");
    }
}

#[test]
fn a_file_that_crashes_every_worker_is_skipped() {
    let env = TestEnv::new();
    let file = write_many(&env);
    let mut command = env.command(&["memory", "import", &file, "--json"]);
    let ran = Ran::of(&command.env("ISOLITH_FAULT", "intake.turns:crash").output().unwrap());
    assert_eq!(ran.status, Some(70), "{}", ran.stdout);
    assert_eq!(ran.document()["error"]["code"], "quarantined");
    assert_eq!(sources(&env).len(), 0);
}

#[test]
fn concurrent_imports_of_a_file_write_it_once() {
    let env = TestEnv::new();
    let file = write_many(&env);
    let both = [start(&env, &file), start(&env, &file)];
    let mut created = 0;
    for running in both {
        let ran = running.finish();
        assert_eq!(ran.status, Some(0), "{}", ran.stdout);
        let [new, known, rejected] = counts(&ran.document());
        assert_eq!((new + known, rejected), (ROWS as u64, 0));
        created += new;
    }
    assert_eq!(created, ROWS as u64);
    let mut found = sources(&env);
    found.sort_by_key(|source| source.parse::<usize>().unwrap());
    assert_eq!(found.len(), ROWS);
    found.dedup();
    assert_eq!(found.len(), ROWS);
}
