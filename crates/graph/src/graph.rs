//! What the language needs of a graph.

use std::sync::Arc;

use isolith_types::Failure;

use crate::csr::Adjacency;
use crate::value::Value;

/// The number that a graph gave to the name of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// The number that a graph gave to the name of a type of relationships.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// The number that a graph gave to the name of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

/// Which relationships of a node are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those that begin at it.
    Out,
    /// Those that end at it.
    In,
    /// All; one that begins and ends at it counts once.
    Both,
}

impl Found {
    /// What an index finds that knows integers and floats by their values: integers and
    /// floats that equal an integer, and perhaps more than what equals another value.
    pub fn by_index(value: &Value) -> Self {
        if matches!(value, Value::Integer(_)) { Found::Exactly } else { Found::Perhaps }
    }
}

impl Direction {
    /// The same, seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// A relationship as it is seen from one of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The relationship.
    pub edge: i64,
    /// The node at its other end.
    pub node: i64,
    /// Its type.
    pub kind: TypeId,
}

/// A relationship by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Its type.
    pub kind: TypeId,
    /// The node where it begins.
    pub start: i64,
    /// The node where it ends.
    pub end: i64,
}

/// What a look-up by a property found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nodes that have the value, and no others.
    Exactly,
    /// Some may have another value.
    Perhaps,
}

/// A node or a relationship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A node.
    Node(i64),
    /// A relationship.
    Edge(i64),
}

/// A graph that can be read. Numbers of nodes and of relationships are its own; names have
/// small numbers, which hold as long as the graph is open.
pub trait Graph {
    /// The number of a label, if any node may have it.
    fn label_id(&self, name: &str) -> Result<Option<LabelId>, Failure>;
    /// The number of a type, if any relationship may have it.
    fn type_id(&self, name: &str) -> Result<Option<TypeId>, Failure>;
    /// The number of a property's name, if anything may have it.
    fn key_id(&self, name: &str) -> Result<Option<KeyId>, Failure>;
    /// The name of a label.
    fn label_name(&self, label: LabelId) -> Result<Arc<str>, Failure>;
    /// The name of a type.
    fn type_name(&self, kind: TypeId) -> Result<Arc<str>, Failure>;
    /// The name of a property.
    fn key_name(&self, key: KeyId) -> Result<Arc<str>, Failure>;

    /// How many nodes there are, with this label or at all. Cheap, and exact: `count(*)` over
    /// all of them is this number.
    fn node_count(&self, label: Option<LabelId>) -> Result<u64, Failure>;
    /// How many relationships there are, of this type or at all. Cheap and exact, too.
    fn edge_count(&self, kind: Option<TypeId>) -> Result<u64, Failure>;

    /// Whether there is such a node.
    fn has_node(&self, node: i64) -> Result<bool, Failure>;
    /// Appends the next nodes after this one, by number, at most `limit`: those with a
    /// label or all.
    fn nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: usize,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure>;
    /// How many nodes a look-up by this property finds, about; `None` if there is no index
    /// to look it up in.
    fn lookup_estimate(&self, label: Option<LabelId>, key: KeyId) -> Result<Option<u64>, Failure>;
    /// Appends all nodes whose property equals this value, and perhaps some others, which
    /// are then looked at again. An integer equals a float of the same value; the value may
    /// be a list, too. Only asked if there is an estimate.
    fn lookup(
        &self,
        label: Option<LabelId>,
        key: KeyId,
        value: &Value,
        found: &mut Vec<i64>,
    ) -> Result<Found, Failure>;
    /// Appends a node's labels.
    fn node_labels(&self, node: i64, labels: &mut Vec<LabelId>) -> Result<(), Failure>;
    /// Whether a node has a label.
    fn has_label(&self, node: i64, label: LabelId) -> Result<bool, Failure>;
    /// One property of a node; null if it has none.
    fn node_property(&self, node: i64, key: KeyId) -> Result<Value, Failure>;
    /// Whether all nodes with this label, or all at all, have this property, and each another
    /// value of it. Only asked by those who read most nodes; false if the graph does not know.
    fn differ(&self, label: Option<LabelId>, key: KeyId) -> Result<bool, Failure> {
        let _ = (label, key);
        Ok(false)
    }
    /// All properties of a node.
    fn node_properties(&self, node: i64) -> Result<Vec<(KeyId, Value)>, Failure>;

    /// Appends a node's relationships: of these types, or all if none is named.
    fn edges(
        &self,
        node: i64,
        direction: Direction,
        kinds: &[TypeId],
        found: &mut Vec<Hop>,
    ) -> Result<(), Failure>;
    /// How many relationships [`Graph::edges`] would give.
    fn degree(&self, node: i64, direction: Direction, kinds: &[TypeId]) -> Result<u64, Failure>;
    /// A relationship, if it is there.
    fn edge(&self, edge: i64) -> Result<Option<Edge>, Failure>;
    /// One property of a relationship; null if it has none.
    fn edge_property(&self, edge: i64, key: KeyId) -> Result<Value, Failure>;
    /// All properties of a relationship.
    fn edge_properties(&self, edge: i64) -> Result<Vec<(KeyId, Value)>, Failure>;

    /// The adjacency of all nodes as slices, if there is one that says exactly what the
    /// graph says. It is not asked for while a query writes.
    fn adjacency(&self) -> Option<Adjacency<'_>> {
        None
    }
}

/// A graph that can be changed. What it refuses, it refuses with its own failure. A query
/// that failed may have changed something already: whoever ran it takes that back.
pub trait GraphMut: Graph {
    /// Makes a node and gives its number, which is larger than that of any node before.
    fn create_node(
        &self,
        labels: &[Arc<str>],
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure>;
    /// Makes a relationship and gives its number.
    fn create_edge(
        &self,
        kind: &str,
        start: i64,
        end: i64,
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure>;
    /// Sets a property, or removes it if the value is null.
    fn set_property(&self, entity: Entity, key: &str, value: &Value) -> Result<(), Failure>;
    /// Adds a label; whether it is new to the node.
    fn add_label(&self, node: i64, label: &str) -> Result<bool, Failure>;
    /// Removes a label; whether the node had it.
    fn remove_label(&self, node: i64, label: &str) -> Result<bool, Failure>;
    /// Says why something may not be changed, if it is there to be read alone.
    fn refuse_change(&self, _: Entity) -> Result<(), Failure> {
        Ok(())
    }
    /// Deletes a node, which has no relationships any more.
    fn delete_node(&self, node: i64) -> Result<(), Failure>;
    /// Deletes a relationship.
    fn delete_edge(&self, edge: i64) -> Result<(), Failure>;
}
