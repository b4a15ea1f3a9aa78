//! How large the files may be that git keeps beside its objects. They are read whole, and
//! whoever made the repository made them.

use std::path::Path;

use crate::{HistoryError, Repository};

/// The largest file with one reference: a line.
const LARGEST_REFERENCE: u64 = 64 << 10;

/// The largest file with all packed references: some hundred thousand.
const LARGEST_PACKED: u64 = 64 << 20;

/// The largest list of other places with objects.
const LARGEST_ALTERNATES: u64 = 64 << 10;

/// Checks what is read whichever commit is the newest.
pub(crate) fn check_repository(repository: &Repository) -> Result<(), HistoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    let alternates = common_dir.join("objects/info/alternates");
    check(&git_dir.join("HEAD"), LARGEST_REFERENCE)?;
    check(&common_dir.join("packed-refs"), LARGEST_PACKED)?;
    check(&alternates, LARGEST_ALTERNATES)
}

/// Checks the file of a reference.
pub(crate) fn check_reference(repository: &Repository, name: &str) -> Result<(), HistoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    for folder in [git_dir, common_dir] {
        check(&folder.join(name), LARGEST_REFERENCE)?;
    }
    Ok(())
}

/// An error if a file is too large, or nothing that can be read to its end.
fn check(file: &Path, largest: u64) -> Result<(), HistoryError> {
    let refuse = |detail: String| Err(HistoryError::Oversized { file: file.to_owned(), detail });
    match std::fs::metadata(file) {
        // There may be a folder of references with the name of one.
        Ok(seen) if seen.is_dir() => Ok(()),
        Ok(seen) if !seen.is_file() => refuse("it is not a regular file".to_owned()),
        Ok(seen) if seen.len() > largest => {
            refuse(format!("it has {} bytes, and {largest} are allowed", seen.len()))
        }
        // What is not there is not read; what must not be read says so when it is.
        Ok(_) | Err(_) => Ok(()),
    }
}
