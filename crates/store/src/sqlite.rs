//! Converts errors of the database to store errors.

use std::path::{Path, PathBuf};

use isolith_protocol::StoreError;
use isolith_sql::{Connection, Error, Kind};

/// Adds the failed operation to an error.
pub(crate) trait During<T> {
    fn during(self, db: &dyn Connection, operation: &str) -> Result<T, StoreError>;
}

impl<T> During<T> for Result<T, Error> {
    fn during(self, db: &dyn Connection, operation: &str) -> Result<T, StoreError> {
        self.map_err(|error| {
            explain(error, Path::new(db.path().unwrap_or("truth.sqlite")), operation)
        })
    }
}

/// Like [`During`], for code that works with SQLite only. It is a trait of its own so that the type
/// of an error can be inferred.
pub(crate) trait SqliteDuring<T> {
    fn during(self, db: &dyn Connection, operation: &str) -> Result<T, StoreError>;
}

impl<T> SqliteDuring<T> for Result<T, rusqlite::Error> {
    fn during(self, db: &dyn Connection, operation: &str) -> Result<T, StoreError> {
        During::during(self.map_err(Error::from), db, operation)
    }
}

/// The store error for an error of the database.
pub(crate) fn explain(error: impl Into<Error>, path: &Path, operation: &str) -> StoreError {
    let error = error.into();
    let path = path.to_path_buf();
    let operation = operation.to_owned();
    let reason = error.to_string();
    let kind = match error {
        Error::Database { kind, .. } => kind,
        // Values of a type that the schema does not allow can only come from damage.
        Error::Value(_) => Kind::Corrupt,
        Error::NoRows | Error::WrongParameters { .. } => Kind::Other,
    };
    match kind {
        Kind::Busy => StoreError::Busy { operation },
        Kind::Interrupted => StoreError::Deadline { operation },
        Kind::Full => StoreError::DiskFull { path, operation },
        // A truncated file is damage, not a disk failure.
        Kind::Corrupt | Kind::Truncated => corrupt(path, &operation, &reason),
        Kind::DamagedPage => {
            let reason = isolith_pages::take_damage().map_or(reason, |damage| damage.to_string());
            corrupt(path, &operation, &reason)
        }
        Kind::ReadOnly => {
            StoreError::ReadOnly { path, reason: format!("cannot {operation}: {reason}") }
        }
        Kind::Io => StoreError::Io { path, operation, reason },
        Kind::Constraint | Kind::Other => StoreError::Sqlite { path, operation, reason },
    }
}

fn corrupt(path: PathBuf, operation: &str, reason: &str) -> StoreError {
    StoreError::Corrupt { path, reason: format!("cannot {operation}: {reason}") }
}
