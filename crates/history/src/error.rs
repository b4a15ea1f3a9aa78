use std::io;
use std::path::PathBuf;

use isolith_types::{Code, Failure};

use crate::{MAX_FILES, MAX_PATH_BYTES};

/// Why the history of a repository cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// Its object store cannot be opened.
    #[error("cannot open the objects of {}: {source}", git_dir.display())]
    Open {
        /// The repository's `.git` folder.
        git_dir: PathBuf,
        /// The error from the operating system or the object store.
        source: io::Error,
    },
    /// The newest commit cannot be determined: `HEAD` is missing or damaged, or references have
    /// an unsupported format (SHA-256, reftable).
    #[error("cannot read HEAD of {}: {detail}", git_dir.display())]
    Head {
        /// The repository's `.git` folder.
        git_dir: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A file that git stores beside its objects is too large, or not a regular file.
    #[error("cannot read {}: {detail}", file.display())]
    Oversized {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The newest commit, or the list of its files, is missing or damaged.
    #[error("the {what} {id} of {} is missing or damaged", git_dir.display())]
    Damaged {
        /// The repository's `.git` folder.
        git_dir: PathBuf,
        /// The type of the object.
        what: &'static str,
        /// Its ID.
        id: String,
    },
    /// The newest commit has too many files.
    #[error(
        "the newest commit has more than {MAX_FILES} files, or more than {} MB of paths",
        MAX_PATH_BYTES >> 20
    )]
    TooLarge,
    /// The requested folder is not a relative path below the work tree.
    #[error("{below:?} is not a path below the work tree")]
    Below {
        /// The folder.
        below: String,
    },
}

impl HistoryError {
    /// The error code for users.
    pub fn code(&self) -> Code {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => Code::NotFound,
            Self::TooLarge | Self::Oversized { .. } => Code::TooLarge,
            _ => Code::BadInput,
        }
    }
}

impl From<&HistoryError> for Failure {
    fn from(error: &HistoryError) -> Self {
        Failure::new(error.code(), error.to_string())
    }
}
