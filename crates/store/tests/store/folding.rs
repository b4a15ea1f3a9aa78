//! Segment swaps, tombstones and the tail.

use isolith_protocol::{
    DeleteCollection, DeleteRecords, IndexKind, Level, QuarantineSegments, SegmentEntry,
    SegmentsSwapped, SwapPlan, SwapSegments, Which,
};
use isolith_store::Check;

use crate::common::{TestStore, Written, numbered};

fn segment(level: Level, file: &str, rows: u64) -> SegmentEntry {
    SegmentEntry {
        level,
        kind: IndexKind::Vector,
        file: file.to_owned(),
        rows,
        bytes: 100,
        checksum: 0xFFFF_FFFF,
        quarantined: None,
    }
}

fn swap(
    store: &mut TestStore,
    from: u64,
    level: Level,
    complete_to: u64,
    file: &str,
) -> Written<SegmentsSwapped> {
    let segments = vec![segment(level, file, 10)];
    let plan = SwapPlan { collection: 1, from_generation: from, level, complete_to, segments };
    store.one(SwapSegments { plan }).unwrap()
}

pub(crate) fn delete(store: &mut TestStore, id: &str) {
    let which = Which::Ids(vec![id.to_owned()]);
    store.one(DeleteRecords { collection: "c".to_owned(), which, limit: None }).unwrap();
}

fn tombstones(store: &TestStore) -> Vec<(u64, u64)> {
    store.reader().snapshot().unwrap().tombstones(1).unwrap()
}

fn unfolded(store: &TestStore) -> u64 {
    let mut reader = store.reader();
    assert_eq!(reader.check(Check::Counts, 10).unwrap(), []);
    reader.snapshot().unwrap().collection("c").unwrap().unfolded
}

#[test]
fn a_base_then_deltas_then_a_base() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..10));
    delete(&mut store, "id-0");
    assert_eq!((unfolded(&store), tombstones(&store)), (10, vec![(1, 1)]));

    // A fold has read everything up to change 11; then one of its rows is deleted and one is added.
    delete(&mut store, "id-1");
    store.upsert(numbered(20..21));
    let outcome = swap(&mut store, 0, Level::Base, 11, "b1");
    assert!(outcome.swapped && outcome.obsolete_files.is_empty());
    let state = outcome.collection.unwrap();
    let generation = state.generation.unwrap();
    assert_eq!((generation.number, generation.base_to, generation.complete_to), (1, 11, 11));
    assert_eq!(generation.segments, [segment(Level::Base, "b1", 10)]);
    // Rows deleted before the base was built need no tombstone; later deletions do.
    assert_eq!((unfolded(&store), tombstones(&store)), (2, vec![(2, 2)]));

    // A record of the base and one of the tail change.
    store.upsert(numbered(2..3));
    assert_eq!(unfolded(&store), 2, "an equal record changes nothing");
    let mut changed = numbered(2..3);
    changed.documents[0] = None;
    store.upsert(changed);
    let mut changed = numbered(20..21);
    changed.documents[0] = None;
    store.upsert(changed);
    assert_eq!((unfolded(&store), tombstones(&store)), (5, vec![(2, 2), (3, 3), (13, 13)]));

    let outcome = swap(&mut store, 1, Level::Delta, 15, "d2");
    assert!(outcome.swapped && outcome.obsolete_files.is_empty());
    // Tombstones for the base stay; those for versions in no segment are removed.
    assert_eq!((unfolded(&store), tombstones(&store)), (2, vec![(2, 2), (3, 3)]));
    let outcome = swap(&mut store, 2, Level::Delta, 15, "d3");
    assert_eq!(outcome.obsolete_files, ["d2"]);
    let outcome = swap(&mut store, 3, Level::Base, 15, "b4");
    assert_eq!(outcome.obsolete_files, ["b1", "d3"]);
    assert_eq!((unfolded(&store), tombstones(&store)), (0, vec![]));
}

#[test]
fn only_the_first_of_two_folds_is_swapped_in() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..10));
    assert!(swap(&mut store, 0, Level::Base, 10, "b1").swapped);
    let late = swap(&mut store, 0, Level::Base, 10, "late");
    assert!(!late.swapped);
    assert_eq!(late.obsolete_files, ["late"]);
    let deleted = store.one(DeleteCollection { name: "c".to_owned() }).unwrap();
    assert_eq!(deleted.obsolete_files, ["b1"]);
    assert!(!swap(&mut store, 1, Level::Base, 10, "gone").swapped);
}

#[test]
fn bad_plans_are_refused() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..10));
    for (level, of, complete_to) in
        [(Level::Delta, Level::Delta, 10), (Level::Base, Level::Delta, 10)]
    {
        let segments = vec![segment(of, "x", 1)];
        let plan = SwapPlan { collection: 1, from_generation: 0, level, complete_to, segments };
        assert!(store.one(SwapSegments { plan }).is_err());
    }
}

#[test]
fn segments_are_quarantined_in_their_generation_only() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..10));
    swap(&mut store, 0, Level::Base, 10, "b1");
    let quarantine = |generation| QuarantineSegments {
        collection: 1,
        generation,
        files: vec!["b1".to_owned(), "unknown".to_owned()],
        reason: "it killed two workers".to_owned(),
    };
    assert_eq!(store.one(quarantine(7)).unwrap().updated, 0);
    let outcome = store.one(quarantine(1)).unwrap();
    assert_eq!(outcome.updated, 1);
    let segments = outcome.collection.unwrap().generation.unwrap().segments;
    assert_eq!(segments[0].quarantined.as_deref(), Some("it killed two workers"));
}

#[test]
fn a_fold_is_due_when_the_tail_is_large() {
    let mut store = TestStore::new();
    assert!(!store.upsert(numbered(0..1000)).fold_due);
    let outcome = store.upsert(numbered(1000..1001));
    assert!(outcome.fold_due);
    assert!(!swap(&mut store, 0, Level::Base, 1001, "b1").fold_due);
}
