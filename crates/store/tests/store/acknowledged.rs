//! Damaged logs that hold the only copy of acknowledged commits: every loss is reported.

use std::fs;
use std::path::{Path, PathBuf};

use isolith_protocol::{
    AddRoot, ChangeGraph, CypherQuery, Key, Purge, PutMode, StoreError, Write, code_spec,
};
use isolith_store::{Checkpoint, StoreFolder, Truth};
use isolith_types::{Code, Hint};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::common::{CREATE, TestStore, numbered, one, put, token, writer};

/// A copy of a store's files, taken while it was open.
pub(crate) struct Moment {
    files: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) content: String,
}

pub(crate) const LOG: &str = "truth.sqlite-wal";

impl Moment {
    pub(crate) fn of(folder: &StoreFolder) -> Self {
        let files = ["truth.sqlite", LOG, "acknowledged"]
            .map(|name| (PathBuf::from(name), fs::read(folder.path().join(name)).unwrap()));
        Self { files: files.into(), content: content(&folder.truth()) }
    }

    /// The number of records.
    pub(crate) fn records(&self) -> u64 {
        self.content.lines().filter(|line| line.starts_with("record ")).count() as u64
    }

    pub(crate) fn log(&self) -> &[u8] {
        &self.files[1].1
    }

    /// A copy of the store with another log, or none.
    pub(crate) fn with_log(&self, place: &Path, log: Option<&[u8]>) -> StoreFolder {
        let folder = StoreFolder::new(place);
        folder.create().unwrap();
        for (name, bytes) in &self.files {
            fs::write(place.join(name), bytes).unwrap();
        }
        match log {
            Some(log) => fs::write(place.join(LOG), log).unwrap(),
            None => fs::remove_file(place.join(LOG)).unwrap(),
        }
        folder
    }
}

/// All rows of all tables.
pub(crate) fn content(truth: &Path) -> String {
    let db = Connection::open(truth).unwrap();
    let _ = db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    let tables: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut text = String::new();
    for table in tables {
        let columns = if table == "store" { "uuid" } else { "*" };
        let mut statement = db.prepare(&format!("SELECT {columns} FROM {table}")).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<Value> = (0..width).map(|at| row.get(at).unwrap()).collect();
            text.push_str(&format!("{table} {values:?}\n"));
        }
    }
    text
}

/// A store with many kinds of commits in its log; the first of them are in the file too.
pub(crate) fn busy_store() -> TestStore {
    let mut store = TestStore::new();
    store.upsert(numbered(0..40));
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    for step in 0..12 {
        store.upsert(numbered(step * 7..step * 7 + 9));
        cypher(&mut store, &format!("CREATE (:Step {{number: {step}}})"));
    }
    store
}

fn cypher(store: &mut TestStore, text: &str) {
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    store.one(ChangeGraph { query }).unwrap();
}

/// Whether the store can be opened. If not, readers and writers must report what is missing; if
/// so, its content must be complete.
fn opens(folder: &StoreFolder, content_before: &str) -> bool {
    let before = fs::read(folder.path().join(LOG)).ok();
    let refused = match Truth::open_reader(folder, token()) {
        Ok(reader) => {
            drop(reader);
            assert_eq!(content(&folder.truth()), content_before, "acknowledged commits are lost");
            return true;
        }
        Err(refused) => refused,
    };
    assert!(matches!(refused, StoreError::Behind { commits: 1.., .. }), "{refused}");
    let failure = refused.to_failure();
    assert_eq!((failure.code, failure.code.exit_status()), (Code::Corrupt, 74));
    assert_eq!(failure.hint, Some(Hint::RepairIdleStore));
    assert_eq!(writer(folder).unwrap_err(), refused);
    // What is missing may still be there.
    let after = fs::read(folder.path().join(LOG)).ok();
    assert!(before.is_none() || before == after, "the log has changed");
    false
}

#[test]
fn one_flipped_bit_in_a_log_loses_nothing_silently() {
    let store = busy_store();
    let moment = Moment::of(&store.folder);
    let mut random = fastrand::Rng::with_seed(65);
    let mut refused = 0;
    for copy in 0..80 {
        let mut log = moment.log().to_vec();
        // The header and the headers of frames too.
        let bit = match copy {
            0..8 => copy * 32 + 5,
            8..20 => (32 + (copy - 8) * 2 * 8216) * 8 + 13 * copy,
            _ => random.usize(0..log.len() * 8),
        };
        log[bit / 8] ^= 1 << (bit % 8);
        let place = store.place.path().join(format!("copy-{copy}"));
        let folder = moment.with_log(&place, Some(&log));
        refused += usize::from(!opens(&folder, &moment.content));
        fs::remove_dir_all(&place).unwrap();
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn a_truncated_zeroed_deleted_shuffled_or_old_log_loses_nothing_silently() {
    const FRAME: usize = 24 + 8192;
    let mut store = busy_store();
    let earlier = Moment::of(&store.folder);
    store.upsert(numbered(200..230));
    cypher(&mut store, "CREATE (:Last)");
    let moment = Moment::of(&store.folder);
    let log = moment.log();
    let frame = |number: usize| 32 + number * FRAME..32 + (number + 1) * FRAME;
    let zeroed = |range: std::ops::Range<usize>| {
        let mut log = log.to_vec();
        log[range].fill(0);
        log
    };
    let mut shuffled = log.to_vec();
    shuffled[frame(4)].copy_from_slice(&log[frame(9)]);
    shuffled[frame(9)].copy_from_slice(&log[frame(4)]);
    let mut logs = vec![
        ("deleted", None),
        ("empty", Some(Vec::new())),
        ("without its header", Some(zeroed(0..32))),
        ("without its first frame", Some(zeroed(frame(0)))),
        ("zeroed in the middle", Some(zeroed(log.len() / 3..log.len() / 2))),
        ("without its end", Some(log[..log.len() - 10].to_vec())),
        ("cut to half", Some(log[..log.len() / 2].to_vec())),
        ("shuffled", Some(shuffled)),
        ("of an older moment", Some(earlier.log().to_vec())),
    ];
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..20 {
        logs.push(("cut anywhere", Some(log[..random.usize(0..log.len())].to_vec())));
    }
    for (number, (what, log)) in logs.iter().enumerate() {
        let place = store.place.path().join(format!("copy-{number}"));
        let folder = moment.with_log(&place, log.as_deref());
        assert!(!opens(&folder, &moment.content), "{what}");
    }
    let place = store.place.path().join("whole");
    assert!(opens(&moment.with_log(&place, Some(log)), &moment.content));
}

#[test]
fn every_kind_of_acknowledged_write_is_covered() {
    let mut store = busy_store();
    let root = AddRoot { path: "/r".to_owned(), spec: code_spec(2, "m"), worktree: None };
    let query = CypherQuery { text: "CREATE (:Alone)".to_owned(), ..CypherQuery::default() };
    let purge = Purge { limit_rows: 10 };
    // The last one changes nothing but its receipt.
    for (number, action) in
        [root.into(), ChangeGraph { query }.into(), purge.into()].into_iter().enumerate()
    {
        let before = Moment::of(&store.folder);
        store.any(action).unwrap();
        let after = Moment::of(&store.folder);
        let place = store.place.path().join(format!("copy-{number}"));
        assert!(!opens(&after.with_log(&place, Some(before.log())), &after.content), "{number}");
    }
}

#[test]
fn a_write_that_is_answered_from_its_receipt_is_covered() {
    let mut store = busy_store();
    let mark = store.folder.path().join("acknowledged");
    let write = Write {
        key: Key([9; 16]),
        keep: true,
        action: put("c", numbered(300..301), PutMode::Upsert).into(),
    };
    let marked_before = fs::read(&mark).unwrap();
    let log_before = Moment::of(&store.folder);
    store.writer.apply(std::slice::from_ref(&write), &[]).unwrap().remove(0).unwrap();
    // As if the writer had been killed before it could raise the mark.
    fs::write(&mark, marked_before).unwrap();
    let again = store.writer.apply(&[write], &[]).unwrap().remove(0).unwrap();
    assert!(again.repeated);
    let after = Moment::of(&store.folder);
    let place = store.place.path().join("copy");
    assert!(!opens(&after.with_log(&place, Some(log_before.log())), &after.content));
}

#[test]
fn a_log_deleted_under_a_live_writer_is_noticed_by_all() {
    let mut store = busy_store();
    let mut reader = store.reader();
    drop(reader.snapshot().unwrap());
    fs::remove_file(store.folder.path().join(LOG)).unwrap();
    let replaced = |error: StoreError| matches!(error, StoreError::Replaced { .. });
    assert!(replaced(store.one(put("c", numbered(0..1), PutMode::Upsert)).unwrap_err()));
    assert!(replaced(reader.snapshot().unwrap_err()));
    drop(reader);
    let folder = store.folder.clone();
    drop(store.writer);
    // Opening it again reports the loss.
    assert!(matches!(writer(&folder).unwrap_err(), StoreError::Behind { .. }));
    let refused = Truth::open_reader(&folder, token()).unwrap_err();
    assert!(matches!(refused, StoreError::Behind { .. }));
}

#[test]
fn a_live_writer_does_not_write_to_an_older_database() {
    let store = busy_store();
    let mut other = Truth::open_writer(&store.folder, CREATE, token()).unwrap();
    {
        // As if another process had lost commits unnoticed.
        let db = Connection::open(store.folder.truth()).unwrap();
        db.execute("UPDATE store SET commits = commits - 1", []).unwrap();
    }
    for _ in 0..2 {
        let refused = one(&mut other, put("c", numbered(0..1), PutMode::Upsert)).unwrap_err();
        assert!(matches!(refused, StoreError::Behind { commits: 1, .. }), "{refused}");
    }
}

#[test]
fn a_new_store_in_place_of_a_deleted_one_is_not_behind() {
    let store = busy_store();
    let folder = store.folder.clone();
    drop(store.writer);
    for name in ["truth.sqlite", LOG, "truth.sqlite-shm"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    drop(writer(&folder).unwrap());
    drop(Truth::open_reader(&folder, token()).unwrap());
}
