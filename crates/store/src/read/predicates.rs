//! Predicates, and what is declared of them.

use isolith_protocol::StoreError;
use isolith_sql::{Connection, Row, params};
use isolith_types::Predicate;

use super::Snapshot;
use crate::sqlite::During;

const PREDICATE: &str = "SELECT p.name, p.single_valued, \
    (SELECT count(*) FROM fact WHERE predicate = p.id AND retracted_at IS NULL) FROM predicate p";

impl Snapshot<'_> {
    /// Predicates by name.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn predicates(&self, limit: u32, offset: u64) -> Result<Vec<Predicate>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(
                "SELECT p.name, p.single_valued, coalesce(f.facts, 0) FROM predicate p LEFT JOIN \
                 (SELECT predicate, count(*) AS facts FROM fact WHERE retracted_at IS NULL \
                  GROUP BY predicate) f ON f.predicate = p.id \
                 ORDER BY p.folded LIMIT ?1 OFFSET ?2",
            )?
            .query_map(params![limit, i64::try_from(offset).unwrap_or(i64::MAX)], predicate_of)?
            .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "list predicates")
    }
}

/// The predicate with this id, which must exist.
pub(crate) fn require_predicate(db: &dyn Connection, number: i64) -> Result<Predicate, StoreError> {
    db.prepare_cached(&format!("{PREDICATE} WHERE p.id = ?1"))
        .and_then(|mut statement| statement.query_row([number], predicate_of))
        .during(db, "read a predicate")
}

/// Whether a subject can have only one object of this predicate at a time.
pub(crate) fn is_single_valued(db: &dyn Connection, number: i64) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM predicate WHERE id = ?1 AND single_valued = 1")
        .and_then(|mut statement| statement.exists([number]))
        .during(db, "read a predicate")
}

fn predicate_of(row: &Row<'_>) -> isolith_sql::Result<Predicate> {
    Ok(Predicate { name: row.get(0)?, single_valued: row.get(1)?, facts: row.get(2)? })
}
