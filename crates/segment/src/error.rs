use std::io;
use std::path::PathBuf;

use crate::container::Kind;

/// Why a segment cannot be built, opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The operating system refused.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no segment", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version of the program.
    #[error("{} has version {found} of the format, not {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The one that can be read.
        known: u32,
    },
    /// The file is a segment of another kind.
    #[error("{} is a {found} segment, not a {wanted} segment", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Kind,
        /// What was asked for.
        wanted: Kind,
    },
    /// The file is sound but not the one that the truth names.
    #[error("{} has checksum {found:08x}, not {expected:08x}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// Its checksum.
        found: u32,
        /// The truth's.
        expected: u32,
    },
    /// The file is not as it was written.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, and how that was seen.
        what: String,
    },
    /// The caller asked for what a segment cannot hold or do.
    #[error("cannot {operation} {}: {problem}", path.display())]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
}

impl SegmentError {
    /// Whether the file is to blame and must not be used again. Otherwise it is the
    /// request, or the state of the system.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Refused { .. })
    }

    pub(crate) fn io(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), what: what.into() }
    }

    pub(crate) fn refused(
        operation: &'static str,
        path: impl Into<PathBuf>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Refused { operation, path: path.into(), problem: problem.into() }
    }
}
