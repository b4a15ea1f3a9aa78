//! Snapshots: pages, scans, deadlines, copies.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use isolith_protocol::{DeleteRecords, Page, PutMode, Selection, StoreError, Which};
use isolith_store::{Check, Scope, StoreFolder, Truth};
use isolith_types::{Comparison, Filter, Metric, Scalar};

use crate::common::{OPEN, TestStore, bytes, numbered, one, put, token};

#[test]
fn a_snapshot_does_not_see_later_writes() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..2));
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    store.upsert(numbered(2..5));
    assert_eq!(snapshot.collection("c").unwrap().records, 2);
    assert_eq!(snapshot.last_change().unwrap(), 2);
    drop(snapshot);
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.collection("c").unwrap().records, 5);
    assert_eq!(snapshot.uuid().unwrap().len(), 36);
}

#[test]
fn pages_cover_exactly_one_collection() {
    let mut store = TestStore::new();
    store.create("large", Metric::L2);
    for part in 0..5 {
        store.upsert(numbered(part * 3..part * 3 + 3));
        let others = numbered(part * 100..part * 100 + 100);
        store.one(put("large", others, PutMode::Upsert)).unwrap();
    }
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    for (name, count) in [("c", 15), ("large", 500)] {
        let id = snapshot.collection(name).unwrap().id;
        let filter = Filter::Compare {
            key: "n".to_owned(),
            how: Comparison::AtLeast,
            value: Scalar::Integer(0),
        };
        for which in [Selection::All, Selection::Matching(filter)] {
            assert_eq!(snapshot.count(id, &which).unwrap(), count);
            let mut ids = Vec::new();
            let mut page = Page { limit: 4, ..Page::default() };
            loop {
                let found = snapshot.get(id, &which, page, false).unwrap();
                let Some(last) = found.last() else { break };
                page.after_row = last.row;
                ids.extend(found.into_iter().map(|stored| stored.record.id));
            }
            let expected: Vec<_> = (0..count).map(|n| format!("id-{n}")).collect();
            assert_eq!(ids, expected);
            let page = Page { offset: 5, limit: 2, ..Page::default() };
            let found = snapshot.get(id, &which, page, true).unwrap();
            assert_eq!(found.len(), 2);
            assert_eq!(
                (found[0].record.id.as_str(), &found[0].record.vector[..]),
                ("id-5", &[5.0, 1.0][..])
            );
        }
    }
    let ids = ["id-3", "nothing", "id-1"].map(str::to_owned).to_vec();
    let found = snapshot.get(1, &Selection::Ids(ids), Page::default(), false).unwrap();
    let found: Vec<_> = found.iter().map(|stored| stored.record.id.as_str()).collect();
    assert_eq!(found, ["id-3", "id-1"]);
}

#[test]
fn vectors_and_documents_are_iterated_by_row() {
    let mut store = TestStore::new();
    store.create("other", Metric::L2);
    store.upsert(numbered(0..2500));
    store.one(put("other", numbered(0..50), PutMode::Upsert)).unwrap();
    let even = (0..1500).filter(|n| n % 5 != 0).map(|n| format!("id-{n}")).collect();
    store
        .one(DeleteRecords { collection: "c".to_owned(), which: Which::Ids(even), limit: None })
        .unwrap();
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let mut seen = Vec::new();
    snapshot
        .for_each_vector(1, Scope::All, &mut |row, change, vector| {
            assert_eq!(vector, bytes([(row - 1) as f32, 1.0]));
            seen.push((row, change));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen.len(), 1300);
    assert_eq!(seen, snapshot.versions(1, Scope::All).unwrap());
    assert!(seen.is_sorted());

    let mut texts = Vec::new();
    snapshot
        .for_each_document(1, Scope::ChangedAfter(2490), &mut |_, _, text| {
            texts.push(text.unwrap().to_owned());
            if texts.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(texts, ["text 2490", "text 2491", "text 2492"]);

    let mut rescored = Vec::new();
    snapshot
        .vectors(&[2500, 2, 1], &mut |at, change, vector| rescored.push((at, change, vector.len())))
        .unwrap();
    assert_eq!(rescored, [(0, 2500, 8), (2, 1, 8)]);
    let found = snapshot.records(&[2, 2500], true).unwrap();
    assert!(found[0].is_none());
    assert_eq!(found[1].as_ref().unwrap().record.id, "id-2499");
}

#[test]
fn operations_end_at_their_deadline_or_when_cancelled() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..2000));
    let mut reader = store.reader();
    reader.set_deadline(Instant::now() + Duration::from_secs(60));
    let canceller = reader.canceller();
    let slow = Filter::DocumentMatches("(a|b|t)*x.*y.*z".to_owned());
    {
        let snapshot = reader.snapshot().unwrap();
        assert!(snapshot.rows_matching(1, &slow).is_ok());
        let mut count = 0;
        let stopped = snapshot.for_each_vector(1, Scope::All, &mut |_, _, _| {
            count += 1;
            canceller.cancel();
            ControlFlow::Continue(())
        });
        assert!(matches!(stopped, Err(StoreError::Deadline { .. })));
        assert!(count < 2000);
        assert!(matches!(snapshot.rows_matching(1, &slow), Err(StoreError::Deadline { .. })));
    }
    reader.set_deadline(None);
    assert!(reader.snapshot().unwrap().rows_matching(1, &slow).is_ok());

    store.writer.set_deadline(Instant::now());
    let late = store.one(put("c", numbered(0..1), PutMode::Upsert)).unwrap_err();
    assert_eq!(late.to_failure().code, isolith_types::Code::Timeout);
    store.writer.set_deadline(None);
    store.upsert(numbered(0..1));
}

#[test]
fn a_copy_is_an_independent_store() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..100));
    let copied = StoreFolder::new(store.place.path().join("copy"));
    copied.create().unwrap();
    let mut reader = store.reader();
    reader.copy_to(&copied.truth()).unwrap();
    assert!(matches!(reader.copy_to(&copied.truth()), Err(StoreError::Invalid(_))));
    // A copy is readable as it is; opening a writer puts it back into WAL mode.
    let mut there = Truth::open_reader(&copied, token()).unwrap();
    assert_eq!(there.snapshot().unwrap().collection("c").unwrap().records, 100);
    drop(there);
    let mut writer = Truth::open_writer(&copied, OPEN, token()).unwrap();
    let outcome = one(&mut writer, put("c", numbered(100..101), PutMode::Upsert)).unwrap();
    assert_eq!(outcome.count_after, 101);
    assert!(copied.path().join("truth.sqlite-wal").exists());
    let mut there = Truth::open_reader(&copied, token()).unwrap();
    assert_eq!(there.check(Check::Full, 10).unwrap(), []);
    assert_eq!(reader.snapshot().unwrap().collection("c").unwrap().records, 100);
}
