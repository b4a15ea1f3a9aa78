//! Checks and salvage of damaged files.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use isolith_protocol::{Page, PutMode, Recount, Selection, StoreError};
use isolith_store::{Check, Checkpoint, Embedder, Extent, SalvageReport, StoreFolder, Truth};
use isolith_types::Metric;

use crate::common::{MODEL, TestStore, bytes, database, numbered, one, put, token, writer};

const PAGE: u64 = 8192;

/// A closed store with everything in the file and nothing in the log.
fn closed(rows: u32) -> (tempfile::TempDir, StoreFolder) {
    let mut store = TestStore::new();
    store.create("other", Metric::Cosine);
    store.upsert(numbered(0..rows));
    store.one(put("other", numbered(0..10), PutMode::Upsert)).unwrap();
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    (store.place, store.folder)
}

pub(crate) fn damage_page(path: &Path, page: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xA5; PAGE as usize], (page - 1) * PAGE).unwrap();
}

/// The pages that a table or index takes, leaves last.
pub(crate) fn pages_of(folder: &StoreFolder, name: &str, kind: &str) -> Vec<u64> {
    let db = database(folder);
    let mut statement = db
        .prepare("SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = ?2 ORDER BY path")
        .unwrap();
    statement.query_map([name, kind], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn problems(folder: &StoreFolder, check: Check) -> usize {
    Truth::open_reader(folder, token()).unwrap().check(check, 20).unwrap().len()
}

fn try_salvage(folder: &StoreFolder) -> Result<SalvageReport, StoreError> {
    // As the tests of memory do it.
    let embed = |text: &str| Some(bytes([text.len() as f32, 1.0]));
    Truth::salvage(folder, None, &Embedder { model: MODEL, embed: &embed }, token())
}

pub(crate) fn salvage(folder: &StoreFolder) -> SalvageReport {
    let report = try_salvage(folder).unwrap();
    assert!(report.kept_as.exists());
    for check in Check::ALL {
        assert_eq!(problems(folder, check), 0, "{check:?}");
    }
    report
}

/// The names of reported rows with this extent of loss.
pub(crate) fn named(report: &SalvageReport, table: &str, extent: Extent) -> Vec<String> {
    let losses = report.lost.iter().filter(|loss| loss.table == table && loss.extent == extent);
    losses.flat_map(|loss| loss.ids.clone()).collect()
}

fn survivors(folder: &StoreFolder, name: &str) -> usize {
    survivors_except(folder, name, &[])
}

/// The number of records. Each must be as it was written, except for the documents of those in
/// `partial`.
fn survivors_except(folder: &StoreFolder, name: &str, partial: &[String]) -> usize {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    let snapshot = reader.snapshot().unwrap();
    let state = snapshot.collection(name).unwrap();
    let all = snapshot.get(state.id, &Selection::All, Page::default(), true).unwrap();
    for stored in &all {
        let number: u32 = stored.record.id.strip_prefix("id-").unwrap().parse().unwrap();
        let expected = numbered(number..number + 1);
        let is_partial = stored.record.document.is_none() && partial.contains(&stored.record.id);
        assert!(is_partial || stored.record.document == expected.documents[0], "{number}");
        assert_eq!(stored.record.metadata, expected.metadatas[0]);
        assert_eq!(stored.record.vector, [number as f32, 1.0]);
    }
    all.len()
}

#[test]
fn an_intact_store_has_no_problems_and_survives_salvage() {
    let (_place, folder) = closed(300);
    for check in Check::ALL {
        assert_eq!(problems(&folder, check), 0, "{check:?}");
    }
    let report = salvage(&folder);
    assert_eq!((report.collections, report.records, report.lost_records), (2, 310, 0));
    assert_eq!((report.lost, report.lost_ids), (vec![], vec![]));
    assert_eq!((survivors(&folder, "c"), survivors(&folder, "other")), (300, 10));
    // New writes use numbers that were never used.
    let mut writer = writer(&folder).unwrap();
    let outcome = one(&mut writer, put("c", numbered(300..301), PutMode::Upsert)).unwrap();
    assert_eq!((outcome.count_after, outcome.collection.unwrap().last_change), (301, 311));
}

#[test]
fn damaged_leaf_pages_lose_only_their_rows() {
    let (_place, folder) = closed(2000);
    let leaves = pages_of(&folder, "record", "leaf");
    assert!(leaves.len() > 5);
    damage_page(&folder.truth(), leaves[2]);
    let vectors = pages_of(&folder, "vector", "leaf");
    damage_page(&folder.truth(), vectors[vectors.len() - 1]);
    assert!(problems(&folder, Check::Quick) > 0);
    let report = salvage(&folder);
    let partial = named(&report, "record", Extent::Partial);
    let left = survivors_except(&folder, "c", &partial) + survivors(&folder, "other");
    assert_eq!(report.records, left as u64);
    // Indexes and the side table still held everything except the texts.
    let lost = named(&report, "vector", Extent::Lost);
    assert_eq!(report.lost.len(), 2, "{:?}", report.lost);
    assert!(partial.len() > 10 && lost.len() > 10, "{} {}", partial.len(), lost.len());
    assert_eq!((left, report.lost_records), (2010 - lost.len(), lost.len() as u64));
    assert_eq!(report.lost_ids, lost);
}

#[test]
fn damaged_indexes_and_fields_lose_nothing() {
    let (_place, folder) = closed(2000);
    for index in ["sqlite_autoindex_record_1", "sqlite_autoindex_record_2", "field"] {
        let leaf = pages_of(&folder, index, "leaf")[1];
        damage_page(&folder.truth(), leaf);
    }
    assert!(problems(&folder, Check::Full) > 0);
    let report = salvage(&folder);
    assert_eq!((report.records, report.lost_records), (2010, 0));
    assert_eq!(survivors(&folder, "c"), 2000);
}

#[test]
fn a_lost_first_page_is_replaced() {
    let (_place, folder) = closed(1000);
    damage_page(&folder.truth(), 1);
    let refused = Truth::open_reader(&folder, token()).unwrap_err();
    assert_eq!(refused.to_failure().code, isolith_types::Code::Corrupt);
    let report = salvage(&folder);
    assert_eq!((report.records, report.lost_records), (1010, 0));
    assert_eq!(survivors(&folder, "c"), 1000);
}

#[test]
fn random_damage_never_invents_records() {
    for seed in 0..8 {
        let (_place, folder) = closed(600);
        let mut random = fastrand::Rng::with_seed(seed);
        let pages = std::fs::metadata(folder.truth()).unwrap().len() / PAGE;
        for _ in 0..3 {
            damage_page(&folder.truth(), random.u64(2..=pages));
        }
        let report = salvage(&folder);
        let mut reader = Truth::open_reader(&folder, token()).unwrap();
        let names: Vec<String> = {
            let snapshot = reader.snapshot().unwrap();
            snapshot.collections().unwrap().into_iter().map(|state| state.name).collect()
        };
        let partial = named(&report, "record", Extent::Partial);
        let left: usize = names.iter().map(|name| survivors_except(&folder, name, &partial)).sum();
        assert_eq!(left as u64, report.records, "seed {seed}");
    }
}

#[test]
fn a_store_in_use_is_not_salvaged() {
    let store = TestStore::new();
    let refused = try_salvage(&store.folder).unwrap_err();
    assert!(
        matches!(refused, StoreError::LockHeld { holders, .. } if holders == [std::process::id()])
    );
    let missing = StoreFolder::new(store.place.path().join("nothing"));
    assert!(matches!(try_salvage(&missing), Err(StoreError::Missing { .. })));
}

#[test]
fn an_interrupted_salvage_is_completed_on_the_next_open() {
    let (_place, folder) = closed(50);
    let salvaged = folder.path().join("truth.sqlite.salvaged");
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    reader.copy_to(&salvaged).unwrap();
    drop(reader);
    // As if it had died after moving the damaged file away.
    std::fs::write(folder.path().join("truth.sqlite-wal"), "a log that must not be played")
        .unwrap();
    std::fs::remove_file(folder.truth()).unwrap();
    assert!(folder.holds_store());
    assert_eq!(survivors(&folder, "c"), 50);
    assert!(!salvaged.exists());
    let kept = std::fs::read_dir(folder.path()).unwrap();
    let kept = kept.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().contains(".damaged-")
    });
    assert_eq!(kept.count(), 1);
}

#[test]
fn checks_name_problems() {
    let (_place, folder) = closed(20);
    {
        let db = database(&folder);
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             UPDATE collection SET records = 7 WHERE name = 'c';
             DELETE FROM record WHERE row = 3;
             UPDATE vector SET data = x'0000C07F0000C07F' WHERE row = 4;
             UPDATE vector SET data = x'00' WHERE row = 5;
             DELETE FROM field WHERE row = 6;
             INSERT INTO field VALUES (999, 1, 8);
             CREATE TABLE foreign_to_us (x);",
        )
        .unwrap();
    }
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let mut found = |check| -> Vec<String> {
        let problems = reader.check(check, 100).unwrap();
        problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(found(Check::Full), [""; 0]);
    assert_eq!(found(Check::Schema), ["table foreign_to_us is not part of the schema"]);
    assert_eq!(found(Check::References), ["vector row 3 refers to a missing row in record"]);
    assert_eq!(
        found(Check::Counts),
        [
            "collection 'c' says 7 records, there are 19",
            "collection 'c' says 20 unfolded, there are 19"
        ]
    );
    assert_eq!(
        found(Check::Orphans),
        [
            "the vector of row 3 has no record",
            "a field of row 3 has no record",
            "a field of row 3 has no record",
            "a field of row 8 has no key"
        ]
    );
    assert_eq!(
        found(Check::Vectors),
        [
            "the vector of \"id-3\" (row 4) has infinite or NaN numbers",
            "the vector of \"id-4\" (row 5) has 1 bytes; the dimension is 2"
        ]
    );
    assert_eq!(
        found(Check::Fields),
        ["\"id-5\" (row 6) lacks the field \"n\"", "\"id-5\" (row 6) lacks the field \"tenth\""]
    );
}

#[test]
fn a_recount_corrects_counts() {
    let (_place, folder) = closed(20);
    {
        let db = database(&folder);
        db.execute_batch(
            "UPDATE collection SET records = 7, unfolded = 1; UPDATE store SET last_change = 3;",
        )
        .unwrap();
    }
    assert!(problems(&folder, Check::Counts) > 0);
    let mut writer = writer(&folder).unwrap();
    one(&mut writer, Recount).unwrap();
    assert_eq!(problems(&folder, Check::Counts), 0);
    let outcome = one(&mut writer, put("c", numbered(20..21), PutMode::Upsert)).unwrap();
    assert_eq!((outcome.count_after, outcome.collection.unwrap().last_change), (21, 31));
}
