//! Checks owners and modes of everything in a store's folder.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isolith_store::StoreFolder;

use super::finding::{Finding, Health, Repair};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

pub(super) fn check(folder: &StoreFolder) -> Finding {
    let entries = match entries_below(folder.path()) {
        Ok(entries) => entries,
        Err(error) => {
            let detail = format!("cannot read {}: {error}", folder.path().display());
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
            let expected = expected_mode(metadata)?;
            (mode != expected)
                .then(|| format!("{} is {mode:04o}, not {expected:04o}", shown(folder, path)))
        })
        .collect();
    if wrong.is_empty() {
        return Finding::ok(format!("{} files and folders are private", entries.len()));
    }
    Finding::of_problems(Health::Warn, &wrong).with(Repair::Permissions)
}

/// `None` for symbolic links, which are not followed.
fn expected_mode(metadata: &Metadata) -> Option<u32> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Some(FOLDER_MODE)
    } else if kind.is_symlink() {
        None
    } else {
        Some(FILE_MODE)
    }
}

/// The folder and everything below it, except what is deleted in the meantime.
fn entries_below(folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
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
    fn finds_wrong_modes() {
        let temp = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(temp.path().join("store"));
        folder.create().unwrap();
        assert_eq!(check(&folder).status, Health::Ok);
        let file = folder.segments().join("c1.vec");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(folder.run(), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let found = check(&folder);
        assert_eq!(
            (found.status, found.repairs.as_slice()),
            (Health::Warn, &[Repair::Permissions][..])
        );
        assert!(found.detail.contains("segments/c1.vec is 0644, not 0600"), "{found:?}");
    }

    #[test]
    fn missing_folder_fails() {
        let temp = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(temp.path().join("missing"));
        assert_eq!(check(&folder).status, Health::Failed);
    }
}
