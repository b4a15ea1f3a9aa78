use std::cell::Cell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder changed more recently than this may change again without a new timestamp: no
/// filesystem has a coarser clock.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// Which files a connection has open: the truth and, if in use, its log and index. Only looks at
/// paths: opening and closing one of these files would drop SQLite's locks on it in this process.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    files: Vec<(PathBuf, FileId)>,
    /// State of the folder when the files were last seen in place.
    settled: Cell<Option<FolderState>>,
}

/// Device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// The folder's identity and `ctime`, which cannot be set by users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderState {
    id: FileId,
    changed: (i64, i64),
}

impl FolderState {
    fn of(folder: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(folder).ok()?;
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Some(Self { id: FileId::from(&metadata), changed })
    }

    /// Whether every later change will be visible. Some filesystems have no timestamps.
    fn is_settled(&self, now: SystemTime) -> bool {
        let (Ok(seconds @ 1..), Ok(nanoseconds)) =
            (u64::try_from(self.changed.0), u32::try_from(self.changed.1))
        else {
            return false;
        };
        let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        now.duration_since(changed).is_ok_and(|since| since >= SETTLED_AFTER)
    }
}

impl Identity {
    /// The files now at these paths. Includes the log and its index: writes to a deleted log
    /// would be lost.
    pub(crate) fn of(truth: &Path, truth_id: FileId) -> Self {
        let mut files = vec![(truth.to_path_buf(), truth_id)];
        for suffix in ["-wal", "-shm"] {
            let path = with_suffix(truth, suffix);
            if let Some(id) = FileId::of(&path) {
                files.push((path, id));
            }
        }
        Self { files, settled: Cell::new(None) }
    }

    /// The truth alone, for a connection without a log.
    pub(crate) fn of_one(truth: &Path, truth_id: FileId) -> Self {
        Self { files: vec![(truth.to_path_buf(), truth_id)], settled: Cell::new(None) }
    }

    /// Whether a path no longer refers to the open file.
    pub(crate) fn has_moved(&self) -> bool {
        self.files.iter().any(|(path, id)| FileId::of(path) != Some(*id))
    }

    /// Like [`Self::has_moved`], but usually with a single `stat`: no path can refer to another
    /// file while its folder is unchanged.
    pub(crate) fn has_moved_with_folder(&self, now: impl FnOnce() -> SystemTime) -> bool {
        let folder = self.files.first().and_then(|(path, _)| FolderState::of(path.parent()?));
        if folder.is_some() && folder == self.settled.get() {
            return false;
        }
        // The folder's state was read first, so a later change makes it differ next time.
        let moved = self.has_moved();
        self.settled.set(folder.filter(|folder| !moved && folder.is_settled(now())));
        moved
    }
}

/// Appends a suffix to the last component of a path.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with files and their identity.
    fn files_of(place: &Path) -> (PathBuf, Identity) {
        let folder = place.join("store");
        fs::create_dir(&folder).unwrap();
        let truth = folder.join("truth");
        for suffix in ["", "-wal", "-shm"] {
            fs::write(with_suffix(&truth, suffix), suffix).unwrap();
        }
        // Let a coarse clock advance, as it has in a settled folder.
        let changed = fs::metadata(&folder).unwrap();
        let probe = place.join("probe");
        loop {
            fs::write(&probe, "").unwrap();
            let now = fs::metadata(&probe).unwrap();
            if (now.ctime(), now.ctime_nsec()) > (changed.ctime(), changed.ctime_nsec()) {
                break;
            }
        }
        let identity = Identity::of(&truth, FileId::of(&truth).unwrap());
        (folder, identity)
    }

    fn later() -> SystemTime {
        SystemTime::now() + SETTLED_AFTER
    }

    #[test]
    fn moved_files_are_detected_in_a_settled_folder() {
        type Harm = fn(&Path);
        let harms: [Harm; 6] = [
            |folder| fs::remove_file(folder.join("truth")).unwrap(),
            |folder| {
                fs::write(folder.join("other"), "").unwrap();
                fs::rename(folder.join("other"), folder.join("truth")).unwrap();
            },
            |folder| fs::remove_file(folder.join("truth-wal")).unwrap(),
            |folder| {
                fs::write(folder.join("other"), "").unwrap();
                fs::remove_file(folder.join("truth-shm")).unwrap();
                fs::rename(folder.join("other"), folder.join("truth-shm")).unwrap();
            },
            |folder| fs::rename(folder, folder.with_extension("old")).unwrap(),
            |folder| {
                fs::rename(folder, folder.with_extension("old")).unwrap();
                fs::create_dir(folder).unwrap();
                for name in ["truth", "truth-wal", "truth-shm"] {
                    fs::write(folder.join(name), "").unwrap();
                }
            },
        ];
        for (number, harm) in harms.iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let (folder, identity) = files_of(place.path());
            assert!(!identity.has_moved_with_folder(later), "{number}");
            assert!(identity.settled.get().is_some(), "{number}");
            assert!(!identity.has_moved_with_folder(|| panic!("one look is enough")), "{number}");
            harm(&folder);
            for _ in 0..2 {
                assert!(identity.has_moved_with_folder(later), "{number}");
            }
        }
    }

    #[test]
    fn a_recently_changed_folder_is_not_trusted() {
        let place = tempfile::tempdir().unwrap();
        let (folder, identity) = files_of(place.path());
        let changed = fs::metadata(&folder).unwrap();
        let changed = UNIX_EPOCH + Duration::new(changed.ctime() as u64, 0);
        for now in [changed, changed - Duration::from_secs(60)] {
            assert!(!identity.has_moved_with_folder(|| now));
            assert_eq!(identity.settled.get(), None);
        }
        assert!(!identity.has_moved_with_folder(later));
        // An unrelated change: the files are checked once.
        fs::write(folder.join("other"), "").unwrap();
        let mut asked = 0;
        for _ in 0..3 {
            assert!(!identity.has_moved_with_folder(|| {
                asked += 1;
                later()
            }));
        }
        assert_eq!(asked, 1);
    }
}
