/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused it or could not run it.
    #[error("{reason}")]
    Database {
        /// What kind of failure it is.
        kind: Kind,
        /// What the database says.
        reason: String,
    },
    /// There is no row where one was expected.
    #[error("the query returned no row")]
    NoRows,
    /// A value is not what the schema promises.
    #[error("{0}")]
    Value(String),
    /// A statement was called with another number of parameters than it has.
    #[error("a statement with {wanted} parameters got {given}")]
    WrongParameters {
        /// How many it has.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
}

/// The kinds of failures that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Another connection holds a lock.
    Busy,
    /// The statement was stopped from outside.
    Interrupted,
    /// There is no space left.
    Full,
    /// The data is damaged.
    Corrupt,
    /// The checksum of a page is wrong.
    DamagedPage,
    /// The file ends too early, or the file system is damaged.
    Truncated,
    /// The database cannot be written to, or not be opened.
    ReadOnly,
    /// The disk failed.
    Io,
    /// A row violates the schema.
    Constraint,
    /// Anything else.
    Other,
}

/// Treats a missing row as a value.
pub trait OptionalExtension<T> {
    /// `None` if there was no row.
    ///
    /// # Errors
    /// All others.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoRows) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
