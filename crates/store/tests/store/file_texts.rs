//! The texts of files, put together from their chunks.

use std::ops::ControlFlow;

use isolith_protocol::{MoveFile, PutFiles, RemoveFiles};
use isolith_store::{FileText, Scope, Snapshot};
use isolith_types::{Chunk, ParsedFile};

use crate::common::{MODEL, TestStore, add_root, bytes, file, put_files};

/// A file with chunks of these lines and texts.
fn with_chunks(path: &str, size: u64, chunks: &[(u32, &str)]) -> ParsedFile {
    let texts: Vec<&str> = chunks.iter().map(|(_, text)| *text).collect();
    let mut file = file(path, &texts);
    file.version.size = size;
    let lines = |chunk: Chunk, start_line: u32| Chunk { start_line, end_line: start_line, ..chunk };
    file.chunks =
        file.chunks.into_iter().zip(chunks).map(|(chunk, (line, _))| lines(chunk, *line)).collect();
    file
}

fn texts(snapshot: &Snapshot<'_>, scope: Scope) -> Vec<(String, String, Vec<u32>)> {
    let state = snapshot.code_state().unwrap().unwrap();
    let mut found = Vec::new();
    let each = &mut |file: &FileText| {
        let starts = file.chunks.iter().map(|chunk| chunk.start).collect();
        found.push((file.path.clone(), file.text.clone(), starts));
        ControlFlow::Continue(())
    };
    snapshot.for_each_file_text(state.id, scope, each).unwrap();
    found
}

fn is(path: &str, text: &str, starts: &[u32]) -> (String, String, Vec<u32>) {
    (path.to_owned(), text.to_owned(), starts.to_vec())
}

#[test]
fn texts_are_the_stored_chunks_or_have_empty_lines_between_them() {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    let files = [
        with_chunks("whole.rs", 30, &[(3, "\n \n  a \n\n"), (5, "b\n"), (6, "c")]),
        // As earlier versions stored them.
        with_chunks("gaps.rs", 30, &[(2, "  a"), (3, "b\nb"), (7, "c")]),
        // A line that goes on in the next chunk.
        with_chunks("long.js", 9, &[(1, "aaa "), (1, "bbb")]),
        // Lines that cannot be right do not fill the memory.
        with_chunks("odd.rs", 5, &[(4_000_000_000, "a")]),
    ];
    store.one(put_files(root, &files, 1.0)).unwrap();
    let mut reader = store.reader();
    let found = texts(&reader.snapshot().unwrap(), Scope::All);
    let expected = [
        is("whole.rs", "\n \n  a \n\nb\nc", &[0, 9, 11]),
        is("gaps.rs", "\n  a\nb\nb\n\n\nc", &[1, 5, 11]),
        is("long.js", "aaa bbb", &[0, 4]),
        is("odd.rs", "\n\n\n\n\na", &[5]),
    ];
    assert_eq!(found, expected);
    // What is shown of a chunk has no blank lines around it.
    let shown = reader.snapshot().unwrap().chunks_of_file(root, "whole.rs").unwrap().unwrap().1;
    let shown: Vec<&str> = shown.iter().map(|chunk| chunk.text.as_deref().unwrap()).collect();
    assert_eq!(shown, ["  a", "b", "c"]);
}

#[test]
fn changed_files_are_found_as_a_whole() {
    let mut store = TestStore::new();
    let root = add_root(&mut store, "/project");
    let put = |names: &[&str]| -> PutFiles {
        let files: Vec<ParsedFile> = names.iter().map(|name| file(name, &["x\n", "y\n"])).collect();
        put_files(root, &files, 1.0)
    };
    store.one(put(&["a", "b", "c"])).unwrap();
    let change = store.reader().snapshot().unwrap().last_change().unwrap();
    store.one(put(&["b"])).unwrap();
    store.one(RemoveFiles { root, paths: vec!["a".to_owned()] }).unwrap();
    let version = file("c", &["x\n", "y\n"]).version;
    let vectors = bytes([1.0, 0.0, 1.0, 0.0]).into();
    let (from, to, model) = ("c".to_owned(), "d".to_owned(), MODEL.to_owned());
    store.one(MoveFile { root, from, to, version, dimension: 2, vectors, model }).unwrap();
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let whole = [is("b", "x\ny\n", &[0, 2]), is("d", "x\ny\n", &[0, 2])];
    assert_eq!(texts(&snapshot, Scope::ChangedAfter(change)), whole);
    assert_eq!(texts(&snapshot, Scope::All), whole);
}
