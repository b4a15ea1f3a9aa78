//! Checks and salvage of the code index: an incomplete file never counts as indexed.

use std::collections::BTreeSet;

use isolith_protocol::{AddRoot, FinishIndex, Recount, code_spec};
use isolith_store::{Check, Checkpoint, Extent, Snapshot, StoreFolder, Truth};
use isolith_types::{Chunk, ParsedFile};

use crate::common::{TestStore, add_root, database, file, numbered, one, put_files, token, writer};
use crate::doctor::{damage_page, named, pages_of, problems, salvage};

const FILES: usize = 300;

/// A closed store with an index of many files, three chunks each, and some records.
fn closed() -> (tempfile::TempDir, StoreFolder, u64) {
    let mut store = TestStore::new();
    store.upsert(numbered(0..100));
    let root = add_root(&mut store, "/project");
    let files: Vec<ParsedFile> = (0..FILES).map(content).collect();
    for batch in files.chunks(50) {
        store.one(put_files(root, batch, 1.0)).unwrap();
    }
    store.one(FinishIndex { root }).unwrap();
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    (store.place, store.folder, root)
}

fn content(number: usize) -> ParsedFile {
    let long = format!("fn number_{number} {}", "x".repeat(200));
    file(&format!("src/file_{number:03}.rs"), &["use std", &long, &format!("fn end_{number}")])
}

fn with<T>(folder: &StoreFolder, read: impl FnOnce(&Snapshot<'_>) -> T) -> T {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    read(&reader.snapshot().unwrap())
}

/// The number of files; each must be as it was written, unless it is marked to be indexed again.
fn whole_files(folder: &StoreFolder, root: u64) -> usize {
    with(folder, |snapshot| {
        let files = snapshot.files(root, None, None, u64::MAX).unwrap();
        for file in &files {
            let number: usize = file.path[9..12].parse().unwrap();
            let expected = content(number);
            let (_, chunks) = snapshot.chunks_of_file(root, &file.path).unwrap().unwrap();
            if file.version.hash == [0; 32] {
                // It is indexed again; until then it keeps the chunks that were saved.
                for chunk in &chunks {
                    let is_it = |it: &Chunk| chunk.text.as_deref() == Some(it.text.as_str());
                    assert!(expected.chunks.iter().any(is_it), "{chunk:?}");
                }
                continue;
            }
            assert_eq!(chunks.len(), expected.chunks.len());
            for (chunk, expected) in chunks.iter().zip(&expected.chunks) {
                assert_eq!(chunk.text.as_deref(), Some(expected.text.as_str()));
                assert_eq!(chunk.symbols, expected.symbols);
            }
        }
        files.len()
    })
}

#[test]
fn salvage_keeps_an_intact_index() {
    let (_place, folder, root) = closed();
    let report = salvage(&folder);
    assert_eq!((report.lost, report.lost_records), (vec![], 0));
    assert_eq!(whole_files(&folder, root), FILES);
    with(&folder, |snapshot| {
        assert!(snapshot.roots().unwrap()[0].indexed_at.is_some());
        assert_eq!(snapshot.code_state().unwrap().unwrap().records, FILES as u64 * 3);
    });
    // Numbers of files go on.
    let mut writer = writer(&folder).unwrap();
    one(&mut writer, put_files(root, &[content(FILES + 1)], 1.0)).unwrap();
    assert_eq!(whole_files(&folder, root), FILES + 1);
}

#[test]
fn a_file_is_saved_with_all_its_chunks_or_not_at_all() {
    for table in ["record", "vector", "chunk", "file", "chunk_file"] {
        let (_place, folder, root) = closed();
        let leaves = pages_of(&folder, table, "leaf");
        damage_page(&folder.truth(), leaves[leaves.len() / 2]);
        let report = salvage(&folder);
        let left = whole_files(&folder, root);
        match table {
            "chunk_file" => assert_eq!((left, report.lost.len()), (FILES, 0)),
            // Paths are also in an index, and chunks refer to their files.
            "file" => {
                assert_eq!(left, FILES);
                let again = named(&report, "file", Extent::Derived);
                assert!((10..FILES).contains(&again.len()), "{again:?}");
                let due = with(&folder, |snapshot| {
                    let mut files = snapshot.files(root, None, None, u64::MAX).unwrap();
                    files.retain(|file| file.version.hash == [0; 32]);
                    files.into_iter().map(|file| file.path).collect::<BTreeSet<_>>()
                });
                assert_eq!(due, again.into_iter().collect());
            }
            _ => assert!((50..FILES).contains(&left), "{table}: {left}"),
        }
        with(&folder, |snapshot| {
            let state = snapshot.code_state().unwrap().unwrap();
            assert_eq!(state.records, left as u64 * 3, "{table}");
            let complete = snapshot.roots().unwrap()[0].indexed_at.is_some();
            assert_eq!(complete, report.lost.is_empty(), "{table}");
            assert!(snapshot.collection("c").unwrap().records > 0);
        });
        // The next run makes it complete.
        let mut writer = writer(&folder).unwrap();
        let files: Vec<ParsedFile> = (0..FILES).map(content).collect();
        one(&mut writer, put_files(root, &files, 1.0)).unwrap();
        assert_eq!(whole_files(&folder, root), FILES);
        for check in Check::ALL {
            assert_eq!(problems(&folder, check), 0, "{check:?}");
        }
    }
}

#[test]
fn random_damage_leaves_only_whole_files() {
    for seed in 0..10 {
        let (_place, folder, _) = closed();
        let mut random = fastrand::Rng::with_seed(seed);
        let pages = std::fs::metadata(folder.truth()).unwrap().len() / 8192;
        for _ in 0..3 {
            damage_page(&folder.truth(), random.u64(2..=pages));
        }
        salvage(&folder);
        let roots = with(&folder, |snapshot| snapshot.roots().unwrap());
        for root in roots {
            whole_files(&folder, root.id);
        }
    }
}

#[test]
fn an_index_whose_own_row_is_lost_is_rebuilt() {
    let (_place, folder, _) = closed();
    let db = database(&folder);
    db.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM collection WHERE name = '@code';")
        .unwrap();
    drop(db);
    salvage(&folder);
    with(&folder, |snapshot| {
        let names: Vec<String> =
            snapshot.collections().unwrap().into_iter().map(|state| state.name).collect();
        assert_eq!(names, ["c"]);
        assert_eq!(snapshot.roots().unwrap()[0].files, 0);
        assert_eq!(snapshot.collection("c").unwrap().records, 100);
    });
}

#[test]
fn a_lost_first_page_is_replaced_for_every_original_version() {
    let (_place, folder, root) = closed();
    damage_page(&folder.truth(), 1);
    salvage(&folder);
    assert_eq!(whole_files(&folder, root), FILES);

    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path());
    folder.create().unwrap();
    let db = database(&folder);
    db.execute_batch(include_str!("../fixtures/version-1.sql")).unwrap();
    db.execute_batch(
        "WITH RECURSIVE n(x) AS (SELECT 5 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)
         INSERT INTO record SELECT x, 1, 'id-' || x, x, 0, 0, '{}', 'text' FROM n;
         INSERT INTO vector SELECT row, zeroblob(8) FROM record WHERE row > 4;
         UPDATE store SET last_change = 3000; UPDATE collection SET records = 2998;",
    )
    .unwrap();
    drop(db);
    let mut writer = writer(&folder).unwrap();
    let spec = code_spec(2, crate::common::MODEL);
    let added =
        one(&mut writer, AddRoot { path: "/project".to_owned(), spec, worktree: None }).unwrap();
    let root = added.root.id;
    one(&mut writer, put_files(root, &[content(1), content(2)], 1.0)).unwrap();
    assert!(writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    drop(writer);
    damage_page(&folder.truth(), 1);
    salvage(&folder);
    assert_eq!(whole_files(&folder, root), 2);
    with(&folder, |snapshot| assert_eq!(snapshot.collection("c").unwrap().records, 2998));
}

#[test]
fn a_store_of_version_1_is_salvaged_without_problems() {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path());
    folder.create().unwrap();
    let db = database(&folder);
    db.execute_batch(include_str!("../fixtures/version-1.sql")).unwrap();
    db.execute("UPDATE collection SET name = '@code'", []).unwrap();
    drop(db);
    let report = salvage(&folder);
    assert_eq!((report.records, report.lost), (2, vec![]));
    with(&folder, |snapshot| {
        assert_eq!(snapshot.collection("was-@code-1").unwrap().records, 2);
    });
}

#[test]
fn checks_name_problems_of_the_index() {
    let (_place, folder, root) = closed();
    let db = database(&folder);
    db.execute_batch(
        "PRAGMA foreign_keys = OFF;
         DELETE FROM chunk WHERE row = 101;
         INSERT INTO chunk VALUES (5, 1, 9, 9, 'text', '[]', NULL, NULL, NULL);
         UPDATE chunk SET file = 999 WHERE row = 104;
         UPDATE chunk SET symbols = '[[1]]' WHERE row = 107;
         UPDATE chunk SET kind = 'poem' WHERE row = 110;
         UPDATE chunk SET end_line = 0 WHERE row = 113;
         UPDATE file SET root = 7 WHERE id = 6;
         UPDATE file SET hash = x'00' WHERE id = 7;
         UPDATE file SET chunks = 4 WHERE id = 8;",
    )
    .unwrap();
    drop(db);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let mut found = |check| -> Vec<String> {
        let problems = reader.check(check, 100).unwrap();
        problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(
        found(Check::Orphans),
        [
            "the chunk of row 5 has no record in the code index",
            "the chunk of row 104 has no file",
            "record '00000001:0000' (row 101) has no chunk",
            "file 'src/file_005.rs' has no root",
        ]
    );
    assert_eq!(
        found(Check::Counts),
        [
            "file 'src/file_001.rs' says 3 chunks, there are 2",
            "file 'src/file_007.rs' says 4 chunks, there are 3",
        ]
    );
    assert_eq!(
        found(Check::Fields),
        [
            "the chunk of row 107 is malformed",
            "the chunk of row 110 is malformed",
            "the chunk of row 113 is malformed",
            "the hash of file \"src/file_006.rs\" is malformed",
        ]
    );
    drop(reader);
    salvage(&folder);
    // Numbers 0 and 1 have lost a chunk, 2 to 7 are spoilt themselves.
    assert_eq!(whole_files(&folder, root), FILES - 8);
    with(&folder, |snapshot| assert_eq!(snapshot.collection("c").unwrap().records, 100));
}

#[test]
fn a_recount_marks_damaged_files_for_indexing() {
    let (_place, folder, root) = closed();
    let db = database(&folder);
    db.execute_batch("UPDATE file SET chunks = 2 WHERE id = 1").unwrap();
    drop(db);
    let mut writer = writer(&folder).unwrap();
    one(&mut writer, Recount).unwrap();
    assert_eq!(problems(&folder, Check::Counts), 0);
    with(&folder, |snapshot| {
        let files = snapshot.files(root, None, None, 2).unwrap();
        assert_eq!((files[0].chunks, files[0].version.hash), (3, [0; 32]));
        assert_ne!(files[1].version.hash, [0; 32]);
    });
}
