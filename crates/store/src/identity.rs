use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which files a connection has open: the truth, and its log and index where it has
/// them. Only looks at paths: opening and closing one of these files would drop the
/// locks that SQLite holds on it in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    files: Vec<(PathBuf, FileId)>,
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

impl Identity {
    /// What the paths name now. The log and its index count too: writes into a deleted
    /// log would be lost with it.
    pub(crate) fn of(truth: &Path, truth_id: FileId) -> Self {
        let mut files = vec![(truth.to_path_buf(), truth_id)];
        for suffix in ["-wal", "-shm"] {
            let path = with_suffix(truth, suffix);
            if let Some(id) = FileId::of(&path) {
                files.push((path, id));
            }
        }
        Self { files }
    }

    /// The truth alone, for a connection that uses no log.
    pub(crate) fn of_one(truth: &Path, truth_id: FileId) -> Self {
        Self { files: vec![(truth.to_path_buf(), truth_id)] }
    }

    /// Whether a path no longer names the file that is open.
    pub(crate) fn has_moved(&self) -> bool {
        self.files.iter().any(|(path, id)| FileId::of(path) != Some(*id))
    }
}

/// The path with something appended to its last name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
