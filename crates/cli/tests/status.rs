//! The `status` command as a user runs it, and the sockets behind it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Killed, TestEnv, signal, wait_for};

/// A process that is in the middle of a long ingest into a store that is there already.
fn ingesting(env: &TestEnv) -> Killed {
    let output = env.run(&["collection", "create", "long"]);
    assert!(output.status.success(), "{output:?}");
    let file = env.write_records(20_000, &"many words ".repeat(20));
    let arguments = ["ingest", file.to_str().unwrap(), "--collection", "long", "--quiet"];
    let child =
        env.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let front = Killed(child);
    wait_for("its socket", || env.sockets().pop());
    front
}

#[test]
fn a_store_without_fronts_has_a_status() {
    let env = TestEnv::with_docs(30);
    let (status, report) = env.json(&["status"]);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["store"], env.store().to_str().unwrap());
    let docs = &report["collections"][0];
    assert_eq!((&docs["name"], &docs["records"]), (&"docs".into(), &30.into()));
    assert_eq!((&docs["generation"], &docs["tail"]), (&1.into(), &0.into()));
    for empty in ["workers", "fronts", "warnings"] {
        assert_eq!(report[empty], Value::Array(Vec::new()), "{report:#}");
    }
    assert_eq!((&report["quarantine"], &report["schema"]), (&0.into(), &17.into()));
    assert!(report["crashes"].is_object() && report["disk_bytes"].as_u64().unwrap() > 0);
    let text = String::from_utf8(env.run(&["status"]).stdout).unwrap();
    assert!(text.contains("no server or watcher is running"), "{text}");
    assert_eq!(env.sockets().len(), 0);
}

#[test]
fn an_unreadable_store_has_a_status() {
    let env = TestEnv::with_docs(3);
    fs::write(env.store().join("truth.sqlite"), [7; 9_000]).unwrap();
    let (status, report) = env.json(&["status"]);
    assert_eq!((status, &report["error"]["code"]), (74, &"corrupt".into()), "{report:#}");
    assert_eq!(report["workers"], Value::Array(Vec::new()));
}

#[test]
fn a_check_prints_only_what_is_wrong() {
    let env = TestEnv::with_docs(3);
    let fine = env.run(&["status", "--check"]);
    assert_eq!((fine.status.code(), fine.stdout, fine.stderr), (Some(0), Vec::new(), Vec::new()));
    let (status, document) = env.json(&["status", "--check"]);
    assert_eq!((status, document), (0, serde_json::json!({ "ok": true, "problems": [] })));
    // A segment that a search finds damaged, and leaves to the next command that writes.
    let segments = fs::read_dir(env.store().join("segments")).unwrap();
    for segment in segments {
        fs::write(segment.unwrap().path(), "damaged").unwrap();
    }
    let found = env.run(&["collection", "query", "docs", "--keywords", "many"]);
    assert!(found.status.success(), "{found:?}");
    let damaged = env.run(&["status", "--check"]);
    let text = String::from_utf8(damaged.stdout).unwrap();
    assert_eq!(damaged.status.code(), Some(74), "{text}");
    assert_eq!(text, "docs: a segment is in quarantine; a rebuild is due\n");
    // A process that does not answer is less than damage, but more than nothing.
    let run = env.store().join("run");
    let silent = UnixListener::bind(run.join("900000-0000000000000000.sock")).unwrap();
    let (status, document) = env.json(&["status", "--check"]);
    assert_eq!((status, document["problems"].as_array().unwrap().len()), (74, 2), "{document}");
    assert_eq!(document["problems"][0]["code"], "timeout", "{document}");
    drop(silent);
    fs::write(env.store().join("truth.sqlite"), [7; 9_000]).unwrap();
    let (status, document) = env.json(&["status", "--check"]);
    assert_eq!((status, &document["problems"][0]["code"]), (74, &"corrupt".into()), "{document}");
}

#[test]
fn a_live_front_shows_its_workers() {
    let env = TestEnv::new();
    let front = ingesting(&env);
    let mode = env.sockets()[0].metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let report = wait_for("a worker at work", || {
        let (status, report) = env.json(&["status"]);
        assert_eq!(status, 0, "{report:#}");
        let workers = report["workers"].as_array().unwrap().clone();
        let busy = workers.iter().any(|it| it["state"] == "busy" && it["job"]["kind"].is_string());
        let reading =
            workers.iter().any(|it| it["role"] == "intake" && it["confinement"].is_object());
        (busy && reading).then_some(report)
    });
    let pid = front.0.id();
    assert_eq!(
        (&report["fronts"][0]["pid"], &report["fronts"][0]["answers"]),
        (&pid.into(), &true.into())
    );
    let roles: Vec<&str> = report["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| {
            assert_eq!(worker["front"], pid);
            assert!(worker["age_ms"].is_u64());
            // Not known before it is ready.
            if let Some(confinement) = worker["confinement"].as_object() {
                for part in ["files", "sockets", "system_calls"] {
                    let known = ["enforced", "partial", "not_available"];
                    let message = confinement[part].as_str().unwrap();
                    assert!(known.contains(&message), "{part}: {worker}");
                }
            }
            worker["role"].as_str().unwrap()
        })
        .collect();
    assert!(roles.contains(&"intake"), "{roles:?}");
    let text = String::from_utf8(env.run(&["status"]).stdout).unwrap();
    assert!(text.contains("SANDBOX"), "{text}");
}

#[test]
fn the_socket_of_a_killed_front_is_removed() {
    let env = TestEnv::new();
    let mut front = ingesting(&env);
    front.0.kill().unwrap();
    front.0.wait().unwrap();
    assert_eq!(env.sockets().len(), 1);
    let (_, report) = env.json(&["status"]);
    assert_eq!(report["fronts"], Value::Array(Vec::new()), "{report:#}");
    assert_eq!(env.sockets().len(), 0);
}

#[test]
fn a_front_that_ends_removes_its_socket() {
    let env = TestEnv::new();
    let mut front = ingesting(&env);
    signal(front.0.id(), "-INT");
    assert_eq!(front.0.wait().unwrap().code(), Some(130));
    assert_eq!(env.sockets().len(), 0);
}

#[test]
fn hanging_fronts_delay_status_only_briefly() {
    let env = TestEnv::with_docs(5);
    // They take connections, as their queue does, and never answer.
    let run = env.store().join("run");
    let hanging: Vec<UnixListener> = (0..8)
        .map(|n| UnixListener::bind(run.join(format!("{}-{n:016x}.sock", 900_000 + n))).unwrap())
        .collect();
    let start = Instant::now();
    let (status, report) = env.json(&["status"]);
    // The fronts have 200 ms together; the rest is the start of two processes.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(status, 0);
    let fronts = report["fronts"].as_array().unwrap();
    assert!(
        fronts.len() == 8 && fronts.iter().all(|front| front["answers"] == false),
        "{report:#}"
    );
    assert!(report["warnings"].to_string().contains("does not answer"), "{report:#}");
    assert_eq!(env.sockets().len(), 8);
    drop(hanging);
    assert_eq!(env.json(&["status"]).1["fronts"], Value::Array(Vec::new()));
    assert_eq!(env.sockets().len(), 0);
}

#[test]
fn a_front_survives_clients_that_never_read() {
    let env = TestEnv::new();
    let front = ingesting(&env);
    let socket = env.sockets().remove(0);
    let silent: Vec<_> =
        (0..100).filter_map(|_| std::os::unix::net::UnixStream::connect(&socket).ok()).collect();
    assert!(!silent.is_empty());
    wait_for("an answer in spite of them", || {
        let (_, report) = env.json(&["status"]);
        (report["fronts"][0]["answers"] == true).then_some(())
    });
    drop(silent);
    drop(front);
}

#[test]
fn long_paths_work() {
    let env = TestEnv::called(&"a folder of a long, ünusual name/".repeat(8));
    let front = ingesting(&env);
    let report = wait_for("an answer", || {
        let (_, report) = env.json(&["status"]);
        (report["fronts"][0]["answers"] == true).then_some(report)
    });
    assert_eq!(report["fronts"][0]["pid"], front.0.id());
}
