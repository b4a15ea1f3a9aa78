use std::fmt;

use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::error::Result;
use crate::params::Params;
use crate::row::Row;
use crate::statement::Statement;
use crate::transaction::Transaction;

/// A connection to a database.
pub trait Connection: fmt::Debug {
    /// Prepares a statement; `keep` says that it will be used again.
    fn statement<'c>(&'c self, sql: &str, keep: bool) -> Result<Box<dyn RawStatement + 'c>>;
    /// Runs several statements without parameters.
    fn run(&self, sql: &str) -> Result<()>;
    /// Begins or ends a transaction or its savepoint.
    fn transact(&self, step: Transaction) -> Result<()>;
    /// Whether a transaction is open.
    fn is_in_transaction(&self) -> bool;
    /// The path of the database, if it is a file.
    fn path(&self) -> Option<&str>;
}

/// A prepared statement of a driver.
pub trait RawStatement {
    /// The number of its parameters.
    fn parameters(&self) -> usize;
    /// Sets a parameter; they are numbered from 1.
    fn bind(&mut self, number: usize, value: ToSqlOutput<'_>) -> Result<()>;
    /// Runs the statement with the parameters set before; returns the number of rows changed.
    fn execute(&mut self) -> Result<usize>;
    /// Runs the statement with the parameters set before, and returns its rows.
    fn query<'s>(&'s mut self) -> Result<Box<dyn RawRows + 's>>;
}

/// The rows of a running statement.
pub trait RawRows {
    /// The next row.
    fn next(&mut self) -> Result<Option<&dyn RawRow>>;
}

/// A row.
pub trait RawRow {
    /// The value of a column; they are numbered from 0.
    fn value(&self, column: usize) -> Result<ValueRef<'_>>;
    /// The number of the column with this name.
    fn position(&self, name: &str) -> Result<usize>;
}

impl dyn Connection + '_ {
    /// Prepares a statement that will be used again.
    ///
    /// # Errors
    /// If the database refuses it.
    pub fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        self.statement(sql, true).map(Statement::new)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// If the database refuses it.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        self.statement(sql, false).map(Statement::new)
    }

    /// Runs a statement once and returns the number of rows changed.
    ///
    /// # Errors
    /// If the database refuses or cannot run it.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    /// Runs several statements without parameters.
    ///
    /// # Errors
    /// If the database refuses or cannot run them.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        self.run(sql)
    }

    /// The first row of a statement that is run once.
    ///
    /// # Errors
    /// [`crate::Error::NoRows`], or if the database refuses or cannot run it.
    pub fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare(sql)?.query_row(params, read)
    }
}
