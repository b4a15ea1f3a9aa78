//! Several processes on one store: the test program runs itself as child processes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isolith_protocol::{CreateCollection, Page, PutMode, Selection, StoreError};
use isolith_store::{Check, StoreFolder, Truth, Writer};
use isolith_types::{CollectionSpec, Metric};

use crate::common::{CREATE, TestStore, database, numbered, one, put, token};

const ROLE: &str = "ISOLITH_STORE_TEST_ROLE";
const FOLDER: &str = "ISOLITH_STORE_TEST_FOLDER";
const NUMBER: &str = "ISOLITH_STORE_TEST_NUMBER";

/// The entry point of child processes; does nothing in a normal test run.
#[test]
#[ignore = "runs inside other tests"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = StoreFolder::new(std::env::var_os(FOLDER).unwrap());
    let number: u32 = std::env::var(NUMBER).unwrap().parse().unwrap();
    match role.as_str() {
        "create" => {
            let mut writer = Truth::open_writer(&folder, CREATE, token()).unwrap();
            create_and_put(&mut writer, number * 10..number * 10 + 10);
        }
        "write" => {
            let mut writer = Truth::open_writer(&folder, CREATE, token()).unwrap();
            let mut next = number * 100_000;
            loop {
                writer.set_deadline(Instant::now() + Duration::from_secs(20));
                one(&mut writer, put("c", numbered(next..next + 2), PutMode::Upsert)).unwrap();
                // Printing it acknowledges the write.
                println!("acknowledged {next}");
                next += 2;
            }
        }
        "read-only" => {
            let mut reader = Truth::open_reader(&folder, token()).unwrap();
            let records = reader.snapshot().unwrap().collection("c").unwrap().records;
            let refused = Truth::open_writer(&folder, CREATE, token()).unwrap_err();
            assert_eq!(refused.to_failure().code, isolith_types::Code::ReadOnly, "{refused}");
            println!("acknowledged {records}");
        }
        "unreadable" => {
            let refused = Truth::open_reader(&folder, token()).unwrap_err();
            assert_eq!(refused.to_failure().code, isolith_types::Code::ReadOnly, "{refused}");
            println!("acknowledged 0");
        }
        "foreign" => {
            let refused = Truth::open_reader(&folder, token()).unwrap_err();
            assert!(matches!(refused, StoreError::ForeignOwner { .. }), "{refused}");
            println!("acknowledged 0");
        }
        other => panic!("no such role: {other}"),
    }
}

fn command(role: &str, folder: &Path, number: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "processes::child", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped());
    command
}

fn acknowledged(child: &mut Child) -> Vec<u32> {
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let last = |line: &str| line.rsplit_once("acknowledged ").and_then(|(_, n)| n.parse().ok());
    output.lines().filter_map(last).collect()
}

fn create_and_put(writer: &mut Writer, numbers: std::ops::Range<u32>) {
    let spec = CollectionSpec {
        name: "c".to_owned(),
        dimension: Some(2),
        metric: Metric::L2,
        model: None,
    };
    one(writer, CreateCollection { spec, if_missing: true }).unwrap();
    one(writer, put("c", numbered(numbers), PutMode::Upsert)).unwrap();
}

fn ids(folder: &StoreFolder) -> BTreeSet<String> {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    for check in [Check::Full, Check::Counts, Check::Orphans, Check::Fields] {
        assert_eq!(reader.check(check, 10).unwrap(), []);
    }
    let snapshot = reader.snapshot().unwrap();
    let all = snapshot.get(1, &Selection::All, Page::default(), false).unwrap();
    all.into_iter().map(|stored| stored.record.id).collect()
}

#[test]
fn sixteen_processes_create_one_store() {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path().join("store"));
    let children: Vec<Child> =
        (0..16).map(|number| command("create", folder.path(), number).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(ids(&folder).len(), 160);
}

#[test]
fn killed_writers_lose_nothing_that_was_acknowledged() {
    let store = TestStore::new();
    let folder = store.folder.clone();
    drop(store.writer);
    let mut random = fastrand::Rng::with_seed(2);
    let mut expected = BTreeSet::new();
    let mut begun = BTreeSet::new();
    for round in 0..4 {
        let mut children: Vec<Child> = (0..4)
            .map(|number| command("write", folder.path(), round * 4 + number).spawn().unwrap())
            .collect();
        // Each is killed at another moment after its first commits.
        for (at, child) in children.iter_mut().enumerate() {
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut done = Vec::new();
            let enough = random.usize(1..12);
            let mut line = String::new();
            while done.len() < enough && output.read_line(&mut line).unwrap() > 0 {
                let number =
                    line.trim().rsplit_once("acknowledged ").map(|(_, n)| n.parse::<u32>());
                done.extend(number.map(Result::unwrap));
                line.clear();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let mut rest = String::new();
            // Lines written before the kill are acknowledged, too.
            let _ = output.read_to_string(&mut rest);
            let lines = rest.lines().filter_map(|line| line.rsplit_once("acknowledged "));
            // The last line may be truncated.
            let complete = rest.ends_with('\n') || rest.is_empty();
            let mut late: Vec<u32> = lines.filter_map(|(_, n)| n.parse().ok()).collect();
            if !complete {
                late.pop();
            }
            done.extend(late);
            let next = done.last().map_or((round * 4 + at as u32) * 100_000, |last| last + 2);
            expected.extend(done.iter().flat_map(|n| [format!("id-{n}"), format!("id-{}", n + 1)]));
            begun.extend([format!("id-{next}"), format!("id-{}", next + 1)]);
        }
    }
    let there = ids(&folder);
    let lost: Vec<_> = expected.difference(&there).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // An interrupted write is complete or absent, and nothing else is stored.
    let more: BTreeSet<_> = there.difference(&expected).collect();
    assert!(more.iter().all(|id| begun.contains(*id)), "{more:?}");
    assert_eq!(more.len() % 2, 0);
    assert!(!expected.is_empty());
}

#[test]
fn without_write_permission_a_store_is_read_or_refused_with_a_reason() {
    let store = TestStore::new();
    let mut writer = store.writer;
    one(&mut writer, put("c", numbered(0..5), PutMode::Upsert)).unwrap();
    assert!(writer.checkpoint(isolith_store::Checkpoint::Truncate).unwrap().complete);
    drop(writer);
    let folder = store.folder;
    let as_root = rustix::process::geteuid().is_root();
    let nobody = 65_534;
    let files = || {
        let inside = std::fs::read_dir(folder.path()).unwrap();
        inside.map(|entry| entry.unwrap().path()).chain([folder.path().to_path_buf()])
    };
    let run = |role: &str| -> Option<Vec<u32>> {
        let mut command = command(role, folder.path(), 0);
        if as_root {
            command.uid(nobody).gid(nobody);
        }
        // Other users may not have access to the test program's folder.
        let mut child = command.spawn().ok()?;
        let said = acknowledged(&mut child);
        assert!(child.wait().unwrap().success(), "{role}");
        Some(said)
    };
    std::fs::set_permissions(store.place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    if as_root {
        if run("foreign").is_none() {
            return;
        }
        files().for_each(|path| chown(path, Some(nobody), Some(nobody)).unwrap());
    }
    // With the index of the log still there, and without it.
    for index in [true, false] {
        if !index {
            for suffix in ["-wal", "-shm"] {
                let path = folder.path().join(format!("truth.sqlite{suffix}"));
                std::fs::remove_file(path).unwrap();
            }
        }
        for path in files() {
            let mode = if path.is_dir() { 0o500 } else { 0o400 };
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        assert_eq!(run("read-only"), Some(vec![5]), "index: {index}");
        for path in files() {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
        }
    }
    std::fs::set_permissions(folder.truth(), PermissionsExt::from_mode(0o000)).unwrap();
    assert_eq!(run("unreadable"), Some(vec![0]));
}

#[test]
fn waiting_writers_are_not_refused() {
    let mut store = TestStore::new();
    let folder = store.folder.clone();
    store.upsert(numbered(0..1));
    let threads: Vec<_> = (0..8)
        .map(|number: u32| {
            let folder = folder.clone();
            std::thread::spawn(move || {
                let mut writer = Truth::open_writer(&folder, CREATE, token()).unwrap();
                writer.set_deadline(Instant::now() + Duration::from_secs(30));
                for round in 0..20 {
                    let first = number * 1000 + round;
                    one(&mut writer, put("c", numbered(first..first + 1), PutMode::Upsert))
                        .unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(ids(&folder).len(), 160);
}

#[test]
fn a_writer_that_waits_too_long_reports_a_timeout() {
    let mut store = TestStore::new();
    let blocker = database(&store.folder);
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = Instant::now();
    store.writer.set_deadline(before + Duration::from_millis(200));
    let busy = store.one(put("c", numbered(0..1), PutMode::Upsert)).unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
    let waited = before.elapsed();
    assert!(waited >= Duration::from_millis(200) && waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(busy.to_failure().code, isolith_types::Code::Timeout);
    // Readers do not wait for writers.
    store.reader().snapshot().unwrap().collection("c").unwrap();
    blocker.execute_batch("ROLLBACK").unwrap();
    store.writer.set_deadline(None);
    store.upsert(numbered(0..1));
}
