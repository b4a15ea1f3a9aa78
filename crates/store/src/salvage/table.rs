//! Copying tables row by row. Unreadable rows are restored from indexes.

use std::collections::{BTreeMap, HashSet};

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Row, params_from_iter};

use super::indexes::{Index, KnownColumns, evidence};
use super::ranges::Gaps;
use super::rebuild::{Rescue, violates_schema};
use super::report::Extent;
use crate::sqlite::During;

/// How to copy a table.
pub(super) struct TableCopy {
    pub(super) table: &'static str,
    /// The first column must be the row number.
    pub(super) select: &'static str,
    pub(super) insert: &'static str,
    pub(super) columns: usize,
    /// The columns with the row number and with the name that users know.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) indexes: &'static [Index],
    /// Whether the rows are derived from files, so that indexing recreates them.
    pub(super) is_derived: bool,
}

/// What can be restored from the columns that indexes know.
pub(super) enum Completed {
    /// A row, and what it lacks.
    Row(Vec<Value>, &'static str),
    /// Not enough.
    Nothing,
}

/// Builds a row from its number and its known columns.
pub(super) type Complete<'a> =
    &'a mut dyn FnMut(i64, &KnownColumns) -> isolith_sql::Result<Completed>;

impl Rescue<'_> {
    /// Copies a table that has row numbers. Returns the ranges that could not be read.
    pub(super) fn table(&mut self, copy: &TableCopy) -> Result<Gaps, StoreError> {
        self.table_with(copy, &mut |_, _| Ok(Completed::Nothing))
    }

    /// Copies a table; `complete` restores rows that only indexes know.
    pub(super) fn table_with(
        &mut self,
        copy: &TableCopy,
        complete: Complete<'_>,
    ) -> Result<Gaps, StoreError> {
        let db = self.work.db;
        let mut insert = db.prepare(copy.insert).during(db, "prepare to save rows")?;
        let mut refused = BTreeMap::new();
        let mut failed = None;
        let mut save = |row: &Row<'_>| -> isolith_sql::Result<()> {
            let values = (0..copy.columns).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            match insert.execute(params_from_iter(values)) {
                Ok(_) => {}
                // Rows that violate the schema were damaged.
                Err(error) if violates_schema(&error) => {
                    refused.insert(row.get(0)?, named(row, copy.name));
                }
                Err(error) => failed = Some(error),
            }
            Ok(())
        };
        let highest = self.highest(copy.table, copy.indexes)?;
        let gaps = self.walk(copy.select, 0..=highest, &mut save)?;
        drop(insert);
        if let Some(error) = failed {
            return Err(error).during(db, "save rows");
        }
        self.complete_from_indexes(copy, &gaps, refused, complete)?;
        Ok(gaps)
    }

    fn complete_from_indexes(
        &mut self,
        copy: &TableCopy,
        gaps: &Gaps,
        mut refused: BTreeMap<i64, String>,
        complete: Complete<'_>,
    ) -> Result<(), StoreError> {
        let db = self.work.db;
        let found = evidence(
            (self.old, db),
            self.work.deadline,
            (copy.table, copy.key),
            copy.indexes,
            &HashSet::new(),
        )?;
        let lost_as = if copy.is_derived { Extent::Derived } else { Extent::Lost };
        let unknown = found.unknown(gaps);
        let mut fates: BTreeMap<(Extent, &str), Vec<String>> = BTreeMap::new();
        for (number, missing) in found.missing {
            let name = missing.known.get(copy.name).and_then(in_words);
            let name = name.or_else(|| refused.get(&number).cloned());
            let name = name.unwrap_or_else(|| number.to_string());
            let was_damaged = gaps.contains(number) || refused.remove(&number).is_some();
            let completed = match was_damaged || missing.is_sure {
                true => complete(number, &missing.known).during(db, "complete a row")?,
                false => Completed::Nothing,
            };
            let fate = match completed {
                Completed::Row(values, lacks) => {
                    let saved = db
                        .prepare_cached(copy.insert)
                        .and_then(|mut insert| insert.execute(params_from_iter(values)));
                    match saved {
                        Ok(_) if lacks.is_empty() => continue,
                        Ok(_) if copy.is_derived => (Extent::Derived, lacks),
                        Ok(_) => (Extent::Partial, lacks),
                        Err(error) if violates_schema(&error) && was_damaged => {
                            (lost_as, "an index lists them, but not all of their columns")
                        }
                        // The row exists under another number: the index is damaged.
                        Err(error) if violates_schema(&error) => continue,
                        Err(error) => return Err(error).during(db, "complete a row"),
                    }
                }
                Completed::Nothing if was_damaged => {
                    (lost_as, "they could not be read, but an index still lists them")
                }
                Completed::Nothing => {
                    (Extent::Doubtful, "an index has rows that are not in the table")
                }
            };
            fates.entry(fate).or_default().push(name);
        }
        for ((extent, reason), ids) in fates {
            self.lose_named(copy.table, extent, ids, reason.to_owned());
        }
        let names = refused.into_values().collect();
        let reason = "rows violate the schema".to_owned();
        self.lose_named(copy.table, lost_as, names, reason);
        let select = format!("SELECT {} FROM {} WHERE {} = ?1", copy.name, copy.table, copy.key);
        let name = |number: &i64| {
            let name = db.query_row(&select, [number], |row| row.get::<_, Value>(0));
            name.ok().as_ref().and_then(in_words).unwrap_or_else(|| number.to_string())
        };
        let different = found.different.iter().map(name).collect();
        let reason = "the table and an index disagree; the table was kept".to_owned();
        self.lose_named(copy.table, Extent::Doubtful, different, reason);
        self.lose_unknown(copy.table, unknown, &gaps.reason, copy.is_derived);
        Ok(())
    }
}

fn named(row: &Row<'_>, column: &str) -> String {
    let name = row.get::<_, Value>(column).ok().as_ref().and_then(in_words);
    let number = || row.get::<_, i64>(0).map_or_else(|_| "?".to_owned(), |row| row.to_string());
    name.unwrap_or_else(number)
}

fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Blob(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        Value::Null | Value::Real(_) => None,
    }
}
