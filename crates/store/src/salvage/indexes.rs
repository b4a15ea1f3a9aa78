//! What indexes still know of rows that their table has lost. SQLite reads an index alone
//! where it holds all columns that are asked for.

use std::collections::{BTreeMap, HashSet};

use isolith_protocol::StoreError;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::ranges::Gaps;
use crate::deadline::Deadline;
use crate::sqlite::{During, explain};

/// An index, or a table that repeats columns of another.
pub(super) struct Index {
    /// What stands after `FROM`.
    pub(super) from: &'static str,
    /// The column with the row number.
    pub(super) row: &'static str,
    /// The columns of the index, in its order: their names in the table.
    pub(super) columns: &'static [&'static str],
    /// Whether no two rows have the same values in it.
    pub(super) unique: bool,
    /// Whether it has every row of the table.
    pub(super) has_all: bool,
}

/// Columns of a row, by name.
pub(super) type Known = BTreeMap<&'static str, Value>;

/// What the indexes of a table say that the table does not.
#[derive(Default)]
pub(super) struct Evidence {
    /// Rows that are not in the new table.
    pub(super) missing: BTreeMap<i64, Missing>,
    /// Rows of which the new table says something else.
    pub(super) different: HashSet<i64>,
    /// Whether all rows that there ever were are known.
    pub(super) complete: bool,
}

#[derive(Default)]
pub(super) struct Missing {
    pub(super) known: Known,
    /// Whether it can be told from a row whose number alone is damaged.
    pub(super) is_sure: bool,
}

impl Index {
    fn select(&self, order: &str) -> String {
        let ordered: Vec<String> =
            self.columns.iter().map(|column| format!("{column} {order}")).collect();
        let Self { from, row, columns, .. } = self;
        format!("SELECT {row}, {} FROM {from} ORDER BY {}", columns.join(", "), ordered.join(", "))
    }

    /// Hands over what can be read, from both ends up to where the damage is; some rows twice
    /// then. Returns whether it was all.
    ///
    /// # Errors
    /// That time is up, or what `take` returned.
    pub(super) fn read(
        &self,
        old: &Connection,
        deadline: &Deadline,
        take: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        debug_assert!(self.is_read_alone(old), "{}", self.select("ASC"));
        for order in ["ASC", "DESC"] {
            deadline.check("salvage")?;
            match self.read_in(old, &self.select(order), take)? {
                None if order == "ASC" => return Ok(true),
                None => {}
                Some(error) => match explain(&error, "truth.sqlite".as_ref(), "salvage") {
                    error @ StoreError::Deadline { .. } => return Err(error),
                    error => tracing::debug!(%error, from = self.from, "an index is damaged"),
                },
            }
        }
        Ok(false)
    }

    /// Whether SQLite reads nothing but the index, and in its order: a table or a sort in
    /// between would fail as a whole where the index is damaged.
    fn is_read_alone(&self, old: &Connection) -> bool {
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
        old: &Connection,
        select: &str,
        take: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<Option<rusqlite::Error>, StoreError> {
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

/// Compares what the indexes know with what was saved of their table, whose row number is in
/// the column `key`. A row of `known_lost` is none of our business.
pub(super) fn evidence(
    (old, new): (&Connection, &Connection),
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
    /// How many row numbers of the gaps may have been rows that nothing is known of.
    pub(super) fn unknown(&self, gaps: &Gaps) -> u64 {
        if self.complete {
            return 0;
        }
        let known = self.missing.keys().filter(|row| gaps.contains(**row)).count();
        gaps.rows.saturating_sub(known as u64)
    }
}
