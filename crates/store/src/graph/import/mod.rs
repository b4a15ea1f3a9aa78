//! Bulk import of nodes and edges, written in table order: much faster than a query that unwinds
//! the same rows.

mod constraints;
mod edges;
mod find;
mod nodes;
mod table;

#[cfg(feature = "fuzzing")]
pub use table::read_cells;

use isolith_graph::{Budget, ChangedEntities, Constraint, Entity, Graph, Stats, Value, verify};
use isolith_protocol::{
    Done, GraphImported, GraphTable, ImportGraph, StoreError, TableHolds, TableTaken,
};
use isolith_types::{Code, Failure, FastMap, Hint};

use self::table::{Rows, TableHeader};
use super::{QUERY_MEMORY, TruthGraph, is_due, query_failed};
use crate::deadline::Deadline;
use crate::write::{Perform, Work, shorten};

/// The deadline is checked after this many rows.
const CHECK_EVERY: u64 = 1024;

impl Perform for ImportGraph {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        import(work, &self.table)
    }

    fn shorten(reply: &mut GraphImported) -> bool {
        shorten(&mut reply.rejected)
    }
}

/// Imports rows in the open transaction.
fn import(work: Work<'_>, table: &GraphTable) -> Result<Done<GraphImported>, StoreError> {
    let names = match &table.holds {
        TableHolds::Nodes { label, key } => vec![label, key.as_ref().unwrap_or(label)],
        TableHolds::NewNodes { label, key } => vec![label, key],
        TableHolds::Edges { kind, from, to } => {
            vec![kind, &from.label, &from.key, &to.label, &to.key]
        }
    };
    if names.iter().any(|name| name.is_empty()) {
        let message = "the name of a label, a type or a property cannot be empty";
        return Err(query_failed(Failure::new(Code::BadInput, message)));
    }
    let header = TableHeader::read(&table.header, table.delimiter).map_err(query_failed)?;
    let graph = TruthGraph::begin(work.db)?;
    let constraints = graph.constraints().map_err(query_failed)?;
    let mut import = Import {
        graph: &graph,
        constraints: constraints::open(&constraints, &table.holds, &header),
        written: FastMap::default(),
        header: &header,
        table,
        rows: Rows::new(&header, &table.rows, table.delimiter, table.is_last),
        deadline: work.deadline,
        rejected: Vec::new(),
        stats: Stats::default(),
    };
    let done = match &table.holds {
        TableHolds::Nodes { label, key } => import.nodes(label, key.as_deref()),
        TableHolds::NewNodes { label, key } => import.new_nodes(label, key),
        TableHolds::Edges { kind, from, to } => import.edges(kind, from, to),
    };
    done.map_err(query_failed)?;
    import.verify()?;
    let Import { rows, rejected, stats, .. } = import;
    let taken = TableTaken { rows: rows.count, bytes: rows.taken };
    let is_done = table.is_last && taken.bytes == table.rows.len() as u64;
    graph.finish()?;
    let rejected_count = rejected.len() as u64;
    let reply = GraphImported { table: taken, stats, rejected, rejected_count };
    Ok(Done { graph_due: is_due(work, is_done)?, ..reply.into() })
}

struct Import<'a> {
    graph: &'a TruthGraph<'a>,
    /// The constraints that rows may violate.
    constraints: Vec<Constraint>,
    /// What was written, by which row; empty if there are no constraints.
    written: FastMap<Entity, u64>,
    header: &'a TableHeader,
    table: &'a GraphTable,
    rows: Rows<'a>,
    deadline: &'a Deadline,
    rejected: Vec<(u64, String)>,
    stats: Stats,
}

impl Import<'_> {
    /// The cells of the next valid row.
    fn next_row(&mut self) -> Result<Option<Vec<Value>>, Failure> {
        loop {
            if self.rows.count.is_multiple_of(CHECK_EVERY) {
                self.deadline.check("import rows").map_err(super::failure)?;
            }
            match self.rows.next() {
                None => return Ok(None),
                Some(Ok(cells)) => return Ok(Some(cells)),
                Some(Err(reason)) => self.reject(reason)?,
            }
        }
    }

    /// The number of the current row in the whole table.
    fn row(&self) -> u64 {
        self.table.rows_before + self.rows.count
    }

    /// Remembers what a row wrote, if constraints must be checked for it.
    fn note(&mut self, entity: Entity, row: u64) {
        if !self.constraints.is_empty() {
            self.written.insert(entity, row);
        }
    }

    /// Fails if a row violates a constraint.
    fn verify(&self) -> Result<(), StoreError> {
        let passed = || self.deadline.passed();
        let budget = Budget::unbounded().with_memory(QUERY_MEMORY).with_cancellation(&passed);
        let mut changed = ChangedEntities::default();
        for entity in self.written.keys() {
            match entity {
                Entity::Node(node) => changed.nodes.insert(*node),
                Entity::Edge(edge) => changed.edges.insert(*edge),
            };
        }
        verify(self.graph, &self.constraints, &changed, &budget).map_err(|error| {
            let row = error.violating().and_then(|entity| self.written.get(&entity));
            let mut failure = Failure::from(error);
            if let Some(row) = row {
                failure.message = format!("row {row}: {}", failure.message);
            }
            query_failed(failure)
        })
    }

    /// Skips the current row, or fails the import.
    fn reject(&mut self, reason: String) -> Result<(), Failure> {
        let row = self.row();
        if self.table.skip_bad {
            self.rejected.push((row, reason));
            return Ok(());
        }
        let message = format!("row {row}: {reason}");
        Err(Failure::new(Code::BadInput, message).with_hint(Hint::SkipBadRows))
    }
}
