use std::fmt::Write as _;

use isolith_protocol::{DrawerVectors, StoreError};
use isolith_sql::{Statement, params};
use isolith_types::{Metric, counted};

use super::super::change::Changes;
use super::super::{Work, validate};
use crate::memory::passages;
use crate::sqlite::During;

/// A text to be stored: its passages, with a vector each.
pub(super) struct Cut<'a> {
    passages: Vec<&'a str>,
    vectors: &'a [u8],
    width: usize,
}

impl<'a> Cut<'a> {
    /// Splits a text and checks its vectors.
    pub(super) fn new(
        text: &'a str,
        vectors: &'a DrawerVectors,
        at: usize,
    ) -> Result<Self, StoreError> {
        let passages = passages(text);
        let width = vectors.dimension as usize * 4;
        let vectors = vectors.of_drawers.get(at).map_or(&[][..], Vec::as_slice);
        if vectors.is_empty() {
            let reason = "the text has no searchable words".to_owned();
            return Err(StoreError::Invalid(reason));
        }
        if vectors.len() != passages.len() * width {
            return Err(StoreError::Invalid(format!(
                "expected {} bytes ({}), found {}",
                passages.len() * width,
                counted(passages.len(), "vector"),
                vectors.len()
            )));
        }
        for vector in vectors.chunks(width) {
            validate::vector_bytes(vector, Metric::Cosine).map_err(StoreError::Invalid)?;
        }
        Ok(Self { passages, vectors, width })
    }

    pub(super) fn len(&self) -> usize {
        self.passages.len()
    }
}

/// Writes the passages of drawers, each as a record with a vector.
pub(super) struct PassageWriter<'a> {
    work: Work<'a>,
    collection: u64,
    record: Statement<'a>,
    vector: Statement<'a>,
    passage: Statement<'a>,
}

impl<'a> PassageWriter<'a> {
    pub(super) fn new(work: Work<'a>, collection: u64) -> Result<Self, StoreError> {
        let prepare = |sql| work.db.prepare_cached(sql).during(work.db, "prepare to put passages");
        Ok(Self {
            work,
            collection,
            record: prepare(
                "INSERT INTO record \
                 (row, collection, id, change, created_at, updated_at, metadata, document) \
                 VALUES (?1, ?2, ?3, ?1, ?4, ?4, '{}', ?5)",
            )?,
            vector: prepare("INSERT INTO vector (row, data) VALUES (?1, ?2)")?,
            passage: prepare("INSERT INTO passage (row, drawer) VALUES (?1, ?2)")?,
        })
    }

    /// Inserts all passages of a drawer that has none.
    pub(super) fn insert(
        &mut self,
        changes: &mut Changes<'_>,
        drawer: u64,
        cut: &Cut<'_>,
    ) -> Result<(), StoreError> {
        let vectors = cut.vectors.chunks(cut.width);
        for (place, (text, vector)) in cut.passages.iter().zip(vectors).enumerate() {
            self.one(changes.inserted(), drawer, place, text, vector)
                .during(self.work.db, "insert a passage")?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        row: u64,
        drawer: u64,
        place: usize,
        text: &str,
        vector: &[u8],
    ) -> isolith_sql::Result<()> {
        let mut id = String::new();
        // Fixed width, so that ids sort in order of creation. Writing to a string cannot fail.
        let _ = write!(id, "{drawer:08x}:{place:04x}");
        self.record.execute(params![row, self.collection, id, self.work.now, text])?;
        self.vector.execute(params![row, vector])?;
        self.passage.execute(params![row, drawer])?;
        Ok(())
    }
}

/// Removes all passages of a drawer and returns their number.
pub(super) fn remove(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    drawer: u64,
) -> Result<u64, StoreError> {
    let versions = versions(work, drawer)?;
    let take = || {
        let mut passage = work.db.prepare_cached("DELETE FROM passage WHERE row = ?1")?;
        let mut vector = work.db.prepare_cached("DELETE FROM vector WHERE row = ?1")?;
        let mut record = work.db.prepare_cached("DELETE FROM record WHERE row = ?1")?;
        for (row, _) in &versions {
            passage.execute([row])?;
            vector.execute([row])?;
            record.execute([row])?;
        }
        Ok(())
    };
    take().during(work.db, "remove passages")?;
    for &(row, change) in &versions {
        changes.removed(row, change)?;
    }
    Ok(versions.len() as u64)
}

/// Gives the passages of a drawer new versions, because other searchable fields have changed.
pub(super) fn renew(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    drawer: u64,
) -> Result<(), StoreError> {
    for (row, old) in versions(work, drawer)? {
        let change = changes.replaced(row, old)?;
        work.db
            .prepare_cached("UPDATE record SET change = ?2, updated_at = ?3 WHERE row = ?1")
            .and_then(|mut statement| statement.execute(params![row, change, work.now]))
            .during(work.db, "renew a passage")?;
    }
    Ok(())
}

/// Rows and change numbers of a drawer's passages, in order.
fn versions(work: Work<'_>, drawer: u64) -> Result<Vec<(u64, u64)>, StoreError> {
    let read = || {
        work.db
            .prepare_cached(
                "SELECT record.row, record.change FROM passage \
                 JOIN record ON record.row = passage.row \
                 WHERE passage.drawer = ?1 ORDER BY passage.row",
            )?
            .query_map([drawer], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<_>, _>>()
    };
    read().during(work.db, "look for passages")
}
