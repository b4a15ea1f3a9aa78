//! Opening stores: missing, invalid, locked, and replaced while open.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use isolith_protocol::{PutMode, StoreError};
use isolith_store::{Checkpoint, StoreFolder, Truth, lock_holders, schema_version};
use isolith_types::Code;
use rusqlite::Connection;

use crate::common::{CREATE, OPEN, TestStore, database, numbered, one, put, token, writer};

#[test]
fn sqlite_is_new_enough() {
    // Up to 3.51.2, two connections that write or checkpoint at once can corrupt a file.
    assert!(rusqlite::version_number() >= 3_053_000, "{}", rusqlite::version());
}

#[test]
fn missing_and_invalid_stores_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path().join("store"));
    let missing = StoreError::Missing { folder: folder.path().to_path_buf() };
    assert_eq!(Truth::open_reader(&folder, token()).unwrap_err(), missing);
    assert_eq!(Truth::open_writer(&folder, OPEN, token()).unwrap_err(), missing);
    assert!(!folder.path().exists(), "looking makes nothing");
    assert_eq!(missing.to_failure().code, Code::NoStore);

    folder.create().unwrap();
    let opened = |says: &str| {
        for error in [
            Truth::open_reader(&folder, token()).unwrap_err(),
            Truth::open_writer(&folder, CREATE, token()).unwrap_err(),
        ] {
            assert!(error.to_string().contains(says), "{error}");
        }
    };
    std::fs::write(folder.truth(), "").unwrap();
    opened("is damaged: it is empty");
    std::fs::write(folder.truth(), "this is no database".repeat(1000)).unwrap();
    opened("is damaged: cannot");
    std::fs::remove_file(folder.truth()).unwrap();
    Connection::open(folder.truth()).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    opened("is not a store: it belongs to another program");
    std::fs::remove_file(folder.truth()).unwrap();
    std::os::unix::fs::symlink("/dev/null", folder.truth()).unwrap();
    opened("is not a store: it is a symbolic link");
    std::fs::remove_file(folder.truth()).unwrap();
    std::fs::create_dir(folder.truth()).unwrap();
    opened("is not a store: it is a folder, not a file");
}

#[test]
fn files_are_private() {
    let store = TestStore::new();
    for name in ["truth.sqlite", "truth.sqlite-wal", "truth.sqlite-shm", "lock"] {
        let metadata = std::fs::metadata(store.folder.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let left: Vec<_> = std::fs::read_dir(store.folder.run()).unwrap().collect();
    assert_eq!(left.len(), 1, "the creation lock alone: {left:?}");
}

#[test]
fn every_open_store_holds_the_lock() {
    let store = TestStore::new();
    let reader = store.reader();
    let lock = store.folder.lock_file();
    assert_eq!(lock_holders(&lock), [std::process::id()]);
    let folder = store.folder.clone();
    drop(reader);
    drop(store.writer);
    assert_eq!(lock_holders(&folder.lock_file()), [0_u32; 0]);
}

#[test]
fn a_newer_store_is_refused_by_whoever_has_it_open() {
    let mut store = TestStore::new();
    let mut reader = store.reader();
    drop(reader.snapshot().unwrap());
    {
        let db = database(&store.folder);
        db.pragma_update(None, "user_version", schema_version() + 1).unwrap();
    }
    let newer = StoreError::Newer { found: schema_version() + 1, supported: schema_version() };
    assert_eq!(reader.snapshot().unwrap_err(), newer);
    let refused = store.one(put("c", numbered(0..1), PutMode::Upsert)).unwrap_err();
    assert_eq!(refused, newer);
    assert_eq!(Truth::open_reader(&store.folder, token()).unwrap_err(), newer);
    assert_eq!(writer(&store.folder).unwrap_err(), newer);
    assert_eq!(newer.to_failure().code, Code::StoreNewer);
}

#[test]
fn no_write_is_acknowledged_into_a_file_that_is_gone() {
    type Harm = fn(&StoreFolder);
    let harms: [(&str, Harm); 6] = [
        ("the truth deleted", |folder| std::fs::remove_file(folder.truth()).unwrap()),
        ("the truth replaced", |folder| {
            std::fs::copy(folder.truth(), folder.path().join("copy")).unwrap();
            std::fs::rename(folder.path().join("copy"), folder.truth()).unwrap();
        }),
        ("the log deleted", |folder| {
            std::fs::remove_file(folder.path().join("truth.sqlite-wal")).unwrap();
        }),
        ("the index of the log deleted", |folder| {
            std::fs::remove_file(folder.path().join("truth.sqlite-shm")).unwrap();
        }),
        ("the folder deleted", |folder| std::fs::remove_dir_all(folder.path()).unwrap()),
        ("the folder renamed", |folder| {
            std::fs::rename(folder.path(), folder.path().with_extension("old")).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let mut store = TestStore::new();
        store.upsert(numbered(0..3));
        let mut reader = store.reader();
        assert!(!store.writer.has_moved() && !reader.has_moved());
        harm(&store.folder);
        assert!(store.writer.has_moved() && reader.has_moved(), "{name}");
        let refused = store.one(put("c", numbered(3..4), PutMode::Upsert)).unwrap_err();
        assert_eq!(refused.to_failure().code, Code::StoreReplaced, "{name}");
        assert!(matches!(reader.snapshot(), Err(StoreError::Replaced { .. })), "{name}");
    }
}

#[test]
fn reopening_uses_the_store_that_replaced_the_old_one() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..3));
    std::fs::remove_file(store.folder.truth()).unwrap();
    // The old log still exists, with changes that must not reach the new file.
    let mut new = writer(&store.folder).unwrap();
    let gone = one(&mut new, put("c", numbered(0..1), PutMode::Upsert)).unwrap_err();
    assert!(matches!(gone, StoreError::NotFound { .. }));
    assert!(store.writer.has_moved());
    let mut reader = store.reader();
    assert_eq!(reader.check(isolith_store::Check::Full, 10).unwrap(), []);
    assert_eq!(reader.snapshot().unwrap().last_change().unwrap(), 0);
}

#[test]
fn readers_and_writers_wait_for_an_exclusive_lock_and_then_fail() {
    let store = TestStore::new();
    let folder = store.folder.clone();
    drop(store.writer);
    let file = std::fs::File::open(folder.lock_file()).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(file);
    });
    let before = Instant::now();
    Truth::open_reader(&folder, token()).unwrap();
    assert!(before.elapsed() >= Duration::from_millis(150));
    release.join().unwrap();
}

#[test]
fn the_log_shrinks_when_readers_finish() {
    let mut store = TestStore::new();
    let log = store.folder.path().join("truth.sqlite-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let long = |n: u32| {
        let mut records = numbered(n..n + 1);
        records.documents[0] = Some("x".repeat(8 << 20));
        records
    };
    let mut round = 0;
    while length() <= 70 << 20 {
        store.upsert(long(round));
        round += 1;
        assert!(round < 30, "the log does not grow");
    }
    assert!(!store.writer.checkpoint(Checkpoint::Passive).unwrap().complete);
    store.writer.set_deadline(Instant::now() + Duration::from_millis(50));
    assert!(!store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    store.writer.set_deadline(None);
    drop(snapshot);
    // The pause after a failed attempt.
    std::thread::sleep(Duration::from_millis(1100));
    store.upsert(numbered(0..1));
    assert!(length() <= 64 << 20, "{}", length());
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    assert_eq!(length(), 0);
}

#[test]
fn closing_does_not_touch_the_log() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..10));
    let log = store.folder.path().join("truth.sqlite-wal");
    let before = std::fs::metadata(&log).unwrap().len();
    assert!(before > 0);
    drop(store.writer);
    assert_eq!(std::fs::metadata(&log).unwrap().len(), before);
    let mut reader = Truth::open_reader(&store.folder, token()).unwrap();
    assert_eq!(reader.snapshot().unwrap().collection("c").unwrap().records, 10);
}
