//! Sorting by the values of a metadata key, and counting them, in the table `field`.

use std::collections::HashSet;
use std::rc::Rc;

use isolith_protocol::{Page, Sort, StoreError, ValueCounts};
use isolith_sql::{OptionalExtension, Row, params};
use isolith_sql::{Value, ValueRef};
use isolith_types::{Filter, Scalar};

use super::records::{on_page, signed};
use super::scan::all_rows;
use super::{Snapshot, unreadable};
use crate::sqlite::During;
use crate::write::IN_A_LIST;

/// The types of single values (see `type_of` in `write/fields.rs`), in ascending order.
const KINDS: [u8; 3] = [0, 1, 2];

/// Equal values are sorted by row. `?3` is the page's first row, `?4` the number of rows.
macro_rules! sorted {
    ($among:literal, $order:literal) => {
        concat!(
            "SELECT row FROM field WHERE key = ?1 AND row > ?3 ",
            $among,
            "ORDER BY value ",
            $order,
            ", row LIMIT ?4"
        )
    };
}

/// Reads each key in the order of its index. Only the counts are sorted.
macro_rules! counted {
    ($among:literal) => {
        concat!(
            "WITH counted AS (
               SELECT key, value, count(*) AS records FROM field
               WHERE key IN (SELECT id FROM field_key WHERE collection = ?1 AND name = ?2)",
            $among,
            "  GROUP BY key, value
             )
             SELECT (SELECT type & 3 FROM field_key WHERE id = key) AS kind, value,
               sum(records) AS records, count(*) OVER () AS total
             FROM counted GROUP BY kind, value ORDER BY records DESC, kind, value LIMIT ?4"
        )
    };
}

impl Snapshot<'_> {
    /// A page of the rows of a collection, or of `selected` ones, sorted by a key.
    pub(super) fn sorted_page(
        &self,
        collection: u64,
        sort: &Sort,
        selected: Option<Vec<u64>>,
        page: Page,
    ) -> Result<Vec<u64>, StoreError> {
        let wanted = page.offset.saturating_add(page.limit);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let among = selected.as_deref().map(values_of);
        let mut kinds = KINDS;
        if sort.descending {
            kinds.reverse();
        }
        let mut sorted = Vec::new();
        for kind in kinds {
            let after = page.after_row;
            let limit = wanted.saturating_sub(sorted.len());
            if let Some(key) = self.field_key(collection, &sort.key, kind)?.filter(|_| limit > 0) {
                let rows = self.rows_by_value(key, sort.descending, &among, (after, limit))?;
                sorted.extend(rows);
            }
        }
        if sorted.len() < wanted {
            // All rows that have a value are known here: the others come last.
            let known: HashSet<u64> = sorted.iter().copied().collect();
            let mut rest = match selected {
                Some(rows) => rows,
                None => all_rows(self.connection(), collection)?,
            };
            rest.sort_unstable();
            rest.dedup();
            sorted.extend(rest.into_iter().filter(|row| !known.contains(row)));
        }
        Ok(on_page(sorted, page))
    }

    /// Counts the distinct values of a key.
    ///
    /// # Errors
    /// If the filter is invalid, the deadline passes or the truth cannot be read.
    pub fn count_values(
        &self,
        collection: u64,
        key: &str,
        filter: Option<&Filter>,
        limit: u32,
    ) -> Result<ValueCounts, StoreError> {
        let db = self.connection();
        let among = filter.map(|filter| self.rows_matching(collection, filter)).transpose()?;
        let among = among.as_deref().map(values_of);
        let sql = match among {
            Some(_) => counted!(" AND row IN (SELECT value FROM rarray(?3))"),
            None => counted!(" AND ?3 IS NULL"),
        };
        let read = || {
            let mut counts = ValueCounts { values: Vec::new(), total: 0 };
            let mut statement = db.prepare_cached(sql)?;
            let mut rows = match &among {
                Some(among) => statement.query(params![collection, key, among, limit])?,
                None => statement.query(params![collection, key, Value::Null, limit])?,
            };
            while let Some(row) = rows.next()? {
                counts.values.push((scalar_of(&row)?, row.get(2)?));
                counts.total = row.get(3)?;
            }
            Ok(counts)
        };
        read().during(db, "count values")
    }

    /// Rows in the order of their values of a key: from a row on, up to a number of them.
    fn rows_by_value(
        &self,
        key: i64,
        descending: bool,
        among: &Option<Rc<Vec<Value>>>,
        (after, limit): (u64, usize),
    ) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let sql = match (among, descending) {
            (None, false) => sorted!("AND ?2 IS NULL ", "ASC"),
            (None, true) => sorted!("AND ?2 IS NULL ", "DESC"),
            (Some(_), false) => sorted!("AND row IN (SELECT value FROM rarray(?2)) ", "ASC"),
            (Some(_), true) => sorted!("AND row IN (SELECT value FROM rarray(?2)) ", "DESC"),
        };
        let (after, limit) = (signed(after), signed(limit as u64));
        let read = || {
            let mut statement = db.prepare_cached(sql)?;
            let row = |row: &Row<'_>| row.get(0);
            let rows = match among {
                Some(among) => statement.query_map(params![key, among, after, limit], row)?,
                None => statement.query_map(params![key, Value::Null, after, limit], row)?,
            };
            rows.collect::<Result<Vec<u64>, _>>()
        };
        read().during(db, "sort records")
    }

    fn field_key(&self, collection: u64, name: &str, kind: u8) -> Result<Option<i64>, StoreError> {
        let db = self.connection();
        db.prepare_cached(
            "SELECT id FROM field_key WHERE collection = ?1 AND name = ?2 AND type = ?3",
        )
        .and_then(|mut statement| {
            statement.query_row(params![collection, name, kind], |row| row.get(0)).optional()
        })
        .during(db, "look for a key")
    }
}

fn values_of(rows: &[u64]) -> Rc<Vec<Value>> {
    Rc::new(rows.iter().map(|row| Value::Integer(signed(*row))).collect())
}

/// The value of a row with its type and the value.
fn scalar_of(row: &Row<'_>) -> isolith_sql::Result<Scalar> {
    let kind: u8 = row.get(0)?;
    match (kind % IN_A_LIST, row.get_ref(1)?) {
        (0, ValueRef::Integer(whole)) => Ok(Scalar::Integer(whole)),
        (0, ValueRef::Real(number)) => Ok(Scalar::Float(number)),
        (1, value @ ValueRef::Text(_)) => Ok(Scalar::Text(value.as_str()?.to_owned())),
        (2, ValueRef::Integer(number @ 0..=1)) => Ok(Scalar::Bool(number == 1)),
        _ => Err(unreadable(1, "a value does not have the type of its key")),
    }
}
