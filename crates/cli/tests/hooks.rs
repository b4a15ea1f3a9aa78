//! `isolith hook` with the input that clients document, and what is saved after it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{Ran, TestEnv, send, wait_until};

/// The input of a client's event.
fn input(event: &str, transcript: &Path, folder: &Path) -> Value {
    json!({
        "session_id": "5e55-1",
        "transcript_path": transcript,
        "cwd": folder,
        "permission_mode": "default",
        "hook_event_name": event,
        "stop_hook_active": false,
    })
}

fn hook(env: &TestEnv, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
    run(env.command(&[&["hook"], arguments].concat()), input)
}

fn run(mut command: Command, input: impl AsRef<[u8]>) -> Ran {
    let pipe = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipe.spawn().unwrap();
    // It may not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    Ran::of(&child.wait_with_output().unwrap())
}

fn event(at: usize, text: &str) -> String {
    let kind = if at.is_multiple_of(2) { "user" } else { "assistant" };
    let event = json!({
        "type": kind, "uuid": format!("u{at}"), "sessionId": "5e55-1", "cwd": "/home/anna/shop",
        "timestamp": "2026-04-08T13:10:56Z", "message": { "role": kind, "content": text },
    });
    format!("{event}\n")
}

fn events(range: std::ops::Range<usize>) -> String {
    range.map(|at| event(at, &format!("Turn {at} is about topic{}.", at % 17))).collect()
}

/// The background processes of this environment's store.
fn background(env: &TestEnv) -> Vec<u32> {
    let store = env.store();
    let is_ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let store = store.as_os_str().as_encoded_bytes();
        words.contains(&&b"--work"[..]) && words.contains(&store)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_ours).collect()
}

/// Files in the queue with one of these endings.
fn queued(env: &TestEnv, endings: &[&str]) -> Vec<PathBuf> {
    let hooks = env.path("home/.local/state/isolith/hooks");
    let folders = fs::read_dir(hooks).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    let paths = files.map(|file| file.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| endings.iter().any(|e| it == *e)))
        .collect()
}

/// Waits until everything is saved and no process is left.
fn settled(env: &TestEnv) {
    wait_until(|| queued(env, &["todo", "taken"]).is_empty() && background(env).is_empty());
}

/// The texts in memory, in order.
fn texts(env: &TestEnv) -> Vec<String> {
    let truth = env.truth();
    let mut rows = truth.prepare("SELECT document FROM record ORDER BY row").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn stop(env: &TestEnv, transcript: &Path) -> Ran {
    let ran = hook(env, &["stop"], input("Stop", transcript, &env.path("")).to_string());
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    ran
}

#[test]
fn transcripts_are_saved_once_and_continued() {
    let env = TestEnv::new();
    let transcript = env.path("5e55-1.jsonl");
    fs::write(&transcript, events(0..6)).unwrap();
    stop(&env, &transcript);
    settled(&env);
    assert_eq!(texts(&env).len(), 6);
    assert_eq!(queued(&env, &["mark"]).len(), 1);
    // Nothing new; then more, and a line that is still being written.
    stop(&env, &transcript);
    settled(&env);
    let half = event(9, "Written in two steps.");
    let (first, second) = half.split_at(40);
    let mut file = fs::File::options().append(true).open(&transcript).unwrap();
    file.write_all((events(6..9) + first).as_bytes()).unwrap();
    for name in ["PreCompact", "SessionEnd", "stop"] {
        hook(&env, &[name], input(name, &transcript, &env.path("")).to_string());
    }
    settled(&env);
    assert_eq!(texts(&env).len(), 9);
    file.write_all(second.as_bytes()).unwrap();
    stop(&env, &transcript);
    settled(&env);
    let saved = texts(&env);
    assert_eq!((saved.len(), saved[9].as_str()), (10, "Written in two steps."));
    // The same as an import by hand: nothing is new to it.
    let receipt = env.json(&["memory", "import", transcript.to_str().unwrap()]);
    assert_eq!((&receipt["created"], &receipt["duplicates"]), (&json!(0), &json!(10)));
}

#[test]
fn deleted_turns_stay_deleted_and_new_files_start_anew() {
    let env = TestEnv::new();
    let transcript = env.path("5e55-1.jsonl");
    fs::write(&transcript, events(0..4)).unwrap();
    stop(&env, &transcript);
    settled(&env);
    env.json(&["memory", "delete", "--source", "claude-code:5e55-1:u1"]);
    fs::write(&transcript, events(0..5)).unwrap();
    stop(&env, &transcript);
    settled(&env);
    assert_eq!(texts(&env).len(), 4, "the deleted turn is back, or the new one is missing");
    // Another content in the place of the old one has no mark.
    fs::write(&transcript, events(20..22)).unwrap();
    stop(&env, &transcript);
    settled(&env);
    assert_eq!(texts(&env).len(), 6);
}

#[test]
fn nothing_is_lost_or_doubled_by_kills() {
    let env = TestEnv::new();
    let transcript = env.path("5e55-1.jsonl");
    let count = 6_000;
    fs::write(&transcript, events(0..count)).unwrap();
    let mut kills = 0;
    for round in 0..4 {
        stop(&env, &transcript);
        let begun = Instant::now();
        let patience = Duration::from_millis(150 + 400 * round);
        while begun.elapsed() < patience && background(&env).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(patience);
        for pid in background(&env) {
            send(pid, Signal::KILL);
            kills += 1;
        }
        wait_until(|| background(&env).is_empty());
    }
    assert!(kills > 0, "no background process was met");
    stop(&env, &transcript);
    settled(&env);
    let mut saved = texts(&env);
    assert_eq!(saved.len(), count);
    saved.sort();
    saved.dedup();
    assert_eq!(saved.len(), count);
}

#[test]
fn secrets_are_left_out() {
    let env = TestEnv::new();
    let transcript = env.path("5e55-1.jsonl");
    let token = format!("gh{}_{}", 'p', "q7Zt4Kd09sXv2LmB8cRfY1nWuE5hJaGoP3iT");
    let text = events(0..2) + &event(2, &format!("Use {token} to push.")) + &events(3..4);
    fs::write(&transcript, text).unwrap();
    stop(&env, &transcript);
    settled(&env);
    let saved = texts(&env);
    assert_eq!(saved.len(), 3);
    assert!(!saved.iter().any(|text| text.contains(&token)));
}

#[test]
fn sessions_begin_with_what_is_known() {
    let env = TestEnv::new();
    let project = env.path("shop");
    fs::create_dir(&project).unwrap();
    let start = |client: &str| {
        let input = input("SessionStart", Path::new("/none.jsonl"), &project).to_string();
        let ran = hook(&env, &["SessionStart", "--client", client], input);
        assert_eq!(ran.status, Some(0));
        ran.stdout
    };
    assert_eq!(start("claude-code"), "", "there is no store yet");
    assert!(!env.store().exists());
    let checkpoint = json!({
        "wing": "shop",
        "drawers": [{ "room": "decisions", "text": "We decided to use SQLite." }],
        "facts": [{ "subject": "shop", "predicate": "deployed_to", "object": "Fly" }],
        "diary": "Next step: retries.",
    });
    env.write("checkpoint.json", checkpoint.to_string());
    env.json(&["memory", "checkpoint", env.path("checkpoint.json").to_str().unwrap()]);
    let told: Value = serde_json::from_str(&start("claude-code")).unwrap();
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "SessionStart");
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    for expected in
        ["We decided to use SQLite.", "deployed_to Fly", "Next step: retries.", "<untrusted-"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let cursor: Value = serde_json::from_str(&start("cursor")).unwrap();
    assert_eq!(cursor["additional_context"], *text);
    // The same for people.
    let woken = env.json(&["memory", "wake-up", "--wing", "shop"]);
    assert_eq!(woken["text"], *text);
    assert!(woken["tokens"].as_u64().unwrap() <= 700);

    let prompt = json!({ "prompt": "which database does the shop use, SQLite?", "cwd": project });
    let ran = hook(&env, &["UserPromptSubmit"], prompt.to_string());
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("We decided to use SQLite."), "{text}");
    let prompt = json!({ "prompt": "zebra crossing quantum", "cwd": project });
    assert_eq!(hook(&env, &["UserPromptSubmit"], prompt.to_string()).stdout, "");
}

#[test]
fn hooks_never_fail() {
    let env = TestEnv::new();
    let missing = input("Stop", Path::new("/nowhere/x.jsonl"), Path::new("/nowhere"));
    let cases: [(&[&str], String); 8] = [
        (&["stop"], String::new()),
        (&["stop"], "no JSON".to_owned()),
        (&["stop"], "[1]".to_owned()),
        (&["stop"], missing.to_string()),
        (&["NoSuchEvent"], "{}".to_owned()),
        (&["stop", "--client", "nobody"], "{}".to_owned()),
        (&["stop", "--no-such-flag"], "{}".to_owned()),
        (&[], "{}".to_owned()),
    ];
    for (arguments, input) in cases {
        let ran = hook(&env, arguments, &input);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{arguments:?} {input}");
    }
    // A store that cannot be opened.
    fs::write(env.store(), "a file").unwrap_or_default();
    let transcript = env.path("t.jsonl");
    fs::write(&transcript, events(0..1)).unwrap();
    for name in ["session-start", "stop"] {
        let ran = hook(&env, &[name], input(name, &transcript, &env.path("")).to_string());
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{name}");
    }
    wait_until(|| background(&env).is_empty());
    let silent: [&str; 2] = ["gemini", "cursor"];
    for client in silent {
        let ran = hook(&env, &["stop", "--client", client], "{}");
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "{}\n"));
    }
}

#[test]
fn checkpoints_are_stored_as_a_whole_or_not_at_all() {
    let env = TestEnv::new();
    let put = |value: Value| {
        env.write("c.json", value.to_string());
        ["memory", "checkpoint", "c.json"]
    };
    let bad = put(json!({
        "wing": "shop",
        "drawers": [{ "room": "r", "text": "kept?" }],
        "facts": [{ "subject": "a", "predicate": "b", "object": "c" },
                  { "subject": " ", "predicate": "b", "object": "c" }],
        "diary": "Done.",
    }));
    let error = env.fails(&bad, 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("fact 2"), "{error}");
    assert_eq!(env.json(&["memory", "list"])["total"], 0);
    assert_eq!(env.json(&["fact", "stats"])["facts"], 0);
    env.fails(&put(json!({ "wing": "shop" })), 3, "bad_input");
    let good = put(json!({
        "wing": "shop",
        "drawers": [{ "room": "r", "text": "kept" }, { "room": "r", "text": "kept, too" }],
        "facts": [{ "subject": "a", "predicate": "b", "object": "c" }],
        "diary": "Done.", "agent": "builder",
    }));
    let keyed = [&good[..], &["--key", "k1"]].concat();
    let first = env.json(&keyed);
    assert_eq!(first["drawers"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!(env.json(&keyed), first, "a repeated call has the first answer");
    assert_eq!(env.json(&["memory", "list"])["total"], 3);
    let diary = env.json(&["memory", "diary", "read", "--agent", "builder"]);
    assert_eq!(diary["entries"][0]["tags"], json!(["shop"]));
}
