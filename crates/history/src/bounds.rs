//! Limits on the size of the files that git stores beside its objects. They are read whole, and
//! the repository may come from anyone.

use std::path::Path;

use crate::{HistoryError, Repository};

/// The maximum size of a file with one reference, which is a single line.
const MAX_REFERENCE_BYTES: u64 = 64 << 10;

/// The maximum size of the packed references: enough for several hundred thousand.
const MAX_PACKED_REFS_BYTES: u64 = 64 << 20;

/// The maximum size of the list of alternate object stores.
const MAX_ALTERNATES_BYTES: u64 = 64 << 10;

/// Checks the files that are read in any case.
pub(crate) fn check_repository(repository: &Repository) -> Result<(), HistoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    let alternates = common_dir.join("objects/info/alternates");
    check(&git_dir.join("HEAD"), MAX_REFERENCE_BYTES)?;
    check(&common_dir.join("packed-refs"), MAX_PACKED_REFS_BYTES)?;
    check(&alternates, MAX_ALTERNATES_BYTES)
}

/// Checks the file of a reference.
pub(crate) fn check_reference(repository: &Repository, name: &str) -> Result<(), HistoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    for folder in [git_dir, common_dir] {
        check(&folder.join(name), MAX_REFERENCE_BYTES)?;
    }
    Ok(())
}

/// Fails if a file is too large or not a regular file.
fn check(file: &Path, max_bytes: u64) -> Result<(), HistoryError> {
    let refuse = |detail: String| Err(HistoryError::Oversized { file: file.to_owned(), detail });
    match std::fs::metadata(file) {
        // A folder of references may have this name.
        Ok(seen) if seen.is_dir() => Ok(()),
        Ok(seen) if !seen.is_file() => refuse("it is not a regular file".to_owned()),
        Ok(seen) if seen.len() > max_bytes => {
            refuse(format!("its size is {} bytes, the limit is {max_bytes}", seen.len()))
        }
        // A missing file is not read; an unreadable one fails when it is read.
        Ok(_) | Err(_) => Ok(()),
    }
}
