//! Reading vectors and documents in row order.

use std::ops::ControlFlow;
use std::rc::Rc;

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, Row, params};
use isolith_types::Moment;

use super::code::push_names;
use super::memory::{push_labels, tags_of};
use super::{Scope, Snapshot, unreadable};
use crate::sqlite::During;

/// Receives row, change number and vector of a record.
pub type EachVector<'a> = dyn FnMut(u64, u64, &[u8]) -> ControlFlow<()> + 'a;

/// Receives row, change number and text of a record.
pub type EachDocument<'a> = dyn FnMut(u64, u64, Option<&str>) -> ControlFlow<()> + 'a;

/// Receives row, change number and texts of a chunk.
pub type EachChunk<'a> = dyn FnMut(u64, u64, ChunkText<'_>) -> ControlFlow<()> + 'a;

/// The searchable texts of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkText<'t> {
    /// The chunk's own text.
    pub body: &'t str,
    /// The names that it defines, separated by spaces.
    pub symbols: &'t str,
    /// The path of its file.
    pub path: &'t str,
}

/// Receives row, change number and texts of a passage.
pub type EachPassage<'a> = dyn FnMut(u64, u64, PassageText<'_>) -> ControlFlow<()> + 'a;

/// The searchable texts of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageText<'t> {
    /// The passage's own text.
    pub body: &'t str,
    /// The author and tags of its drawer, separated by spaces.
    pub labels: &'t str,
    /// The date of its drawer, as text.
    pub date: &'t str,
}

/// Maximum number of adjacent rows read with one statement.
pub(super) const RUN: usize = 1024;

impl Snapshot<'_> {
    /// Row and change number of all dead versions that may be in a segment.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn tombstones(&self, collection: u64) -> Result<Vec<(u64, u64)>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached("SELECT row, change FROM tombstone WHERE collection = ?1")?
                .query_map([collection], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "read tombstones")
    }

    /// Row and change number of all records that changed after this change number, by row.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn tail(&self, collection: u64, after_change: u64) -> Result<Vec<(u64, u64)>, StoreError> {
        versions(self.connection(), collection, Scope::ChangedAfter(after_change))
    }

    /// Row and change number of all live records in scope, by row.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn versions(&self, collection: u64, scope: Scope) -> Result<Vec<(u64, u64)>, StoreError> {
        versions(self.connection(), collection, scope)
    }

    /// Calls `each` with row, change number and vector of each record, in row order, until it
    /// breaks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn for_each_vector(
        &self,
        collection: u64,
        scope: Scope,
        each: &mut EachVector<'_>,
    ) -> Result<(), StoreError> {
        let versions = versions(self.connection(), collection, scope)?;
        self.walk(&versions, &VECTOR, &mut |(row, change), found| {
            Ok(each(row, change, found.get_ref(1)?.as_blob()?))
        })
    }

    /// Calls `each` with row, change number and text of each record, in row order, until it
    /// breaks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn for_each_document(
        &self,
        collection: u64,
        scope: Scope,
        each: &mut EachDocument<'_>,
    ) -> Result<(), StoreError> {
        let versions = versions(self.connection(), collection, scope)?;
        self.walk(&versions, &DOCUMENT, &mut |(row, change), found| {
            Ok(each(row, change, found.get_ref(1)?.as_str_or_null()?))
        })
    }

    /// Calls `each` with row, change number and texts of each chunk, in row order, until it
    /// breaks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn for_each_chunk(
        &self,
        collection: u64,
        scope: Scope,
        each: &mut EachChunk<'_>,
    ) -> Result<(), StoreError> {
        let db = self.connection();
        let versions = versions(db, collection, scope)?;
        let mut find =
            db.prepare_cached("SELECT path FROM file WHERE id = ?1").during(db, "read files")?;
        // The chunks of a file are adjacent.
        let mut file = None;
        let mut path = String::new();
        let mut symbols = String::new();
        self.walk(&versions, &CHUNK, &mut |(row, change), found| {
            let of: u64 = found.get(3)?;
            if file != Some(of) {
                path = find.query_row([of], |row| row.get(0))?;
                file = Some(of);
            }
            push_names(found.get_ref(2)?.as_str()?, 2, &mut symbols)?;
            let body = found.get_ref(1)?.as_str_or_null()?.unwrap_or_default();
            Ok(each(row, change, ChunkText { body, symbols: &symbols, path: &path }))
        })
    }

    /// Calls `each` with row, change number and texts of each passage, in row order, until it
    /// breaks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn for_each_passage(
        &self,
        collection: u64,
        scope: Scope,
        each: &mut EachPassage<'_>,
    ) -> Result<(), StoreError> {
        let versions = versions(self.connection(), collection, scope)?;
        let (mut labels, mut date) = (String::new(), String::new());
        self.walk(&versions, &PASSAGE, &mut |(row, change), found| {
            let tags = tags_of(found.get_ref(3)?.as_str()?);
            let tags = tags.ok_or_else(|| unreadable(3, "tags are a list of texts"))?;
            push_labels(found.get_ref(2)?.as_str_or_null()?, &tags, &mut labels);
            let body = found.get_ref(1)?.as_str_or_null()?.unwrap_or_default();
            date.clear();
            date.push_str(found.get_ref(4)?.as_str_or_null()?.unwrap_or_default());
            if let Some(at) = found.get(5)? {
                date.push(' ');
                date.push_str(&Moment::instant(at).in_words());
            }
            Ok(each(row, change, PassageText { body, labels: &labels, date: &date }))
        })
    }

    /// The change numbers of these rows, in this order; `None` for one that does not exist.
    /// Does not read texts.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn changes_of(&self, rows: &[u64]) -> Result<Vec<Option<u64>>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut find = db.prepare_cached("SELECT change FROM record WHERE row = ?1")?;
            rows.iter()
                .map(|row| find.query_row([row], |found| found.get(0)).optional())
                .collect::<Result<_, _>>()
        };
        read().during(db, "read change numbers")
    }

    /// Calls `each` with change number and vector of the rows that still exist, and their index
    /// in `rows`.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn vectors(
        &self,
        rows: &[u64],
        each: &mut dyn FnMut(usize, u64, &[u8]),
    ) -> Result<(), StoreError> {
        let db = self.connection();
        let mut read = || {
            let mut find = db.prepare_cached(
                "SELECT record.change, vector.data FROM record \
                 JOIN vector ON vector.row = record.row WHERE record.row = ?1",
            )?;
            for (at, row) in rows.iter().enumerate() {
                let mut found = find.query([row])?;
                if let Some(found) = found.next()? {
                    each(at, found.get(0)?, found.get_ref(1)?.as_blob()?);
                }
            }
            Ok(())
        };
        read().during(db, "read vectors")
    }

    /// Calls `each` with the vectors of the rows that still exist, and their index in `rows`, which
    /// must ascend. Does not read their records.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn bare_vectors(
        &self,
        rows: &[u64],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let db = self.connection();
        let wanted = rows.iter().map(|row| Value::Integer(i64::try_from(*row).unwrap_or(i64::MAX)));
        let wanted = Rc::new(wanted.collect::<Vec<Value>>());
        let read = || {
            let mut find = db.prepare_cached(
                "SELECT vector.row, vector.data FROM rarray(?1) AS wanted \
                 CROSS JOIN vector ON vector.row = wanted.value",
            )?;
            let mut found = find.query([wanted])?;
            let mut at = 0;
            while let Some(found) = found.next()? {
                let row: u64 = found.get(0)?;
                at += rows[at..].partition_point(|other| *other < row);
                each(at, found.get_ref(1)?.as_blob()?);
            }
            Ok(())
        };
        read().during(db, "read vectors")
    }

    /// Reads columns of rows in ascending order, in runs where rows are dense.
    fn walk(
        &self,
        versions: &[(u64, u64)],
        columns: &Columns,
        each: &mut Each<'_>,
    ) -> Result<(), StoreError> {
        let db = self.connection();
        for run in versions.chunks(RUN) {
            self.db.deadline.check(columns.operation)?;
            if columns.read(db, run, each).during(db, columns.operation)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The rows of a collection, in ascending order.
pub(crate) fn all_rows(db: &dyn Connection, collection: u64) -> Result<Vec<u64>, StoreError> {
    let read = || {
        let mut rows: Vec<u64> = db
            .prepare_cached("SELECT row FROM record WHERE collection = ?1 ORDER BY change")?
            .query_map([collection], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        rows.sort_unstable();
        Ok(rows)
    };
    read().during(db, "list rows")
}

fn versions(
    db: &dyn Connection,
    collection: u64,
    scope: Scope,
) -> Result<Vec<(u64, u64)>, StoreError> {
    let after = match scope {
        Scope::All => 0,
        Scope::ChangedAfter(change) => i64::try_from(change).unwrap_or(i64::MAX),
    };
    let read = || {
        let mut versions: Vec<(u64, u64)> = db
            .prepare_cached(
                "SELECT row, change FROM record WHERE collection = ?1 AND change > ?2 \
                 ORDER BY change",
            )?
            .query_map(params![collection, after], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        versions.sort_unstable();
        Ok(versions)
    };
    read().during(db, "list versions")
}

pub(super) type Each<'a> =
    dyn FnMut((u64, u64), &Row<'_>) -> isolith_sql::Result<ControlFlow<()>> + 'a;

/// Columns that can be read by row and by range; the first one is the row.
pub(super) struct Columns {
    pub(super) by_row: &'static str,
    pub(super) by_range: &'static str,
    pub(super) operation: &'static str,
}

const VECTOR: Columns = Columns {
    by_row: "SELECT row, data FROM vector WHERE row = ?1",
    by_range: "SELECT row, data FROM vector WHERE row BETWEEN ?1 AND ?2 ORDER BY row",
    operation: "read vectors",
};

const DOCUMENT: Columns = Columns {
    by_row: "SELECT row, document FROM record WHERE row = ?1",
    by_range: "SELECT row, document FROM record WHERE row BETWEEN ?1 AND ?2 ORDER BY row",
    operation: "read documents",
};

const CHUNK: Columns = Columns {
    by_row: "SELECT chunk.row, document, symbols, file FROM chunk \
             JOIN record ON record.row = chunk.row WHERE chunk.row = ?1",
    by_range: "SELECT chunk.row, document, symbols, file FROM chunk \
               JOIN record ON record.row = chunk.row \
               WHERE chunk.row BETWEEN ?1 AND ?2 ORDER BY chunk.row",
    operation: "read chunks",
};

const PASSAGE: Columns = Columns {
    by_row: "SELECT passage.row, document, author, tags, date_text, date FROM passage \
             JOIN record ON record.row = passage.row \
             JOIN drawer ON drawer.number = passage.drawer WHERE passage.row = ?1",
    by_range: "SELECT passage.row, document, author, tags, date_text, date FROM passage \
               JOIN record ON record.row = passage.row \
               JOIN drawer ON drawer.number = passage.drawer \
               WHERE passage.row BETWEEN ?1 AND ?2 ORDER BY passage.row",
    operation: "read passages",
};

impl Columns {
    pub(super) fn read(
        &self,
        db: &dyn Connection,
        run: &[(u64, u64)],
        each: &mut Each<'_>,
    ) -> isolith_sql::Result<ControlFlow<()>> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(ControlFlow::Continue(()));
        };
        // Skipping a row costs a fraction of looking one up.
        if last.0 - first.0 < run.len() as u64 * 3 {
            let mut statement = db.prepare_cached(self.by_range)?;
            let mut found = statement.query([first.0, last.0])?;
            let mut wanted = run.iter();
            let mut next = wanted.next();
            while let (Some(row), Some(version)) = (found.next()?, next) {
                let number: u64 = row.get(0)?;
                if number < version.0 {
                    continue;
                }
                if number > version.0 {
                    return Err(isolith_sql::Error::NoRows);
                }
                if each(*version, &row)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                next = wanted.next();
            }
            return Ok(ControlFlow::Continue(()));
        }
        let mut statement = db.prepare_cached(self.by_row)?;
        for version in run {
            let mut found = statement.query([version.0])?;
            if let Some(row) = found.next()?
                && each(*version, &row)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
