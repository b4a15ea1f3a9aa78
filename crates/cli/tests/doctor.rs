//! The `doctor` command as a user runs it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::{Killed, TestEnv, check, document, files_in, wait_for};

fn flip_byte(path: &Path, at: u64) {
    let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ 0x40]).unwrap();
}

fn statuses(report: &Value) -> Vec<(&str, &str)> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.map(|it| (it["name"].as_str().unwrap(), it["status"].as_str().unwrap())).collect()
}

#[test]
fn a_healthy_store_is_called_healthy() {
    let env = TestEnv::with_docs(50);
    let (status, report) = env.json(&["doctor", "--full"]);
    assert_eq!((status, &report["ok"]), (0, &Value::Bool(true)), "{report:#}");
    assert!(statuses(&report).iter().all(|(_, status)| *status == "ok"), "{report:#}");
    assert_eq!(statuses(&report).len(), 19);
    assert!(report["checks"][0]["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(report["repaired"], Value::Array(Vec::new()));
    let shown = env.run(&["doctor"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("self_queries  ok") && text.contains("the store is healthy"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_missing_store_is_an_error() {
    let env = TestEnv::new();
    let (status, document) = env.json(&["doctor"]);
    assert_eq!((status, &document["error"]["code"]), (4, &"no_store".into()), "{document}");
    assert!(!env.store().exists());
}

#[test]
fn damaged_and_missing_segments_are_rebuilt() {
    let env = TestEnv::with_docs(200);
    let vectors = env.segment("vec");
    flip_byte(&vectors, 300);
    fs::remove_file(env.segment("txt")).unwrap();
    let (status, report) = env.json(&["doctor"]);
    assert_eq!(status, 74, "{report:#}");
    assert_eq!(check(&report, "segments")["status"], "corrupt");
    assert_eq!(check(&report, "integrity")["status"], "ok");
    assert_eq!(report["ok"], false);

    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!(status, 0, "{report:#}");
    assert!(report["repaired"][0].as_str().unwrap().contains("rebuilt"), "{report:#}");
    assert_eq!(check(&report, "segments")["status"], "ok");
    let kept = env.store().join("quarantine").join(vectors.file_name().unwrap());
    assert!(kept.exists() && !vectors.exists());

    let (status, report) = env.json(&["doctor"]);
    assert_eq!((status, &report["ok"]), (0, &true.into()), "{report:#}");
    assert_eq!(env.json(&["collection", "count", "docs"]).1["count"], 200);
}

/// A store in whose truth a page of the table of vectors is rubbish.
fn damaged_truth() -> TestEnv {
    let env = TestEnv::with_docs(600);
    let db = env.truth();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
    let size = number("PRAGMA page_size");
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'vector'");
    drop(db);
    let path = env.store().join("truth.sqlite");
    let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // The first child of an inner page: after the header comes an array of places of
    // cells, and a cell starts with the number of its child.
    let mut page = vec![0; usize::try_from(size).unwrap()];
    file.seek(SeekFrom::Start((root - 1) * size)).unwrap();
    file.read_exact(&mut page).unwrap();
    assert_eq!(page[0], 5, "the table has one page only");
    let cell = usize::from(u16::from_be_bytes([page[12], page[13]]));
    let child = u64::from(u32::from_be_bytes(page[cell..cell + 4].try_into().unwrap()));
    file.seek(SeekFrom::Start((child - 1) * size)).unwrap();
    file.write_all(&vec![0xEE; page.len()]).unwrap();
    env
}

#[test]
fn a_damaged_database_is_salvaged_into_a_new_file() {
    let env = damaged_truth();
    let (status, report) = env.json(&["doctor"]);
    assert_eq!(status, 74, "{report:#}");
    assert_eq!(check(&report, "integrity")["status"], "corrupt");

    let (status, report) = env.json(&["doctor", "--repair"]);
    // A run that lost something is not a success.
    assert_eq!((status, &report["ok"]), (74, &false.into()), "{report:#}");
    let repaired = report["repaired"].to_string();
    assert!(repaired.contains("into a new truth"), "{repaired}");
    assert!(repaired.contains("lost: "), "{repaired}");
    let lost = &report["lost"][0];
    assert_eq!((&lost["table"], &lost["extent"]), (&"vector".into(), &"lost".into()), "{lost}");
    assert_eq!(lost["rows"].as_u64().unwrap(), lost["ids"].as_array().unwrap().len() as u64);
    let files = files_in(env.store());
    let kept = |it: &&std::path::PathBuf| it.to_string_lossy().contains("truth.sqlite.damaged-");
    assert!(files.iter().any(|file| kept(&file)), "{files:?}");

    let (status, report) = env.json(&["doctor"]);
    assert_eq!((status, &report["ok"]), (0, &true.into()), "{report:#}");
    // The loss is reported as long as the damaged database is kept.
    let losses = check(&report, "losses");
    assert_eq!(losses["status"], "warn", "{report:#}");
    assert!(losses["detail"].as_str().unwrap().contains(".report.json"), "{losses}");
    let text = String::from_utf8(env.run(&["doctor"]).stdout).unwrap();
    assert!(!text.contains("healthy") && text.contains("repair lost data"), "{text}");
    for file in files.iter().filter(kept) {
        fs::remove_file(file).unwrap();
    }
    let text = String::from_utf8(env.run(&["doctor"]).stdout).unwrap();
    assert!(text.contains("the store is healthy"), "{text}");
    let count = env.json(&["collection", "count", "docs"]).1["count"].as_u64().unwrap();
    assert_eq!(count, 600 - lost["rows"].as_u64().unwrap());
}

#[test]
fn a_database_in_use_is_not_salvaged() {
    let env = damaged_truth();
    let lock = OpenOptions::new().write(true).open(env.store().join("lock")).unwrap();
    lock.lock_shared().unwrap();
    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!((status, &report["error"]["code"]), (75, &"lock_held".into()), "{report:#}");
    let pid = std::process::id().to_string();
    assert!(report["error"]["message"].as_str().unwrap().contains(&pid), "{report:#}");
    assert!(check(&report, "locks")["detail"].as_str().unwrap().contains(&pid), "{report:#}");
    drop(lock);
    assert_eq!(env.json(&["doctor", "--repair"]).0, 74);
    assert_eq!(env.json(&["doctor"]).0, 0);
}

#[test]
fn a_file_that_is_not_a_database_is_reported() {
    let env = TestEnv::with_docs(5);
    drop(env.truth());
    fs::write(env.store().join("truth.sqlite"), [b'?'; 20_000]).unwrap();
    let (status, report) = env.json(&["doctor"]);
    assert_eq!(status, 74, "{report:#}");
    assert_eq!(check(&report, "integrity")["status"], "corrupt");
    assert_eq!(check(&report, "counts")["status"], "failed");
    assert_eq!(check(&report, "permissions")["status"], "ok");
    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!((status, &report["error"]["code"]), (74, &"corrupt".into()), "{report:#}");
    assert_eq!(fs::read(env.store().join("truth.sqlite")).unwrap(), [b'?'; 20_000]);
}

#[test]
fn a_store_of_a_newer_version_is_not_damaged() {
    let env = TestEnv::with_docs(5);
    env.truth().pragma_update(None, "user_version", 99).unwrap();
    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!((status, &report["ok"]), (1, &false.into()), "{report:#}");
    assert_eq!(check(&report, "integrity")["status"], "failed");
    assert_eq!(report["repaired"], Value::Array(Vec::new()));
}

#[test]
fn wrong_counts_are_corrected() {
    let env = TestEnv::with_docs(30);
    env.truth().execute("UPDATE collection SET records = 7", []).unwrap();
    let (status, report) = env.json(&["doctor"]);
    assert_eq!((status, &check(&report, "counts")["status"]), (74, &"corrupt".into()));
    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(env.json(&["collection", "count", "docs"]).1["count"], 30);
}

#[test]
fn permissions_and_limits_are_corrected() {
    let env = TestEnv::with_docs(5);
    let segment = env.segment("vec");
    fs::set_permissions(&segment, Permissions::from_mode(0o644)).unwrap();
    for number in 0..210 {
        let name = format!("crashes/{number:013}-1-1.json");
        let path = env.store().join(name);
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
    let (status, report) = env.json(&["doctor"]);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(check(&report, "permissions")["status"], "warn");
    assert!(report["repaired"][0].as_str().unwrap().contains("removed 10 files"), "{report:#}");
    assert_eq!(files_in(&env.store().join("crashes")).len(), 200);

    let (status, report) = env.json(&["doctor", "--repair"]);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(check(&report, "permissions")["status"], "ok");
    assert_eq!(segment.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_check_that_crashes_or_hangs_is_reported_and_the_others_go_on() {
    let env = TestEnv::with_docs(20);
    for (kind, class) in [("crash", "crash"), ("panic", "panic"), ("hang", "timeout")] {
        let mut command = env.command(&["doctor", "--json", "--timeout", "1"]);
        let output = command.env("ISOLITH_FAULT", format!("probe.counts:{kind}")).output().unwrap();
        let (status, report) = document(&output);
        assert_eq!(status, 1, "{report:#}");
        let failed = check(&report, "counts");
        assert_eq!(failed["status"], "failed");
        assert!(failed["detail"].as_str().unwrap().contains(class), "{failed}");
        let others = statuses(&report);
        assert!(others.iter().all(|(name, status)| *name == "counts" || *status != "failed"));
    }
    let (status, report) = env.json(&["doctor"]);
    assert_eq!(status, 0, "{report:#}");
    assert!(check(&report, "crashes")["detail"].as_str().unwrap().contains("3 deaths"));
}

#[test]
fn quarantined_jobs_are_listed_and_released() {
    let env = TestEnv::with_docs(20);
    let query = env.store().join("query.json");
    fs::write(&query, "[1, 0, 0, 0]").unwrap();
    let ask = || {
        let arguments = ["collection", "query", "docs", "--vector", query.to_str().unwrap()];
        env.command(&[&arguments[..], &["--json"]].concat())
    };
    // Every attempt hits the fault: a query that crashes its worker by itself.
    let output = ask().env("ISOLITH_FAULT", "read:crash").output().unwrap();
    assert_eq!(document(&output).0, 70);
    let (status, listed) = env.json(&["doctor", "--quarantine", "list"]);
    assert_eq!(status, 0, "{listed}");
    let job = &listed["jobs"][0];
    assert_eq!(
        (&job["role"], &job["class"]),
        (&"store-reader".into(), &"crash".into()),
        "{listed}"
    );
    assert_eq!(check(&env.json(&["doctor"]).1, "quarantine")["status"], "warn");
    assert_eq!(env.json(&["doctor", "--quarantine", "retry", "ffff0000"]).0, 4);
    assert_eq!(env.json(&["doctor", "--quarantine", "retry"]).0, 2);
    let id = job["id"].as_str().unwrap();
    let (status, released) = env.json(&["doctor", "--quarantine", "retry", &id[..12]]);
    assert_eq!((status, &released["released"][0]["id"]), (0, &id.into()), "{released}");
    let (_, listed) = env.json(&["doctor", "--quarantine", "list"]);
    assert!(!listed.to_string().contains(id), "{listed}");
    assert_eq!(env.json(&["doctor", "--quarantine", "clear"]).0, 0);
    let (_, listed) = env.json(&["doctor", "--quarantine", "list"]);
    assert_eq!(listed["jobs"], Value::Array(Vec::new()));
}

#[test]
fn a_signal_stops_it_cleanly() {
    let env = TestEnv::with_docs(5);
    let mut command = env.command(&["doctor", "--json"]);
    command.env("ISOLITH_FAULT", "probe.disk:hang").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut doctor = Killed(command.spawn().unwrap());
    let pid = doctor.0.id();
    wait_for("its first worker", || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        (!children.is_empty()).then_some(())
    });
    support::signal(pid, "-TERM");
    support::signal(pid, "-TERM");
    assert_eq!(doctor.0.wait().unwrap().code(), Some(143));
}
