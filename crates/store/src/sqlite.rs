//! Converts SQLite's errors to store errors.

use std::path::{Path, PathBuf};

use isolith_protocol::StoreError;
use rusqlite::ffi::{self, ErrorCode};
use rusqlite::{Connection, Error};

/// Adds the failed operation to an error.
pub(crate) trait During<T> {
    fn during(self, db: &Connection, operation: &str) -> Result<T, StoreError>;
}

impl<T> During<T> for Result<T, Error> {
    fn during(self, db: &Connection, operation: &str) -> Result<T, StoreError> {
        self.map_err(|error| {
            explain(&error, Path::new(db.path().unwrap_or("truth.sqlite")), operation)
        })
    }
}

/// The store error for an SQLite error.
pub(crate) fn explain(error: &Error, path: &Path, operation: &str) -> StoreError {
    let path = path.to_path_buf();
    let operation = operation.to_owned();
    let reason = error.to_string();
    let Error::SqliteFailure(failure, _) = error else {
        return unreadable(error, path, operation, reason);
    };
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => StoreError::Busy { operation },
        ErrorCode::OperationInterrupted => StoreError::Deadline { operation },
        ErrorCode::DiskFull => StoreError::DiskFull { path, operation },
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            StoreError::Corrupt { path, reason: format!("cannot {operation}: {reason}") }
        }
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            StoreError::ReadOnly { path, reason: format!("cannot {operation}: {reason}") }
        }
        ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_DATA => {
            let reason = isolith_pages::take_damage().map_or(reason, |damage| damage.to_string());
            StoreError::Corrupt { path, reason: format!("cannot {operation}: {reason}") }
        }
        // A truncated file is damage, not a disk failure.
        ErrorCode::SystemIoFailure
            if failure.extended_code == ffi::SQLITE_IOERR_SHORT_READ
                || failure.extended_code == ffi::SQLITE_IOERR_CORRUPTFS =>
        {
            StoreError::Corrupt { path, reason: format!("cannot {operation}: {reason}") }
        }
        ErrorCode::SystemIoFailure => StoreError::Io { path, operation, reason },
        _ => StoreError::Sqlite { path, operation, reason },
    }
}

/// Values of a type that the schema does not allow can only come from damage.
fn unreadable(error: &Error, path: PathBuf, operation: String, reason: String) -> StoreError {
    match error {
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::InvalidColumnType(..) => {
            StoreError::Corrupt { path, reason: format!("cannot {operation}: {reason}") }
        }
        _ => StoreError::Sqlite { path, operation, reason },
    }
}
