use std::io;
use std::path::PathBuf;

use crate::container::SegmentKind;

/// Why a segment cannot be built, opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no segment header.
    #[error("{} is not a segment", path.display())]
    NotASegment {
        /// The file.
        path: PathBuf,
    },
    /// The container or layout version differs from the one this program reads.
    #[error("{} has format version {found}, expected {known}", path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The supported version.
        known: u32,
    },
    /// The file is a segment of another kind.
    #[error("{} is a {found} segment, not a {expected} segment", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// The file's kind.
        found: SegmentKind,
        /// The requested kind.
        expected: SegmentKind,
    },
    /// The file is valid, but not the one recorded in the database.
    #[error("{} has checksum {found:08x}, expected {expected:08x}", path.display())]
    WrongChecksum {
        /// The file.
        path: PathBuf,
        /// The file's checksum.
        found: u32,
        /// The checksum in the database.
        expected: u32,
    },
    /// The content does not match its checksums, or is inconsistent.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, and how it was detected.
        detail: String,
    },
    /// The request is invalid; the file is not at fault.
    #[error("cannot {operation} {}: {problem}", path.display())]
    Invalid {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why the request is invalid.
        problem: String,
    },
}

impl SegmentError {
    /// Whether the file itself is at fault and must not be used again.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Invalid { .. })
    }

    pub(crate) fn io(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), detail: detail.into() }
    }

    pub(crate) fn invalid(
        operation: &'static str,
        path: impl Into<PathBuf>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Invalid { operation, path: path.into(), problem: problem.into() }
    }
}
