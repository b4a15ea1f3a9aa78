use std::io;

use isolith_types::{Code, Failure, Hint};

use crate::feed::Fault;
use crate::transcript::Format;

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The operating system could not read the file.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// The file is empty or contains only white space.
    #[error("the file is empty")]
    Empty,
    /// The file is an archive or compressed.
    #[error("the file is {kind}")]
    Packed {
        /// The kind of archive.
        kind: &'static str,
    },
    /// The file is not text.
    #[error("the file contains {found}, not text")]
    Binary {
        /// What it seems to contain.
        found: &'static str,
    },
    /// The file has no known format.
    #[error("unknown format: the file contains {found}")]
    Unknown {
        /// What it seems to contain.
        found: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The file does not have the requested format.
    #[error("expected the {format} format, but the file contains {found}")]
    Other {
        /// The requested format.
        format: Format,
        /// What it seems to contain.
        found: String,
    },
    /// The file now ends before the cursor.
    #[error("the file has changed: it ends at byte {size}, before the position to resume at")]
    Changed {
        /// Its length now.
        size: u64,
    },
}

impl TranscriptError {
    /// What to do about it; may be empty.
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

    /// The error code for clients.
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

/// Separates read errors of the operating system from faults in the file's content.
pub(crate) fn of_file(fault: Fault) -> Result<Fault, TranscriptError> {
    match fault {
        Fault::Io(error) => Err(TranscriptError::Io(error)),
        other => Ok(other),
    }
}
