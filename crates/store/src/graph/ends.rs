//! Edges by their ends: two tables beside that of edges, in the order of where edges begin
//! and of where they end. They are no indexes of SQLite because these are written row by row,
//! each at another place; here a transaction writes its rows in the order that they have.

use std::cell::RefCell;

use isolith_types::Failure;
use rusqlite::{Connection, params};

use super::{TruthGraph, failure};
use crate::error::StoreError;
use crate::sqlite::During;

/// How many rows one statement inserts.
const ROWS: usize = 64;

/// How many edges wait at most.
const MOST_WAITING: usize = 1 << 20;

/// An edge as the tables have it: where it begins, its type, where it ends, its number.
type Row = [i64; 4];

/// The edges that a transaction has made and that are in none of the two tables yet.
#[derive(Debug, Default)]
pub(super) struct Waiting(RefCell<Vec<Row>>);

impl Waiting {
    /// Writes them down.
    pub(super) fn settle(&self, db: &Connection) -> Result<(), StoreError> {
        let mut rows = self.0.take();
        let write = |rows: &mut Vec<Row>| {
            rows.sort_unstable();
            insert(db, "edge_out", rows)?;
            for [src, _, dst, _] in &mut *rows {
                std::mem::swap(src, dst);
            }
            rows.sort_unstable();
            insert(db, "edge_in", rows)
        };
        write(&mut rows).during(db, "write edges by their ends")
    }
}

impl TruthGraph<'_> {
    /// Lets an edge be found by its ends: that is written before it is looked at.
    pub(super) fn show_ends(
        &self,
        edge: i64,
        kind: u32,
        (src, dst): (i64, i64),
    ) -> Result<(), Failure> {
        let Some(counts) = &self.counts else { return Ok(()) };
        counts.waiting.0.borrow_mut().push([src, kind.into(), dst, edge]);
        match counts.waiting.0.borrow().len() < MOST_WAITING {
            true => Ok(()),
            false => self.settle_ends(),
        }
    }

    /// Makes edges without properties, many at once.
    pub(super) fn insert_bare_edges(&self, kind: u32, ends: &[(i64, i64)]) -> Result<(), Failure> {
        let (db, first) = (self.db, self.next_edges(kind, ends.len() as i64));
        let numbered = ends.iter().zip(first..);
        let rows: Vec<Row> =
            numbered.map(|((src, dst), edge)| [edge, kind.into(), *src, *dst]).collect();
        let written = insert(db, "edge (id, type, src, dst)", &rows);
        written.during(db, "write edges").map_err(failure)?;
        for [edge, _, src, dst] in rows {
            self.show_ends(edge, kind, (src, dst))?;
        }
        Ok(())
    }

    /// To be called before any of the two tables is read.
    pub(super) fn settle_ends(&self) -> Result<(), Failure> {
        match &self.counts {
            Some(counts) => counts.waiting.settle(self.db).map_err(failure),
            None => Ok(()),
        }
    }

    pub(super) fn hide_ends(
        &self,
        edge: i64,
        kind: u32,
        (src, dst): (i64, i64),
    ) -> Result<(), Failure> {
        self.settle_ends()?;
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

/// Makes both tables again from that of edges.
pub(crate) const FIND_ALL_EDGES: &str = "
DELETE FROM edge_out;
DELETE FROM edge_in;
INSERT INTO edge_out SELECT src, type, dst, id FROM edge ORDER BY src, type, dst, id;
INSERT INTO edge_in SELECT dst, type, src, id FROM edge ORDER BY dst, type, src, id;
";

/// Whether an edge can be found by both of its ends.
pub(crate) fn has_ends(
    db: &Connection,
    edge: i64,
    kind: u32,
    (src, dst): (i64, i64),
) -> rusqlite::Result<bool> {
    let out = "SELECT 1 FROM edge_out WHERE src = ?1 AND type = ?2 AND dst = ?3 AND edge = ?4";
    let into = "SELECT 1 FROM edge_in WHERE dst = ?1 AND type = ?2 AND src = ?3 AND edge = ?4";
    Ok(db.prepare_cached(out)?.exists(params![src, kind, dst, edge])?
        && db.prepare_cached(into)?.exists(params![dst, kind, src, edge])?)
}

/// Inserts rows that are in order: many at once, so that each goes beside the one before
/// without being searched for.
fn insert(db: &Connection, table: &str, rows: &[Row]) -> rusqlite::Result<()> {
    let statement = |rows: usize| {
        let rows = vec!["(?, ?, ?, ?)"; rows].join(", ");
        db.prepare_cached(&format!("INSERT INTO {table} VALUES {rows}"))
    };
    let (many, rest) = rows.as_chunks::<ROWS>();
    if !many.is_empty() {
        let mut statement = statement(ROWS)?;
        for rows in many {
            statement.execute(rusqlite::params_from_iter(rows.as_flattened()))?;
        }
    }
    if !rest.is_empty() {
        let mut statement = statement(1)?;
        for row in rest {
            statement.execute(*row)?;
        }
    }
    Ok(())
}
