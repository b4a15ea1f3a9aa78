//! Writing to the graph, within one transaction.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use isolith_graph::{Constraint, Edge, Entity, Graph, GraphMut, KeyId, LabelId, TypeId, Value};
use isolith_protocol::StoreError;
use isolith_sql::{Connection, params};
use isolith_types::{Code, Failure, FastMap, Hint};

use super::names::NameKind;
use super::owned::is_of_facts;
use super::pending::{NewEdge, PendingRows};
use super::{Lookup, TruthGraph, bytes, failure, one};
use crate::sqlite::During;

/// Counters updated while a write changes the graph; [`TruthGraph::finish`] stores them.
#[derive(Debug)]
pub(super) struct GraphCounts {
    last_node: Cell<i64>,
    last_edge: Cell<i64>,
    nodes: Cell<i64>,
    edges: Cell<i64>,
    /// Change in the use count of each name.
    uses: RefCell<FastMap<u32, i64>>,
    changed: Cell<bool>,
    pub(super) pending: PendingRows,
}

impl GraphCounts {
    pub(super) fn nodes(&self) -> u64 {
        self.nodes.get().unsigned_abs()
    }

    pub(super) fn edges(&self) -> u64 {
        self.edges.get().unsigned_abs()
    }

    /// The current use count of a name whose stored count is `before`.
    pub(super) fn uses(&self, name: u32, before: u64) -> u64 {
        before.saturating_add_signed(self.uses.borrow().get(&name).copied().unwrap_or(0))
    }
}

/// A node without an owner.
const INSERT_NODE: &str = "INSERT INTO node (id, labels, properties) VALUES (?1, ?2, ?3)";

impl<'a> TruthGraph<'a> {
    /// Opens the graph for writing. Nothing counts as written before [`TruthGraph::finish`].
    pub(crate) fn begin(db: &'a dyn Connection) -> Result<Self, StoreError> {
        let (last_node, last_edge, nodes, edges) = db
            .prepare_cached("SELECT last_node, last_edge, nodes, edges FROM graph")
            .and_then(|mut statement| {
                let all = |row: &isolith_sql::Row<'_>| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                };
                statement.query_row([], all)
            })
            .during(db, "read the graph's counts")?;
        let counts = GraphCounts {
            last_node: Cell::new(last_node),
            last_edge: Cell::new(last_edge),
            nodes: Cell::new(nodes),
            edges: Cell::new(edges),
            uses: RefCell::default(),
            changed: Cell::new(false),
            pending: PendingRows::default(),
        };
        Ok(Self { counts: Some(counts), ..Self::new(db) })
    }

    fn counts(&self) -> &GraphCounts {
        self.counts.as_ref().expect("the graph was opened with `begin`")
    }

    /// The counters, for a caller that is about to change the graph.
    pub(super) fn changing(&self) -> &GraphCounts {
        let counts = self.counts();
        counts.changed.set(true);
        counts
    }

    /// Stores the counters and pending rows, if anything changed.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let (db, counts) = (self.db, self.counts());
        if !counts.changed.get() {
            return Ok(());
        }
        counts.pending.flush(db)?;
        let write = || {
            let mut count =
                db.prepare_cached("UPDATE graph_name SET uses = uses + ?2 WHERE id = ?1")?;
            for (name, more) in counts.uses.borrow().iter().filter(|(_, more)| **more != 0) {
                count.execute(params![name, more])?;
            }
            db.prepare_cached(
                // Ids are never reused, so all four are unchanged only if no node or edge was
                // added or removed.
                "UPDATE graph SET change = change + \
                 ((last_node, last_edge, nodes, edges) IS NOT (?1, ?2, ?3, ?4)), \
                 last_node = ?1, last_edge = ?2, nodes = ?3, edges = ?4",
            )?
            .execute(params![
                counts.last_node.get(),
                counts.last_edge.get(),
                counts.nodes.get(),
                counts.edges.get()
            ])
        };
        write().during(db, "write the graph's counts").map(|_| ())
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        parameters: impl isolith_sql::Params,
    ) -> Result<usize, Failure> {
        self.changing();
        let db = self.db;
        db.prepare_cached(sql)
            .and_then(|mut statement| statement.execute(parameters))
            .during(db, "change the graph")
            .map_err(failure)
    }

    pub(super) fn number(&self, kind: NameKind, name: &str) -> Result<u32, Failure> {
        self.names.find_or_make(self.db, kind, name, true).map_err(failure)
    }

    pub(super) fn used(&self, name: u32, more: i64) {
        *self.counts().uses.borrow_mut().entry(name).or_default() += more;
    }

    /// Reserves `count` node ids and returns the first.
    pub(super) fn next_nodes(&self, count: i64) -> i64 {
        let last = &self.counts().last_node;
        let first = last.get() + 1;
        last.set(last.get() + count);
        first
    }

    /// Reserves `count` edge ids, counts the edges as created, and returns the first id.
    pub(super) fn next_edges(&self, kind: u32, count: i64) -> i64 {
        let GraphCounts { last_edge, edges, .. } = self.changing();
        let first = last_edge.get() + 1;
        last_edge.set(last_edge.get() + count);
        edges.set(edges.get() + count);
        self.used(kind, count);
        first
    }

    /// Inserts an edge with encoded properties.
    pub(super) fn insert_edge(
        &self,
        kind: u32,
        ends: (i64, i64),
        properties: Vec<u8>,
        owner: Option<i64>,
    ) -> Result<i64, Failure> {
        let edge = self.next_edges(kind, 1);
        self.write_edge(NewEdge { edge, kind, ends, properties, owner })?;
        Ok(edge)
    }

    /// Deletes an edge, if it exists.
    pub(super) fn drop_edge(&self, edge: i64) -> Result<(), Failure> {
        let Some(Edge { kind: TypeId(kind), start, end }) = self.edge(edge)? else { return Ok(()) };
        self.execute("DELETE FROM edge WHERE id = ?1", [edge])?;
        self.unindex_ends(edge, kind, (start, end))?;
        self.used(kind, -1);
        let edges = &self.counts().edges;
        edges.set(edges.get() - 1);
        Ok(())
    }

    pub(super) fn gained_nodes(&self, count: i64) {
        let nodes = &self.counts().nodes;
        nodes.set(nodes.get() + count);
    }

    /// Deletes the rows of a node and of its labels.
    pub(super) fn delete_rows(&self, node: i64) -> Result<(), Failure> {
        self.flush_nodes()?;
        for label in self.labels(node)? {
            self.used(label, -1);
            self.execute(
                "DELETE FROM node_label WHERE label = ?1 AND node = ?2",
                params![label, node],
            )?;
        }
        let gone = self.execute("DELETE FROM node WHERE id = ?1", [node])?;
        let nodes = &self.counts().nodes;
        nodes.set(nodes.get() - i64::try_from(gone).unwrap_or(0));
        Ok(())
    }

    /// Pairs property values with the ids of their names.
    fn keyed<'v>(
        &self,
        properties: &'v [(Arc<str>, Value)],
    ) -> Result<Vec<(u32, &'v Value)>, Failure> {
        properties
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| Ok((self.number(NameKind::Key, key)?, value)))
            .collect()
    }

    /// Whether nodes can be looked up by this property.
    pub(super) fn is_indexed_by(&self, key: u32) -> Result<bool, Failure> {
        self.names.is_indexed(self.db, key).map_err(failure)
    }

    /// Indexes a node by a property, if that property is indexed.
    pub(super) fn show(&self, node: i64, key: u32, value: &Value) -> Result<(), Failure> {
        if self.is_indexed_by(key)? {
            self.index_value(node, key, value)?;
        }
        Ok(())
    }

    pub(super) fn hide(&self, node: i64, key: u32, value: &Value) -> Result<(), Failure> {
        self.flush_nodes()?;
        self.execute(
            "DELETE FROM node_value WHERE key = ?1 AND value = ?2 AND node = ?3",
            params![key, Lookup(value), node],
        )?;
        Ok(())
    }

    fn refuse_owned(&self, table: &str, number: i64, what: &str) -> Result<(), Failure> {
        let sql = format!("SELECT owner FROM {table} WHERE id = ?1 AND owner IS NOT NULL");
        let Some(owner) = one::<i64>(self.db, &sql, [number])? else { return Ok(()) };
        let (whose, hint) = match is_of_facts(owner) {
            true => ("belongs to the facts, which queries cannot change", Hint::UseFacts),
            false => (
                "belongs to the code graph, which is derived from files and read-only",
                "change the file and index it; nodes and edges of your own can point to it".into(),
            ),
        };
        Err(Failure::new(Code::BadInput, format!("{what} {whose}")).with_hint(hint))
    }

    fn labels(&self, node: i64) -> Result<Vec<u32>, Failure> {
        let mut labels = Vec::new();
        self.node_labels(node, &mut labels)?;
        Ok(labels.into_iter().map(|label| label.0).collect())
    }

    fn set_labels(&self, node: i64, mut labels: Vec<u32>) -> Result<(), Failure> {
        labels.sort_unstable();
        let list = bytes::write_labels(&labels);
        self.execute("UPDATE node SET labels = ?2 WHERE id = ?1", params![node, list])?;
        Ok(())
    }
}

impl GraphMut for TruthGraph<'_> {
    fn create_node(
        &self,
        labels: &[Arc<str>],
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure> {
        let mut numbers = Vec::with_capacity(labels.len());
        for label in labels {
            numbers.push(self.number(NameKind::Label, label)?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let keyed = self.keyed(properties)?;
        let node = self.next_nodes(1);
        self.gained_nodes(1);
        let properties = bytes::write(keyed.iter().copied());
        self.execute(INSERT_NODE, params![node, bytes::write_labels(&numbers), properties])?;
        for label in numbers {
            self.index_label(node, label)?;
        }
        for (key, value) in keyed {
            self.show(node, key, value)?;
        }
        Ok(node)
    }

    fn create_edge(
        &self,
        kind: &str,
        start: i64,
        end: i64,
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure> {
        let kind = self.number(NameKind::Type, kind)?;
        let keyed = self.keyed(properties)?;
        self.insert_edge(kind, (start, end), bytes::write(keyed.into_iter()), None)
    }

    fn set_property(&self, entity: Entity, key: &str, value: &Value) -> Result<(), Failure> {
        self.refuse_change(entity)?;
        let key = self.number(NameKind::Key, key)?;
        let mut all = match entity {
            Entity::Node(node) => self.node_properties(node)?,
            Entity::Edge(edge) => self.edge_properties(edge)?,
        };
        let old = all.iter().position(|(there, _)| there.0 == key);
        let old = old.map(|at| all.remove(at).1);
        if !value.is_null() {
            all.push((KeyId(key), value.clone()));
        }
        let list = bytes::write(all.iter().map(|(key, value)| (key.0, value)));
        match entity {
            Entity::Edge(edge) => {
                let list = (!list.is_empty()).then_some(list);
                self.execute("UPDATE edge SET properties = ?2 WHERE id = ?1", params![edge, list])?;
            }
            Entity::Node(node) => {
                self.execute("UPDATE node SET properties = ?2 WHERE id = ?1", params![node, list])?;
                if let Some(old) = old {
                    self.hide(node, key, &old)?;
                }
                if !value.is_null() {
                    self.show(node, key, value)?;
                }
            }
        }
        Ok(())
    }

    fn add_label(&self, node: i64, label: &str) -> Result<bool, Failure> {
        self.refuse_change(Entity::Node(node))?;
        let label = self.number(NameKind::Label, label)?;
        let mut labels = self.labels(node)?;
        if labels.contains(&label) {
            return Ok(false);
        }
        labels.push(label);
        self.set_labels(node, labels)?;
        self.index_label(node, label)?;
        Ok(true)
    }

    fn remove_label(&self, node: i64, label: &str) -> Result<bool, Failure> {
        self.refuse_change(Entity::Node(node))?;
        let Some(LabelId(label)) = self.label_id(label)? else { return Ok(false) };
        let mut labels = self.labels(node)?;
        let Some(at) = labels.iter().position(|there| *there == label) else { return Ok(false) };
        labels.remove(at);
        self.set_labels(node, labels)?;
        self.flush_nodes()?;
        self.execute(
            "DELETE FROM node_label WHERE label = ?1 AND node = ?2",
            params![label, node],
        )?;
        self.used(label, -1);
        Ok(true)
    }

    fn refuse_change(&self, entity: Entity) -> Result<(), Failure> {
        self.flush_edges()?;
        match entity {
            Entity::Node(node) => self.refuse_owned("node", node, "the node"),
            Entity::Edge(edge) => self.refuse_owned("edge", edge, "the relationship"),
        }
    }

    fn delete_node(&self, node: i64) -> Result<(), Failure> {
        self.refuse_change(Entity::Node(node))?;
        for (key, value) in self.node_properties(node)? {
            self.hide(node, key.0, &value)?;
        }
        self.delete_rows(node)
    }

    fn delete_edge(&self, edge: i64) -> Result<(), Failure> {
        self.refuse_change(Entity::Edge(edge))?;
        self.drop_edge(edge)
    }

    fn add_constraint(&self, constraint: &Constraint) -> Result<(), Failure> {
        self.write_constraint(constraint)
    }

    fn drop_constraint(&self, name: &str) -> Result<(), Failure> {
        self.delete_constraint(name)
    }
}
