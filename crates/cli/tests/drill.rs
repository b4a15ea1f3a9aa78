//! The `drill` command as a user runs it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn isolith(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolith"));
    command.args(arguments).stdin(Stdio::null()).env_remove("ISOLITH_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    isolith(arguments).output().unwrap()
}

/// Every kind of fault twice, through the product binary.
#[test]
fn a_drill_passes() {
    let output = run(&["drill", "--count", "56", "--seed", "7", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["injected"], 56);
    for zero in ["misclassified", "lost", "duplicated", "orphans"] {
        assert_eq!(report[zero], 0, "{zero}: {text}");
    }
    assert!(report["slowest_recovery_ms"].as_f64().unwrap() > 0.0);
    let kinds = report["by_kind"].as_array().unwrap();
    assert_eq!(kinds.len(), 28);
    for kind in kinds {
        assert_eq!(kind["injected"], 2);
        assert!(kind["kind"].is_string() && kind["classified_as"].is_string());
        assert!(kind["recovery_ms"].is_number());
    }
}

#[test]
fn each_fault_is_a_line_and_the_report_the_last() {
    let output = run(&["drill", "--count", "4", "--seed", "3", "--jsonl", "--quiet"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.status.code(), lines.len()), (Some(0), 5), "{text}");
    assert!(lines[..4].iter().all(|it| it["passed"] == true && it["fault"].is_string()), "{text}");
    assert_eq!((&lines[4]["injected"], &lines[4]["lost"]), (&4.into(), &0.into()), "{text}");
}

#[test]
fn progress_goes_to_stderr_unless_quiet() {
    let message = run(&["drill", "--count", "3", "--seed", "1"]);
    assert!(String::from_utf8_lossy(&message.stderr).contains("3 of 3 faults"));
    assert!(String::from_utf8_lossy(&message.stdout).contains("misclassified             0"));
    let quiet = run(&["drill", "--count", "3", "--seed", "1", "--quiet"]);
    assert!(quiet.stderr.is_empty());
}

#[test]
fn an_unwritable_result_is_a_failure_but_a_closed_pipe_is_not() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = isolith(&["drill", "--count", "1", "--quiet"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = isolith(&["drill", "--count", "1", "--quiet"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_interrupted_drill_leaves_nothing_behind() {
    let mut drill = isolith(&["drill", "--count", "100000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = drill.id();
    std::thread::sleep(Duration::from_millis(1500));
    let workers = children_of(pid);
    assert!(!workers.is_empty());
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
    assert_eq!(drill.wait().unwrap().code(), Some(130));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut drill.stdout.take().unwrap(), &mut text).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["error"]["code"], "interrupted");
    for worker in workers {
        assert!(!std::path::Path::new(&format!("/proc/{worker}")).exists());
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let fields = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            (fields == parent.to_string()).then_some(pid)
        })
        .collect()
}

#[test]
fn bad_flags_are_usage_errors() {
    for arguments in [&["drill", "--count", "0"][..], &["drill", "--seed", "x"], &["fly"], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    let output = run(&["drill", "--count", "none", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(document["error"]["code"], "usage");
}

#[test]
fn the_worker_argument_is_refused_on_a_command_line() {
    let output = run(&["--isolate-worker", "drill"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("for worker processes only"));
}

#[test]
fn a_missing_temporary_folder_is_reported() {
    let output = isolith(&["drill", "--count", "1"]).env("TMPDIR", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start the drill"));
}
