//! Edges by their endpoints: two tables next to the edge table, ordered by start and by end. They
//! are not SQLite indexes because those are written row by row at random positions; here a
//! transaction writes its rows in order.

use isolith_sql::{Connection, params};
use isolith_types::Failure;

use super::TruthGraph;

impl TruthGraph<'_> {
    pub(super) fn unindex_ends(
        &self,
        edge: i64,
        kind: u32,
        (src, dst): (i64, i64),
    ) -> Result<(), Failure> {
        self.flush_edges()?;
        self.execute(
            "DELETE FROM edge_out WHERE src = ?1 AND type = ?2 AND dst = ?3 AND edge = ?4",
            params![src, kind, dst, edge],
        )?;
        self.execute(
            "DELETE FROM edge_in WHERE dst = ?1 AND type = ?2 AND src = ?3 AND edge = ?4",
            params![dst, kind, src, edge],
        )?;
        Ok(())
    }
}

/// Rebuilds both tables from the edge table.
pub(crate) const REBUILD_ENDS: &str = "
DELETE FROM edge_out;
DELETE FROM edge_in;
INSERT INTO edge_out SELECT src, type, dst, id FROM edge ORDER BY src, type, dst, id;
INSERT INTO edge_in SELECT dst, type, src, id FROM edge ORDER BY dst, type, src, id;
";

/// Whether an edge is in both endpoint tables.
pub(crate) fn has_ends(
    db: &dyn Connection,
    edge: i64,
    kind: u32,
    (src, dst): (i64, i64),
) -> isolith_sql::Result<bool> {
    let out = "SELECT 1 FROM edge_out WHERE src = ?1 AND type = ?2 AND dst = ?3 AND edge = ?4";
    let into = "SELECT 1 FROM edge_in WHERE dst = ?1 AND type = ?2 AND src = ?3 AND edge = ?4";
    Ok(db.prepare_cached(out)?.exists(params![src, kind, dst, edge])?
        && db.prepare_cached(into)?.exists(params![dst, kind, src, edge])?)
}
