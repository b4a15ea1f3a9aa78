//! From what can still be read to a truth that is whole again.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, TransactionBehavior, params, params_from_iter};

use super::damaged::Damaged;
use super::ranges::{Gaps, Stop, walk};
use super::record::{RECORDS, RecordSaver};
use super::{Embedder, Loss, NAMED_IDS, SalvageReport};
use crate::create::now;
use crate::deadline::Deadline;
use crate::error::StoreError;
use crate::graph;
use crate::sqlite::{During, explain};
use crate::write::{KeptFiles, Work};

/// Where no number of a last row can be read, none is expected above this.
const HIGHEST_ROW: i64 = 1 << 40;

/// How a table is copied as it is.
pub(super) struct Copy {
    pub(super) table: &'static str,
    /// The first column is the row number.
    pub(super) select: &'static str,
    pub(super) insert: &'static str,
    pub(super) columns: usize,
}

const COLLECTION: Copy = Copy {
    table: "collection",
    select: "SELECT id, name, dimension, metric, model, settings, created_at, updated_at, kind \
             FROM collection WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO collection \
             (id, name, dimension, metric, model, settings, created_at, updated_at, kind) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    columns: 9,
};

/// Before there was a code index; the migration gives away its name in the same way.
const COLLECTION_OF_VERSION_1: Copy = Copy {
    select: "SELECT id, CASE name WHEN '@code' THEN 'was-@code-' || id ELSE name END, dimension, metric, model, settings, created_at, updated_at, \
             'records' FROM collection WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    ..COLLECTION
};

const RECEIPT: Copy = Copy {
    table: "receipt",
    select: "SELECT rowid, key, request, result, keep, at \
             FROM receipt WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid",
    insert: "INSERT INTO receipt (rowid, key, request, result, keep, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    columns: 6,
};

/// Fills the new truth, in one transaction.
pub(super) fn rebuild(
    damaged: &Damaged,
    new: &mut Connection,
    embedder: &Embedder<'_>,
    deadline: &Deadline,
) -> Result<SalvageReport, StoreError> {
    let path = new.path().unwrap_or_default().to_owned();
    let transaction = new
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| explain(&error, path.as_ref(), "begin to salvage"))?;
    let kept = KeptFiles::default();
    let report = {
        let mut rescue = Rescue {
            old: &damaged.db,
            work: Work { db: &transaction, deadline, now: now(), kept: &kept },
            report: SalvageReport::default(),
        };
        rescue.all(embedder)?;
        rescue.report
    };
    transaction.commit().map_err(|error| explain(&error, path.as_ref(), "commit the salvage"))?;
    Ok(report)
}

pub(super) struct Rescue<'a> {
    pub(super) old: &'a Connection,
    pub(super) work: Work<'a>,
    pub(super) report: SalvageReport,
}

impl Rescue<'_> {
    fn all(&mut self, embedder: &Embedder<'_>) -> Result<(), StoreError> {
        self.store_row()?;
        let knows_code = self.knows("SELECT kind FROM collection");
        self.table(if knows_code { &COLLECTION } else { &COLLECTION_OF_VERSION_1 })?;
        let lost = self.records(embedder)?;
        self.note_lost_ids(lost)?;
        if knows_code {
            self.code()?;
        }
        self.graph()?;
        self.memory()?;
        self.facts()?;
        graph::show_facts(self.work.db)?;
        self.table(&RECEIPT)?;
        self.jobs()?;
        self.recount().during(self.work.db, "count what was saved")?;
        Ok(())
    }

    /// Whether the old file is of a version with these columns. Its tables' definitions could
    /// be read, or it would not be open.
    pub(super) fn knows(&self, select: &str) -> bool {
        self.old.prepare(select).is_ok()
    }

    /// The store's own id and numbers; a new id if they cannot be read.
    fn store_row(&mut self) -> Result<(), StoreError> {
        let read = self.old.query_row(
            "SELECT uuid, created_at, last_change FROM store WHERE only = 1",
            [],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
        );
        match read {
            Ok((uuid, created_at, last_change)) => {
                self.work
                    .db
                    .execute(
                        "UPDATE store SET uuid = ?1, created_at = ?2, last_change = ?3",
                        params![uuid, created_at, last_change.clamp(0, HIGHEST_ROW)],
                    )
                    .during(self.work.db, "save the store's id")?;
            }
            Err(error) => self.lose("store", 1, error.to_string()),
        }
        Ok(())
    }

    /// Copies a table that is small and has row numbers, as it is.
    pub(super) fn table(&mut self, copy: &Copy) -> Result<(), StoreError> {
        let db = self.work.db;
        let mut insert = db.prepare(copy.insert).during(db, "prepare to save rows")?;
        let mut refused = 0;
        let mut failed = None;
        let mut save = |row: &Row<'_>| -> rusqlite::Result<()> {
            let values = (0..copy.columns).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            match insert.execute(params_from_iter(values)) {
                Ok(_) => {}
                // What breaks a rule of the schema was damaged.
                Err(error) if breaks_a_rule(&error) => refused += 1,
                Err(error) => failed = Some(error),
            }
            Ok(())
        };
        let highest = self.highest(copy.table)?;
        let gaps = self.walk(copy.select, 0..=highest, &mut save)?;
        drop(insert);
        if let Some(error) = failed {
            return Err(error).during(db, "save rows");
        }
        self.lose_gaps(copy.table, gaps);
        if refused > 0 {
            self.lose(copy.table, refused, "rows break the rules of the schema".to_owned());
        }
        Ok(())
    }

    /// Records go together with their vectors or not at all: nothing is made up. What is
    /// remembered is the text; its vector is made again from it.
    /// Returns the rows that are known to be lost.
    fn records(&mut self, embedder: &Embedder<'_>) -> Result<HashSet<i64>, StoreError> {
        let mut saver = RecordSaver::new(self.old, self.work, embedder)?;
        let highest = self.highest("record")?;
        let gaps = self.walk(RECORDS, 0..=highest, &mut |row| {
            saver.take(row);
            Ok(())
        })?;
        let lost = saver.finish()?;
        self.lose_gaps("record", gaps);
        for (table, tally) in [("vector", lost.without_vector), ("record", lost.broken)] {
            if tally.count > 0 {
                self.report.lost_records += tally.count;
                self.report.lost_ids.extend(tally.ids);
                self.lose(table, tally.count, tally.reason);
            }
        }
        Ok(lost.rows)
    }

    /// The index of ids may still know records that the table has lost.
    fn note_lost_ids(&mut self, mut seen: HashSet<i64>) -> Result<(), StoreError> {
        for order in ["ASC", "DESC"] {
            // Read from both ends up to where it is damaged.
            let sql = format!(
                "SELECT row, id FROM record INDEXED BY sqlite_autoindex_record_1 \
                 ORDER BY collection {order}, id {order}"
            );
            let Ok(mut statement) = self.old.prepare(&sql) else { continue };
            let Ok(mut rows) = statement.query([]) else { continue };
            while let Ok(Some(row)) = rows.next() {
                let (Ok(number), Ok(id)) = (row.get::<_, i64>(0), row.get::<_, String>(1)) else {
                    continue;
                };
                if !seen.insert(number) {
                    continue;
                }
                let is_saved = self
                    .work
                    .db
                    .prepare_cached("SELECT 1 FROM record WHERE row = ?1")
                    .and_then(|mut statement| statement.exists([number]))
                    .during(self.work.db, "look for a saved record")?;
                if !is_saved {
                    self.report.lost_records += 1;
                    if self.report.lost_ids.len() < NAMED_IDS {
                        self.report.lost_ids.push(id);
                    }
                }
            }
        }
        self.report.lost_ids.truncate(NAMED_IDS);
        Ok(())
    }

    /// Without row numbers it can only be read from both ends.
    fn jobs(&mut self) -> Result<(), StoreError> {
        let mut insert = self
            .work
            .db
            .prepare("INSERT OR IGNORE INTO quarantined_job VALUES (?1, ?2, ?3, ?4)")
            .during(self.work.db, "prepare to save rows")?;
        let mut reason = None;
        for order in ["ASC", "DESC"] {
            let sql = format!(
                "SELECT role, input, poison, at FROM quarantined_job ORDER BY role {order}, input {order}"
            );
            let mut copy = || {
                let mut statement = self.old.prepare(&sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let values = (0..4).map(|at| row.get::<_, Value>(at));
                    let values = values.collect::<Result<Vec<_>, _>>()?;
                    insert.execute(params_from_iter(values))?;
                }
                Ok::<_, rusqlite::Error>(())
            };
            match copy() {
                Ok(()) => break,
                Err(error) => reason = Some(error.to_string()),
            }
        }
        drop(insert);
        if let Some(reason) = reason {
            self.lose("quarantined_job", 1, reason);
        }
        Ok(())
    }

    /// Walks over a table by row number; the first column is that number.
    pub(super) fn walk(
        &self,
        select: &str,
        range: RangeInclusive<i64>,
        save: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<Gaps, StoreError> {
        let mut statement = match self.old.prepare(select) {
            Ok(statement) => statement,
            Err(error) => {
                return Ok(Gaps { rows: 1, reason: error.to_string() });
            }
        };
        walk(range, self.work.deadline, &mut |range| {
            let mut last = None;
            let mut read = || {
                let mut rows = statement.query([range.start(), range.end()])?;
                while let Some(row) = rows.next()? {
                    let number = row.get(0)?;
                    save(row)?;
                    last = Some(number);
                }
                Ok(())
            };
            match read() {
                Ok(()) => Stop::End,
                Err(error) => match explain(&error, "truth.sqlite".as_ref(), "salvage") {
                    error @ (StoreError::Deadline { .. } | StoreError::DiskFull { .. }) => {
                        Stop::Fatal(error)
                    }
                    // It names the page.
                    StoreError::Corrupt { reason, .. } => Stop::Damage { last, reason },
                    _ => Stop::Damage { last, reason: error.to_string() },
                },
            }
        })
    }

    /// The highest row number that can be expected in a table.
    pub(super) fn highest(&self, table: &str) -> Result<i64, StoreError> {
        let by_table = self.old.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.unwrap_or(0))
        });
        if let Ok(highest) = by_table {
            return Ok(highest.clamp(0, HIGHEST_ROW));
        }
        let by_store: i64 = self
            .work
            .db
            .query_row("SELECT last_change FROM store", [], |row| row.get(0))
            .during(self.work.db, "read the last change number")?;
        let is_counted = table == "record" && by_store > 0;
        Ok(if is_counted { by_store } else { 1 << 20 })
    }

    /// Counts start afresh: segments are dropped, so that everything is unfolded.
    fn recount(&mut self) -> rusqlite::Result<()> {
        let db = self.work.db;
        db.execute(
            "UPDATE collection SET \
             records = (SELECT count(*) FROM record WHERE collection = collection.id), \
             unfolded = (SELECT count(*) FROM record WHERE collection = collection.id), \
             last_change = max(last_change, coalesce( \
             (SELECT max(change) FROM record WHERE collection = collection.id), 0))",
            [],
        )?;
        db.execute(
            "UPDATE store SET last_change = max(last_change, \
             (SELECT coalesce(max(last_change), 0) FROM collection), \
             (SELECT coalesce(max(row), 0) FROM record))",
            [],
        )?;
        let count = |table: &str| {
            db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
        };
        self.report.records = count("record")?;
        self.report.collections = count("collection WHERE name IS NOT NULL")?;
        self.report.facts = count("fact")?;
        Ok(())
    }

    pub(super) fn lose_gaps(&mut self, table: &str, gaps: Gaps) {
        if gaps.rows > 0 {
            self.lose(table, gaps.rows, gaps.reason);
        }
    }

    pub(super) fn lose(&mut self, table: &str, rows: u64, reason: String) {
        self.report.lost.push(Loss { table: table.to_owned(), rows, reason });
    }
}

/// A value of the wrong type, a missing one, or a second one of a kind.
pub(super) fn breaks_a_rule(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(rusqlite::ErrorCode::ConstraintViolation | rusqlite::ErrorCode::TypeMismatch)
    )
}
