//! The graph's segment, used for long traversals: which one is current, and its contents.

use std::collections::HashSet;

use isolith_graph::{Adjacency, CsrLists, Link, position_of};
use isolith_protocol::{
    Done, GraphSegmentEntry, GraphState, Marked, QuarantineGraphSegment, SegmentsSwapped,
    StoreError, SwapGraphSegment,
};
use isolith_sql::ValueRef;
use isolith_sql::{Connection, OptionalExtension, params};

use crate::read::{Snapshot, segment_file};
use crate::sqlite::During;
use crate::write::{Perform, Work};

/// The deadline is checked after this many rows.
const CHECK_EVERY: u32 = 4096;

/// The edges of all nodes in both directions, as of one change of the graph.
#[derive(Debug)]
pub struct GraphLists {
    /// Ids of the nodes, in ascending order.
    pub nodes: Vec<i64>,
    /// Outgoing edges of each node.
    pub out: CsrLists,
    /// Incoming edges of each node.
    pub incoming: CsrLists,
}

/// Provides the graph's segment on demand.
pub trait AdjacencySource {
    /// The segment's edges, or `None` unless the segment is current.
    fn adjacency(&self) -> Option<Adjacency<'_>>;
}

impl Snapshot<'_> {
    /// The size of the graph, and its segment.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn graph_state(&self) -> Result<GraphState, StoreError> {
        state(self.connection())
    }

    /// Names of all files in `segments/` that are in use.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn segment_files(&self) -> Result<HashSet<String>, StoreError> {
        let generations = self.collections()?.into_iter().filter_map(|state| state.generation);
        let segments = generations.flat_map(|generation| generation.segments);
        let graph = self.graph_state()?.segment.map(|segment| segment.file);
        Ok(segments.map(|segment| segment.file).chain(graph).collect())
    }

    /// The edges of all nodes. Skips edges with a missing node, so that damage cannot lead a
    /// traversal to the wrong one.
    ///
    /// # Errors
    /// If the truth cannot be read, or the deadline has passed.
    pub fn graph_lists(&self) -> Result<GraphLists, StoreError> {
        let db = self.connection();
        let read = || -> isolith_sql::Result<GraphLists> {
            let mut nodes = Vec::new();
            self.each("SELECT id FROM node ORDER BY id", |row| {
                nodes.push(row.get(0)?);
                Ok(())
            })?;
            let out = self.lists(
                &nodes,
                "SELECT src, type, dst, edge FROM edge_out ORDER BY src, type, dst, edge",
            )?;
            let incoming = self.lists(
                &nodes,
                "SELECT dst, type, src, edge FROM edge_in ORDER BY dst, type, src, edge",
            )?;
            Ok(GraphLists { nodes, out, incoming })
        };
        let lists = read().during(db, "read the graph")?;
        self.db.deadline.check("read the graph")?;
        Ok(lists)
    }

    fn lists(&self, nodes: &[i64], sql: &str) -> isolith_sql::Result<CsrLists> {
        let mut lists = CsrLists::default();
        let (mut last, mut from) = (None, None);
        self.each(sql, |row| {
            let node: i64 = row.get(0)?;
            if last != Some(node) {
                (last, from) = (Some(node), position_of(nodes, node));
            }
            if let (Some(from), Some(to)) = (from, position_of(nodes, row.get(2)?)) {
                lists.push(Link { from, kind: row.get(1)?, to, edge: row.get(3)? });
            }
            Ok(())
        })?;
        Ok(lists.finish(nodes.len()))
    }

    /// Visits rows until the deadline, which the caller must check again.
    fn each(
        &self,
        sql: &str,
        mut take: impl FnMut(&isolith_sql::Row<'_>) -> isolith_sql::Result<()>,
    ) -> isolith_sql::Result<()> {
        let mut statement = self.connection().prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut count = 0_u32;
        while let Some(row) = rows.next()? {
            take(&row)?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(CHECK_EVERY) && self.db.deadline.passed() {
                break;
            }
        }
        Ok(())
    }
}

fn state(db: &dyn Connection) -> Result<GraphState, StoreError> {
    let read = || {
        let mut statement = db.prepare_cached(
            "SELECT g.change, g.nodes, g.edges, s.change, s.edges, s.file, s.bytes, s.checksum, \
             s.quarantined FROM graph g LEFT JOIN graph_segment s ON s.only = 1",
        )?;
        let state = statement.query_row([], |row| {
            let segment = match row.get_ref(5)? {
                ValueRef::Null => None,
                _ => Some(GraphSegmentEntry {
                    change: row.get(3)?,
                    edges: row.get(4)?,
                    file: segment_file(row, 5)?,
                    bytes: row.get(6)?,
                    checksum: row.get(7)?,
                    quarantined: row.get(8)?,
                }),
            };
            Ok(GraphState { change: row.get(0)?, nodes: row.get(1)?, edges: row.get(2)?, segment })
        });
        state.optional()
    };
    Ok(read().during(db, "read the graph's state")?.unwrap_or_default())
}

impl Perform for SwapGraphSegment {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        swap(work, self.entry.as_ref())
    }
}

impl Perform for QuarantineGraphSegment {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        quarantine(work, &self.file, &self.reason)
    }
}

/// Makes a new segment current if it matches the graph, or removes the current one.
fn swap(
    work: Work<'_>,
    entry: Option<&GraphSegmentEntry>,
) -> Result<Done<SegmentsSwapped>, StoreError> {
    let before = state(work.db)?;
    if entry.is_some_and(|entry| entry.change != before.change) {
        return Ok(SegmentsSwapped::default().into());
    }
    let replace = || {
        work.db.prepare_cached("DELETE FROM graph_segment")?.execute([])?;
        let Some(entry) = entry else { return Ok(()) };
        let GraphSegmentEntry { change, edges, file, bytes, checksum, quarantined } = entry;
        work.db
            .prepare_cached(
                "INSERT INTO graph_segment \
                 (only, change, edges, file, bytes, checksum, quarantined) \
                 VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![change, edges, file, bytes, checksum, quarantined])
            .map(|_| ())
    };
    replace().during(work.db, "swap the graph's segment")?;
    let old = before.segment.map(|segment| segment.file);
    let obsolete = old.filter(|file| entry.is_none_or(|entry| entry.file != *file));
    let obsolete_files = obsolete.into_iter().collect();
    Ok(SegmentsSwapped { swapped: true, obsolete_files }.into())
}

/// Marks this segment, if it is current, as one that must not be opened.
fn quarantine(work: Work<'_>, file: &str, reason: &str) -> Result<Done<Marked>, StoreError> {
    let updated = work
        .db
        .prepare_cached("UPDATE graph_segment SET quarantined = ?2 WHERE file = ?1")
        .and_then(|mut mark| mark.execute(params![file, reason]))
        .during(work.db, "quarantine the graph's segment")? as u64;
    Ok(Marked { updated }.into())
}

/// Whether a new segment should be built after a write: enough has changed, or, with
/// `even_little`, anything.
pub(crate) fn is_due(work: Work<'_>, even_little: bool) -> Result<bool, StoreError> {
    let state = state(work.db)?;
    let stale = even_little && state.is_large() && state.current().is_none();
    Ok(stale || state.build_due())
}
