//! The walk against that of the `ignore` crate, which knows git's rules by heart.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;

use ignore::WalkBuilder;
use isolate_types::InWorker;
use isolith_folder::Folder;
use isolith_source::walk::{IGNORE_FILE, WalkOptions, Walker, rules_above};
use proptest::prelude::*;

const NAMES: [&str; 6] = ["a", "b", "out", "x.rs", "y.log", "z.rs"];

const PATTERNS: [&str; 14] = [
    "a",
    "/a",
    "b/",
    "*.log",
    "!y.log",
    "out/*",
    "!out/x.rs",
    "**/b",
    "a/**",
    "/out/",
    "*",
    "!*.rs",
    "# nothing",
    "b/x.rs",
];

/// The files that the other crate finds with the settings that a walk stands for.
fn expected(root: &Path) -> Vec<String> {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(true).require_git(false).git_global(false);
    builder.add_custom_ignore_filename(IGNORE_FILE).follow_links(false);
    let files = builder.build().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().unwrap().is_file());
    let mut paths: Vec<String> = files
        .map(|entry| entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    paths.sort_unstable();
    paths
}

/// Whether the other crate enters `folder` on its way from the top.
fn is_visited(top: &Path, folder: &Path) -> bool {
    let mut builder = WalkBuilder::new(top);
    builder.hidden(true).require_git(false).git_global(false);
    builder.add_custom_ignore_filename(IGNORE_FILE);
    builder.build().map(Result::unwrap).any(|entry| entry.path() == folder && folder.is_dir())
}

fn found(root: &Path) -> Vec<String> {
    let folder = Folder::resolve(root).unwrap();
    let (rules, _) = rules_above(folder.path(), None);
    let what = WalkOptions {
        under: String::new(),
        largest_file: 1 << 20,
        include_secrets: false,
        folders: false,
        except: vec![],
        languages: Vec::new(),
        repository: None,
    };
    let walker = Walker::begin(folder, what, &rules, None, InWorker::in_process());
    let page = walker.unwrap().page(usize::MAX, &|| false);
    assert_eq!(page.left_out, []);
    page.files.into_iter().map(|file| file.path).collect()
}

/// A folder's path of at most three names, then what is in its ignore file.
fn rules() -> impl Strategy<Value = (Vec<usize>, usize, Vec<usize>)> {
    let folder = proptest::collection::vec(0..3usize, 0..3);
    (folder, 0..4usize, proptest::collection::vec(0..PATTERNS.len(), 1..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_same_files_are_found(
        files in proptest::collection::vec(proptest::collection::vec(0..NAMES.len(), 1..5), 1..25),
        rules in proptest::collection::vec(rules(), 0..6),
    ) {
        let place = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(place.path()).unwrap();
        for path in files {
            let path: Vec<&str> = path.into_iter().map(|name| NAMES[name]).collect();
            let path = top.join(path.join("/"));
            // A name is a file here and a folder there; whichever comes first stays.
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
                fs::write(path, "").unwrap();
            }
        }
        for (folder, kind, patterns) in rules {
            let mut folder: Vec<&str> = folder.into_iter().map(|name| NAMES[name]).collect();
            // A folder with a `.git` of its own is left out of the walk: only the top has one.
            if kind == 3 {
                folder.clear();
            }
            let name = [".gitignore", ".ignore", IGNORE_FILE, ".git/info/exclude"][kind];
            let path = top.join(folder.join("/")).join(name);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let lines: Vec<&str> = patterns.into_iter().map(|it| PATTERNS[it]).collect();
                fs::write(path, lines.join("\n")).unwrap();
            }
        }
        for root in [top.clone(), top.join("a"), top.join("a/b")] {
            // A folder that is named is walked even if the rules above it hide it.
            if is_visited(&top, &root) {
                prop_assert_eq!(found(&root), expected(&root), "{}", root.display());
            }
        }
    }
}
