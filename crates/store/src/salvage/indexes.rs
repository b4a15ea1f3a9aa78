//! What indexes still know about rows that their table lost. SQLite reads only the index if it
//! has all requested columns.

use std::collections::{BTreeMap, HashSet};

use isolith_protocol::StoreError;
use isolith_sql::Connection;
use isolith_sql::Value;

use super::ranges::Gaps;
use crate::deadline::Deadline;
use crate::sqlite::{During, explain};

/// An index, or a table that duplicates columns of another.
pub(super) struct Index {
    /// The `FROM` clause.
    pub(super) from: &'static str,
    /// The column with the row number.
    pub(super) row: &'static str,
    /// The indexed columns in order, by their names in the table.
    pub(super) columns: &'static [&'static str],
    /// Whether it is unique.
    pub(super) unique: bool,
    /// Whether it covers every row of the table.
    pub(super) has_all: bool,
}

/// Columns of a row, by name.
pub(super) type KnownColumns = BTreeMap<&'static str, Value>;

/// What the indexes of a table know and the table does not.
#[derive(Default)]
pub(super) struct Evidence {
    /// Rows that are not in the new table.
    pub(super) missing: BTreeMap<i64, MissingRow>,
    /// Rows that differ from the new table.
    pub(super) different: HashSet<i64>,
    /// Whether all rows that ever existed are known.
    pub(super) complete: bool,
}

#[derive(Default)]
pub(super) struct MissingRow {
    pub(super) known: KnownColumns,
    /// Whether it cannot be a row of which only the number is damaged.
    pub(super) is_sure: bool,
}

impl Index {
    fn select(&self, order: &str) -> String {
        let ordered: Vec<String> =
            self.columns.iter().map(|column| format!("{column} {order}")).collect();
        let Self { from, row, columns, .. } = self;
        format!("SELECT {row}, {} FROM {from} ORDER BY {}", columns.join(", "), ordered.join(", "))
    }

    /// Passes on what can be read, from both ends up to the damage; then some rows may come
    /// twice. Returns whether everything was read.
    ///
    /// # Errors
    /// If the deadline passes, or the error that `take` returned.
    pub(super) fn read(
        &self,
        old: &dyn Connection,
        deadline: &Deadline,
        take: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        debug_assert!(self.is_read_alone(old), "{}", self.select("ASC"));
        for order in ["ASC", "DESC"] {
            deadline.check("salvage")?;
            match self.read_in(old, &self.select(order), take)? {
                None if order == "ASC" => return Ok(true),
                None => {}
                Some(error) => match explain(error, "truth.sqlite".as_ref(), "salvage") {
                    error @ StoreError::Deadline { .. } => return Err(error),
                    error => tracing::debug!(%error, from = self.from, "an index is damaged"),
                },
            }
        }
        Ok(false)
    }

    /// Whether SQLite reads only the index, in its order: a table or a sort would make the
    /// whole query fail where the index is damaged.
    fn is_read_alone(&self, old: &dyn Connection) -> bool {
        let plan = || {
            old.prepare(&format!("EXPLAIN QUERY PLAN {}", self.select("ASC")))?
                .query_map([], |row| row.get::<_, String>("detail"))?
                .collect::<Result<Vec<_>, _>>()
        };
        // A table that cannot be read has no plan.
        let Ok(plan) = plan().map(|plan| plan.join("; ")) else { return true };
        let is_covering = plan.contains("COVERING INDEX") || !self.from.contains(" INDEXED BY ");
        is_covering && !plan.contains("TEMP B-TREE")
    }

    fn read_in(
        &self,
        old: &dyn Connection,
        select: &str,
        take: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<Option<isolith_sql::Error>, StoreError> {
        let mut statement = match old.prepare(select) {
            Ok(statement) => statement,
            Err(error) => return Ok(Some(error)),
        };
        let mut rows = match statement.query([]) {
            Ok(rows) => rows,
            Err(error) => return Ok(Some(error)),
        };
        let mut unreadable = None;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let columns = (1..=self.columns.len()).map(|at| row.get::<_, Value>(at));
                    let values = columns.collect::<Result<Vec<_>, _>>();
                    match (row.get(0), values) {
                        (Ok(number), Ok(values)) => take(number, values)?,
                        (Err(error), _) | (_, Err(error)) => unreadable = Some(error),
                    }
                }
                Ok(None) => return Ok(unreadable),
                Err(error) => return Ok(Some(error)),
            }
        }
    }
}

/// Compares the indexes with what was saved of their table, whose row number is in column `key`.
/// Ignores rows in `known_lost`.
pub(super) fn evidence(
    (old, new): (&dyn Connection, &dyn Connection),
    deadline: &Deadline,
    (table, key): (&str, &str),
    indexes: &[Index],
    known_lost: &HashSet<i64>,
) -> Result<Evidence, StoreError> {
    let mut found = Evidence::default();
    for index in indexes {
        let columns = index.columns.join(", ");
        let mut saved = new
            .prepare(&format!("SELECT {columns} FROM {table} WHERE {key} = ?1"))
            .during(new, "compare saved rows")?;
        let complete = index.read(old, deadline, &mut |number, values| {
            let mut rows = saved.query([number]).during(new, "compare saved rows")?;
            match rows.next().during(new, "compare saved rows")? {
                Some(row) => {
                    let same = values.iter().enumerate().all(|(at, value)| {
                        row.get::<_, Value>(at).is_ok_and(|saved| saved == *value)
                    });
                    if !same {
                        found.different.insert(number);
                    }
                }
                None if known_lost.contains(&number) => {}
                None => {
                    let missing = found.missing.entry(number).or_default();
                    missing.is_sure |= index.unique;
                    missing.known.extend(index.columns.iter().copied().zip(values));
                }
            }
            Ok(())
        })?;
        found.complete |= complete && index.has_all;
    }
    Ok(found)
}

impl Evidence {
    /// How many row numbers in the gaps may have been rows that no index knows.
    pub(super) fn unknown(&self, gaps: &Gaps) -> u64 {
        if self.complete {
            return 0;
        }
        let known = self.missing.keys().filter(|row| gaps.contains(**row)).count();
        gaps.rows.saturating_sub(known as u64)
    }
}
