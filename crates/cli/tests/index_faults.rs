//! Indexing under faults: finished files are kept, and the next run completes the index.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use project::{Project, adds_up, counts};
use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{Ran, Running, TestEnv, send, wait_until};

const FILES: usize = 150;

/// The result of an undisturbed run.
fn undisturbed() -> Vec<(String, Vec<u8>, String, Vec<u8>)> {
    let project = Project::large(FILES);
    project.index(&[]);
    project.content()
}

/// The words that tell that a stage has begun.
const STAGES: [&str; 3] = ["listing files", "indexing", "building"];

#[test]
fn an_interrupted_run_keeps_what_it_has_finished() {
    let whole = undisturbed();
    for stage in STAGES {
        for (signal, status) in
            [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)]
        {
            let case = format!("{stage}, {signal:?}");
            let project = Project::large(FILES);
            let mut running = Running::start(project.command(&["index", "--json"]));
            assert!(running.prints(stage), "{case}");
            let writers = running.workers("store-writer");
            running.signal(signal);
            let ran = running.finish();
            // A writer may outlive its front by the commit that it is in.
            wait_until(|| writers.iter().all(|pid| is_gone(*pid)));
            // A run that finishes in spite of the signal succeeds.
            let finished = ran.status == Some(0);
            assert!(finished || ran.status == status, "{case}: {:?} {}", ran.status, ran.stderr);
            if let (Some(_), false) = (status, finished) {
                let document = ran.document();
                let message = document["interrupted"] == true || document["error"].is_object();
                assert!(message, "{case}: {document}");
                if document["files"].is_object() {
                    adds_up(&document);
                    assert_eq!(document["chunks"], project.content().len(), "{case}: {document}");
                }
            }
            continue_and_compare(&project, &whole, &case);
        }
    }
}

/// The second signal kills parsers as it kills all other workers. A stopped process does not
/// see that its front is gone: it ends only if it is killed.
#[test]
fn a_second_signal_kills_parsers_that_do_not_answer() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let project = Project::large(FILES);
        let mut command = project.command(&["index"]);
        command.env("ISOLITH_FAULT", "parse:hang").env("ISOLITH_LOG", "info");
        let mut running = Running::start(command);
        running.worker("parse");
        let parsers = running.workers("parse");
        parsers.iter().for_each(|pid| send(*pid, Signal::STOP));
        running.signal(signal);
        assert!(running.prints("draining"), "{signal:?}");
        let begun = Instant::now();
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, Some(status), "{}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(8), "it does not wait for the drain");
        let left: Vec<u32> = parsers.into_iter().filter(|pid| is_stopped(*pid)).collect();
        left.iter().for_each(|pid| send(*pid, Signal::KILL));
        assert!(left.is_empty(), "{signal:?}: parsers were left behind: {left:?}");
        let whole = undisturbed();
        continue_and_compare(&project, &whole, &format!("second {signal:?}"));
    }
}

fn is_gone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn is_stopped(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains("(parse) T "))
}

/// Runs again, and compares with an undisturbed run.
fn continue_and_compare(
    project: &Project,
    whole: &[(String, Vec<u8>, String, Vec<u8>)],
    case: &str,
) {
    let before = if project.folder().join(".isolith/truth.sqlite").exists() {
        project.content()
    } else {
        Vec::new()
    };
    let whole_set: BTreeSet<_> = whole.iter().collect();
    assert!(before.iter().all(|row| whole_set.contains(row)), "{case}: half a file is stored");
    let stored: BTreeSet<&String> = before.iter().map(|(path, ..)| path).collect();
    for path in &stored {
        let chunks = |rows: &[(String, Vec<u8>, String, Vec<u8>)]| {
            rows.iter().filter(|row| row.0 == **path).count()
        };
        assert_eq!(chunks(&before), chunks(whole), "{case}: {path} is there in part");
    }
    let report = project.index(&[]);
    assert_eq!(report["files"]["unchanged"], stored.len(), "{case}");
    assert_eq!(report["files"]["indexed"], FILES - stored.len(), "{case}");
    assert_eq!(project.content(), whole, "{case}");
    assert_eq!(project.paths(&["compute_77_3"])[0], "src/part0/file77.rs", "{case}");
}

#[test]
fn a_killed_worker_is_replaced() {
    let whole = undisturbed();
    for (stage, role) in
        [("indexing", "parse"), ("indexing", "store-writer"), ("building", "store-builder")]
    {
        for signal in [Signal::KILL, Signal::SEGV, Signal::TERM] {
            let project = Project::large(FILES);
            let mut running = Running::start(project.command(&["index", "--json"]));
            if !running.prints(stage) {
                panic!("{stage} is never message: {}", running.finish().stdout);
            }
            for worker in running.workers(role) {
                send(worker, signal);
            }
            let ran = running.finish();
            let case = format!("{role}, {signal:?}");
            assert_eq!(ran.status, Some(0), "{case}: {} {}", ran.stdout, ran.stderr);
            let report = ran.document();
            assert_eq!(report["files"]["indexed"], FILES, "{case}");
            assert_eq!(report["problems"], json!([]), "{case}");
            assert_eq!(project.content(), whole, "{case}");
        }
    }
}

/// A project with one file that its parser does not survive.
fn poisoned() -> Project {
    let project = Project::sample();
    project.write("src/poison.rs", "pub fn deadly_nightshade() { belladonna() }\n");
    project
}

fn index_with_fault(project: &Project, fault: &str) -> Value {
    let mut command = project.command(&["index", "--json"]);
    command.env("ISOLITH_FAULT", fault);
    let ran = Ran::of(&command.output().unwrap());
    assert_eq!(ran.status, Some(0), "{fault}: {} {}", ran.stdout, ran.stderr);
    ran.document()
}

#[test]
fn a_file_that_kills_its_parser_is_indexed_as_text() {
    for fault in ["crash", "panic", "leak", "corrupt", "exit"] {
        let project = poisoned();
        let report = index_with_fault(&project, &format!("parse.poison.rs:{fault}"));
        let problem = &report["problems"][0];
        assert_eq!(problem["path"], "src/poison.rs", "{fault}: {report}");
        assert_eq!(problem["code"], "parser_died", "{fault}: {report}");
        assert_eq!(counts(&report), json!([7, 6, 0, 0, 0]), "{fault}");
        assert_eq!(report["files"]["failed"], 1, "{fault}");
        assert_eq!(project.paths(&["belladonna"])[0], "src/poison.rs", "{fault}");
        assert_eq!(project.paths(&["RetryPolicy"])[0], "src/retry.rs", "{fault}");
        // It is remembered as deadly, and left alone as long as it does not change: its age
        // is not a change.
        let jobs = project.run(&["doctor", "--quarantine", "list", "--json"]);
        assert!(jobs.stdout.contains("parse"), "{fault}: {}", jobs.stdout);
        let path = project.folder().join("src/poison.rs");
        fs::write(&path, fs::read(&path).unwrap()).unwrap();
        let again = index_with_fault(&project, &format!("parse.poison.rs:{fault}"));
        assert_eq!(counts(&again), json!([7, 0, 6, 0, 0]), "{fault}");
        assert_eq!(again["files"]["failed"], 1, "{fault}");
        assert_eq!(again["problems"][0]["code"], "quarantined", "{fault}");
        // Given another chance, it is cut as well as the others.
        project.json(&["doctor", "--quarantine", "clear"]);
        let cured = project.index(&[]);
        assert_eq!(counts(&cured), json!([7, 1, 6, 0, 0]), "{fault}");
        assert_eq!(cured["problems"], json!([]), "{fault}");
        assert_eq!(
            project.search(&["deadly_nightshade"])["hits"][0]["symbol"],
            "deadly_nightshade"
        );
    }
}

#[test]
fn files_that_crash_parsers_do_not_stop_the_others() {
    let project = Project::large(200);
    for number in 0..8 {
        project.write(
            &format!("deadly/{number}/poison.rs"),
            format!("pub fn poison_{number}() {{}}\n"),
        );
    }
    let report = index_with_fault(&project, "parse.poison.rs:crash");
    adds_up(&report);
    assert_eq!(counts(&report), json!([208, 200, 0, 0, 0]));
    assert_eq!(report["files"]["failed"], 8, "{report}");
    assert_eq!(project.paths(&["poison_7"])[0], "deadly/7/poison.rs");
}

#[test]
fn a_quarantined_file_is_not_tried_again() {
    let project = poisoned();
    index_with_fault(&project, "parse.poison.rs:crash");
    let crashes = |project: &Project| {
        fs::read_dir(project.folder().join(".isolith/crashes")).unwrap().count()
    };
    let before = crashes(&project);
    let report = {
        let mut command = project.command(&["index", "--rebuild", "--json"]);
        command.env("ISOLITH_FAULT", "parse.poison.rs:crash");
        Ran::of(&command.output().unwrap()).document()
    };
    assert_eq!(report["problems"][0]["code"], "quarantined", "{report}");
    assert_eq!(crashes(&project), before, "it crashed no worker again");
    assert_eq!(project.paths(&["belladonna"])[0], "src/poison.rs");
}

#[test]
fn a_second_run_waits_for_the_first() {
    let project = Project::large(FILES);
    let mut first = Running::start(project.command(&["index", "--json"]));
    assert!(first.prints("indexing"));
    let busy = project.run(&["index", "--no-wait", "--json"]);
    assert_eq!(busy.status, Some(75), "{}", busy.stdout);
    assert_eq!(busy.document()["error"]["code"], "lock_held");
    let mut second = Running::start(project.command(&["index", "--json"]));
    assert!(second.prints("waiting"), "it says so");
    assert_eq!(first.finish().document()["files"]["indexed"], FILES);
    let report = second.finish().document();
    assert_eq!(counts(&report), json!([FILES, 0, FILES, 0, 0]));
}

#[test]
fn many_processes_share_a_code_index() {
    let project = Project::large(40);
    project.index(&[]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..6 {
                project.write("src/changing.rs", format!("pub fn round_number_{round}() {{}}\n"));
                project.index(&[]);
            }
        });
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..6 {
                        let found = project.search(&["compute_7_3"]);
                        assert_eq!(found["hits"][0]["path"], "src/part0/file7.rs", "{found}");
                        assert_eq!(found["degraded"], Value::Null);
                    }
                })
            })
            .collect();
        writer.join().unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(project.paths(&["round_number_5"])[0], "src/changing.rs");
}

#[test]
fn a_damaged_segment_only_slows_down_queries() {
    let project = Project::large(60);
    project.index(&[]);
    let whole = project.search(&["compute_41_2"]);
    for extension in ["vec", "txt"] {
        let segments = test_env::files_in(&project.folder().join(".isolith/segments"));
        let file = segments.iter().find(|it| it.extension().is_some_and(|it| it == extension));
        let file = file.unwrap();
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].iter_mut().take(4_096).for_each(|byte| *byte ^= 0x5A);
        fs::write(file, bytes).unwrap();
        let damaged = project.search(&["compute_41_2"]);
        assert!(damaged["degraded"].is_string(), "{extension}: {}", damaged["degraded"]);
        assert_eq!(damaged["hits"][0], whole["hits"][0], "{extension}");
        project.index(&[]);
        let mended = project.search(&["compute_41_2"]);
        assert_eq!(mended["degraded"], Value::Null, "{extension}");
        assert_eq!(mended["hits"], whole["hits"], "{extension}");
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let env = TestEnv::new();
    let disk = env.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("not allowed to mount a small disk here: nothing was tested");
        return;
    }
    struct Unmount<'a>(&'a std::path::Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
        }
    }
    let _unmount = Unmount(&disk);
    let project = Project::large(FILES * 4);
    let store = disk.join("store");
    let store = store.to_str().unwrap();
    let ran = project.run(&["index", "--store", store, "--json"]);
    assert_eq!(ran.status, Some(1), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(ran.document()["error"]["code"], "disk_full");
    let remounted =
        Command::new("mount").args(["-o", "remount,size=200m"]).arg(&disk).status().unwrap();
    assert!(remounted.success());
    let report = project.index(&["--store", store]);
    assert_eq!(report["files"]["seen"], FILES * 4);
    let found = project.search(&["compute_599_3", "--store", store]);
    assert_eq!(found["hits"][0]["path"], "src/part4/file599.rs");
}
