use isolith_types::{Code, Failure};

/// Why a file cannot be edited. The file is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file cannot be parsed.
    #[error("invalid {language}: {reason}")]
    Syntax {
        /// `JSON` or `TOML`.
        language: &'static str,
        /// The parser's message, with the line.
        reason: String,
    },
    /// The file, or its list of servers, has the wrong type.
    #[error("{location} must be {expected}, found {found}")]
    WrongType {
        /// The key in quotes, or "the file".
        location: String,
        /// The type that agents accept.
        expected: &'static str,
        /// The type in the file.
        found: &'static str,
    },
    /// A key occurs twice in one object, and agents differ in which one they use.
    #[error("duplicate key {key:?}")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// The edited text would not have the intended meaning.
    #[error("cannot edit the entry without changing other parts of the file")]
    UnsafeEdit,
}

impl EditError {
    /// Advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Syntax { .. } | Self::WrongType { .. } | Self::DuplicateKey { .. } => {
                "the file was not changed; correct it, then run the command again"
            }
            Self::UnsafeEdit => {
                "the file was not changed; edit it by hand as described in docs/setup.md"
            }
        }
    }
}

impl From<&EditError> for Failure {
    fn from(error: &EditError) -> Self {
        Failure::new(Code::BadInput, error.to_string()).with_hint(error.hint())
    }
}
