use isolith_types::{Code, Failure};

/// Why a file cannot be edited. It stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// It cannot be parsed.
    #[error("it is not {language}: {reason}")]
    Syntax {
        /// What it should be.
        language: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// Something other than what agents read is in the place of the servers.
    #[error("{place} must be {expected}, but is {found}")]
    WrongKind {
        /// Where.
        place: String,
        /// What agents read there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A key is there twice, and agents differ in which they read.
    #[error("{key:?} is there twice in one object")]
    Repeated {
        /// The key.
        key: String,
    },
    /// The text could not be changed in a way that says the right thing afterwards.
    #[error("the entry cannot be changed without touching what is around it")]
    Entangled,
}

impl EditError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Syntax { .. } | Self::WrongKind { .. } | Self::Repeated { .. } => {
                "correct the file, then run the command again; it was not changed"
            }
            Self::Entangled => "edit the file by hand as docs/setup.md shows; it was not changed",
        }
    }
}

impl From<&EditError> for Failure {
    fn from(error: &EditError) -> Self {
        Failure::new(Code::BadInput, error.to_string()).with_hint(error.hint())
    }
}
