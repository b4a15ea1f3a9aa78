//! Rules about who links what: see the list of crates in ARCHITECTURE.md.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pure crates, and those that run in workers without starting any, link neither a runtime
/// nor a sandbox nor an engine of others.
const FORBIDDEN: [(&str, &[&str]); 9] = [
    ("isolate-types", &["isolate", "tokio", "landlock", "seccompiler"]),
    ("isolith-embed", &["isolate", "tokio", "landlock", "seccompiler"]),
    ("isolith-graph", &["isolate", "tokio", "rusqlite", "tantivy"]),
    ("isolith-history", &["isolate", "tokio", "landlock", "seccompiler"]),
    ("isolith-protocol", &["isolate", "tokio", "rusqlite", "tantivy"]),
    ("isolith-search", &["isolate", "tokio", "rusqlite", "tantivy"]),
    ("isolith-segment", &["isolate", "tokio", "landlock", "seccompiler", "rusqlite"]),
    ("isolith-source", &["isolate", "tokio", "landlock", "seccompiler"]),
    ("isolith-text", &["isolate", "tokio", "rusqlite", "tantivy"]),
];

#[test]
fn crates_do_not_link_what_they_must_not() {
    let mut broken = Vec::new();
    for (package, forbidden) in FORBIDDEN {
        let linked = linked_by(package);
        assert!(linked.contains(package), "{package} is not in its own tree: {linked:?}");
        for name in forbidden.iter().filter(|name| linked.contains(**name)) {
            broken.push(format!("{package} links {name}: cargo tree -p {package} -i {name}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A rule about a crate that nobody links could not fail.
#[test]
fn forbidden_crates_exist() {
    let product = linked_by("isolith");
    for (package, forbidden) in FORBIDDEN {
        for name in forbidden.iter().copied().chain([package]) {
            assert!(product.contains(name), "the product does not link {name}");
        }
    }
}

/// `isolate` hands out `InWorker` in `worker_main`; nobody else may make one.
#[test]
fn only_isolate_issues_tokens() {
    let this = Path::new(file!()).file_name();
    let mut users = Vec::new();
    for part in ["crates", "bench", "xtask"] {
        each_source(&root().join(part), &mut |path, text| {
            if text.contains("for_isolate") && path.file_name() != this {
                let path = path.strip_prefix(root()).unwrap();
                users.push(path.to_string_lossy().into_owned());
            }
        });
    }
    users.sort();
    let allowed =
        ["isolate-types/src/lib.rs", "isolate/src/wire/parcel.rs", "isolate/src/worker.rs"];
    assert_eq!(users, allowed.map(|path| format!("crates/{path}")));
}

/// The names of the packages that are part of a package, itself included.
fn linked_by(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--package", package, "--format", "{p}"])
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree --package {package}: {errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn each_source(folder: &Path, take: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_source(&path, take);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            take(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
