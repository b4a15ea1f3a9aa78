//! The driver for SQLite.

use rusqlite::ffi::{self, ErrorCode};
use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Statement};

use crate::connection::{Connection, RawRow, RawRows, RawStatement};
use crate::error::{Error, Kind, Result};
use crate::transaction::Transaction;

impl Connection for rusqlite::Connection {
    fn statement<'c>(&'c self, sql: &str, keep: bool) -> Result<Box<dyn RawStatement + 'c>> {
        Ok(match keep {
            true => Box::new(Kept(self.prepare_cached(sql)?)),
            false => Box::new(Once(self.prepare(sql)?)),
        })
    }

    fn run(&self, sql: &str) -> Result<()> {
        Ok(self.execute_batch(sql)?)
    }

    fn transact(&self, step: Transaction) -> Result<()> {
        let sql = match step {
            Transaction::BeginReading => "BEGIN",
            Transaction::BeginWriting => "BEGIN IMMEDIATE",
            Transaction::Commit => "COMMIT",
            Transaction::RollBack => "ROLLBACK",
            Transaction::Save => "SAVEPOINT one",
            Transaction::RollBackToSaved => "ROLLBACK TO one",
            Transaction::Release => "RELEASE one",
        };
        self.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn is_in_transaction(&self) -> bool {
        !self.is_autocommit()
    }

    fn path(&self) -> Option<&str> {
        self.path()
    }
}

/// A statement that goes back into the connection's cache.
struct Kept<'c>(CachedStatement<'c>);

/// A statement that is dropped after its use.
struct Once<'c>(Statement<'c>);

macro_rules! raw_statement {
    ($($statement:ident)*) => {$(
        impl RawStatement for $statement<'_> {
            fn parameters(&self) -> usize {
                self.0.parameter_count()
            }

            fn bind(&mut self, number: usize, value: ToSqlOutput<'_>) -> Result<()> {
                Ok(self.0.raw_bind_parameter(number, value)?)
            }

            fn execute(&mut self) -> Result<usize> {
                Ok(self.0.raw_execute()?)
            }

            fn query<'s>(&'s mut self) -> Result<Box<dyn RawRows + 's>> {
                Ok(Box::new(SqliteRows(self.0.raw_query())))
            }
        }
    )*};
}

raw_statement!(Kept Once);

struct SqliteRows<'s>(rusqlite::Rows<'s>);

impl RawRows for SqliteRows<'_> {
    fn next(&mut self) -> Result<Option<&dyn RawRow>> {
        Ok(self.0.next()?.map(|row| row as &dyn RawRow))
    }
}

impl RawRow for rusqlite::Row<'_> {
    fn value(&self, column: usize) -> Result<ValueRef<'_>> {
        Ok(self.get_ref(column)?)
    }

    fn position(&self, name: &str) -> Result<usize> {
        Ok(self.as_ref().column_index(name)?)
    }
}

impl From<FromSqlError> for Error {
    fn from(error: FromSqlError) -> Self {
        Error::Value(error.to_string())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let reason = error.to_string();
        let failure = match error {
            rusqlite::Error::SqliteFailure(failure, _) => failure,
            rusqlite::Error::QueryReturnedNoRows => return Error::NoRows,
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..) => return Error::Value(reason),
            _ => return Error::Database { kind: Kind::Other, reason },
        };
        let kind = match failure.code {
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => Kind::Busy,
            ErrorCode::OperationInterrupted => Kind::Interrupted,
            ErrorCode::DiskFull => Kind::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Kind::Corrupt,
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Kind::ReadOnly
            }
            ErrorCode::SystemIoFailure => match failure.extended_code {
                ffi::SQLITE_IOERR_DATA => Kind::DamagedPage,
                ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS => Kind::Truncated,
                _ => Kind::Io,
            },
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => Kind::Constraint,
            _ => Kind::Other,
        };
        Error::Database { kind, reason }
    }
}
