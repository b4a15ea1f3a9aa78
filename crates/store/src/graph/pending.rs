//! Rows that a transaction has created but not written yet: labels and lookup values of nodes,
//! edges, and edges by endpoint. They are written before anything reads these tables, many at
//! once and in table order. One by one, each row would need a search.

use std::cell::RefCell;
use std::cmp::Ordering;

use isolith_graph::{Value, order};
use isolith_protocol::StoreError;
use isolith_sql::Connection;
use isolith_sql::ValueRef;
use isolith_types::Failure;

use super::{TruthGraph, batch, failure, lookup, shortest_alike, temporal_form};
use crate::sqlite::During;

/// Maximum number of pending endpoint rows.
const MAX_ENDS: usize = 1 << 20;

/// Maximum number of pending labels and values; values contain texts.
const MAX_LABELS: usize = 1 << 17;
const MAX_VALUES: usize = 1 << 17;

/// An edge by its endpoints, in table order: start, type, end, id.
type Ends = (i64, i64, i64, i64);

/// A node with encoded properties.
#[derive(Debug)]
pub(super) struct NewNode {
    pub(super) node: i64,
    pub(super) properties: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct NewEdge {
    pub(super) edge: i64,
    pub(super) kind: u32,
    pub(super) ends: (i64, i64),
    pub(super) properties: Vec<u8>,
    pub(super) owner: Option<i64>,
}

impl NewEdge {
    fn row(&self) -> [ValueRef<'_>; 6] {
        let (src, dst) = self.ends;
        let properties = match self.properties.is_empty() {
            true => ValueRef::Null,
            false => ValueRef::Blob(&self.properties),
        };
        let owner = self.owner.map_or(ValueRef::Null, ValueRef::Integer);
        [integer(self.edge), integer(self.kind), integer(src), integer(dst), properties, owner]
    }
}

/// A lookup value of a node, with the id of the property's name.
#[derive(Debug)]
struct NewValue {
    key: u32,
    value: Value,
    /// The lookup form of a temporal value.
    temporal: Option<Box<[u8]>>,
    node: i64,
}

impl NewValue {
    fn row(&self) -> [ValueRef<'_>; 3] {
        let value = match &self.temporal {
            Some(bytes) => ValueRef::Blob(bytes),
            None => lookup(&self.value),
        };
        [integer(self.key), value, integer(self.node)]
    }

    /// Approximately table order; rows out of order are only slower to write.
    fn order(&self, other: &Self) -> Ordering {
        let by_value = || order(&self.value, &other.value);
        self.key.cmp(&other.key).then_with(by_value).then(self.node.cmp(&other.node))
    }
}

#[derive(Debug, Default)]
pub(super) struct PendingRows {
    /// In order of their ids; they only wait until a statement is full.
    edges: RefCell<Vec<NewEdge>>,
    ends: RefCell<Vec<Ends>>,
    labels: RefCell<Vec<(i64, i64)>>,
    values: RefCell<Vec<NewValue>>,
}

impl PendingRows {
    /// Writes all pending rows.
    pub(super) fn flush(&self, db: &dyn Connection) -> Result<(), StoreError> {
        self.flush_nodes(db)?;
        self.flush_edges(db)
    }

    fn flush_nodes(&self, db: &dyn Connection) -> Result<(), StoreError> {
        let (mut labels, mut values) = (self.labels.take(), self.values.take());
        let mut write = || {
            labels.sort_unstable();
            batch::insert(db, "INTO node_label", &labels, |(label, node)| {
                [integer(*label), integer(*node)]
            })?;
            values.sort_unstable_by(NewValue::order);
            batch::insert(db, "OR IGNORE INTO node_value", &values, NewValue::row)
        };
        write().during(db, "write lookup values of nodes")
    }

    fn flush_edges(&self, db: &dyn Connection) -> Result<(), StoreError> {
        self.write_edges(db)?;
        let mut ends = self.ends.take();
        let mut write = || {
            ends.sort_unstable();
            batch::insert(db, "INTO edge_out", &ends, ends_row)?;
            for (src, _, dst, _) in &mut ends {
                std::mem::swap(src, dst);
            }
            ends.sort_unstable();
            batch::insert(db, "INTO edge_in", &ends, ends_row)
        };
        write().during(db, "write edges by their ends")
    }

    fn write_edges(&self, db: &dyn Connection) -> Result<(), StoreError> {
        let edges = self.edges.take();
        let into = "INTO edge (id, type, src, dst, properties, owner)";
        batch::insert(db, into, &edges, NewEdge::row).during(db, "write edges")
    }
}

/// Adds an item and returns the new length.
fn put<T>(pending: &RefCell<Vec<T>>, it: T) -> usize {
    let mut pending = pending.borrow_mut();
    pending.push(it);
    pending.len()
}

fn ends_row((start, kind, end, edge): &Ends) -> [ValueRef<'_>; 4] {
    [integer(*start), integer(*kind), integer(*end), integer(*edge)]
}

fn integer<'a>(number: impl Into<i64>) -> ValueRef<'a> {
    ValueRef::Integer(number.into())
}

impl TruthGraph<'_> {
    /// Indexes a node by a label.
    pub(super) fn index_label(&self, node: i64, label: u32) -> Result<(), Failure> {
        self.used(label, 1);
        let labels = put(&self.changing().pending.labels, (label.into(), node));
        self.flush_if(labels >= MAX_LABELS)
    }

    /// Indexes a node by a property value.
    pub(super) fn index_value(&self, node: i64, key: u32, value: &Value) -> Result<(), Failure> {
        let temporal = temporal_form(value).map(Vec::into_boxed_slice);
        let value = NewValue { key, value: shortest_alike(value), temporal, node };
        let values = put(&self.changing().pending.values, value);
        self.flush_if(values >= MAX_VALUES)
    }

    /// Writes nodes that have no owner and share the same labels.
    pub(super) fn write_nodes(&self, labels: &[u8], nodes: &[NewNode]) -> Result<(), Failure> {
        self.changing();
        batch::insert(self.db, "INTO node (id, labels, properties)", nodes, |it| {
            [integer(it.node), ValueRef::Blob(labels), ValueRef::Blob(&it.properties)]
        })
        .during(self.db, "write nodes")
        .map_err(failure)
    }

    /// Creates edges without properties, many at once.
    pub(super) fn write_bare_edges(&self, kind: u32, ends: &[(i64, i64)]) -> Result<(), Failure> {
        let (db, first) = (self.db, self.next_edges(kind, ends.len() as i64));
        let numbered: Vec<_> = ends.iter().zip(first..).collect();
        batch::insert(db, "INTO edge (id, type, src, dst)", &numbered, |((src, dst), edge)| {
            [integer(*edge), integer(kind), integer(*src), integer(*dst)]
        })
        .during(db, "write edges")
        .map_err(failure)?;
        numbered.iter().try_for_each(|(ends, edge)| self.index_ends(*edge, kind, **ends))
    }

    /// Indexes an edge by its endpoints.
    fn index_ends(&self, edge: i64, kind: u32, (src, dst): (i64, i64)) -> Result<(), Failure> {
        let ends = put(&self.changing().pending.ends, (src, kind.into(), dst, edge));
        self.flush_if(ends >= MAX_ENDS)
    }

    /// Writes and indexes an edge.
    pub(super) fn write_edge(&self, edge: NewEdge) -> Result<(), Failure> {
        let pending = &self.changing().pending;
        let (number, kind, ends) = (edge.edge, edge.kind, edge.ends);
        if put(&pending.edges, edge) >= batch::MAX_ROWS {
            pending.write_edges(self.db).map_err(failure)?;
        }
        self.index_ends(number, kind, ends)
    }

    fn flush_if(&self, is_full: bool) -> Result<(), Failure> {
        match is_full {
            true => self.changing().pending.flush(self.db).map_err(failure),
            false => Ok(()),
        }
    }

    /// Must be called before the label and value tables of nodes are read.
    pub(super) fn flush_nodes(&self) -> Result<(), Failure> {
        match &self.counts {
            Some(counts) => counts.pending.flush_nodes(self.db).map_err(failure),
            None => Ok(()),
        }
    }

    /// Must be called before any table of edges is read.
    pub(super) fn flush_edges(&self) -> Result<(), Failure> {
        match &self.counts {
            Some(counts) => counts.pending.flush_edges(self.db).map_err(failure),
            None => Ok(()),
        }
    }
}
