//! Compares the bytes of segments with files written by earlier builds.
//!
//! `files/` has a small segment of every kind, built from the inputs in `inputs.rs`. File names
//! contain the versions: `container-<n>.<kind>-<layout>.<input>.seg`. The bytes of a version never
//! change, because stores keep segments across upgrades: a change needs a new version and new
//! files.

#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod inputs;
mod layout;

use std::path::PathBuf;
use std::sync::Mutex;

use isolith_segment::SegmentError;

use crate::inputs::Input;

const BLESS: &str = "ISOLITH_BLESS=1 cargo test -p isolith-segment --test golden";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files")
}

/// The name of the golden file for a segment, by the versions in its own header.
fn name(input: Input, bytes: &[u8]) -> String {
    let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    format!("container-{}.{}-{}.{}.seg", number(8), input.kind(), number(16), input.name())
}

/// The golden file of the current versions, with its path. Blessing adds missing files and
/// overwrites none.
fn golden(input: Input) -> (PathBuf, Vec<u8>) {
    static BLESSING: Mutex<()> = Mutex::new(());
    let built = input.build();
    let name = name(input, &built);
    let path = folder().join(&name);
    if std::env::var_os("ISOLITH_BLESS").is_some() {
        let _one_at_a_time = BLESSING.lock();
        if !path.exists() {
            std::fs::write(&path, &built).unwrap();
        }
    }
    let bytes = std::fs::read(&path).unwrap_or_else(|_| {
        panic!("missing golden file {name}: if the version is new, add it with `{BLESS}`")
    });
    (path, bytes)
}

#[test]
fn current_code_writes_the_golden_bytes() {
    for input in Input::ALL {
        let built = input.build();
        let (_, golden) = golden(input);
        let first = built.iter().zip(&golden).position(|(built, golden)| built != golden);
        assert!(
            built == golden,
            "the bytes of {input:?} have changed ({} bytes, were {}; first difference at \
             {first:?}), but not its version. Users' stores contain segments of this version. \
             Raise `LAYOUT` of this kind (`vector/segment.rs`, `text/parameters.rs`, `graph.rs`, \
             `source.rs`) or `VERSION` of the container (`container/layout.rs`), describe the change in \
             docs/format.md, and add new golden files with `{BLESS}`. Keep the old ones.",
            built.len(),
            golden.len(),
        );
    }
}

#[test]
fn builds_are_reproducible() {
    for input in Input::ALL {
        assert!(input.build() == input.build(), "{input:?}");
    }
}

/// Segments of other versions are rebuilt, not read.
#[test]
fn rejects_golden_files_of_other_versions() {
    let current = Input::ALL.map(|input| name(input, &input.build()));
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        let known = Input::ALL.into_iter().find(|input| {
            let ends = format!(".{}.seg", input.name());
            file.ends_with(&ends) && file.contains(&format!(".{}-", input.kind()))
        });
        let input = known.unwrap_or_else(|| panic!("no input for {file}"));
        match input.open(&path) {
            Ok(()) => assert!(current.iter().any(|name| name == file), "{file} must be rejected"),
            Err(SegmentError::UnsupportedVersion { .. }) => {
                assert!(current.iter().all(|name| name != file), "{file} must be readable");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
