use rusqlite::types::ToSql;

use crate::connection::RawStatement;
use crate::error::Result;

/// Parameters of a statement, in their order.
pub trait Params {
    /// Sets them and returns their number.
    ///
    /// # Errors
    /// If a value cannot be stored, or there are too many.
    fn bind(self, statement: &mut dyn RawStatement) -> Result<usize>;
}

fn bind_all<T: ToSql>(
    values: impl Iterator<Item = T>,
    statement: &mut dyn RawStatement,
) -> Result<usize> {
    let mut count = 0;
    for value in values {
        count += 1;
        statement.bind(count, value.to_sql()?)?;
    }
    Ok(count)
}

impl Params for &[&dyn ToSql] {
    fn bind(self, statement: &mut dyn RawStatement) -> Result<usize> {
        bind_all(self.iter(), statement)
    }
}

// A generic length would leave the type of `[]` open.
impl Params for [&dyn ToSql; 0] {
    fn bind(self, _: &mut dyn RawStatement) -> Result<usize> {
        Ok(0)
    }
}

impl<A: ToSql, B: ToSql> Params for (A, B) {
    fn bind(self, statement: &mut dyn RawStatement) -> Result<usize> {
        [&self.0 as &dyn ToSql, &self.1].as_slice().bind(statement)
    }
}

macro_rules! arrays {
    ($($length:literal)*) => {$(
        impl<T: ToSql> Params for [T; $length] {
            fn bind(self, statement: &mut dyn RawStatement) -> Result<usize> {
                bind_all(self.iter(), statement)
            }
        }
    )*};
}

arrays!(1 2 3 4 5 6 7 8);

/// See [`params_from_iter`].
#[derive(Debug)]
pub struct ParamsFromIter<I>(I);

/// Any number of parameters of one type.
pub fn params_from_iter<I>(values: I) -> ParamsFromIter<I>
where
    I: IntoIterator,
    I::Item: ToSql,
{
    ParamsFromIter(values)
}

impl<I> Params for ParamsFromIter<I>
where
    I: IntoIterator,
    I::Item: ToSql,
{
    fn bind(self, statement: &mut dyn RawStatement) -> Result<usize> {
        bind_all(self.0.into_iter(), statement)
    }
}
