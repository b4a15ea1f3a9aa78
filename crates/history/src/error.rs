use std::io;
use std::path::PathBuf;

use isolith_types::{Code, Failure};

use crate::{MAX_FILES, MAX_PATH_BYTES};

/// Why nothing can be told of a repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// Its objects cannot be reached.
    #[error("cannot open the objects of {}: {source}", git_dir.display())]
    Open {
        /// The repository's own folder.
        git_dir: PathBuf,
        /// What the operating system or the object store says.
        source: io::Error,
    },
    /// It cannot be told which commit is the newest: `HEAD` is missing or damaged, or
    /// references are kept in a way that is not understood (SHA-256, reftable).
    #[error("cannot read HEAD of {}: {detail}", git_dir.display())]
    Head {
        /// The repository's own folder.
        git_dir: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A file that git keeps beside its objects is larger than one has a reason to be, or no
    /// file at all.
    #[error("{} is not read: {detail}", file.display())]
    Oversized {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The newest commit, or the list of its files, is missing or damaged.
    #[error("the {what} {id} of {} is missing or damaged", git_dir.display())]
    Damaged {
        /// The repository's own folder.
        git_dir: PathBuf,
        /// What kind of object it is.
        what: &'static str,
        /// Its name.
        id: String,
    },
    /// The newest commit has more files than are looked after.
    #[error(
        "the newest commit has more than {MAX_FILES} files, or more than {} MB of paths",
        MAX_PATH_BYTES >> 20
    )]
    TooLarge,
    /// The folder asked for is not written as one below the work tree.
    #[error("{below:?} is not a path below the work tree")]
    Below {
        /// The folder.
        below: String,
    },
}

impl HistoryError {
    /// The code that the outside sees.
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
