//! Owners and modes of everything in a store's folder.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isolith_store::StoreFolder;

use super::finding::{Cure, Finding, Health};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Looks for what others may read, and for what the owner may not write.
pub(super) fn check(folder: &StoreFolder) -> Finding {
    let entries = match everything(folder.path()) {
        Ok(entries) => entries,
        Err(error) => {
            let detail = format!("{} cannot be read: {error}", folder.path().display());
            return Finding::new(Health::Failed, detail);
        }
    };
    if let Err(error) = folder.check() {
        return Finding::new(Health::Failed, error.to_string());
    }
    let user = rustix::process::geteuid().as_raw();
    let foreign: Vec<String> = entries
        .iter()
        .filter(|(_, metadata)| metadata.uid() != user)
        .map(|(path, metadata)| {
            format!("{} belongs to user {}", shown(folder, path), metadata.uid())
        })
        .collect();
    if !foreign.is_empty() {
        return Finding::of_problems(Health::Failed, &foreign);
    }
    let wrong: Vec<String> = entries
        .iter()
        .filter_map(|(path, metadata)| {
            let mode = metadata.mode() & 0o777;
            let wanted = wanted_mode(metadata)?;
            (mode != wanted)
                .then(|| format!("{} is {mode:04o}, not {wanted:04o}", shown(folder, path)))
        })
        .collect();
    if wrong.is_empty() {
        return Finding::ok(format!("{} files and folders are private", entries.len()));
    }
    Finding::of_problems(Health::Warn, &wrong).with(Cure::Permissions)
}

/// None for what is neither file, folder nor socket: a link is not followed.
fn wanted_mode(metadata: &Metadata) -> Option<u32> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Some(FOLDER_MODE)
    } else if kind.is_symlink() {
        None
    } else {
        Some(FILE_MODE)
    }
}

/// The folder and all below it. What disappears meanwhile is left out.
fn everything(folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let mut found = vec![(folder.to_owned(), fs::symlink_metadata(folder)?)];
    let mut next = 0;
    while next < found.len() {
        if found[next].1.is_dir() {
            let below = fs::read_dir(&found[next].0)?.filter_map(Result::ok);
            let below: Vec<_> =
                below.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect();
            found.extend(below);
        }
        next += 1;
    }
    Ok(found)
}

fn shown(folder: &StoreFolder, path: &Path) -> String {
    match path.strip_prefix(folder.path()) {
        Ok(below) if below.as_os_str().is_empty() => "the store's folder".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_read_is_found() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("store"));
        folder.create().unwrap();
        assert_eq!(check(&folder).status, Health::Ok);
        let file = folder.segments().join("c1.vec");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(folder.run(), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let found = check(&folder);
        assert_eq!(
            (found.status, found.cures.as_slice()),
            (Health::Warn, &[Cure::Permissions][..])
        );
        assert!(found.detail.contains("segments/c1.vec is 0644, not 0600"), "{found:?}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_failure() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("nowhere"));
        assert_eq!(check(&folder).status, Health::Failed);
    }
}
