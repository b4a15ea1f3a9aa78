//! A graph in memory, for tests and for benchmarks of the language alone.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use isolith_types::{Code, Failure};

use crate::constraint::Constraint;
use crate::csr::{Adjacency, CsrLists, Link};
use crate::graph::{
    Direction, Edge, Entity, Graph, GraphMut, Hop, KeyId, LabelId, LookupResult, TypeId,
};
use crate::value::{GroupKey, Value};

/// A graph in memory, with an index on every property.
#[derive(Debug, Clone, Default)]
pub struct MemoryGraph {
    inner: RefCell<Inner>,
    frozen: Option<Frozen>,
}

#[derive(Debug, Clone, Default)]
struct Inner {
    changes: u64,
    labels: Names,
    kinds: Names,
    keys: Names,
    nodes: Vec<Option<NodeRecord>>,
    edges: Vec<Option<EdgeRecord>>,
    live_nodes: u64,
    live_edges: u64,
    by_kind: HashMap<TypeId, u64>,
    by_label: HashMap<LabelId, BTreeSet<i64>>,
    by_property: HashMap<(KeyId, GroupKey), BTreeSet<i64>>,
    constraints: Vec<Constraint>,
}

#[derive(Debug, Clone, Default)]
struct NodeRecord {
    labels: BTreeSet<LabelId>,
    properties: BTreeMap<KeyId, Value>,
    out: Vec<Hop>,
    incoming: Vec<Hop>,
}

#[derive(Debug, Clone)]
struct EdgeRecord {
    edge: Edge,
    properties: BTreeMap<KeyId, Value>,
}

#[derive(Debug, Clone, Default)]
struct Names {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.texts.len() as u32;
        let text: Arc<str> = name.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    fn sorted(&self) -> Vec<(u32, Arc<str>)> {
        let mut all: Vec<_> = (0..).zip(self.texts.iter().cloned()).collect();
        all.sort_by(|a: &(u32, Arc<str>), b| a.1.cmp(&b.1));
        all
    }

    fn name(&self, number: u32) -> Result<Arc<str>, Failure> {
        self.texts.get(number as usize).cloned().ok_or_else(|| missing("name", i64::from(number)))
    }
}

/// The names for which a condition holds.
fn only(
    all: Vec<(u32, Arc<str>)>,
    holds: impl Fn(&(u32, Arc<str>)) -> Result<bool, Failure>,
) -> Result<Vec<Arc<str>>, Failure> {
    let mut names = Vec::new();
    for entry in all {
        if holds(&entry)? {
            names.push(entry.1);
        }
    }
    Ok(names)
}

fn missing(what: &str, id: i64) -> Failure {
    Failure::new(Code::NotFound, format!("{what} {id} does not exist"))
}

impl Inner {
    fn node(&self, id: i64) -> Result<&NodeRecord, Failure> {
        let at = usize::try_from(id).ok();
        at.and_then(|at| self.nodes.get(at)?.as_ref()).ok_or_else(|| missing("node", id))
    }

    fn node_mut(&mut self, id: i64) -> Result<&mut NodeRecord, Failure> {
        let at = usize::try_from(id).ok();
        at.and_then(|at| self.nodes.get_mut(at)?.as_mut()).ok_or_else(|| missing("node", id))
    }

    fn edge(&self, id: i64) -> Option<&EdgeRecord> {
        self.edges.get(usize::try_from(id).ok()?)?.as_ref()
    }

    fn index(&mut self, node: i64, key: KeyId, value: &Value) {
        let entry = (key, GroupKey::One(value.clone()));
        self.by_property.entry(entry).or_default().insert(node);
    }

    fn unindex(&mut self, node: i64, key: KeyId, value: &Value) {
        let entry = (key, GroupKey::One(value.clone()));
        if let Some(nodes) = self.by_property.get_mut(&entry) {
            nodes.remove(&node);
        }
    }
}

impl MemoryGraph {
    /// A graph without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    fn change(&self) -> RefMut<'_, Inner> {
        let mut inner = self.inner.borrow_mut();
        inner.changes += 1;
        inner
    }

    /// Builds the adjacency of the current graph; it is used until the graph changes.
    pub fn freeze(&mut self) {
        let inner = self.inner.borrow();
        let nodes: Vec<i64> =
            (0..).zip(&inner.nodes).filter_map(|(id, node)| node.as_ref().map(|_| id)).collect();
        let position: HashMap<i64, u32> = nodes.iter().copied().zip(0..).collect();
        let edges = (0..).zip(&inner.edges).filter_map(|(id, record)| {
            let Edge { kind, start, end } = record.as_ref()?.edge;
            Some(Link { from: position[&start], kind: kind.0, to: position[&end], edge: id })
        });
        let mut links: Vec<Link> = edges.collect();
        links.sort_unstable();
        let out = CsrLists::build(nodes.len(), links.iter().copied());
        for link in &mut links {
            std::mem::swap(&mut link.from, &mut link.to);
        }
        links.sort_unstable();
        let incoming = CsrLists::build(nodes.len(), links);
        let changes = inner.changes;
        drop(inner);
        self.frozen =
            Some(Frozen { changes, nodes, out, incoming, unique_keys: RefCell::default() });
    }
}

/// The adjacency of the graph as of a number of changes.
#[derive(Debug, Clone)]
struct Frozen {
    changes: u64,
    nodes: Vec<i64>,
    out: CsrLists,
    incoming: CsrLists,
    /// Whether all nodes with a label have distinct values of a property.
    unique_keys: RefCell<HashMap<(Option<LabelId>, KeyId), bool>>,
}

fn walk(
    record: &NodeRecord,
    node: i64,
    direction: Direction,
    kinds: &[TypeId],
    mut each: impl FnMut(Hop),
) {
    let wanted = |hop: &&Hop| kinds.is_empty() || kinds.contains(&hop.kind);
    if direction != Direction::In {
        record.out.iter().filter(wanted).for_each(|hop| each(*hop));
    }
    if direction != Direction::Out {
        let again = |hop: &&Hop| direction == Direction::Both && hop.node == node;
        record.incoming.iter().filter(wanted).filter(|hop| !again(hop)).for_each(|hop| each(*hop));
    }
}

impl Graph for MemoryGraph {
    fn label_id(&self, name: &str) -> Result<Option<LabelId>, Failure> {
        Ok(self.inner.borrow().labels.numbers.get(name).copied().map(LabelId))
    }

    fn type_id(&self, name: &str) -> Result<Option<TypeId>, Failure> {
        Ok(self.inner.borrow().kinds.numbers.get(name).copied().map(TypeId))
    }

    fn key_id(&self, name: &str) -> Result<Option<KeyId>, Failure> {
        Ok(self.inner.borrow().keys.numbers.get(name).copied().map(KeyId))
    }

    fn labels(&self) -> Result<Vec<Arc<str>>, Failure> {
        let all = self.inner.borrow().labels.sorted();
        let used = |(number, _): &(u32, Arc<str>)| {
            Ok::<_, Failure>(self.node_count(Some(LabelId(*number)))? > 0)
        };
        only(all, used)
    }

    fn relationship_types(&self) -> Result<Vec<Arc<str>>, Failure> {
        let all = self.inner.borrow().kinds.sorted();
        only(all, |(number, _)| Ok(self.edge_count(Some(TypeId(*number)))? > 0))
    }

    fn property_keys(&self) -> Result<Vec<Arc<str>>, Failure> {
        let all = self.inner.borrow().keys.sorted();
        only(all, |_| Ok(true))
    }

    fn label_name(&self, label: LabelId) -> Result<Arc<str>, Failure> {
        self.inner.borrow().labels.name(label.0)
    }

    fn type_name(&self, kind: TypeId) -> Result<Arc<str>, Failure> {
        self.inner.borrow().kinds.name(kind.0)
    }

    fn key_name(&self, key: KeyId) -> Result<Arc<str>, Failure> {
        self.inner.borrow().keys.name(key.0)
    }

    fn node_count(&self, label: Option<LabelId>) -> Result<u64, Failure> {
        let inner = self.inner.borrow();
        Ok(match label {
            Some(label) => inner.by_label.get(&label).map_or(0, |nodes| nodes.len() as u64),
            None => inner.live_nodes,
        })
    }

    fn edge_count(&self, kind: Option<TypeId>) -> Result<u64, Failure> {
        let inner = self.inner.borrow();
        Ok(match kind {
            Some(kind) => inner.by_kind.get(&kind).copied().unwrap_or(0),
            None => inner.live_edges,
        })
    }

    fn has_node(&self, node: i64) -> Result<bool, Failure> {
        Ok(self.inner.borrow().node(node).is_ok())
    }

    fn nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: usize,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure> {
        let inner = self.inner.borrow();
        let from = after.map_or(0, |after| after + 1);
        if let Some(label) = label {
            let nodes = inner.by_label.get(&label);
            found.extend(nodes.into_iter().flat_map(|nodes| nodes.range(from..)).take(limit));
        } else {
            let rest = inner.nodes.get(from as usize..).unwrap_or_default();
            let live = (from..).zip(rest).filter(|(_, node)| node.is_some());
            found.extend(live.map(|(id, _)| id).take(limit));
        }
        Ok(())
    }

    fn lookup_estimate(&self, _: Option<LabelId>, _: KeyId) -> Result<Option<u64>, Failure> {
        Ok(Some(2))
    }

    fn lookup(
        &self,
        _: Option<LabelId>,
        key: KeyId,
        value: &Value,
        found: &mut Vec<i64>,
    ) -> Result<LookupResult, Failure> {
        let entry = (key, GroupKey::One(value.clone()));
        found.extend(self.inner.borrow().by_property.get(&entry).into_iter().flatten());
        Ok(LookupResult::from_index(value))
    }

    fn node_labels(&self, node: i64, labels: &mut Vec<LabelId>) -> Result<(), Failure> {
        labels.extend(&self.inner.borrow().node(node)?.labels);
        Ok(())
    }

    fn has_label(&self, node: i64, label: LabelId) -> Result<bool, Failure> {
        Ok(self.inner.borrow().node(node)?.labels.contains(&label))
    }

    fn node_property(&self, node: i64, key: KeyId) -> Result<Value, Failure> {
        Ok(self.inner.borrow().node(node)?.properties.get(&key).cloned().unwrap_or_default())
    }

    fn node_properties(&self, node: i64) -> Result<Vec<(KeyId, Value)>, Failure> {
        let inner = self.inner.borrow();
        Ok(inner.node(node)?.properties.iter().map(|(key, value)| (*key, value.clone())).collect())
    }

    fn has_unique_values(&self, label: Option<LabelId>, key: KeyId) -> Result<bool, Failure> {
        let inner = self.inner.borrow();
        let Some(frozen) = self.frozen.as_ref().filter(|it| it.changes == inner.changes) else {
            return Ok(false);
        };
        let mut seen = HashSet::new();
        let differs = |node: &NodeRecord| {
            let value = node.properties.get(&key);
            value.is_some_and(|value| seen.insert(GroupKey::One(value.clone())))
        };
        let mut known = frozen.unique_keys.borrow_mut();
        Ok(*known.entry((label, key)).or_insert_with(|| {
            let nodes = inner.nodes.iter().flatten();
            let labelled = |node: &&NodeRecord| label.is_none_or(|it| node.labels.contains(&it));
            nodes.filter(labelled).all(differs)
        }))
    }

    fn edges(
        &self,
        node: i64,
        direction: Direction,
        kinds: &[TypeId],
        found: &mut Vec<Hop>,
    ) -> Result<(), Failure> {
        walk(self.inner.borrow().node(node)?, node, direction, kinds, |hop| found.push(hop));
        Ok(())
    }

    fn degree(&self, node: i64, direction: Direction, kinds: &[TypeId]) -> Result<u64, Failure> {
        let mut count = 0;
        walk(self.inner.borrow().node(node)?, node, direction, kinds, |_| count += 1);
        Ok(count)
    }

    fn edge(&self, edge: i64) -> Result<Option<Edge>, Failure> {
        Ok(self.inner.borrow().edge(edge).map(|record| record.edge))
    }

    fn edge_property(&self, edge: i64, key: KeyId) -> Result<Value, Failure> {
        let inner = self.inner.borrow();
        let record = inner.edge(edge).ok_or_else(|| missing("relationship", edge))?;
        Ok(record.properties.get(&key).cloned().unwrap_or_default())
    }

    fn edge_properties(&self, edge: i64) -> Result<Vec<(KeyId, Value)>, Failure> {
        let inner = self.inner.borrow();
        let record = inner.edge(edge).ok_or_else(|| missing("relationship", edge))?;
        Ok(record.properties.iter().map(|(key, value)| (*key, value.clone())).collect())
    }

    fn constraints(&self) -> Result<Arc<[Constraint]>, Failure> {
        Ok(self.inner.borrow().constraints.as_slice().into())
    }

    fn adjacency(&self) -> Option<Adjacency<'_>> {
        let changes = self.inner.borrow().changes;
        let frozen = self.frozen.as_ref().filter(|frozen| frozen.changes == changes)?;
        let (out, incoming) = (frozen.out.as_csr(), frozen.incoming.as_csr());
        Some(Adjacency { nodes: &frozen.nodes, out, incoming })
    }
}

impl GraphMut for MemoryGraph {
    fn create_node(
        &self,
        labels: &[Arc<str>],
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure> {
        let mut inner = self.change();
        let id = inner.nodes.len() as i64;
        let mut record = NodeRecord::default();
        for label in labels {
            let label = LabelId(inner.labels.intern(label));
            record.labels.insert(label);
            inner.by_label.entry(label).or_default().insert(id);
        }
        for (key, value) in properties.iter().filter(|(_, value)| !value.is_null()) {
            let key = KeyId(inner.keys.intern(key));
            record.properties.insert(key, value.clone());
        }
        for (key, value) in &record.properties {
            inner.index(id, *key, value);
        }
        inner.nodes.push(Some(record));
        inner.live_nodes += 1;
        Ok(id)
    }

    fn create_edge(
        &self,
        kind: &str,
        start: i64,
        end: i64,
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure> {
        let mut inner = self.change();
        let kind = TypeId(inner.kinds.intern(kind));
        let id = inner.edges.len() as i64;
        inner.node(end)?;
        inner.node_mut(start)?.out.push(Hop { edge: id, node: end, kind });
        inner.node_mut(end)?.incoming.push(Hop { edge: id, node: start, kind });
        let mut kept = BTreeMap::new();
        for (key, value) in properties.iter().filter(|(_, value)| !value.is_null()) {
            kept.insert(KeyId(inner.keys.intern(key)), value.clone());
        }
        let edge = Edge { kind, start, end };
        inner.edges.push(Some(EdgeRecord { edge, properties: kept }));
        inner.live_edges += 1;
        *inner.by_kind.entry(kind).or_default() += 1;
        Ok(id)
    }

    fn set_property(&self, entity: Entity, key: &str, value: &Value) -> Result<(), Failure> {
        let mut inner = self.change();
        let key = KeyId(inner.keys.intern(key));
        let properties = match entity {
            Entity::Node(node) => &mut inner.node_mut(node)?.properties,
            Entity::Edge(edge) => {
                let at = usize::try_from(edge).ok();
                let record = at.and_then(|at| inner.edges.get_mut(at)?.as_mut());
                &mut record.ok_or_else(|| missing("relationship", edge))?.properties
            }
        };
        let before = if value.is_null() {
            properties.remove(&key)
        } else {
            properties.insert(key, value.clone())
        };
        if let Entity::Node(node) = entity {
            if let Some(before) = before {
                inner.unindex(node, key, &before);
            }
            if !value.is_null() {
                inner.index(node, key, value);
            }
        }
        Ok(())
    }

    fn add_label(&self, node: i64, label: &str) -> Result<bool, Failure> {
        let mut inner = self.change();
        let label = LabelId(inner.labels.intern(label));
        let new = inner.node_mut(node)?.labels.insert(label);
        inner.by_label.entry(label).or_default().insert(node);
        Ok(new)
    }

    fn remove_label(&self, node: i64, label: &str) -> Result<bool, Failure> {
        let mut inner = self.change();
        let label = LabelId(inner.labels.intern(label));
        let had = inner.node_mut(node)?.labels.remove(&label);
        inner.by_label.entry(label).or_default().remove(&node);
        Ok(had)
    }

    fn delete_node(&self, node: i64) -> Result<(), Failure> {
        let mut inner = self.change();
        let record = inner.node(node)?.clone();
        if !record.out.is_empty() || !record.incoming.is_empty() {
            return Err(Failure::new(Code::BadInput, format!("node {node} has relationships")));
        }
        for label in &record.labels {
            inner.by_label.entry(*label).or_default().remove(&node);
        }
        for (key, value) in &record.properties {
            inner.unindex(node, *key, value);
        }
        inner.nodes[node as usize] = None;
        inner.live_nodes -= 1;
        Ok(())
    }

    fn delete_edge(&self, edge: i64) -> Result<(), Failure> {
        let mut inner = self.change();
        let record = inner.edge(edge).ok_or_else(|| missing("relationship", edge))?.edge;
        inner.node_mut(record.start)?.out.retain(|hop| hop.edge != edge);
        inner.node_mut(record.end)?.incoming.retain(|hop| hop.edge != edge);
        inner.edges[edge as usize] = None;
        inner.live_edges -= 1;
        *inner.by_kind.entry(record.kind).or_default() -= 1;
        Ok(())
    }

    fn add_constraint(&self, constraint: &Constraint) -> Result<(), Failure> {
        self.change().constraints.push(constraint.clone());
        Ok(())
    }

    fn drop_constraint(&self, name: &str) -> Result<(), Failure> {
        self.change().constraints.retain(|constraint| *constraint.name != *name);
        Ok(())
    }
}
