//! Change numbers and the counts derived from them.

use isolith_protocol::{CollectionState, Done, StoreError};
use isolith_sql::params;

use super::Work;
use crate::read::collections;
use crate::sqlite::During;

/// The changes that one write makes in one collection, numbered in order.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    work: Work<'a>,
    collection: u64,
    complete_to: u64,
    last: u64,
    first: u64,
    records: i64,
    unfolded: i64,
}

impl<'a> Changes<'a> {
    pub(super) fn begin(work: Work<'a>, state: &CollectionState) -> Result<Self, StoreError> {
        let last = collections::last_change(work.db)?;
        Ok(Self {
            work,
            collection: state.id,
            complete_to: state.complete_to(),
            last,
            first: last,
            records: 0,
            unfolded: 0,
        })
    }

    /// Numbers a new record; the number is also its row.
    pub(super) fn inserted(&mut self) -> u64 {
        self.last += 1;
        self.records += 1;
        self.unfolded += 1;
        self.last
    }

    /// The number that the next insert would get.
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Numbers a replaced record, whose old version is now dead.
    pub(super) fn replaced(&mut self, row: u64, old: u64) -> Result<u64, StoreError> {
        self.last += 1;
        // One more in the tail, unless the old version was already in it, and one tombstone.
        self.unfolded += if old > self.complete_to { 1 } else { 2 };
        self.bury(row, old)?;
        Ok(self.last)
    }

    /// Records a deletion.
    pub(super) fn removed(&mut self, row: u64, old: u64) -> Result<(), StoreError> {
        self.last += 1;
        self.records -= 1;
        self.unfolded += if old > self.complete_to { 0 } else { 1 };
        self.bury(row, old)
    }

    /// Stores the counts and returns the reply with the resulting state.
    pub(super) fn finish<R>(self, reply: R) -> Result<Done<R>, StoreError> {
        if self.last > self.first {
            self.write_counts().during(self.work.db, "count")?;
        }
        let collection = collections::by_id(self.work.db, self.collection)?;
        let fold_due = collection.as_ref().is_some_and(CollectionState::fold_due);
        Ok(Done { fold_due, ..Done::from(reply).with_collection(collection) })
    }

    fn bury(&self, row: u64, change: u64) -> Result<(), StoreError> {
        self.work
            .db
            .prepare_cached(
                "INSERT INTO tombstone (collection, row, change, died) VALUES (?1, ?2, ?3, ?4)",
            )
            .and_then(|mut statement| {
                statement.execute(params![self.collection, row, change, self.last])
            })
            .during(self.work.db, "write a tombstone")?;
        Ok(())
    }

    fn write_counts(&self) -> isolith_sql::Result<()> {
        let db = self.work.db;
        db.prepare_cached("UPDATE store SET last_change = ?1")?.execute([self.last])?;
        db.prepare_cached(
            "UPDATE collection SET records = records + ?2, unfolded = unfolded + ?3, \
             last_change = ?4, updated_at = ?5 WHERE id = ?1",
        )?
        .execute(params![
            self.collection,
            self.records,
            self.unfolded,
            self.last,
            self.work.now
        ])?;
        Ok(())
    }
}
