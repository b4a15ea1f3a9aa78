use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The names of everything in a store's folder. Knows paths, opens nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFolder {
    path: PathBuf,
}

impl StoreFolder {
    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The one file that must be kept.
    pub fn truth(&self) -> PathBuf {
        self.path.join("truth.sqlite")
    }

    /// Derived files.
    pub fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Derived files that failed, kept for diagnosis.
    pub fn quarantine(&self) -> PathBuf {
        self.path.join("quarantine")
    }

    /// Crash reports.
    pub fn crashes(&self) -> PathBuf {
        self.path.join("crashes")
    }

    /// Logs of long-running fronts.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Sockets of live fronts, locks and temporary files.
    pub fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    /// Held shared by every store worker, exclusively for migration and salvage.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Held by the one process that builds segments.
    pub fn builder_lock(&self) -> PathBuf {
        self.run().join("builder.lock")
    }

    /// Held while the truth is made for the first time.
    pub(crate) fn creation_lock(&self) -> PathBuf {
        self.run().join("create.lock")
    }

    /// A repaired truth that is complete and waits to take the place of the damaged one.
    pub(crate) fn salvaged(&self) -> PathBuf {
        self.path.join("truth.sqlite.salvaged")
    }

    /// Whether there is a truth, or a repaired one about to become it.
    pub fn holds_store(&self) -> bool {
        self.truth().exists() || self.salvaged().exists()
    }

    /// Makes the folders that are missing, readable for the current user alone.
    ///
    /// # Errors
    /// Whatever kept a folder from being made.
    pub fn create(&self) -> Result<(), StoreError> {
        let inner = [self.segments(), self.quarantine(), self.crashes(), self.logs(), self.run()];
        for folder in [self.path.clone()].into_iter().chain(inner) {
            make_private(&folder).map_err(|error| io_failure(&folder, "make folder", &error))?;
        }
        Ok(())
    }

    /// Refuses what must not be used: the folder of another user, and network
    /// filesystems. A folder that does not exist is judged by where it would be.
    ///
    /// # Errors
    /// [`StoreError::ForeignOwner`], [`StoreError::NetworkFilesystem`], or that the
    /// folder cannot be looked at.
    pub fn check(&self) -> Result<(), StoreError> {
        self.check_owner()?;
        self.check_filesystem()
    }

    /// Refuses a folder that belongs to another user.
    ///
    /// # Errors
    /// [`StoreError::ForeignOwner`], or that the folder cannot be looked at.
    pub fn check_owner(&self) -> Result<(), StoreError> {
        let user = rustix::process::geteuid().as_raw();
        for path in [self.path.clone(), self.truth()] {
            let owner = match std::fs::metadata(&path) {
                Ok(metadata) => metadata.uid(),
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(io_failure(&path, "look at", &error)),
            };
            if owner != user {
                return Err(StoreError::ForeignOwner { path, owner, user });
            }
        }
        Ok(())
    }

    /// Refuses a folder on a filesystem that is known to be a network's.
    ///
    /// # Errors
    /// [`StoreError::NetworkFilesystem`], or that the filesystem cannot be told.
    pub fn check_filesystem(&self) -> Result<(), StoreError> {
        for place in self.path.ancestors() {
            let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
            match rustix::fs::statfs(place) {
                Ok(found) => {
                    return match network_kind(i128::from(found.f_type)) {
                        Some(kind) => {
                            Err(StoreError::NetworkFilesystem { path: self.path.clone(), kind })
                        }
                        None => Ok(()),
                    };
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(error) => {
                    return Err(io_failure(place, "look at the filesystem of", &error.into()));
                }
            }
        }
        Ok(())
    }
}

/// A failed call of the operating system as the error that tells what to do about it.
pub(crate) fn io_failure(path: &Path, operation: &str, error: &io::Error) -> StoreError {
    let path = path.to_path_buf();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull { path, operation: operation.to_owned() }
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { path, reason: format!("cannot {operation}: {error}") }
        }
        _ => StoreError::Io { path, operation: operation.to_owned(), reason: error.to_string() },
    }
}

/// Whether the error says that there is nothing at the path.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_private(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The umask can only have taken rights away; the owner needs all of them.
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn network_kind(magic: i128) -> Option<&'static str> {
    // The same number is signed or unsigned, wide or narrow, by architecture.
    let magic = (magic & 0xFFFF_FFFF) as u32;
    let known = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFE53_4D42, "SMB2"),
        (0xFF53_4D42, "CIFS"),
        (0x00C3_6400, "Ceph"),
        (0x5346_414F, "AFS"),
        (0x6B41_4653, "AFS"),
        (0x0102_1997, "9p"),
        (0x7375_7245, "Coda"),
        (0x564C, "NCP"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x1983_0326, "BeeGFS"),
    ];
    known.iter().find(|(number, _)| *number == magic).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_private() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("a b/ü"));
        folder.create().unwrap();
        folder.create().unwrap();
        for path in [folder.path().to_path_buf(), folder.segments(), folder.run()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(!folder.holds_store());
        folder.check().unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_judged_by_where_it_would_be() {
        let place = tempfile::tempdir().unwrap();
        StoreFolder::new(place.path().join("not/yet/there")).check().unwrap();
        StoreFolder::new("not-yet-there").check().unwrap();
    }

    #[test]
    fn network_filesystems_are_known_by_number() {
        assert_eq!(network_kind(0x6969), Some("NFS"));
        assert_eq!(network_kind(-0x1ACB2BE), Some("SMB2"));
        assert_eq!(network_kind(0xEF53), None);
    }
}
