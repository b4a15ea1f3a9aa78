//! Files that another root has already.

use std::ops::ControlFlow;

use isolith_protocol::{AddRoot, CopyFiles, LinkFiles, code_spec};
use isolith_store::{Check, FileText, Snapshot};
use isolith_types::{Definition, DefinitionKind, FileVersion, ParsedFile};

use crate::common::{MODEL, TestStore, add_root, file, put_files, version};

fn definition(name: &str) -> Definition {
    Definition {
        parent: None,
        kind: DefinitionKind::Function,
        name: name.to_owned(),
        qualified: name.to_owned(),
        ordinal: 0,
        line: 1,
        start_line: 1,
        end_line: 1,
        signature: None,
        exported: true,
        test: false,
        declared: false,
        owner: None,
        value: None,
        bases: Vec::new(),
    }
}

/// A file that defines a function for each name, with blank space after it.
fn defining(path: &str, names: &[&str]) -> ParsedFile {
    let texts: Vec<String> = names.iter().map(|name| format!("fn {name}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut file = file(path, &texts);
    file.chunks.iter_mut().for_each(|chunk| chunk.text.push_str(" \t\n"));
    file.graph.definitions = names.iter().map(|name| definition(name)).collect();
    file
}

fn with<T>(store: &TestStore, read: impl FnOnce(&Snapshot<'_>) -> T) -> T {
    let mut reader = store.reader();
    for check in Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    read(&reader.snapshot().unwrap())
}

/// The text of a file, from all of its chunks.
fn whole_text(store: &TestStore, root: u64, path: &str) -> String {
    with(store, |snapshot| {
        let (file, _) = snapshot.chunks_of_file(root, path).unwrap().unwrap();
        let mut whole = String::new();
        let each = &mut |file: &FileText| {
            whole.push_str(&file.text);
            ControlFlow::Continue(())
        };
        snapshot.file_texts(&[file.id], each).unwrap();
        whole
    })
}

/// Everything stored about a file, except for what is different in every root.
fn stored(store: &TestStore, root: u64, path: &str) -> (String, Vec<String>, Vec<Vec<u8>>) {
    with(store, |snapshot| {
        let (file, chunks) = snapshot.chunks_of_file(root, path).unwrap().unwrap();
        let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
        let mut vectors = Vec::new();
        snapshot.vectors(&rows, &mut |_, _, vector| vectors.push(vector.to_vec())).unwrap();
        let chunk = |it: &isolith_protocol::StoredChunk| {
            format!("{:?} {:?} {:?} {}", it.text, it.symbols, it.signature, it.start_line)
        };
        let head = format!("{:?} {} {}", file.version.hash, file.language, file.parser);
        (head, chunks.iter().map(chunk).collect(), vectors)
    })
}

#[test]
fn files_of_another_root_are_copied_with_their_vectors_and_definitions() {
    let mut store = TestStore::new();
    let main = add_root(&mut store, "/main");
    let files = [defining("a.rs", &["one", "two"]), defining("b.rs", &["three"])];
    store.one(put_files(main, &files, 3.0)).unwrap();
    let linked = add_root(&mut store, "/linked");
    store.one(put_files(linked, &[defining("b.rs", &["older", "still"])], 1.0)).unwrap();
    store.one(LinkFiles { root: linked }).unwrap();

    let later = |file: &ParsedFile| FileVersion { modified: 5, ..file.version };
    let asked = vec![
        ("a.rs".to_owned(), later(&files[0])),
        ("a.rs.copy".to_owned(), later(&files[0])),
        ("b.rs".to_owned(), later(&files[1])),
    ];
    let copy = CopyFiles { root: linked, from: vec![99, main], parser: 1, files: asked };
    let copied = store.one(copy).unwrap();
    assert_eq!((&copied.copied[..], copied.inserted, copied.deleted), (&[0, 2][..], 3, 2));
    for path in ["a.rs", "b.rs"] {
        assert_eq!(stored(&store, linked, path), stored(&store, main, path), "{path}");
        assert_eq!(whole_text(&store, linked, path), whole_text(&store, main, path), "{path}");
    }
    assert_eq!(whole_text(&store, linked, "a.rs"), "fn one \t\nfn two \t\n");
    store.one(LinkFiles { root: linked }).unwrap();
    with(&store, |snapshot| {
        let roots = snapshot.roots().unwrap();
        let counts: Vec<_> =
            roots.iter().map(|it| (it.path.as_str(), it.files, it.chunks)).collect();
        assert_eq!(counts, [("/linked", 2, 3), ("/main", 2, 3)]);
        let (file, _) = snapshot.chunks_of_file(linked, "a.rs").unwrap().unwrap();
        assert_eq!(file.version.modified, 5);
    });
}

#[test]
fn only_the_same_content_of_the_same_parser_is_copied() {
    let mut store = TestStore::new();
    let main = add_root(&mut store, "/main");
    let odd = ParsedFile { problem: Some("slow".to_owned()), ..file("odd.rs", &["x"]) };
    store.one(put_files(main, &[file("a.rs", &["fn a"]), odd], 1.0)).unwrap();
    let linked = add_root(&mut store, "/linked");
    let mut copied = |path: &str, texts: &[&str], parser| {
        let files = vec![(path.to_owned(), version(texts))];
        let copy = CopyFiles { root: linked, from: vec![main], parser, files };
        store.one(copy).unwrap().copied.len()
    };
    assert_eq!(copied("a.rs", &["fn b"], 1), 0, "another content");
    assert_eq!(copied("a.rs", &["fn a"], 2), 0, "an earlier parser");
    assert_eq!(copied("odd.rs", &["x"], 1), 0, "one that is not complete");
    assert_eq!(copied("no.rs", &["fn a"], 1), 0, "another path");
    assert_eq!(copied("a.rs", &["fn a"], 1), 1);
}

#[test]
fn a_root_remembers_its_worktree() {
    let mut store = TestStore::new();
    let mut add = |worktree: Option<&str>| {
        let (spec, worktree) = (code_spec(2, MODEL), worktree.map(str::to_owned));
        store.one(AddRoot { path: "/wt".to_owned(), spec, worktree }).unwrap().root.worktree.clone()
    };
    assert_eq!(add(None), None);
    assert_eq!(add(Some("/main/.git/worktrees/wt")).as_deref(), Some("/main/.git/worktrees/wt"));
    assert_eq!(add(None), None);
    add(Some("kept"));
    with(&store, |snapshot| {
        assert_eq!(snapshot.root_places().unwrap()[0].worktree.as_deref(), Some("kept"));
    });
}
