//! Multi-row inserts.

use isolith_sql::Connection;
use isolith_sql::{ToSqlOutput, ValueRef};

/// Maximum number of rows per statement.
pub(super) const MAX_ROWS: usize = 64;

/// Batch sizes, so that few distinct statements are prepared.
const SIZES: [usize; 3] = [MAX_ROWS, 8, 1];

/// Inserts rows. Sorted rows are appended next to each other, without a search for each.
pub(super) fn insert<'r, R, const N: usize>(
    db: &dyn Connection,
    into: &str,
    rows: &'r [R],
    cells: impl Fn(&'r R) -> [ValueRef<'r>; N],
) -> isolith_sql::Result<()> {
    let mut left = rows;
    for size in SIZES {
        let (batch, fewer) = left.split_at(left.len() - left.len() % size);
        left = fewer;
        if batch.is_empty() {
            continue;
        }
        let values = vec![format!("({})", ["?"; N].join(", ")); size].join(", ");
        let mut statement = db.prepare_cached(&format!("INSERT {into} VALUES {values}"))?;
        for rows in batch.chunks_exact(size) {
            let mut at = 0;
            for row in rows {
                for cell in cells(row) {
                    at += 1;
                    statement.bind_one(at, ToSqlOutput::Borrowed(cell))?;
                }
            }
            statement.execute_bound()?;
        }
    }
    Ok(())
}
