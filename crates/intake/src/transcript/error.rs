use std::io;

use isolith_types::{Code, Failure, Hint};

use crate::feed::Fault;
use crate::transcript::Format;

/// Why nothing of a file can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The operating system could not read it.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// There is nothing in it, or only white space.
    #[error("the file is empty")]
    Empty,
    /// It is an archive that the conversations are in.
    #[error("the file is {kind}")]
    Packed {
        /// What kind.
        kind: &'static str,
    },
    /// It is not text.
    #[error("the file contains {found}, not text")]
    Binary {
        /// What it seems to be.
        found: &'static str,
    },
    /// It has none of the formats.
    #[error("unknown format: the file contains {found}")]
    Unknown {
        /// What it seems to be.
        found: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// It does not have the format that it should have.
    #[error("the file holds {found}, not what {format} has")]
    Other {
        /// What it should have.
        format: Format,
        /// What it seems to be.
        found: String,
    },
    /// It ends before the place to go on from.
    #[error("the file has changed: it ends at byte {size}, before the place to go on from")]
    Changed {
        /// Its length now.
        size: u64,
    },
}

impl TranscriptError {
    /// What to do about it; empty if there is nothing special.
    pub fn hint(&self) -> Hint {
        let text = match self {
            Self::Io(_) => "",
            Self::Empty => "export the conversations again, or name another file",
            Self::Packed { .. } => "unpack it, and import the conversations.json that is in it",
            Self::Binary { found: "UTF-16 text" } => {
                "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"
            }
            Self::Binary { .. } | Self::Other { .. } => return Hint::DetectFormat,
            Self::Unknown { hint, .. } => hint,
            Self::Changed { .. } => "run the command again when nothing writes to the file",
        };
        text.into()
    }

    /// The code that the outside sees.
    pub fn code(&self) -> Code {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => Code::NotFound,
            Self::Io(_) => Code::Failed,
            _ => Code::BadInput,
        }
    }
}

impl From<&TranscriptError> for Failure {
    fn from(error: &TranscriptError) -> Self {
        Failure::new(error.code(), error.to_string()).with_hint(error.hint())
    }
}

/// Keeps the faults of the operating system apart from those of the file.
pub(crate) fn of_file(fault: Fault) -> Result<Fault, TranscriptError> {
    match fault {
        Fault::Io(error) => Err(TranscriptError::Io(error)),
        other => Ok(other),
    }
}
