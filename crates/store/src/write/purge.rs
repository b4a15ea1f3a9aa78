//! Clearing deleted and expired rows, in slices that let other writers in.

use std::time::{Duration, Instant};

use isolith_protocol::{Done, Purge, Purged, StoreError, Tidy};
use isolith_sql::{Connection, OptionalExtension, params};

use super::{Perform, Work};
use crate::sqlite::During;

impl Perform for Purge {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        purge(work, self.limit_rows)
    }
}

impl Perform for Tidy {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        tidy(work)
    }
}

/// Time limit of a slice, whatever is left; the commit is not included.
const SLICE: Duration = Duration::from_millis(30);

/// Number of rows between two checks of the clock.
const STEP: u32 = 200;

/// Receipts and finished loads are kept for a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// An unfinished load is dropped after this long.
const LOAD_EXPIRY: i64 = 30 * DAY;

/// After this long, a quarantined job may be tried again.
const QUARANTINE_EXPIRY: i64 = 7 * DAY;

/// Number of free pages to keep, and the maximum returned at once.
const FREE_PAGES: i64 = 1000;

/// Maximum number of receipts per pass.
const RECEIPT_BATCH: i64 = 5000;

/// Removes rows of deleted collections.
pub(super) fn purge(work: Work<'_>, limit: u32) -> Result<Done<Purged>, StoreError> {
    let mut slice = Slice { end: Instant::now() + SLICE, left: limit.max(1), gone: 0 };
    let clear = |slice: &mut Slice| {
        while let Some(collection) = first_deleted(work.db)? {
            if !clear_collection(work.db, collection, slice)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let more = clear(&mut slice).during(work.db, "purge a deleted collection")?;
    Ok(Purged { deleted: slice.gone, more }.into())
}

/// Removes expired rows, and returns some free space.
pub(super) fn tidy(work: Work<'_>) -> Result<Done<Purged>, StoreError> {
    let clear = || {
        let db = work.db;
        let (receipts, mut more) = expired_receipts(db, work.now - DAY)?;
        let loads = db
            .prepare_cached("DELETE FROM load WHERE at < CASE finished WHEN 1 THEN ?1 ELSE ?2 END")?
            .execute(params![work.now - DAY, work.now - LOAD_EXPIRY])?;
        let jobs = db
            .prepare_cached("DELETE FROM quarantined_job WHERE at < ?1")?
            .execute([work.now - QUARANTINE_EXPIRY])?;
        more |= give_space_back(db)?;
        let deleted = receipts + loads as u64 + jobs as u64;
        Ok(Purged { deleted, more }.into())
    };
    clear().during(work.db, "tidy")
}

/// What a purge may still do in this transaction.
struct Slice {
    end: Instant,
    left: u32,
    gone: u64,
}

impl Slice {
    /// How many rows the next statement may delete; 0 when the slice is over.
    fn next(&self) -> u32 {
        if Instant::now() >= self.end { 0 } else { self.left.min(STEP) }
    }

    fn took(&mut self, rows: usize) {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.left = self.left.saturating_sub(rows);
        self.gone += u64::from(rows);
    }
}

fn first_deleted(db: &dyn Connection) -> isolith_sql::Result<Option<u64>> {
    db.prepare_cached("SELECT id FROM collection WHERE name IS NULL LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Returns whether everything is deleted.
fn clear_collection(
    db: &dyn Connection,
    collection: u64,
    slice: &mut Slice,
) -> isolith_sql::Result<bool> {
    let mut keys = db.prepare_cached("SELECT id FROM field_key WHERE collection = ?1")?;
    let keys: Vec<i64> =
        keys.query_map([collection], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for key in keys {
        let cleared = clear_rows(
            db,
            slice,
            key,
            &["DELETE FROM field WHERE key = ?1 AND (value, row) IN \
             (SELECT value, row FROM field WHERE key = ?1 ORDER BY value, row LIMIT ?2)"],
        )?;
        if !cleared {
            return Ok(false);
        }
        db.prepare_cached("DELETE FROM field_key WHERE id = ?1")?.execute([key])?;
    }
    let collection_key = i64::try_from(collection).unwrap_or(i64::MAX);
    let tombstones = "DELETE FROM tombstone WHERE collection = ?1 AND (row, change) IN \
        (SELECT row, change FROM tombstone WHERE collection = ?1 ORDER BY row, change LIMIT ?2)";
    let vectors = "DELETE FROM vector WHERE row IN \
        (SELECT row FROM record WHERE collection = ?1 ORDER BY change LIMIT ?2)";
    let records = "DELETE FROM record WHERE row IN \
        (SELECT row FROM record WHERE collection = ?1 ORDER BY change LIMIT ?2)";
    if !clear_rows(db, slice, collection_key, &[tombstones])?
        || !clear_rows(db, slice, collection_key, &[vectors, records])?
    {
        return Ok(false);
    }
    for sql in [
        "DELETE FROM segment WHERE collection = ?1",
        "DELETE FROM generation WHERE collection = ?1",
        "DELETE FROM load WHERE collection = ?1",
        "DELETE FROM collection WHERE id = ?1",
    ] {
        db.prepare_cached(sql)?.execute([collection])?;
    }
    Ok(true)
}

/// Runs the statements until the last one finds nothing more, or the slice is over. Returns
/// whether nothing is left.
fn clear_rows(
    db: &dyn Connection,
    slice: &mut Slice,
    of: i64,
    statements: &[&str],
) -> isolith_sql::Result<bool> {
    loop {
        let limit = slice.next();
        if limit == 0 {
            return Ok(false);
        }
        let mut gone = 0;
        for sql in statements {
            gone = db.prepare_cached(sql)?.execute(params![of, limit])?;
        }
        slice.took(gone);
        if gone < limit as usize {
            return Ok(true);
        }
    }
}

/// Receipts are stored in order of creation, so only the oldest are read.
fn expired_receipts(db: &dyn Connection, before: i64) -> isolith_sql::Result<(u64, bool)> {
    let gone = db
        .prepare_cached(
            "DELETE FROM receipt WHERE rowid IN \
             (SELECT rowid FROM receipt ORDER BY rowid LIMIT ?1) AND at < ?2",
        )?
        .execute(params![RECEIPT_BATCH, before])?;
    Ok((gone as u64, gone as i64 == RECEIPT_BATCH))
}

fn give_space_back(db: &dyn Connection) -> isolith_sql::Result<bool> {
    let free =
        |db: &dyn Connection| db.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let surplus = free(db)? - FREE_PAGES;
    if surplus > 0 {
        let pages = surplus.min(FREE_PAGES);
        let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(surplus > FREE_PAGES)
}
