//! Checks the dependencies between crates; see the list of crates in ARCHITECTURE.md.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pure crates, and crates that run in workers, must not depend on a runtime, a sandbox or a
/// third-party engine that they do not use.
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
fn crates_have_no_forbidden_dependencies() {
    let mut violations = Vec::new();
    for (package, forbidden) in FORBIDDEN {
        let tree = dependencies_of(package);
        assert!(tree.contains(package), "{package} is not in its own tree: {tree:?}");
        for name in forbidden.iter().filter(|name| tree.contains(**name)) {
            violations.push(format!("{package} has {name}: cargo tree -p {package} -i {name}"));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// A rule about a crate that nothing depends on could not fail.
#[test]
fn forbidden_crates_exist() {
    let dependencies = dependencies_of("isolith");
    for (package, forbidden) in FORBIDDEN {
        for name in forbidden.iter().copied().chain([package]) {
            assert!(dependencies.contains(name), "isolith does not depend on {name}");
        }
    }
}

/// Only `isolate` may create an `InWorker`.
#[test]
fn only_isolate_creates_worker_tokens() {
    let this = Path::new(file!()).file_name();
    let mut users = Vec::new();
    for part in ["crates", "bench", "xtask"] {
        for_each_source(&root().join(part), &mut |path, text| {
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

/// The names of a package's dependencies, direct and indirect, and its own.
fn dependencies_of(package: &str) -> BTreeSet<String> {
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

fn for_each_source(folder: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_source(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
