use std::fs;

use super::super::segment::TextSegment;
use super::super::{Keywords, Ranking};
use super::*;
use crate::storage::Disk;
use crate::storage::lossy::LossyStorage;

const FILE_NAME_WEIGHT: f32 = 2.0;

fn token() -> InWorker {
    InWorker::in_process()
}

fn texts(n: u64) -> (String, String) {
    (format!("record {n} fooBar{} shared words", n % 7), format!("symbol_{}", n % 3))
}

fn push_some(builder: &mut TextBuilder<'_>, rows: u64) {
    for n in 0..rows {
        let (body, symbols) = texts(n);
        let fields = TextFields { body: &body, symbols: &symbols, stem: "main", folders: "src" };
        builder.push(n * 2 + 1, n + 1000, &fields).unwrap();
    }
}

const ROWS: u64 = 40;

fn build(storage: &dyn Storage, scratch: &Path, part_bytes: usize) -> PublishedSegment {
    let mut builder =
        TextBuilder::create(storage, scratch, "s.txt", Analyzer::Code, token()).unwrap();
    builder.part_bytes = part_bytes;
    push_some(&mut builder, ROWS);
    let (published, rows) = builder.finish().unwrap();
    assert_eq!(rows, ROWS);
    published
}

#[test]
fn spilled_parts_give_the_same_results() {
    let one = tempfile::tempdir().unwrap();
    let many = tempfile::tempdir().unwrap();
    let whole = build(&Disk::new(one.path()), one.path(), usize::MAX);
    let spilled = build(&Disk::new(many.path()), many.path(), 0);
    let open = |folder: &tempfile::TempDir, published: &PublishedSegment| {
        let path = folder.path().join(&published.file);
        TextSegment::open(&path, Some(published.checksum), token()).unwrap()
    };
    let (whole, spilled) = (open(&one, &whole), open(&many, &spilled));
    for query in ["record shared", "fooBar3", "symbol_1 main", "src 42"] {
        let keywords = Keywords::of(Analyzer::Code, query, FILE_NAME_WEIGHT);
        let statistics = whole.statistics(&keywords).unwrap();
        assert_eq!(statistics, spilled.statistics(&keywords).unwrap());
        let ranking = Ranking::new(&keywords, &statistics);
        let found = whole.search(&ranking, 50, None, None).unwrap();
        assert_eq!(found, spilled.search(&ranking, 50, None, None).unwrap());
        assert!(!found.is_empty());
    }
    for folder in [&one, &many] {
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn builds_are_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (LossyStorage::new(), LossyStorage::new());
    build(&first, folder.path(), usize::MAX);
    build(&second, folder.path(), usize::MAX);
    assert_eq!(first.contents("s.txt"), second.contents("s.txt"));
}

#[test]
fn rows_must_ascend() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let mut builder =
        TextBuilder::create(&disk, folder.path(), "s.txt", Analyzer::Prose, token()).unwrap();
    builder.push(5, 1, &TextFields::body("one")).unwrap();
    for row in [5, 4, 0] {
        let error = builder.push(row, 2, &TextFields::body("two")).unwrap_err();
        assert!(matches!(error, SegmentError::Invalid { .. }), "{error}");
    }
    builder.push(6, 2, &TextFields::body("two")).unwrap();
    assert_eq!((builder.len(), builder.is_empty()), (2, false));
}

#[test]
fn dropped_builds_leave_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let mut builder =
        TextBuilder::create(&disk, folder.path(), "s.txt", Analyzer::Code, token()).unwrap();
    builder.part_bytes = 0;
    push_some(&mut builder, 3);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(builder);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn removes_leftovers_of_killed_builds() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    for name in ["s.txt.scratch/part-0", "other.scratch", "kept.scratch"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("s.txt.scratch/part-0/file"), "left").unwrap();
    build(&disk, folder.path(), usize::MAX);
    assert_eq!(remove_scratch(folder.path(), |name| name == "other").unwrap(), 1);
    assert_eq!(remove_scratch(&folder.path().join("none"), |_| true).unwrap(), 0);
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["kept.scratch", "s.txt"]);
}

#[test]
fn power_loss_leaves_a_complete_segment_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let lossy = LossyStorage::new();
    let whole = build(&lossy, folder.path(), usize::MAX);
    let expected = lossy.contents("s.txt").unwrap();
    for operations in 0..=lossy.operations() {
        // Unsynced changes are all lost, all kept, or some of each.
        for reached_disk in [[false, false], [true, true], [true, false], [false, true]] {
            let lossy = LossyStorage::new();
            lossy.fail_after(operations);
            let mut builder =
                TextBuilder::create(&lossy, folder.path(), "s.txt", Analyzer::Code, token())
                    .unwrap();
            push_some(&mut builder, ROWS);
            let outcome = builder.finish();
            let mut turns = reached_disk.into_iter().cycle();
            lossy.crash_keeping(|| turns.next().unwrap());
            match lossy.contents("s.txt") {
                Some(bytes) => assert_eq!(bytes, expected, "after {operations} operations"),
                None => assert!(outcome.is_err(), "after {operations} operations"),
            }
            if let Ok((published, _)) = outcome {
                assert_eq!(published, whole);
            }
        }
    }
}
