use std::fmt;

use rusqlite::types::ToSqlOutput;

use crate::connection::RawStatement;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::row::{MappedRows, Row, Rows};

/// A prepared statement.
pub struct Statement<'c> {
    raw: Box<dyn RawStatement + 'c>,
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").finish_non_exhaustive()
    }
}

impl<'c> Statement<'c> {
    pub(crate) fn new(raw: Box<dyn RawStatement + 'c>) -> Self {
        Self { raw }
    }

    fn bind(&mut self, params: impl Params) -> Result<()> {
        let given = params.bind(&mut *self.raw)?;
        match self.raw.parameters() {
            wanted if wanted == given => Ok(()),
            wanted => Err(Error::WrongParameters { wanted, given }),
        }
    }

    /// Runs the statement and returns the number of rows changed.
    ///
    /// # Errors
    /// If it fails.
    pub fn execute(&mut self, params: impl Params) -> Result<usize> {
        self.bind(params)?;
        self.raw.execute()
    }

    /// Runs the statement and returns its rows.
    ///
    /// # Errors
    /// If it fails.
    pub fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        self.bind(params)?;
        self.raw.query().map(Rows::new)
    }

    /// The first row.
    ///
    /// # Errors
    /// [`Error::NoRows`], or if the statement fails.
    pub fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.query(params)?.next()? {
            Some(row) => read(&row),
            None => Err(Error::NoRows),
        }
    }

    /// All rows, each as `read` returns it.
    ///
    /// # Errors
    /// If the statement fails.
    pub fn query_map<T, F>(&mut self, params: impl Params, read: F) -> Result<MappedRows<'_, F>>
    where
        F: FnMut(&Row<'_>) -> Result<T>,
    {
        self.query(params).map(|rows| MappedRows::new(rows, read))
    }

    /// Whether there is a row.
    ///
    /// # Errors
    /// If the statement fails.
    pub fn exists(&mut self, params: impl Params) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    /// Sets one parameter, for [`Statement::execute_bound`]; they are numbered from 1.
    ///
    /// # Errors
    /// If there is no such parameter.
    pub fn bind_one(&mut self, number: usize, value: ToSqlOutput<'_>) -> Result<()> {
        self.raw.bind(number, value)
    }

    /// Runs the statement with the parameters set one by one.
    ///
    /// # Errors
    /// If it fails.
    pub fn execute_bound(&mut self) -> Result<usize> {
        self.raw.execute()
    }
}
