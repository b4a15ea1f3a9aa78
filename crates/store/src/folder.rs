use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use isolith_folder::{EntryKind, Folder, met_link};
use isolith_protocol::StoreError;
use serde::{Deserialize, Serialize};

const TRUTH: &str = "truth.sqlite";
const SALVAGED: &str = "truth.sqlite.salvaged";
const SEAL: &str = "seal";
const LOCK: &str = "lock";
const RUN: &str = "run";
const ACKNOWLEDGED: &str = "acknowledged";

/// The lock file in `run/`, held by the one process that builds segments.
pub const BUILDER_LOCK: &str = "builder.lock";

/// The subfolders of a store's folder.
const INNER: [&str; 5] = ["segments", "quarantine", "crashes", "logs", RUN];

/// The paths of everything in a store's folder, and which truth is allowed there. The path must
/// contain no links when something is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFolder {
    path: PathBuf,
    id: TruthId,
}

/// Which truth may be opened in a store's folder. A truth has the uuid that its store's seal was
/// made for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TruthId {
    /// Any: the store is not sealed.
    #[default]
    Any,
    /// Only the one with this uuid.
    Only(String),
    /// Any; the first writer gives it this uuid.
    Becomes(String),
}

impl StoreFolder {
    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), id: TruthId::Any }
    }

    /// Sets which truth may be opened.
    #[must_use]
    pub fn with_truth(mut self, id: TruthId) -> Self {
        self.id = id;
        self
    }

    /// Which truth may be opened.
    pub fn truth_id(&self) -> &TruthId {
        &self.id
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The SQLite database: the only file that cannot be rebuilt.
    pub fn truth(&self) -> PathBuf {
        self.path.join(TRUTH)
    }

    /// Segments.
    pub fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Damaged segments, kept for diagnosis.
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

    /// Sockets of running fronts, locks and temporary files.
    pub fn run(&self) -> PathBuf {
        self.path.join(RUN)
    }

    /// Held shared by every store worker, exclusively for migration and salvage.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    /// Records the last acknowledged commit.
    pub(crate) fn acknowledged(&self) -> PathBuf {
        self.path.join(ACKNOWLEDGED)
    }

    /// Held by the one process that builds segments.
    pub fn builder_lock(&self) -> PathBuf {
        self.run().join(BUILDER_LOCK)
    }

    /// Held while the truth is first created.
    pub(crate) fn creation_lock(&self) -> PathBuf {
        self.run().join("create.lock")
    }

    /// A complete, repaired truth that is about to replace the damaged one. Its name includes
    /// the identity that the store was sealed with, which nobody else knows: a file that came
    /// with a clone is ignored.
    pub(crate) fn salvaged(&self) -> PathBuf {
        self.path.join(self.salvaged_name())
    }

    fn salvaged_name(&self) -> String {
        match &self.id {
            TruthId::Any => SALVAGED.to_owned(),
            TruthId::Only(uuid) | TruthId::Becomes(uuid) => format!("{SALVAGED}-{uuid}"),
        }
    }

    /// The file that proves that this user created the store on this machine.
    pub fn seal(&self) -> PathBuf {
        self.path.join(SEAL)
    }

    /// Whether there is a truth, or a repaired one about to become it.
    pub fn holds_store(&self) -> bool {
        is_there(&self.truth()) || is_there(&self.salvaged())
    }

    /// Whether the folder contains a store or any part of one.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn holds_parts(&self) -> io::Result<bool> {
        let entries = match Folder::open(&self.path).and_then(|folder| folder.entries()) {
            Err(error) if is_missing(&error) => return Ok(false),
            entries => entries?,
        };
        Ok(entries.iter().any(|entry| is_part(&entry.name)))
    }

    /// Whether the folder contains nothing but parts of a store.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn holds_only_parts(&self) -> io::Result<bool> {
        let entries = Folder::open(&self.path)?.entries()?;
        Ok(entries.iter().all(|entry| is_part(&entry.name) || entry.name == ".gitignore"))
    }

    /// Creates missing folders, accessible to the current user only.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if there is a link in place of a folder, or the reason why a
    /// folder cannot be created.
    pub fn create(&self) -> Result<(), StoreError> {
        let failed = |error| io_failure(&self.path, "create folder", &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path).map_err(failed)?;
        let folder = self.open()?;
        for name in INNER {
            folder.folder_or_create(name).map_err(|error| self.explain(name, "create", &error))?;
        }
        Ok(())
    }

    /// Opens the folder itself.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if the path contains a link, or if it cannot be opened.
    pub fn open(&self) -> Result<Folder, StoreError> {
        Folder::open(&self.path).map_err(|error| self.explain("", "open", &error))
    }

    /// Rejects folders of other users, folders that contain links, and network filesystems. For
    /// a folder that does not exist, checks where it would be created.
    ///
    /// # Errors
    /// [`StoreError::ForeignOwner`], [`StoreError::NotAStore`],
    /// [`StoreError::NetworkFilesystem`], or if the folder cannot be read.
    pub fn check(&self) -> Result<(), StoreError> {
        self.check_owner()?;
        self.check_links()?;
        self.check_filesystem()
    }

    /// Rejects a folder in which a part of the store has the wrong file type: a link could lead
    /// elsewhere, a pipe would block readers.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], or if the folder cannot be read.
    pub fn check_links(&self) -> Result<(), StoreError> {
        let folder = match Folder::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folder => folder.map_err(|error| self.explain("", "open", &error))?,
        };
        let salvaged = self.salvaged_name();
        let files =
            [TRUTH, "truth.sqlite-wal", "truth.sqlite-shm", &salvaged, LOCK, SEAL, ACKNOWLEDGED];
        let folders = INNER.map(|name| (name, EntryKind::Folder)).into_iter();
        for (name, wanted) in files.map(|name| (name, EntryKind::File)).into_iter().chain(folders) {
            let entry =
                folder.entry(name).map_err(|error| self.explain(name, "look at", &error))?;
            if let Some(entry) = entry.filter(|entry| entry.kind != wanted) {
                return Err(self.not_ours(name, entry.kind));
            }
        }
        Ok(())
    }

    fn explain(&self, name: &str, operation: &str, error: &io::Error) -> StoreError {
        match met_link(error) && is_there(&self.path.join(name)) {
            true => self.not_ours(name, EntryKind::Link),
            false => io_failure(&self.path.join(name), operation, error),
        }
    }

    fn not_ours(&self, name: &str, kind: EntryKind) -> StoreError {
        let reason = match kind {
            EntryKind::File => "it is a file, not a folder",
            EntryKind::Folder => "it is a folder, not a file",
            EntryKind::Link => "it is a symbolic link",
            EntryKind::Other => "it is neither a file nor a folder",
        };
        StoreError::NotAStore { path: self.path.join(name), reason: reason.to_owned() }
    }

    /// Rejects a folder that belongs to another user.
    ///
    /// # Errors
    /// [`StoreError::ForeignOwner`], or if the folder cannot be read.
    pub fn check_owner(&self) -> Result<(), StoreError> {
        let user = rustix::process::geteuid().as_raw();
        for path in [self.path.clone(), self.truth()] {
            let owner = match std::fs::symlink_metadata(&path) {
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

    /// Rejects a folder on a known network filesystem.
    ///
    /// # Errors
    /// [`StoreError::NetworkFilesystem`], or if the filesystem cannot be determined.
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
                    return Err(io_failure(place, "determine the filesystem of", &error.into()));
                }
            }
        }
        Ok(())
    }
}

/// Converts an I/O error to the store error that says what to do about it.
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

/// Whether the error means that the path does not exist.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a file of this name belongs to a store.
fn is_part(name: &str) -> bool {
    name.starts_with(TRUTH) || [SEAL, LOCK, ACKNOWLEDGED].contains(&name) || INNER.contains(&name)
}

/// Whether the path exists; includes broken links.
fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn network_kind(magic: i128) -> Option<&'static str> {
    // The width and sign of this number depend on the architecture.
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_in_a_store_are_rejected() {
        for name in ["segments", "run", "lock", "seal", "truth.sqlite", "truth.sqlite-wal"] {
            let place = tempfile::tempdir().unwrap();
            let outside = place.path().join("outside");
            std::fs::create_dir(&outside).unwrap();
            let folder = StoreFolder::new(place.path().join("store"));
            std::fs::create_dir(folder.path()).unwrap();
            symlink(&outside, folder.path().join(name)).unwrap();
            let refused = |outcome| matches!(outcome, Err(StoreError::NotAStore { .. }));
            assert!(refused(folder.check()), "{name}");
            assert!(folder.holds_parts().unwrap(), "{name}");
            if INNER.contains(&name) {
                assert!(refused(folder.create()), "{name}");
            }
            let way = StoreFolder::new(place.path().join("way"));
            symlink(folder.path(), way.path()).unwrap();
            assert!(refused(way.check()) && refused(way.create()), "{name}");
            assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{name}");
        }
    }

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
    fn a_missing_folder_is_checked_by_its_parent() {
        let place = tempfile::tempdir().unwrap();
        StoreFolder::new(place.path().join("not/yet/there")).check().unwrap();
        StoreFolder::new("not-yet-there").check().unwrap();
    }

    #[test]
    fn network_filesystems_are_recognized_by_their_magic_number() {
        assert_eq!(network_kind(0x6969), Some("NFS"));
        assert_eq!(network_kind(-0x1ACB2BE), Some("SMB2"));
        assert_eq!(network_kind(0xEF53), None);
    }
}
