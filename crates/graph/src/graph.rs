//! The interface between the query language and a graph.

use std::sync::Arc;

use isolith_types::Failure;

use crate::constraint::Constraint;
use crate::csr::Adjacency;
use crate::value::Value;

/// A graph's id for the name of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A graph's id for the name of a relationship type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// A graph's id for the name of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

/// Which relationships of a node to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Outgoing.
    Out,
    /// Incoming.
    In,
    /// Both; a self-loop counts once.
    Both,
}

impl LookupResult {
    /// The result of an index that compares numbers by value: it is exact for integers, and may
    /// contain other nodes for any other value.
    pub fn from_index(value: &Value) -> Self {
        if matches!(value, Value::Integer(_)) {
            LookupResult::Exact
        } else {
            LookupResult::Candidates
        }
    }
}

impl Direction {
    /// The same direction seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// A relationship seen from one of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The id of the relationship.
    pub edge: i64,
    /// The node at the other end.
    pub node: i64,
    /// Its type.
    pub kind: TypeId,
}

/// The type and ends of a relationship.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Its type.
    pub kind: TypeId,
    /// The start node.
    pub start: i64,
    /// The end node.
    pub end: i64,
}

/// How precise the result of a lookup by property is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupResult {
    /// All nodes found have the value.
    Exact,
    /// Some nodes found may have another value.
    Candidates,
}

/// A node or a relationship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A node.
    Node(i64),
    /// A relationship.
    Edge(i64),
}

/// A readable graph. It assigns the ids of nodes and relationships. The small ids of names
/// stay valid as long as the graph is open.
pub trait Graph {
    /// The id of a label; `None` if no node can have it.
    fn label_id(&self, name: &str) -> Result<Option<LabelId>, Failure>;
    /// The id of a type; `None` if no relationship can have it.
    fn type_id(&self, name: &str) -> Result<Option<TypeId>, Failure>;
    /// The id of a property; `None` if nothing can have it.
    fn key_id(&self, name: &str) -> Result<Option<KeyId>, Failure>;
    /// The name of a label.
    fn label_name(&self, label: LabelId) -> Result<Arc<str>, Failure>;
    /// The name of a type.
    fn type_name(&self, kind: TypeId) -> Result<Arc<str>, Failure>;
    /// The name of a property.
    fn key_name(&self, key: KeyId) -> Result<Arc<str>, Failure>;

    /// The names of all labels that nodes have, sorted.
    fn labels(&self) -> Result<Vec<Arc<str>>, Failure>;
    /// The names of all types that relationships have, sorted.
    fn relationship_types(&self) -> Result<Vec<Arc<str>>, Failure>;
    /// The names of all properties, sorted. Some may no longer be set.
    fn property_keys(&self) -> Result<Vec<Arc<str>>, Failure>;

    /// The number of nodes, with this label or in total. It must be cheap and exact: it answers
    /// `count(*)`.
    fn node_count(&self, label: Option<LabelId>) -> Result<u64, Failure>;
    /// The number of relationships, of this type or in total. It must be cheap and exact, too.
    fn edge_count(&self, kind: Option<TypeId>) -> Result<u64, Failure>;

    /// Whether the node exists.
    fn has_node(&self, node: i64) -> Result<bool, Failure>;
    /// Appends the next nodes by id after this one, at most `limit`: those with a label, or all.
    fn nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: usize,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure>;
    /// About how many nodes a lookup by this property finds; `None` if there is no index for it.
    fn lookup_estimate(&self, label: Option<LabelId>, key: KeyId) -> Result<Option<u64>, Failure>;
    /// Appends all nodes whose property equals this value, and possibly others, which the caller
    /// filters out. An integer equals a float of the same value; the value may also be a list.
    /// Only called if there is an estimate.
    fn lookup(
        &self,
        label: Option<LabelId>,
        key: KeyId,
        value: &Value,
        found: &mut Vec<i64>,
    ) -> Result<LookupResult, Failure>;
    /// Appends a node's labels.
    fn node_labels(&self, node: i64, labels: &mut Vec<LabelId>) -> Result<(), Failure>;
    /// Whether a node has a label.
    fn has_label(&self, node: i64, label: LabelId) -> Result<bool, Failure>;
    /// One property of a node; null if it is not set.
    fn node_property(&self, node: i64, key: KeyId) -> Result<Value, Failure>;
    /// Whether all nodes with this label, or all nodes, have this property with distinct values.
    /// Only called by queries that read most nodes; false if the graph does not know.
    fn has_unique_values(&self, label: Option<LabelId>, key: KeyId) -> Result<bool, Failure> {
        let _ = (label, key);
        Ok(false)
    }
    /// All properties of a node.
    fn node_properties(&self, node: i64) -> Result<Vec<(KeyId, Value)>, Failure>;

    /// Appends a node's relationships of these types, or all if none is named.
    fn edges(
        &self,
        node: i64,
        direction: Direction,
        kinds: &[TypeId],
        found: &mut Vec<Hop>,
    ) -> Result<(), Failure>;
    /// The number of relationships [`Graph::edges`] would append.
    fn degree(&self, node: i64, direction: Direction, kinds: &[TypeId]) -> Result<u64, Failure>;
    /// A relationship, if it exists.
    fn edge(&self, edge: i64) -> Result<Option<Edge>, Failure>;
    /// One property of a relationship; null if it is not set.
    fn edge_property(&self, edge: i64, key: KeyId) -> Result<Value, Failure>;
    /// All properties of a relationship.
    fn edge_properties(&self, edge: i64) -> Result<Vec<(KeyId, Value)>, Failure>;

    /// The constraints, in the order of their creation.
    fn constraints(&self) -> Result<Arc<[Constraint]>, Failure> {
        Ok(Arc::new([]))
    }

    /// The adjacency of all nodes as slices, if there is one that matches the graph exactly. Not
    /// called by queries that write.
    fn adjacency(&self) -> Option<Adjacency<'_>> {
        None
    }
}

/// A graph that can be changed. Refused changes return the graph's own failure. A failed query
/// may leave some of its changes behind: the caller must roll them back.
pub trait GraphMut: Graph {
    /// Creates a node and returns its id, which is larger than any node id before.
    fn create_node(
        &self,
        labels: &[Arc<str>],
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure>;
    /// Creates a relationship and returns its id.
    fn create_edge(
        &self,
        kind: &str,
        start: i64,
        end: i64,
        properties: &[(Arc<str>, Value)],
    ) -> Result<i64, Failure>;
    /// Sets a property, or removes it if the value is null.
    fn set_property(&self, entity: Entity, key: &str, value: &Value) -> Result<(), Failure>;
    /// Adds a label; false if the node already had it.
    fn add_label(&self, node: i64, label: &str) -> Result<bool, Failure>;
    /// Removes a label; false if the node did not have it.
    fn remove_label(&self, node: i64, label: &str) -> Result<bool, Failure>;
    /// Fails, with the reason, if the entity is read-only.
    fn refuse_change(&self, _: Entity) -> Result<(), Failure> {
        Ok(())
    }
    /// Deletes a node, which must have no relationships.
    fn delete_node(&self, node: i64) -> Result<(), Failure>;
    /// Deletes a relationship.
    fn delete_edge(&self, edge: i64) -> Result<(), Failure>;

    /// Stores a constraint, which the graph satisfies. Queries check it; the graph does not.
    fn add_constraint(&self, constraint: &Constraint) -> Result<(), Failure>;
    /// Removes a constraint.
    fn drop_constraint(&self, name: &str) -> Result<(), Failure>;
}
