//! The code index: roots, files and chunks.

use isolith_protocol::{
    About, AddRoot, CODE_COLLECTION, ChunkFilter, ClearFiles, CreateCollection, DeleteCollection,
    DeleteRecords, FileState, FinishIndex, Handled, Level, MoveFile, NoteGitFacts, Patch, Purge,
    PutFiles, PutMode, RemoveFiles, RemoveRoot, RenameCollection, SetCodeModel, StoreError,
    SwapPlan, SwapSegments, TouchFiles, UpdateRecords, Which, code_spec,
};
use isolith_store::{Check, ChunkText, Scope, Snapshot};
use isolith_types::{ChunkKind, Code, CollectionKind, FileVersion, Hint, ParsedFile};

use crate::common::{
    MODEL, TestStore, add_root, bytes, file, key, numbered, put, put_files, version,
};

/// A store with one root and three files in it.
fn indexed() -> (TestStore, u64) {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    store.one(put_files(root, &three(), 1.0)).unwrap();
    (store, root)
}

fn three() -> Vec<ParsedFile> {
    vec![
        file("README.md", &["about"]),
        file("src/lib.rs", &["use a", "fn b", "fn c"]),
        file("src/main.rs", &["fn main", "fn help"]),
    ]
}

fn with<T>(store: &TestStore, read: impl FnOnce(&Snapshot<'_>) -> T) -> T {
    let mut reader = store.reader();
    for check in Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    read(&reader.snapshot().unwrap())
}

fn paths(files: &[FileState]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

fn texts(snapshot: &Snapshot<'_>, root: u64, path: &str) -> Vec<String> {
    let (file, chunks) = snapshot.chunks_of_file(root, path).unwrap().unwrap();
    assert_eq!(file.chunks, chunks.len() as u64);
    chunks.into_iter().map(|chunk| chunk.text.unwrap()).collect()
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.to_failure().code, Code::BadInput, "{error}");
    error.to_string()
}

#[test]
fn files_are_stored_with_their_chunks() {
    let (mut store, root) = indexed();
    with(&store, |snapshot| {
        let state = snapshot.code_state().unwrap().unwrap();
        assert_eq!((state.name.as_str(), state.kind), (CODE_COLLECTION, CollectionKind::Code));
        assert_eq!((state.records, state.unfolded, state.dimension), (6, 6, Some(2)));
        assert_eq!(snapshot.collections().unwrap()[0], state);
        let roots = snapshot.roots().unwrap();
        assert_eq!((roots[0].files, roots[0].chunks, roots[0].indexed_at), (3, 6, None));

        let (lib, chunks) = snapshot.chunks_of_file(root, "src/lib.rs").unwrap().unwrap();
        assert_eq!(
            (lib.root, lib.chunks, lib.version),
            (root, 3, version(&["use a", "fn b", "fn c"]))
        );
        assert_eq!(chunks[1].symbols[0].name, "b");
        assert_eq!(
            (chunks[1].start_line, chunks[1].end_line, chunks[1].kind),
            (2, 2, ChunkKind::Function)
        );
        assert_eq!(chunks[1].signature.as_deref(), Some("fn b"));
        let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
        assert!(rows.is_sorted());
        let again = snapshot.chunks(&[rows[2], 999], false).unwrap();
        assert_eq!(again[0].as_ref().unwrap().text, None);
        assert_eq!((again[0].as_ref().unwrap().file, &again[1]), (lib.id, &None));
        let by_id = snapshot.files_by_id(&[lib.id, 999]).unwrap();
        assert_eq!(by_id, [Some(lib), None]);
        assert_eq!(snapshot.chunks_of_file(root, "src").unwrap(), None);
    });
    store.one(FinishIndex { root }).unwrap();
    let finished = with(&store, |snapshot| snapshot.roots().unwrap().remove(0));
    assert!(finished.indexed_at.is_some());
    // An existing root is returned.
    let spec = code_spec(2, MODEL);
    let again = store.one(AddRoot { path: "/project".to_owned(), spec, worktree: None }).unwrap();
    assert_eq!((again.created, &again.root), (false, &finished));
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let (mut store, root) = indexed();
    let facts =
        vec![("src/lib.rs".to_owned(), Some("Ada".to_owned()), 5), ("no".to_owned(), None, 6)];
    let noted = store.one(NoteGitFacts { root, facts }).unwrap();
    assert_eq!((noted.files, noted.missing), (1, 1));
    let touched = vec![("src/lib.rs".to_owned(), 9, 10), ("no".to_owned(), 1, 1)];
    let touched = store.one(TouchFiles { root, files: touched }).unwrap();
    assert_eq!((touched.files, touched.missing), (1, 1));
    let before = with(&store, |snapshot| {
        let (file, _) = snapshot.chunks_of_file(root, "src/lib.rs").unwrap().unwrap();
        assert_eq!((file.author.as_deref(), file.changed_at), (Some("Ada"), Some(5)));
        assert_eq!((file.version.modified, file.version.size), (9, 10));
        file
    });

    let outcome = store.one(put_files(root, &[file("src/lib.rs", &["fn d", "x"])], 2.0)).unwrap();
    assert_eq!((outcome.inserted, outcome.deleted, outcome.files), (2, 3, 1));
    assert_eq!(outcome.count_after, 5);
    with(&store, |snapshot| {
        assert_eq!(texts(snapshot, root, "src/lib.rs"), ["fn d", "x"]);
        let (after, chunks) = snapshot.chunks_of_file(root, "src/lib.rs").unwrap().unwrap();
        // Git does not know this content, so the modification time counts.
        let age = (after.version.modified > 0).then_some(after.version.modified / 1_000_000);
        assert_eq!((after.id, after.author, after.changed_at), (before.id, None, age));
        let id = snapshot.code_state().unwrap().unwrap().id;
        assert_eq!(snapshot.tombstones(id).unwrap(), [(2, 2), (3, 3), (4, 4)]);
        let mut seen = Vec::new();
        let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
        snapshot.vectors(&rows, &mut |_, _, vector| seen.push(vector.to_vec())).unwrap();
        assert_eq!(seen, [bytes([4.0, 2.0]), bytes([1.0, 2.0])]);
    });
    // A file may have no chunks.
    let outcome = store.one(put_files(root, &[file("src/lib.rs", &[])], 1.0)).unwrap();
    assert_eq!((outcome.deleted, outcome.count_after), (2, 3));
    with(&store, |snapshot| assert_eq!(texts(snapshot, root, "src/lib.rs"), [""; 0]));
}

#[test]
fn files_and_roots_are_removed() {
    let (mut store, root) = indexed();
    assert!(refused(store.one(RemoveRoot { root })).contains("still has 3 files"));
    let paths = vec!["src/main.rs".to_owned(), "src".to_owned()];
    let removed = store.one(RemoveFiles { root, paths }).unwrap();
    assert_eq!((removed.deleted, removed.files, removed.missing), (2, 1, 1));
    with(&store, |snapshot| {
        assert_eq!(snapshot.chunks_of_file(root, "src/main.rs").unwrap(), None);
        assert_eq!(snapshot.code_state().unwrap().unwrap().records, 4);
    });
    let other = add_root(&mut store, "/other");
    store.one(put_files(other, &[file("x", &["y"])], 1.0)).unwrap();
    let clear = |root, limit_files| ClearFiles { root, limit_files };
    let first = store.one(clear(Some(root), 1)).unwrap();
    assert_eq!((first.files, first.deleted, first.more), (1, 1, true));
    let second = store.one(clear(Some(root), 100)).unwrap();
    assert_eq!((second.files, second.deleted, second.more), (1, 3, false));
    assert_eq!(store.one(clear(Some(root), 1)).unwrap().files, 0);
    store.one(RemoveRoot { root }).unwrap();
    with(&store, |snapshot| assert_eq!(snapshot.roots().unwrap().len(), 1));
    assert_eq!(store.one(clear(None, 100)).unwrap().count_after, 0);
    for gone in [
        RemoveRoot { root }.into(),
        FinishIndex { root }.into(),
        TouchFiles { root, files: Vec::new() }.into(),
        put_files(root, &three(), 1.0).into(),
    ] {
        let error = store.any(gone).unwrap_err();
        assert_eq!(error, StoreError::NoRoot { root });
        assert_eq!(error.to_failure().code, Code::NotFound);
    }
}

fn move_file(root: u64, from: &str, to: &str, numbers: &[f32]) -> MoveFile {
    MoveFile {
        root,
        from: from.to_owned(),
        to: to.to_owned(),
        version: FileVersion { hash: [9; 32], size: 8, modified: 7 },
        dimension: 2,
        vectors: bytes(numbers.iter().copied()).into(),
        model: MODEL.to_owned(),
    }
}

#[test]
fn a_moved_file_keeps_its_rows_and_gets_new_vectors() {
    let (mut store, root) = indexed();
    let facts = vec![("src/main.rs".to_owned(), None, 5)];
    store.one(NoteGitFacts { root, facts }).unwrap();
    let rows = |store: &TestStore, path: &str| {
        with(store, |snapshot| {
            let (_, chunks) = snapshot.chunks_of_file(root, path).unwrap().unwrap();
            chunks.into_iter().map(|chunk| (chunk.row, chunk.change)).collect::<Vec<_>>()
        })
    };
    let before = rows(&store, "src/main.rs");
    // Onto an existing file.
    let moved =
        store.one(move_file(root, "src/main.rs", "README.md", &[1.0, 2.0, 3.0, 4.0])).unwrap();
    assert_eq!((moved.updated, moved.deleted, moved.files), (2, 1, 1));
    let after = rows(&store, "README.md");
    assert!(before.iter().zip(&after).all(|(old, new)| old.0 == new.0 && old.1 < new.1));
    with(&store, |snapshot| {
        assert_eq!(
            paths(&snapshot.files(root, None, None, 9).unwrap()),
            ["README.md", "src/lib.rs"]
        );
        let (file, _) = snapshot.chunks_of_file(root, "README.md").unwrap().unwrap();
        assert_eq!((file.version.hash, file.changed_at), ([9; 32], Some(5)));
        assert_eq!(texts(snapshot, root, "README.md"), ["fn main", "fn help"]);
        let id = snapshot.code_state().unwrap().unwrap().id;
        assert_eq!(snapshot.tombstones(id).unwrap(), [(1, 1), before[0], before[1]]);
        let mut path = String::new();
        let each = &mut |_, _, chunk: ChunkText<'_>| {
            path = chunk.path.to_owned();
            std::ops::ControlFlow::Continue(())
        };
        snapshot.for_each_chunk(id, Scope::ChangedAfter(6), each).unwrap();
        assert_eq!(path, "README.md");
    });
    // To the same path: only the vectors change.
    let again =
        store.one(move_file(root, "README.md", "README.md", &[5.0, 2.0, 3.0, 4.0])).unwrap();
    assert_eq!((again.updated, again.deleted), (2, 0));
    let missing = store.one(move_file(root, "nothing", "x", &[])).unwrap();
    assert_eq!((missing.missing, missing.files), (1, 0));
    assert!(
        refused(store.one(move_file(root, "README.md", "x", &[1.0, 1.0])))
            .contains("expected 16 bytes (2 vectors of dimension 2), found 8")
    );
    assert_eq!(rows(&store, "README.md").len(), 2);
}

#[test]
fn bad_batches_are_refused_whole() {
    let (mut store, root) = indexed();
    let batch = |files: &[ParsedFile], vectors: &[f32]| PutFiles {
        root,
        files: postcard::to_allocvec(files).unwrap().into(),
        ages: Vec::new(),
        dimension: 2,
        vectors: bytes(vectors.iter().copied()).into(),
        model: MODEL.to_owned(),
    };
    let one = |path: &str| vec![file(path, &["fn x"])];
    let mut no_lines = one("a");
    no_lines[0].chunks[0].end_line = 0;
    for (files, vectors, says) in [
        (one(""), vec![1.0, 1.0], "\"\" is not a valid path"),
        (one("/etc/passwd"), vec![1.0, 1.0], "is not a valid path of a file below a root"),
        ([one("a"), one("a")].concat(), vec![1.0; 4], "occurs twice"),
        (no_lines, vec![1.0, 1.0], "has an invalid line range 1 to 0"),
        (one("a"), vec![1.0], "expected 8 bytes (1 vector of dimension 2), found 4"),
        (one("a"), vec![1.0; 4], "expected 8 bytes (1 vector of dimension 2), found 16"),
        (one("a"), vec![0.0, 0.0], "a:1"),
        (one("a"), vec![1.0, f32::NAN], "infinite or NaN"),
    ] {
        let message = refused(store.one(batch(&files, &vectors)));
        assert!(message.contains(says), "{message}");
    }
    let raw = |bytes: Vec<u8>| PutFiles {
        root,
        files: bytes.into(),
        ages: Vec::new(),
        dimension: 2,
        vectors: Vec::new().into(),
        model: MODEL.to_owned(),
    };
    assert!(refused(store.one(raw(vec![200, 1, 2]))).contains("the files cannot be read"));
    assert!(refused(store.one(raw(vec![0, 0]))).contains("1 byte left over"));
    let mut other = put_files(root, &one("a"), 1.0);
    other.model = "other".to_owned();
    let failure = store.one(other).unwrap_err().to_failure();
    assert_eq!((failure.code, failure.hint), (Code::ModelMismatch, Some(Hint::ReembedIndex)));
    with(&store, |snapshot| {
        assert_eq!(snapshot.code_state().unwrap().unwrap().records, 6);
        assert_eq!(snapshot.files(root, None, None, 9).unwrap().len(), 3);
    });
}

#[test]
fn a_batch_is_stored_once() {
    let (mut store, root) = indexed();
    let (put, once) = (put_files(root, &[file("new", &["a", "b"])], 1.0), key());
    let first = store.keyed(once, put.clone()).unwrap();
    let second = store.keyed(once, put).unwrap();
    assert_eq!((first.repeated, second.repeated), (false, true));
    assert_eq!((second.inserted, second.files), (2, 1));
    assert_eq!(second.collection, first.collection);
    let add = || AddRoot { path: "/project".to_owned(), spec: code_spec(2, MODEL), worktree: None };
    let once = key();
    let first = store.keyed(once, add()).unwrap();
    let second = store.keyed(once, add()).unwrap();
    assert_eq!((second.repeated, &second.root), (true, &first.root));
}

#[test]
fn users_cannot_write_to_the_code_index() {
    let (mut store, _) = indexed();
    let code = || CODE_COLLECTION.to_owned();
    let patch = Patch { id: "x".to_owned(), document: None, metadata: None, vector: None };
    for action in [
        put(CODE_COLLECTION, numbered(0..1), PutMode::Upsert).into(),
        UpdateRecords { collection: code(), patches: vec![patch] }.into(),
        DeleteRecords {
            collection: code(),
            which: Which::Ids(vec!["00000001:0000".to_owned()]),
            limit: None,
        }
        .into(),
        DeleteCollection { name: code() }.into(),
        RenameCollection { from: code(), to: "mine".to_owned() }.into(),
    ] {
        let message = refused(store.any(action));
        assert_eq!(message, "@code is the code index; use `isolith index` to change it");
    }
    for action in [
        CreateCollection { spec: code_spec(2, MODEL), if_missing: true }.into(),
        RenameCollection { from: "c".to_owned(), to: "@c".to_owned() }.into(),
    ] {
        assert!(refused(store.any(action)).contains("begins with @"));
    }
    with(&store, |snapshot| assert_eq!(snapshot.code_state().unwrap().unwrap().records, 6));
}

#[test]
fn changing_the_model_replaces_the_index() {
    let (mut store, root) = indexed();
    let old = with(&store, |snapshot| snapshot.code_state().unwrap().unwrap().id);
    let add = AddRoot { path: "/x".to_owned(), spec: code_spec(2, "other"), worktree: None };
    assert_eq!(store.one(add).unwrap_err().to_failure().code, Code::ModelMismatch);
    let set = |dimension| SetCodeModel { spec: code_spec(dimension, "other") };
    assert!(refused(store.one(set(3))).contains("still has 6 chunks"));
    let plan = SwapPlan {
        collection: old,
        from_generation: 0,
        level: Level::Base,
        complete_to: 6,
        segments: Vec::new(),
    };
    store.one(ClearFiles { root: None, limit_files: 100 }).unwrap();
    let changed = store.one(set(3)).unwrap();
    assert!(changed.created && changed.more);
    let state = changed.collection.unwrap();
    assert_eq!(
        (state.dimension, state.model.as_deref(), state.records),
        (Some(3), Some("other"), 0)
    );
    // A fold that started before can no longer be swapped in.
    assert!(!store.one(SwapSegments { plan }).unwrap().swapped);
    assert!(!store.one(Purge { limit_rows: 1000 }).unwrap().more);
    let same = store.one(set(3)).unwrap();
    assert_eq!((same.created, same.collection), (false, Some(state)));
    with(&store, |snapshot| {
        assert_eq!(snapshot.collection_by_id(old).unwrap(), None);
        assert_eq!(snapshot.roots().unwrap()[0].id, root);
    });
    let mut wrong = code_spec(3, "other");
    wrong.name = "mine".to_owned();
    assert!(refused(store.one(SetCodeModel { spec: wrong })).contains("must be named @code"));
}

#[test]
fn files_are_listed_by_folder_and_page() {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    let all = ["a.rs", "src-old/x.rs", "src/a.rs", "src/b/c.rs", "src/b/d.rs", "src0.rs", "ü.rs"];
    let files: Vec<ParsedFile> = all.iter().rev().map(|path| file(path, &["x"])).collect();
    store.one(put_files(root, &files, 1.0)).unwrap();
    with(&store, |snapshot| {
        let list = |under, after, limit| {
            let files = snapshot.files(root, under, after, limit).unwrap();
            paths(&files).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(list(None, None, 100), all);
        assert_eq!(list(None, Some("src/a.rs"), 2), all[3..5]);
        for under in ["src", "src/"] {
            assert_eq!(list(Some(under), None, 100), all[2..5]);
        }
        assert_eq!(list(Some("src"), Some("src/b/c.rs"), 100), ["src/b/d.rs"]);
        assert_eq!(list(Some("src"), Some("a.rs"), 1), ["src/a.rs"]);
        assert_eq!(list(Some("src/b/c.rs"), None, 100), [""; 0]);
        assert_eq!(snapshot.files(root + 1, None, None, 100).unwrap(), []);
    });
}

#[test]
fn chunks_are_filtered_by_file_properties() {
    let (mut store, root) = indexed();
    let other = add_root(&mut store, "/other");
    let mut python = file("tool.py", &["fn x", "import y"]);
    python.language = "python".to_owned();
    python.generated = true;
    python.version.modified = 5_000_000_000;
    store.one(put_files(other, &[python], 1.0)).unwrap();
    let facts = vec![("src/lib.rs".to_owned(), None, 4_000)];
    store.one(NoteGitFacts { root, facts }).unwrap();
    with(&store, |snapshot| {
        let rows = |filter: ChunkFilter, paths: &dyn Fn(&str, bool) -> bool| {
            snapshot.code_rows(&filter, paths).unwrap()
        };
        let any = &|_: &str, _: bool| true;
        let all = ChunkFilter::default();
        assert_eq!(rows(all.clone(), any), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(rows(ChunkFilter { roots: vec![other], ..all.clone() }, any), [7, 8]);
        let languages = vec!["python".to_owned(), "go".to_owned()];
        assert_eq!(rows(ChunkFilter { languages, ..all.clone() }, any), [7, 8]);
        let functions = ChunkFilter { kinds: vec![ChunkKind::Function], ..all.clone() };
        assert_eq!(rows(functions.clone(), any), [3, 4, 5, 6, 7]);
        let since = ChunkFilter { changed_since: Some(4_000), ..all.clone() };
        assert_eq!(rows(since, any), [2, 3, 4, 7, 8]);
        assert_eq!(
            rows(functions, &|path, generated| path.contains("lib") || generated),
            [3, 4, 7]
        );
        assert_eq!(rows(all, &|_, _| false), [0; 0]);
    });
}

#[test]
fn sparse_files_are_looked_up_one_by_one() {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    let files: Vec<ParsedFile> =
        (0..100).map(|n| file(&format!("{n:03}"), &["fn x", "y"])).collect();
    store.one(put_files(root, &files, 1.0)).unwrap();
    with(&store, |snapshot| {
        let rows = |kinds: Vec<ChunkKind>, paths: &dyn Fn(&str) -> bool| {
            let filter = ChunkFilter { kinds, ..ChunkFilter::default() };
            snapshot.code_rows(&filter, &|path, _| paths(path)).unwrap()
        };
        let sparse = |path: &str| path == "000" || path == "099";
        assert_eq!(rows(Vec::new(), &sparse), [1, 2, 199, 200]);
        assert_eq!(rows(vec![ChunkKind::Module], &sparse), [2, 200]);
        let third = |path: &str| path.parse::<u32>().unwrap() % 3 == 0;
        assert_eq!(rows(vec![ChunkKind::Function], &third).len(), 34);
    });
}

#[test]
fn chunks_are_iterated_with_symbols_and_paths() {
    let (mut store, root) = indexed();
    let mut many = file("src/many.rs", &["fn \"quoted\\name\""]);
    many.chunks[0].symbols.push(isolith_types::Symbol {
        name: "second".to_owned(),
        kind: isolith_types::SymbolKind::Constant,
        line: 1,
    });
    store.one(put_files(root, &[many], 1.0)).unwrap();
    with(&store, |snapshot| {
        let id = snapshot.code_state().unwrap().unwrap().id;
        let mut seen = Vec::new();
        let each = &mut |row, _, chunk: ChunkText<'_>| {
            seen.push(format!("{row} {} [{}] {}", chunk.path, chunk.symbols, chunk.body));
            std::ops::ControlFlow::Continue(())
        };
        snapshot.for_each_chunk(id, Scope::All, each).unwrap();
        assert_eq!(
            seen,
            [
                "1 README.md [] about",
                "2 src/lib.rs [] use a",
                "3 src/lib.rs [b] fn b",
                "4 src/lib.rs [c] fn c",
                "5 src/main.rs [main] fn main",
                "6 src/main.rs [help] fn help",
                "7 src/many.rs [\"quoted\\name\" second] fn \"quoted\\name\"",
            ]
        );
    });
}

#[test]
fn an_index_run_makes_a_fold_due() {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    let texts = vec!["x"; 1001];
    let outcome = store.one(put_files(root, &[file("long", &texts)], 1.0)).unwrap();
    assert!(outcome.fold_due);
    let put = put_files(root, &three(), 1.0);
    let handling = put.handling();
    assert!(handling.alone);
    assert_eq!((handling.rows, handling.about), (6, About::Collection("@code")));
}
