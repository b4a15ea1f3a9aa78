//! Tables of nodes and edges, written in the order of the truth's own tables: far quicker
//! than a query that unwinds the same rows.

mod edges;
mod find;
mod nodes;
mod table;

use isolate::Bulk;
use isolith_graph::{Stats, Value};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use self::table::{Header, Rows};
use super::{GraphAnswer, TruthGraph, is_due, query_failed};
use crate::deadline::Deadline;
use crate::error::StoreError;
use crate::write::{Outcome, Work};

/// Time is looked at after so many rows.
const CHECK_EVERY: u64 = 1024;

/// Some rows of a table that become nodes or edges, in one transaction: all of them, or as
/// many as one takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphTable {
    /// What a row is.
    pub holds: TableHolds,
    /// The first line of the table.
    pub header: String,
    /// What is between cells.
    pub delimiter: u8,
    /// Whether a bad row is left out; otherwise nothing is written.
    pub skip_bad: bool,
    /// How many rows were before these.
    pub rows_before: u64,
    /// The rows, possibly the beginning of one more if they are not the last.
    pub rows: Bulk,
    /// Whether the table ends with these.
    pub is_last: bool,
}

/// What the rows of a table are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableHolds {
    /// Nodes; columns are their properties.
    Nodes {
        /// The label that all of them get.
        label: String,
        /// The property that tells nodes with the label apart: one that is there gets the
        /// row's other properties. Without, each row is a new node.
        key: Option<String>,
    },
    /// Edges; the first two columns are where they begin and end, others are properties.
    Edges {
        /// Their type.
        kind: String,
        /// What the first column says of a node.
        from: TableEnd,
        /// What the second column says.
        to: TableEnd,
    },
}

/// How a cell names a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEnd {
    /// A label of the node.
    pub label: String,
    /// The property that the cell is the value of.
    pub key: String,
}

/// How far a write has come with the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableTaken {
    /// How many rows it has seen.
    pub rows: u64,
    /// How many bytes these took.
    pub bytes: u64,
}

/// Writes rows in the transaction that is open.
pub(crate) fn import(work: Work<'_>, table: &GraphTable) -> Result<Outcome, StoreError> {
    let names = match &table.holds {
        TableHolds::Nodes { label, key } => vec![label, key.as_ref().unwrap_or(label)],
        TableHolds::Edges { kind, from, to } => {
            vec![kind, &from.label, &from.key, &to.label, &to.key]
        }
    };
    if names.iter().any(|name| name.is_empty()) {
        let message = "the name of a label, a type or a property cannot be empty";
        return Err(query_failed(Failure::new(Code::BadInput, message)));
    }
    let header = Header::read(&table.header, table.delimiter).map_err(query_failed)?;
    let graph = TruthGraph::begin(work.db)?;
    let mut import = Import {
        graph: &graph,
        header: &header,
        table,
        rows: Rows::new(&header, &table.rows, table.delimiter, table.is_last),
        deadline: work.deadline,
        rejected: Vec::new(),
        stats: Stats::default(),
    };
    let done = match &table.holds {
        TableHolds::Nodes { label, key } => import.nodes(label, key.as_deref()),
        TableHolds::Edges { kind, from, to } => import.edges(kind, from, to),
    };
    done.map_err(query_failed)?;
    let Import { rows, rejected, stats, .. } = import;
    let taken = TableTaken { rows: rows.count, bytes: rows.taken };
    let is_done = table.is_last && taken.bytes == table.rows.len() as u64;
    graph.finish()?;
    Ok(Outcome {
        rejected_count: rejected.len() as u64,
        rejected,
        graph: Some(GraphAnswer { stats, ..GraphAnswer::default() }),
        table: Some(taken),
        graph_due: is_due(work, is_done)?,
        ..Outcome::default()
    })
}

struct Import<'a> {
    graph: &'a TruthGraph<'a>,
    header: &'a Header,
    table: &'a GraphTable,
    rows: Rows<'a>,
    deadline: &'a Deadline,
    rejected: Vec<(u64, String)>,
    stats: Stats,
}

impl Import<'_> {
    /// The cells of the next row that makes sense.
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

    /// Leaves the row at hand out, or all of them.
    fn reject(&mut self, reason: String) -> Result<(), Failure> {
        let row = self.table.rows_before + self.rows.count;
        if self.table.skip_bad {
            self.rejected.push((row, reason));
            return Ok(());
        }
        let message = format!("row {row}: {reason}");
        Err(Failure::new(Code::BadInput, message)
            .with_hint("rows are counted after the header; `--on-error skip` leaves bad ones out"))
    }
}
