//! The bytes of segments, held against files that earlier builds wrote.
//!
//! `files/` has a small segment of every kind, built from the inputs in `inputs.rs`. Its name
//! states the versions it was written with: `container-<n>.<kind>-<layout>.<input>.seg`. Segments
//! of a version never change, because stores keep them across upgrades: whoever changes the
//! bytes raises a version and adds new files.

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

/// The golden file that today's versions name, with its path. Blessing adds what is missing and
/// overwrites nothing.
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
        panic!("there is no golden file {name}: if the version is new, add one with `{BLESS}`")
    });
    (path, bytes)
}

#[test]
fn todays_code_writes_the_golden_bytes() {
    for input in Input::ALL {
        let built = input.build();
        let (_, golden) = golden(input);
        let first = built.iter().zip(&golden).position(|(built, golden)| built != golden);
        assert!(
            built == golden,
            "the bytes of {input:?} have changed ({} bytes, were {}; first difference at {first:?}), \
             but not its version. Stores of users hold segments with this version. Raise `LAYOUT` \
             of this kind (`vector/segment.rs`, `text/parameters.rs`, `graph.rs`) or `VERSION` of \
             the container (`container/layout.rs`), describe the change in docs/format.md, and \
             add new golden files with `{BLESS}`. The old ones stay.",
            built.len(),
            golden.len(),
        );
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_every_time() {
    for input in Input::ALL {
        assert!(input.build() == input.build(), "{input:?}");
    }
}

/// Segments of other versions are rebuilt, not read.
#[test]
fn golden_files_of_other_versions_are_refused_by_their_version() {
    let today = Input::ALL.map(|input| name(input, &input.build()));
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        let known = Input::ALL.into_iter().find(|input| {
            let ends = format!(".{}.seg", input.name());
            file.ends_with(&ends) && file.contains(&format!(".{}-", input.kind()))
        });
        let input = known.unwrap_or_else(|| panic!("no input makes {file}"));
        match input.open(&path) {
            Ok(()) => assert!(today.iter().any(|name| name == file), "{file} must be refused"),
            Err(SegmentError::Version { .. }) => {
                assert!(today.iter().all(|name| name != file), "{file} must be read");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
