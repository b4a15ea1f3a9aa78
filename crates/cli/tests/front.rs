//! The front holds no native engine: neither the truth nor a segment is open or mapped
//! in it, and the product cannot make a token for one outside of a worker.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::fs;
use std::process::Command;

use project::Project;
use rustix::process::Signal;
use test_env::{Running, TestEnv, children, send, vector, wait_until};

/// What a process has open or mapped that belongs to the store, or is imported into it; and
/// of open files how far they have been read.
fn native(pid: u32) -> Vec<(String, Option<u64>)> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let open = open.filter_map(|entry| {
        let name = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
        let number = entry.file_name().to_string_lossy().into_owned();
        let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let position = about.lines().next()?.strip_prefix("pos:")?.trim().parse().ok()?;
        Some((name, Some(position)))
    });
    let mapped = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapped = mapped.lines().map(|line| (line.to_owned(), None)).collect::<Vec<_>>();
    let ours = |(name, _): &(String, Option<u64>)| {
        ["truth.sqlite", "/segments/", "imported.jsonl"].iter().any(|part| name.contains(part))
    };
    open.chain(mapped).filter(ours).collect()
}

/// Whether something may be open in the front: a file that it hands to a worker, and does
/// not read itself.
fn is_handed_on((name, position): &(String, Option<u64>)) -> bool {
    name.contains("imported.jsonl") && *position == Some(0)
}

/// Stops each worker, looks at it and at the front, and lets it go on: until a worker
/// had `what` open, or all are gone. False if none was caught with it.
fn look_at_front(running: &Running, what: &str) -> bool {
    let mut seen = false;
    wait_until(|| {
        for worker in children(running.pid()) {
            send(worker, Signal::STOP);
            seen |= native(worker).iter().any(|(name, _)| name.contains(what));
            let mut found = native(running.pid());
            found.retain(|it| !is_handed_on(it));
            send(worker, Signal::CONT);
            assert!(found.is_empty(), "the front has {found:?}");
        }
        seen || !alive(running.pid())
    });
    seen
}

fn alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[test]
fn the_front_opens_neither_database_nor_segments() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..3_000, 64);
    let mut load = Running::start(env.command(&["ingest", &file, "--collection", "a"]));
    assert!(load.prints("writing"));
    assert!(look_at_front(&load, "truth.sqlite"));
    assert_eq!(load.finish().status, Some(0));

    env.write("query", serde_json::json!(vector(17, 64)).to_string());
    let query = ["collection", "query", "a", "--vector", "query", "--limit", "3000"];
    for what in ["truth.sqlite", "/segments/"] {
        // A query is short; one of some is caught in the middle.
        let mut queries = (0..20).map(|_| Running::start(env.command(&query)));
        assert!(queries.any(|running| look_at_front(&running, what)), "none had {what}");
    }
}

#[test]
fn the_front_opens_neither_while_it_indexes_and_searches_code() {
    let project = Project::large(150);
    let mut index = Running::start(project.command(&["index"]));
    assert!(index.prints("indexing"));
    assert!(look_at_front(&index, "truth.sqlite"));
    assert_eq!(index.finish().status, Some(0));
    for what in ["truth.sqlite", "/segments/"] {
        let search = ["search", "compute value of part"];
        let mut searches = (0..20).map(|_| Running::start(project.command(&search)));
        assert!(searches.any(|running| look_at_front(&running, what)), "none had {what}");
    }
}

#[test]
fn the_front_does_not_read_what_is_imported_into_memory() {
    let env = TestEnv::new();
    let rows: String =
        (0..3_000).map(|number| format!("{{\"text\":\"turn {number}\"}}\n")).collect();
    let file = env.write("imported.jsonl", rows);
    let mut import = Running::start(env.command(&["memory", "import", &file]));
    assert!(import.prints("importing"));
    assert!(look_at_front(&import, "imported.jsonl"));
    assert_eq!(import.finish().status, Some(0));
}

/// `isolate` hands out tokens outside of workers with the feature `in-process`, and
/// `roles` has fail-points with the feature `faults`, and `serve` the fixtures of the
/// conformance suite with the feature `conformance`: for tests, not for the product.
#[test]
fn the_product_has_no_test_features() {
    let features = |package: &str| {
        let mut tree = Command::new(env!("CARGO"));
        tree.args(["tree", "--offline", "--locked", "--edges", "normal,build"])
            .args(["--package", "isolith", "--invert", package, "--depth", "0"])
            .args(["--format", "{p} {f}", "--prefix", "none"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = tree.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(package), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let isolate = features("isolate");
    assert!(isolate.contains("misbehave"), "features are listed: {isolate}");
    assert!(!isolate.contains("in-process"), "{isolate}");
    let types = features("isolate-types");
    assert!(!types.contains("in-process"), "{types}");
    let roles = features("isolith-roles");
    assert!(!roles.contains("faults"), "{roles}");
    let serve = features("isolith-serve");
    assert!(!serve.contains("conformance"), "{serve}");
}
