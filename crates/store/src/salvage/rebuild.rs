//! Rebuilding a consistent truth from what can still be read.

use std::ops::RangeInclusive;

use isolith_protocol::{CODE_COLLECTION, MEMORY_COLLECTION, StoreError};
use isolith_sql::Value;
use isolith_sql::{Connection, Kind, Row, params, params_from_iter};
use rusqlite::TransactionBehavior;

use super::Embedder;
use super::damaged::Damaged;
use super::indexes::Index;
use super::ranges::{Gaps, RangeEnd, walk};
use super::record::Tally;
use super::report::{Extent, Loss, MAX_NAMED_IDS, SalvageReport};
use super::table::{Completed, TableCopy};
use crate::create::now;
use crate::deadline::Deadline;
use crate::graph;
use crate::schema::new_uuid;
use crate::sqlite::{During, explain};
use crate::write::{FileCache, Work};

/// Assumed maximum where the last row number cannot be read.
const MAX_ROW: i64 = 1 << 40;

/// Row numbers to try where nothing indicates the last one.
const UNKNOWN_ROWS: i64 = 1 << 20;

const COLLECTION: TableCopy = TableCopy {
    table: "collection",
    select: "SELECT id, name, dimension, metric, model, settings, created_at, updated_at, kind, \
             uuid, metadata FROM collection WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: concat!(
        "INSERT INTO collection \
         (id, name, dimension, metric, model, settings, created_at, updated_at, kind, uuid, \
         metadata) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce(?10, ",
        new_uuid!(),
        "), ?11)"
    ),
    columns: 11,
    key: "id",
    name: "name",
    indexes: &[Index {
        from: "collection INDEXED BY sqlite_autoindex_collection_1",
        row: "id",
        columns: &["name"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

/// Before collections had uuids.
const COLLECTION_OF_VERSION_2: TableCopy = TableCopy {
    select: "SELECT id, name, dimension, metric, model, settings, created_at, updated_at, kind, \
             NULL, NULL FROM collection WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    ..COLLECTION
};

/// Before there was a code index; like the migration, this renames a collection with its name.
const COLLECTION_OF_VERSION_1: TableCopy = TableCopy {
    select: "SELECT id, CASE name WHEN '@code' THEN 'was-@code-' || id ELSE name END, dimension, metric, model, settings, created_at, updated_at, \
             'records', NULL, NULL FROM collection WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    // The index has the old names.
    indexes: &[],
    ..COLLECTION
};

const RECEIPT: TableCopy = TableCopy {
    table: "receipt",
    select: "SELECT rowid, key, request, result, keep, at \
             FROM receipt WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid",
    insert: "INSERT INTO receipt (rowid, key, request, result, keep, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    columns: 6,
    key: "rowid",
    name: "key",
    indexes: &[Index {
        from: "receipt INDEXED BY sqlite_autoindex_receipt_1",
        row: "rowid",
        columns: &["key"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

/// Progress of unfinished loads.
const LOAD: TableCopy = TableCopy {
    table: "load",
    select: "SELECT rowid, source, collection, rows, inserted, updated, unchanged, rejected, \
             finished, at FROM load WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid",
    insert: "INSERT INTO load (rowid, source, collection, rows, inserted, updated, unchanged, \
             rejected, finished, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    columns: 10,
    key: "rowid",
    name: "source",
    indexes: &[Index {
        from: "load INDEXED BY sqlite_autoindex_load_1",
        row: "rowid",
        columns: &["source"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

/// Fills the new truth, in one transaction.
pub(super) fn rebuild(
    damaged: &Damaged,
    new: &mut rusqlite::Connection,
    embedder: &Embedder<'_>,
    deadline: &Deadline,
) -> Result<SalvageReport, StoreError> {
    let path = new.path().unwrap_or_default().to_owned();
    let transaction = new
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| explain(error, path.as_ref(), "begin to salvage"))?;
    let file_cache = FileCache::default();
    let report = {
        let mut rescue = Rescue {
            old: &damaged.db,
            work: Work { db: &*transaction, deadline, now: now(), file_cache: &file_cache },
            report: SalvageReport::default(),
            graph_gone: [0; 2],
        };
        rescue.all(embedder)?;
        rescue.report
    };
    transaction.commit().map_err(|error| explain(error, path.as_ref(), "commit the salvage"))?;
    Ok(report)
}

pub(super) struct Rescue<'a> {
    pub(super) old: &'a dyn Connection,
    pub(super) work: Work<'a>,
    pub(super) report: SalvageReport,
    /// Lost nodes and edges that were already reported.
    pub(super) graph_gone: [u64; 2],
}

impl Rescue<'_> {
    fn all(&mut self, embedder: &Embedder<'_>) -> Result<(), StoreError> {
        self.store_row()?;
        let knows_code = self.knows("SELECT kind FROM collection");
        let knows_databases = self.knows("SELECT uuid FROM collection");
        if knows_databases {
            self.databases()?;
        }
        let collections = match (knows_code, knows_databases) {
            (_, true) => &COLLECTION,
            (true, false) => &COLLECTION_OF_VERSION_2,
            (false, false) => &COLLECTION_OF_VERSION_1,
        };
        self.collections(collections, embedder)?;
        self.complete_databases()?;
        self.records(embedder)?;
        if knows_code {
            self.code()?;
        }
        self.graph()?;
        self.memory()?;
        self.facts()?;
        graph::sync_facts(self.work.db)?;
        self.count_graph()?;
        self.table(&LOAD)?;
        self.table(&RECEIPT)?;
        self.jobs()?;
        self.recount().during(self.work.db, "count what was saved")?;
        Ok(())
    }

    /// An index has a collection's name; its dimension follows from its vectors.
    fn collections(&mut self, copy: &TableCopy, embedder: &Embedder<'_>) -> Result<(), StoreError> {
        let now = self.work.now;
        self.table_with(copy, &mut |id, known| {
            let Some(Value::Text(name)) = known.get("name") else { return Ok(Completed::Nothing) };
            let (kind, lacks) = match name.as_str() {
                CODE_COLLECTION => ("code", "when they were created is unknown"),
                MEMORY_COLLECTION => ("memory", "when they were created is unknown"),
                _ => {
                    ("records", "metric (cosine is assumed), model, metadata and settings are lost")
                }
            };
            let model = if kind == "records" { Value::Null } else { text(embedder.model) };
            let row = vec![
                id.into(),
                text(name),
                Value::Null,
                text("cosine"),
                model,
                text("{}"),
                now.into(),
                now.into(),
                text(kind),
                Value::Null,
                Value::Null,
            ];
            Ok(Completed::Row(row, lacks))
        })
        .map(|_| ())
    }

    /// Whether the old file's version has these columns. Its schema is readable, or the file
    /// would not be open.
    pub(super) fn knows(&self, select: &str) -> bool {
        self.old.prepare(select).is_ok()
    }

    /// Copies the store's uuid and counters; creates a new uuid if they cannot be read.
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
                        params![uuid, created_at, last_change.clamp(0, MAX_ROW)],
                    )
                    .during(self.work.db, "save the store's id")?;
            }
            Err(error) => self.lose("store", Extent::Partial, 1, error.to_string()),
        }
        Ok(())
    }

    /// Without row numbers, the table can only be read from both ends.
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
                Ok::<_, isolith_sql::Error>(())
            };
            match copy() {
                Ok(()) => break,
                Err(error) => reason = Some(error.to_string()),
            }
        }
        drop(insert);
        if let Some(reason) = reason {
            self.lose("quarantined_job", Extent::Unknown, 0, reason);
        }
        Ok(())
    }

    /// Reads a table by row number, which must be the first column.
    pub(super) fn walk(
        &self,
        select: &str,
        range: RangeInclusive<i64>,
        save: &mut dyn FnMut(&Row<'_>) -> isolith_sql::Result<()>,
    ) -> Result<Gaps, StoreError> {
        let mut statement = match self.old.prepare(select) {
            Ok(statement) => statement,
            Err(error) => {
                return Ok(Gaps::everything(error.to_string()));
            }
        };
        walk(range, self.work.deadline, &mut |range| {
            let mut last = None;
            let mut read = || {
                let mut rows = statement.query([range.start(), range.end()])?;
                while let Some(row) = rows.next()? {
                    let number = row.get(0)?;
                    save(&row)?;
                    last = Some(number);
                }
                Ok::<_, isolith_sql::Error>(())
            };
            match read() {
                Ok(()) => RangeEnd::End,
                Err(error) => match explain(error, "truth.sqlite".as_ref(), "salvage") {
                    error @ (StoreError::Deadline { .. } | StoreError::DiskFull { .. }) => {
                        RangeEnd::Fatal(error)
                    }
                    // The reason includes the page.
                    StoreError::Corrupt { reason, .. } => RangeEnd::Damage { last, reason },
                    error => RangeEnd::Damage { last, reason: error.to_string() },
                },
            }
        })
    }

    /// The highest row number to expect in a table with these indexes.
    pub(super) fn highest(&self, table: &str, indexes: &[Index]) -> Result<i64, StoreError> {
        let by_table = self.old.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.unwrap_or(0))
        });
        if let Ok(highest) = by_table {
            return Ok(highest.clamp(0, MAX_ROW));
        }
        for index in indexes.iter().filter(|index| index.has_all) {
            let mut highest = 0;
            let complete = index.read(self.old, self.work.deadline, &mut |row, _| {
                highest = row.max(highest);
                Ok(())
            })?;
            if complete {
                return Ok(highest.clamp(0, MAX_ROW));
            }
        }
        // The last number assigned is recorded.
        let noted = match table {
            "record" => "SELECT last_change FROM store",
            "node" => "SELECT last_node FROM graph",
            "edge" => "SELECT last_edge FROM graph",
            _ => "SELECT 0",
        };
        let noted = self.old.query_row(noted, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
        Ok(if noted > 0 { noted.min(MAX_ROW) } else { UNKNOWN_ROWS })
    }

    /// Recomputes all counts. Segments are dropped, so everything is unfolded.
    fn recount(&mut self) -> isolith_sql::Result<()> {
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

    /// Reports row numbers that could not be read and that no index knows.
    pub(super) fn lose_unknown(&mut self, table: &str, rows: u64, reason: &str, is_derived: bool) {
        if rows > 0 {
            let rows = if rows >= UNKNOWN_ROWS.unsigned_abs() { 0 } else { rows };
            let extent = if is_derived { Extent::Derived } else { Extent::Unknown };
            self.push(table, extent, rows, Vec::new(), format!("they could not be read: {reason}"));
        }
    }

    pub(super) fn lose(&mut self, table: &str, extent: Extent, rows: u64, reason: String) {
        self.push(table, extent, rows, Vec::new(), reason);
    }

    /// Reports rows by the names that users know.
    pub(super) fn lose_named(
        &mut self,
        table: &str,
        extent: Extent,
        mut ids: Vec<String>,
        reason: String,
    ) {
        if !ids.is_empty() {
            let rows = ids.len() as u64;
            ids.truncate(MAX_NAMED_IDS);
            self.push(table, extent, rows, ids, reason);
        }
    }

    pub(super) fn push_tally(&mut self, table: &str, extent: Extent, tally: Tally) {
        self.push(table, extent, tally.count, tally.ids, tally.reason);
    }

    fn push(&mut self, table: &str, extent: Extent, rows: u64, ids: Vec<String>, reason: String) {
        self.report.lost.push(Loss { table: table.to_owned(), extent, rows, ids, reason });
    }
}

/// A wrong type, a missing value, or a duplicate.
pub(super) fn violates_schema(error: &isolith_sql::Error) -> bool {
    matches!(error, isolith_sql::Error::Database { kind: Kind::Constraint, .. })
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}
