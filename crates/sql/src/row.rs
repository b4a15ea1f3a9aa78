use std::fmt;

use rusqlite::types::{FromSql, FromSqlError, ValueRef};

use crate::connection::{RawRow, RawRows};
use crate::error::{Error, Result};

/// The rows of a running statement.
pub struct Rows<'s> {
    raw: Box<dyn RawRows + 's>,
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

impl<'s> Rows<'s> {
    pub(crate) fn new(raw: Box<dyn RawRows + 's>) -> Self {
        Self { raw }
    }

    /// The next row.
    ///
    /// # Errors
    /// If the statement fails.
    // Rows are borrowed, so this is no iterator.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(self.raw.next()?.map(|raw| Row { raw }))
    }
}

/// A row.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    raw: &'r dyn RawRow,
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").finish_non_exhaustive()
    }
}

/// A column: its number, from 0, or its name.
pub trait Column {
    /// The number.
    ///
    /// # Errors
    /// If no column has this name.
    fn number(self, row: &dyn RawRow) -> Result<usize>;
}

impl Column for usize {
    fn number(self, _: &dyn RawRow) -> Result<usize> {
        Ok(self)
    }
}

impl Column for &str {
    fn number(self, row: &dyn RawRow) -> Result<usize> {
        row.position(self)
    }
}

impl<'r> Row<'r> {
    /// The value of a column.
    ///
    /// # Errors
    /// If there is no such column, or its value is not of this type.
    pub fn get<C: Column, T: FromSql>(&self, column: C) -> Result<T> {
        let column = column.number(self.raw)?;
        let value = self.raw.value(column)?;
        T::column_result(value).map_err(|error| refused(column, value, &error))
    }

    /// The value of a column, without a copy.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn get_ref<C: Column>(&self, column: C) -> Result<ValueRef<'r>> {
        self.raw.value(column.number(self.raw)?)
    }
}

/// The error for a value that is not what the schema promises.
fn refused(column: usize, value: ValueRef<'_>, error: &FromSqlError) -> Error {
    let kind = value.data_type();
    Error::Value(format!("column {column} of type {kind}: {error}"))
}

/// Rows, each as a function returns it.
#[derive(Debug)]
pub struct MappedRows<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<'s, F> MappedRows<'s, F> {
    pub(crate) fn new(rows: Rows<'s>, read: F) -> Self {
        Self { rows, read }
    }
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next() {
            Ok(row) => row.map(|row| (self.read)(&row)),
            Err(error) => Some(Err(error)),
        }
    }
}
