//! The interface between the store's SQL and a database.
//!
//! What reads and writes a store takes a `&dyn `[`Connection`]. A driver implements that trait, and
//! [`RawStatement`], [`RawRows`] and [`RawRow`] below it; [`Statement`], [`Rows`] and [`Row`] add
//! what callers want. SQLite is the only driver so far: a `&rusqlite::Connection` is a
//! `&dyn Connection`. Transactions are begun and ended by [`Transaction`] steps.
//!
//! Values have SQLite's types, which are also those of the driver: integers, reals, texts and blobs.

mod connection;
mod error;
mod params;
mod row;
mod sqlite;
mod statement;
#[cfg(test)]
mod tests;
mod transaction;

pub use connection::{Connection, RawRow, RawRows, RawStatement};
pub use error::{Error, Kind, OptionalExtension, Result};
pub use params::{Params, params_from_iter};
pub use row::{Column, MappedRows, Row, Rows};
pub use rusqlite::types::{FromSql, ToSql, ToSqlOutput, Value, ValueRef};
pub use statement::Statement;
pub use transaction::Transaction;

/// Parameters of different types.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::ToSql),*] as &[&dyn $crate::ToSql]
    };
}
