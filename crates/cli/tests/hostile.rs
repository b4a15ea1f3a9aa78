//! Hijacked workers cannot harm the user, the front or the system.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use test_env::{Running, TestEnv, files_in, wait_until};

const TOKEN: &str = "a-token-that-no-worker-should-see";

/// Data to index, search, ingest and remember, and a home folder that must not be touched.
fn prepared() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir(env.path("project")).unwrap();
    fs::write(env.path("project/a.rs"), "fn alpha() { beta() }\nfn beta() {}\n").unwrap();
    env.json(&["index", "project"]);
    env.write_rows("rows", 0..20, 4);
    fs::create_dir(env.path("home/.ssh")).unwrap();
    fs::write(env.path("home/secret"), "x").unwrap();
    fs::set_permissions(env.path("home/secret"), PermissionsExt::from_mode(0o640)).unwrap();
    env
}

/// The command, with a worker that becomes hostile at the fail point `point`.
fn infested(env: &TestEnv, point: &str, arguments: &[&str]) -> Command {
    let mut command = env.command(arguments);
    command
        .env("ISOLITH_FAULT", format!("{point}:hostile"))
        .env("ISOLITH_FAULT_HOME", env.path("home"))
        .env("ISOLITH_TOKEN", TOKEN);
    command
}

/// What hijacked workers of the role reported when they ended.
fn last_words(env: &TestEnv, role: &str) -> Vec<Value> {
    let files = files_in(&env.store().join("crashes"));
    let reports = files.iter().map(|file| fs::read_to_string(file).unwrap());
    reports
        .map(|report| serde_json::from_str::<Value>(&report).unwrap())
        .filter(|report| report["role"] == role)
        .map(|report| serde_json::from_str(report["panic"].as_str().unwrap()).unwrap())
        .collect()
}

fn all_refused(role: &str, attempts: &Value) {
    let attempts = attempts.as_array().unwrap();
    assert!(attempts.len() >= 10, "{role}: {attempts:?}");
    let allowed: Vec<&Value> = attempts.iter().filter(|tried| tried[1] != "refused").collect();
    assert!(allowed.is_empty(), "{role}: {allowed:?}");
}

#[test]
fn a_hijacked_worker_can_do_no_harm() {
    let cases: [(&str, &str, &[&str]); 7] = [
        ("walk", "walk.page", &["index", "project"]),
        ("parse", "parse", &["index", "project"]),
        ("store-writer", "write", &["memory", "add", "something"]),
        ("store-reader", "read", &["collection", "list"]),
        ("store-builder", "build", &["ingest", "rows", "--collection", "a"]),
        ("intake", "intake.validate", &["ingest", "rows", "--collection", "a"]),
        ("probe", "probe.disk", &["doctor"]),
    ];
    for (role, point, arguments) in cases {
        let env = prepared();
        fs::write(env.path("project/b.rs"), "fn gamma() {}\n").unwrap();
        let output = infested(&env, point, arguments).output().unwrap();
        let words = last_words(&env, role);
        assert!(!words.is_empty(), "{role}: no attempt was reported: {output:?}");
        words.iter().for_each(|tried| harmless(&env, role, tried));
    }
}

/// The worker that parses a query without a store; its report is only in the log.
#[test]
fn a_hijacked_query_check_can_do_no_harm() {
    let env = prepared();
    fs::remove_dir_all(env.store()).unwrap();
    let query = ["graph", "query", "CREATE (:A)", "-v"];
    let output = infested(&env, "cypher", &query).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let words: Vec<Value> = log
        .split("summary=")
        .skip(1)
        .map(|summary| {
            let said = serde_json::Deserializer::from_str(summary).into_iter::<String>().next();
            let said = said.unwrap().unwrap();
            serde_json::from_str(said.strip_prefix("panic, ").unwrap()).unwrap()
        })
        .collect();
    assert!(!words.is_empty(), "no attempt was reported: {log}");
    words.iter().for_each(|tried| harmless(&env, "cypher", tried));
    assert!(!env.store().exists());
}

/// Whether everything that a worker tried was refused.
fn harmless(env: &TestEnv, role: &str, tried: &Value) {
    match tried["landlock"].as_bool().unwrap() {
        true => all_refused(role, &tried["files"]),
        false => eprintln!("not checked: this kernel has no Landlock for {role}"),
    }
    all_refused(role, &tried["calls"]);
    for name in tried["environment"].as_array().unwrap() {
        let known = ["RUST_BACKTRACE", "ISOLITH_FAULT", "ISOLITH_FAULT_HOME"];
        assert!(known.contains(&name.as_str().unwrap()), "{role}: {name}");
    }
    if tried["landlock"] == true {
        assert_eq!(fs::read_to_string(env.path("home/secret")).unwrap(), "x", "{role}");
        assert_eq!(files_in(&env.path("home/.ssh")).len(), 0, "{role}");
    }
    let mode = fs::metadata(env.path("home/secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "{role}");
}

/// Seen from outside, and by a worker that does nothing special.
#[test]
fn workers_do_not_inherit_secrets() {
    let env = prepared();
    let mut command = env.command(&["collection", "list"]);
    command.env("ISOLITH_FAULT", "read:hang").env("ISOLITH_TOKEN", TOKEN);
    let running = Running::start(command);
    let of = |pid: u32| fs::read(format!("/proc/{pid}/environ")).unwrap();
    let worker = of(running.worker("store-reader"));
    let names: Vec<String> = worker
        .split(|byte| *byte == 0)
        .map(|variable| String::from_utf8_lossy(variable).into_owned())
        .filter_map(|variable| Some(variable.split_once('=')?.0.to_owned()))
        .collect();
    assert_eq!(names, ["ISOLITH_FAULT", "RUST_BACKTRACE"]);
    let front = of(running.pid());
    assert!(front.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()));
}

/// Being allowed to send signals would be enough for that.
#[test]
fn a_sandboxed_worker_exits_with_its_front() {
    let env = prepared();
    let mut command = env.command(&["collection", "list"]);
    command.env("ISOLITH_FAULT", "read:hang");
    let running = Running::start(command);
    let worker = running.worker("store-reader");
    let stat = format!("/proc/{worker}/stat");
    // Ready and at its job: it has entered its sandbox long ago.
    wait_until(|| {
        let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
        status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2'))
    });
    running.signal(Signal::KILL);
    wait_until(|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
}
