//! Runs the fuzz targets on the corpus, on stable Rust and without a fuzzer.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isolith_fuzz::TARGETS;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A target must accept inputs named `valid-…`, reject `damaged-…`, and not panic on any.
#[test]
fn targets_accept_valid_inputs_and_reject_damaged_ones() {
    for (target, run) in TARGETS {
        let folder = fuzz_folder().join("corpus").join(target);
        let (mut valid, mut damaged) = (0, 0);
        for name in names_in(&folder) {
            let accepted = run(&fs::read(folder.join(&name)).unwrap());
            let (is_valid, is_damaged) = (name.starts_with("valid-"), name.starts_with("damaged-"));
            assert!(accepted || !is_valid, "{target} rejects {name}");
            assert!(!accepted || !is_damaged, "{target} accepts {name}");
            valid += usize::from(is_valid);
            damaged += usize::from(is_damaged);
        }
        assert!(valid > 0 && damaged > 0, "{target}: {valid} valid, {damaged} damaged inputs");
    }
}

#[test]
fn every_target_has_a_fuzzer() {
    let files = names_in(&fuzz_folder().join("fuzz_targets"));
    let expected = TARGETS.map(|(target, _)| format!("{target}.rs"));
    assert_eq!(files, BTreeSet::from(expected));
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} has no [[bin]]");
        assert!(fuzz_folder().join("corpus").join(target).is_dir(), "{target} has no corpus");
    }
}
