//! Errors from inside SQLite, caused by limiting the file's size.

use isolate::InWorker;
use isolith_protocol::{
    CreateCollection, DeleteCollection, DeleteRecords, PutMode, PutRecords, Records, SwapPlan,
    SwapSegments, Tidy, Which,
};
use isolith_types::{CollectionSpec, Metric};

use super::*;
use crate::folder::StoreFolder;
use crate::open::{Truth, WriterOptions};

fn store() -> (tempfile::TempDir, Writer) {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path().join("store"));
    let options = WriterOptions { durability: Durability::Normal, create: true };
    let mut writer = Truth::open_writer(&folder, options, InWorker::in_process()).unwrap();
    let spec = CollectionSpec {
        name: "c".to_owned(),
        dimension: Some(2),
        metric: Metric::L2,
        model: None,
    };
    let create = write(0, CreateCollection { spec, if_missing: false });
    writer.apply(&[create], &[]).unwrap().remove(0).unwrap();
    (place, writer)
}

fn write(key: u8, operation: impl WriteOperation) -> Write {
    Write { key: Key([key; 16]), keep: false, action: operation.into() }
}

/// A record with a text of this many kilobytes.
fn put_long(key: u8, kilobytes: usize) -> Write {
    let records = Records {
        ids: vec![format!("id-{key}")],
        documents: vec![Some("x".repeat(kilobytes << 10))],
        metadatas: Vec::new(),
        dimension: 2,
        vectors: vec![0; 8].into(),
    };
    let collection = "c".to_owned();
    write(key, PutRecords { collection, records, mode: PutMode::Upsert, load: None })
}

fn limit_file(writer: &Writer, more_pages: i64) {
    let db = &writer.db.connection;
    let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    db.pragma_update_and_check(None, "max_page_count", pages + more_pages, |_| Ok(())).unwrap();
}

fn records(writer: &Writer) -> i64 {
    let db = &writer.db.connection;
    db.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
}

#[test]
fn on_a_full_disk_only_the_write_that_does_not_fit_fails() {
    let (_place, mut writer) = store();
    limit_file(&writer, 30);
    let group = [put_long(1, 1), put_long(2, 5000), put_long(3, 1)];
    let results = writer.apply(&group, &[]).unwrap();
    assert!(results[0].is_ok() && results[2].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert_eq!(error.to_failure().code, isolith_types::Code::DiskFull);
    assert_eq!(records(&writer), 2);
    // The failed write left no receipt: with enough space it succeeds, and the others are not
    // repeated.
    limit_file(&writer, 10_000);
    let results = writer.apply(&group, &[]).unwrap();
    let repeated: Vec<bool> =
        results.iter().map(|result| result.as_ref().unwrap().repeated).collect();
    assert_eq!(repeated, [true, false, true]);
    assert_eq!(records(&writer), 3);
}

#[test]
fn confirmed_receipts_are_removed_even_if_the_write_fails() {
    let (_place, mut writer) = store();
    writer.apply(&[put_long(1, 1)], &[]).unwrap().remove(0).unwrap();
    let bad = write(2, DeleteCollection { name: "nothing".to_owned() });
    assert!(writer.apply(&[bad], &[Key([0; 16]), Key([1; 16])]).unwrap()[0].is_err());
    let receipts: i64 = writer
        .db
        .connection
        .query_row("SELECT count(*) FROM receipt", [], |row| row.get(0))
        .unwrap();
    assert_eq!(receipts, 0);
}

#[test]
fn a_swap_is_synced_whatever_the_durability() {
    let (_place, mut writer) = store();
    let plan = SwapPlan {
        collection: 1,
        from_generation: 0,
        level: isolith_protocol::Level::Base,
        complete_to: 0,
        segments: Vec::new(),
    };
    let group = [write(1, SwapSegments { plan })];
    assert!(writer.must_sync(&group));
    assert!(!writer.must_sync(&[put_long(2, 1)]));
    let swapped = writer.apply(&group, &[]).unwrap().remove(0).unwrap();
    assert!(SwapSegments::reply_from(swapped.reply).unwrap().swapped);
    writer.durability = Durability::Full;
    assert!(writer.must_sync(&[put_long(2, 1)]));
}

#[test]
fn expired_rows_are_removed() {
    let (_place, mut writer) = store();
    writer.apply(&[put_long(1, 1)], &[]).unwrap().remove(0).unwrap();
    let db = &writer.db.connection;
    db.execute("UPDATE receipt SET at = at - 90000000", []).unwrap();
    db.execute(
        "INSERT INTO load VALUES ('old', 1, 1, 1, 0, 0, 0, 1, 0), ('new', 1, 1, 1, 0, 0, 0, 0, ?1)",
        [now()],
    )
    .unwrap();
    db.execute("INSERT INTO quarantined_job VALUES ('parse', x'00', '{}', 0)", []).unwrap();
    let tidied = writer.apply_one(Key([2; 16]), Tidy).unwrap().reply;
    assert_eq!((tidied.deleted, tidied.more), (4, false));
}

#[test]
fn free_pages_are_returned_in_slices() {
    let (_place, mut writer) = store();
    writer.apply(&[put_long(1, 30_000)], &[]).unwrap().remove(0).unwrap();
    let delete = DeleteRecords {
        collection: "c".to_owned(),
        which: Which::Ids(vec!["id-1".to_owned()]),
        limit: None,
    };
    writer.apply(&[write(2, delete)], &[]).unwrap().remove(0).unwrap();
    let mut key = 3;
    while writer.apply_one(Key([key; 16]), Tidy).unwrap().reply.more {
        key += 1;
    }
    let free: i64 =
        writer.db.connection.pragma_query_value(None, "freelist_count", |row| row.get(0)).unwrap();
    assert!(key > 4 && free <= 1000, "{key} {free}");
}
