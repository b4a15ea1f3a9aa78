//! Rows of a table, many at once.

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// How many rows one statement inserts at most.
pub(super) const MOST: usize = 64;

/// Statements for as many rows as are left: each is prepared once.
const SIZES: [usize; 3] = [MOST, 8, 1];

/// Inserts rows. Those that are in order go beside the one before without being searched for.
pub(super) fn insert<'r, R, const N: usize>(
    db: &Connection,
    into: &str,
    rows: &'r [R],
    cells: impl Fn(&'r R) -> [ValueRef<'r>; N],
) -> rusqlite::Result<()> {
    let mut left = rows;
    for size in SIZES {
        let (many, fewer) = left.split_at(left.len() - left.len() % size);
        left = fewer;
        if many.is_empty() {
            continue;
        }
        let values = vec![format!("({})", ["?"; N].join(", ")); size].join(", ");
        let mut statement = db.prepare_cached(&format!("INSERT {into} VALUES {values}"))?;
        for rows in many.chunks_exact(size) {
            let mut at = 0;
            for row in rows {
                for cell in cells(row) {
                    at += 1;
                    statement.raw_bind_parameter(at, ToSqlOutput::Borrowed(cell))?;
                }
            }
            statement.raw_execute()?;
        }
    }
    Ok(())
}
