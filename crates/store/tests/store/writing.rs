//! Write operations.

use crate::common::{TestStore, bytes, database, key, numbered, put, records, write};
use isolith_protocol::{
    AddFact, CreateCollection, DeleteCollection, DeleteRecords, Done, ForgetPoison, LoadStep,
    Patch, Purge, PutMode, PutRecords, Records, RememberPoison, RenameCollection, Selection,
    StoreError, Tidy, UpdateRecords, Which, Write, WriteOperation, WriteReply,
};
use isolith_store::Check;
use isolith_types::{CollectionSpec, Comparison, Filter, Metadata, Metric, Scalar};

const ADD: PutMode = PutMode::Add { skip_existing: false };

fn assert_sound(store: &TestStore) {
    let mut reader = store.reader();
    for check in Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
}

#[test]
fn adds_and_upserts_report_counts() {
    let mut store = TestStore::new();
    let first = records(&[("a", "one", r#"{"x":1}"#, [1.0, 0.0]), ("b", "two", "{}", [0.0, 1.0])]);
    let outcome = store.one(put("c", first.clone(), ADD)).unwrap();
    assert_eq!((outcome.inserted, outcome.count_after), (2, 2));
    assert_eq!(outcome.collection.as_ref().unwrap().unfolded, 2);

    let outcome = store.one(put("c", first.clone(), ADD)).unwrap();
    assert_eq!((outcome.unchanged, outcome.count_after), (2, 2));
    assert_eq!(outcome.collection.unwrap().last_change, 2);

    let other = records(&[("b", "new", "{}", [0.0, 1.0]), ("c", "three", "{}", [1.0, 1.0])]);
    let refused = store.one(put("c", other.clone(), ADD)).unwrap_err();
    assert_eq!(refused, StoreError::IdsExist { count: 1, ids: vec!["b".to_owned()] });
    let skipped = store.one(put("c", other.clone(), PutMode::Add { skip_existing: true })).unwrap();
    assert_eq!((skipped.inserted, skipped.rejected_count), (1, 1));
    assert_eq!(skipped.rejected, [(0, "id \"b\" exists with different content".to_owned())]);

    let outcome = store.upsert(other);
    assert_eq!((outcome.updated, outcome.unchanged, outcome.count_after), (1, 1, 3));
    // Three in the tail and one tombstone.
    assert_eq!(outcome.collection.unwrap().unfolded, 4);
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let all = snapshot.get(1, &Selection::All, Default::default(), true).unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|stored| {
            let document = stored.record.document.clone().unwrap();
            (stored.row, stored.change, stored.record.id.as_str(), document)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (1, 1, "a", "one".to_owned()),
            (2, 4, "b", "new".to_owned()),
            (3, 3, "c", "three".to_owned())
        ]
    );
    assert_eq!(all[0].record.vector, [1.0, 0.0]);
    assert_eq!(snapshot.tombstones(1).unwrap(), [(2, 2)]);
    assert_eq!(snapshot.tail(1, 2).unwrap(), [(2, 4), (3, 3)]);
    drop(snapshot);
    assert_sound(&store);
}

#[test]
fn updates_merge_and_deletes_count_missing_ids() {
    let mut store = TestStore::new();
    store.upsert(records(&[("a", "one", r#"{"x":1,"y":[1,1.0,"z"]}"#, [1.0, 0.0])]));
    let patch =
        |id: &str| Patch { id: id.to_owned(), document: None, metadata: None, vector: None };
    let update = |patches| UpdateRecords { collection: "c".to_owned(), patches };
    let outcome = store
        .one(update(vec![
            Patch {
                document: Some(None),
                metadata: Some(Metadata::parse(r#"{"x":null,"w":"v"}"#).unwrap()),
                vector: Some(vec![2.0, 2.0]),
                ..patch("a")
            },
            patch("b"),
        ]))
        .unwrap();
    assert_eq!((outcome.updated, outcome.missing, outcome.unchanged), (1, 1, 0));
    let outcome = store.one(update(vec![patch("a")])).unwrap();
    assert_eq!((outcome.updated, outcome.unchanged), (0, 1));
    assert_sound(&store);
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let ids = Selection::Ids(vec!["b".to_owned(), "a".to_owned()]);
    let found = snapshot.get(1, &ids, Default::default(), true).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].record.document, None);
    assert_eq!(found[0].record.metadata.as_str(), r#"{"w":"v","y":[1,1.0,"z"]}"#);
    assert_eq!(found[0].record.vector, [2.0, 2.0]);
    assert!(found[0].created_at <= found[0].updated_at);
    drop(snapshot);

    let delete = |ids: &[&str]| DeleteRecords {
        collection: "c".to_owned(),
        which: Which::Ids(ids.iter().map(|id| (*id).to_owned()).collect()),
        limit: None,
    };
    let outcome = store.one(delete(&["a", "b", "a"])).unwrap();
    assert_eq!((outcome.deleted, outcome.missing, outcome.count_after), (1, 1, 0));
    assert_sound(&store);
}

#[test]
fn an_invalid_record_is_named_and_nothing_is_written() {
    let mut store = TestStore::new();
    store.create("angles", Metric::Cosine);
    for (collection, records, says) in bad_batches() {
        let error = store.one(put(collection, records, PutMode::Upsert)).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
    let patch = Patch { id: "x".repeat(1001), document: None, metadata: None, vector: None };
    let update = UpdateRecords { collection: "c".to_owned(), patches: vec![patch] };
    assert!(matches!(store.one(update), Err(StoreError::BadRecord { row: 0, .. })));
    let outcome = store.upsert(Records::default());
    assert_eq!((outcome.count_after, outcome.collection.unwrap().last_change), (0, 0));
}

/// The collection, the batch, and the expected message.
fn bad_batches() -> Vec<(&'static str, Records, &'static str)> {
    let good = || records(&[("a", "", "{}", [1.0, 0.0]), ("b", "", "{}", [0.0, 1.0])]);
    let with = |change: fn(&mut Records)| {
        let mut records = good();
        change(&mut records);
        records
    };
    vec![
        ("c", with(|r| r.ids[1].clear()), "row 1: the id is empty"),
        ("c", with(|r| r.ids[1] = "x".repeat(1001)), "row 1: the id is longer than 1000 bytes"),
        (
            "c",
            with(|r| r.ids[1] = "a".to_owned()),
            "row 1 (id \"a\"): the id occurs twice in one call",
        ),
        (
            "c",
            with(|r| r.vectors = bytes([1.0, 2.0, f32::NAN, 1.0]).into()),
            "row 1 (id \"b\"): number 0 of the vector is infinite or NaN",
        ),
        (
            "c",
            with(|r| r.vectors = bytes([1.0, f32::INFINITY, 1.0, 1.0]).into()),
            "row 0 (id \"a\"): number 1 of the vector is infinite or NaN",
        ),
        (
            "angles",
            with(|r| r.vectors = bytes([1.0, 2.0, 3e38, 3e38]).into()),
            "row 1 (id \"b\"): the vector is longer than 1e18",
        ),
        (
            "c",
            with(|r| {
                r.dimension = 1;
                r.vectors = bytes([1.0, 2.0]).into();
            }),
            "row 0: the vector has dimension 1, collection \"c\" has 2",
        ),
        (
            "c",
            with(|r| r.vectors = bytes([1.0]).into()),
            "expected 16 bytes (2 vectors of dimension 2), found 4",
        ),
        ("c", with(|r| r.documents.truncate(1)), "2 ids, but 1 document"),
        ("c", with(|r| r.dimension = 0), "vectors have 1 to 65536 numbers, not 0"),
        ("cc", good(), "there is no collection \"cc\""),
    ]
}

#[test]
fn a_write_is_applied_once() {
    let mut store = TestStore::new();
    let once = write(put("c", numbered(0..3), ADD));
    let first = store.writer.apply(std::slice::from_ref(&once), &[]).unwrap().remove(0).unwrap();
    assert!(!first.repeated);
    store
        .one(DeleteRecords {
            collection: "c".to_owned(),
            which: Which::Ids(vec!["id-1".to_owned()]),
            limit: None,
        })
        .unwrap();
    let again = store.writer.apply(std::slice::from_ref(&once), &[]).unwrap().remove(0).unwrap();
    assert!(again.repeated);
    assert_eq!(again.collection.unwrap().records, 2);
    assert_eq!(PutRecords::reply_from(again.reply).unwrap().inserted, 3);

    let refused = store.keyed(once.key, put("c", numbered(0..2), ADD));
    assert_eq!(refused.unwrap_err(), StoreError::KeyReused);

    // A failed write leaves no receipt.
    let mut bad = write(put("nowhere", numbered(0..1), ADD));
    assert!(store.writer.apply(std::slice::from_ref(&bad), &[]).unwrap()[0].is_err());
    bad.action = put("c", numbered(0..1), ADD).into();
    assert!(store.writer.apply(&[bad], &[]).unwrap()[0].is_ok());

    // A confirmed receipt is removed, unless the caller chose the key.
    let kept = Write { keep: true, ..write(put("c", numbered(7..8), ADD)) };
    store.writer.apply(std::slice::from_ref(&kept), &[once.key]).unwrap();
    store.writer.apply(&[], &[kept.key]).unwrap();
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.receipt(once.key).unwrap(), None);
    assert!(snapshot.receipt(kept.key).unwrap().unwrap().contains("\"inserted\":1,"));
}

#[test]
fn a_receipt_of_another_encoding_matches_by_key() {
    let mut store = TestStore::new();
    let (once, add) = (key(), put("c", numbered(0..3), ADD));
    store.keyed(once, add.clone()).unwrap();
    let receipts = [
        // From before encodings had numbers: the reply alone, with fields of other operations.
        r#"{"created":false,"inserted":3,"rejected":[],"swapped":false,"graph":null}"#,
        r#"{"encoding":1000,"reply":{"inserted":3}}"#,
    ];
    for receipt in receipts {
        let db = database(&store.folder);
        db.execute("UPDATE receipt SET request = zeroblob(16), result = ?1", [receipt]).unwrap();
        drop(db);
        let again = store.keyed(once, add.clone()).unwrap();
        assert_eq!((again.repeated, again.inserted, again.count_after), (true, 3, 3), "{receipt}");
    }
    // A receipt with the reply of another operation means that the key was reused.
    let fact = isolith_types::NewFact::default();
    let refused = store.keyed(once, AddFact { fact });
    assert_eq!(refused.unwrap_err(), StoreError::KeyReused);
}

#[test]
fn a_bad_write_fails_alone() {
    let mut store = TestStore::new();
    let group = [
        write(put("c", numbered(0..2), ADD)),
        write(put("c", records(&[("id-0", "other", "{}", [9.0, 9.0])]), ADD)),
        write(put("missing", numbered(0..1), ADD)),
        write(put("c", numbered(2..3), ADD)),
    ];
    let results = store.writer.apply(&group, &[]).unwrap();
    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, false, true]);
    assert_eq!(results[3].as_ref().unwrap().collection.as_ref().unwrap().records, 3);
    let mut reader = store.reader();
    assert!(reader.snapshot().unwrap().receipt(group[1].key).unwrap().is_none());
    assert_sound(&store);
}

#[test]
fn a_receipt_keeps_only_part_of_a_long_result() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..500));
    let mut changed = numbered(0..500);
    changed.documents.iter_mut().for_each(|document| *document = None);
    let (skipping, once) = (put("c", changed, PutMode::Add { skip_existing: true }), key());
    let first = store.keyed(once, skipping.clone()).unwrap();
    assert_eq!((first.rejected.len(), first.rejected_count), (500, 500));
    let again = store.keyed(once, skipping).unwrap();
    assert_eq!(again.rejected_count, 500);
    assert!(!again.rejected.is_empty() && again.rejected.len() < 100);
}

#[test]
fn collections_are_created_renamed_and_deleted() {
    let mut store = TestStore::empty();
    let spec = |name: &str| CollectionSpec {
        name: name.to_owned(),
        dimension: None,
        metric: Metric::Cosine,
        model: Some("m".to_owned()),
    };
    let create = |spec: CollectionSpec, if_missing| CreateCollection { spec, if_missing };
    assert!(store.one(create(spec("docs"), false)).unwrap().created);
    assert!(!store.one(create(spec("docs"), true)).unwrap().created);
    let exists = store.one(create(spec("docs"), false)).unwrap_err();
    assert_eq!(exists.to_failure().code, isolith_types::Code::AlreadyExists);
    let other = CollectionSpec { metric: Metric::Dot, ..spec("docs") };
    let differs = store.one(create(other, true)).unwrap_err();
    assert_eq!(
        differs.to_string(),
        "collection \"docs\" already exists, with metric cosine, not dot"
    );
    let other = CollectionSpec { model: Some("n".to_owned()), ..spec("docs") };
    assert!(matches!(store.one(create(other, true)), Err(StoreError::ModelMismatch { .. })));
    for name in ["", "a\nb"] {
        assert!(matches!(store.one(create(spec(name), false)), Err(StoreError::Invalid(_))));
    }

    store.one(create(spec("notes"), false)).unwrap();
    let rename =
        |from: &str, to: &str| RenameCollection { from: from.to_owned(), to: to.to_owned() };
    assert!(matches!(store.one(rename("docs", "notes")), Err(StoreError::CollectionExists { .. })));
    assert_eq!(store.one(rename("docs", "papers")).unwrap().collection.unwrap().name, "papers");
    let missing = store.one(rename("docs", "x")).unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }));
    let near = store.one(DeleteCollection { name: "paper".to_owned() }).unwrap_err();
    assert_eq!(near.to_failure().hint, Some("did you mean \"papers\"?".into()));
    // The first vector decides the dimension, and the next ones must follow.
    let outcome = store.one(put("papers", numbered(1..3), ADD)).unwrap();
    assert_eq!(outcome.collection.unwrap().dimension, Some(2));

    store.one(DeleteCollection { name: "papers".to_owned() }).unwrap();
    store.one(create(spec("papers"), false)).unwrap();
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    assert!(snapshot.purge_due().unwrap());
    let all = snapshot.collections().unwrap();
    assert_eq!(
        all.iter().map(|c| (c.id, c.name.as_str())).collect::<Vec<_>>(),
        [(2, "notes"), (3, "papers")]
    );
}

#[test]
fn deleted_collections_are_purged_in_batches() {
    let mut store = TestStore::new();
    store.create("other", Metric::L2);
    store.upsert(numbered(0..900));
    store.one(put("other", numbered(0..10), ADD)).unwrap();
    store.upsert(numbered(5..10));
    store
        .one(DeleteRecords {
            collection: "c".to_owned(),
            which: Which::Ids(vec!["id-3".to_owned()]),
            limit: None,
        })
        .unwrap();
    let deleted = store.one(DeleteCollection { name: "c".to_owned() }).unwrap();
    assert_eq!((deleted.deleted, deleted.more), (899, true));
    let mut slices = 0;
    while store.one(Purge { limit_rows: 500 }).unwrap().more {
        slices += 1;
        assert!(slices < 100, "the purge does not end");
    }
    // 900 records, two fields each.
    assert!(slices >= 5, "{slices}");
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    assert!(!snapshot.purge_due().unwrap());
    assert_eq!(snapshot.collection("other").unwrap().records, 10);
    drop(snapshot);
    assert_sound(&store);
    store.one(Tidy).unwrap();
}

#[test]
fn a_hundred_thousand_ids_are_deleted_in_one_call() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..3000));
    let ids = (0..100_000).map(|n| format!("id-{n}")).collect();
    let delete = DeleteRecords { collection: "c".to_owned(), which: Which::Ids(ids), limit: None };
    let outcome = store.one(delete).unwrap();
    assert_eq!((outcome.deleted, outcome.missing, outcome.count_after), (3000, 97_000, 0));
}

#[test]
fn records_are_deleted_by_filter() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..100));
    let filter = Filter::Compare {
        key: "tenth".to_owned(),
        how: Comparison::AtLeast,
        value: Scalar::Integer(3),
    };
    let delete =
        DeleteRecords { collection: "c".to_owned(), which: Which::Matching(filter), limit: None };
    let outcome = store.one(delete).unwrap();
    assert_eq!((outcome.deleted, outcome.count_after), (70, 30));
    assert_sound(&store);
}

#[test]
fn an_ingest_resumes_where_it_stopped() {
    let mut store = TestStore::new();
    let step = |first_row, rows: u32, finished| PutRecords {
        collection: "c".to_owned(),
        records: numbered(first_row..first_row + rows),
        mode: PutMode::Upsert,
        load: Some(LoadStep {
            source: "file".to_owned(),
            first_row: u64::from(first_row),
            rows_covered: u64::from(rows),
            rejected: 0,
            finished,
        }),
    };
    assert_eq!(store.one(step(0, 10, false)).unwrap().load.unwrap().rows, 10);
    // Done before, with another key.
    let again = store.one(step(0, 10, false)).unwrap();
    assert_eq!((again.unchanged, again.load.unwrap().inserted), (10, 10));
    let gap = store.one(step(20, 10, false)).unwrap_err();
    assert_eq!(gap.to_string(), "the load is at row 10 and cannot continue at row 20");
    let last = store.one(step(10, 5, true)).unwrap().load.unwrap();
    assert_eq!((last.rows, last.inserted, last.finished), (15, 15, true));
    // Restarting a finished ingest is a new one, which finds everything unchanged.
    let new = store.one(step(0, 10, false)).unwrap().load.unwrap();
    assert_eq!((new.rows, new.inserted, new.unchanged, new.finished), (10, 0, 10, false));
    let mut reader = store.reader();
    assert_eq!(reader.snapshot().unwrap().load_progress("file").unwrap().unwrap().rows, 10);
    drop(reader);
    store.one(DeleteCollection { name: "c".to_owned() }).unwrap();
    store.create("c", Metric::L2);
    let fresh = store.one(step(0, 10, false)).unwrap();
    assert_eq!(fresh.inserted, 10);
}

#[test]
fn poisoned_jobs_are_remembered() {
    let mut store = TestStore::empty();
    for input in [vec![1], vec![2]] {
        let poison = RememberPoison { role: "parse".to_owned(), input, poison: "{}".to_owned() };
        store.one(poison).unwrap();
    }
    let mut reader = store.reader();
    assert_eq!(reader.snapshot().unwrap().poisons().unwrap().len(), 2);
    let forget = ForgetPoison { role: Some("parse".to_owned()), input: Some(vec![1]) };
    assert_eq!(store.one(forget).unwrap().updated, 1);
    assert_eq!(store.one(ForgetPoison { role: None, input: None }).unwrap().updated, 1);
}

#[test]
fn requests_round_trip_through_postcard() {
    let write = Write { key: key(), keep: true, action: put("c", numbered(0..3), ADD).into() };
    let bytes = postcard::to_allocvec(&write).unwrap();
    assert_eq!(postcard::from_bytes::<Write>(&bytes).unwrap(), write);
    let mut store = TestStore::new();
    let done = store.writer.apply(&[write], &[]).unwrap().remove(0).unwrap();
    let bytes = postcard::to_allocvec(&done).unwrap();
    assert_eq!(postcard::from_bytes::<Done<WriteReply>>(&bytes).unwrap(), done);
}
