//! The values of the language while a query runs.

mod body;
mod compare;
mod datum;
mod json;
mod text;

use std::sync::Arc;

use crate::temporal::Temporal;

pub(crate) use body::{Extent, live};
pub use body::{List, MAX_DEPTH, Map, Text};
pub(crate) use compare::GroupKey;
pub use compare::{compare, equals, order};
pub use datum::{Datum, NodeDatum, PathDatum, RelationshipDatum};
pub(crate) use text::{number_text, plain_text};

/// A value. Nodes and relationships are ids; their content is read from the graph when needed.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Null.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit float.
    Float(f64),
    /// A string.
    Text(Text),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
    /// A node of the graph.
    Node(i64),
    /// A relationship of the graph.
    Relationship(i64),
    /// A path in the graph.
    Path(Arc<Path>),
    /// A date, a time, or a duration.
    Temporal(Arc<Temporal>),
}

/// The memory for a temporal value, with its allocation and a typical name of a time zone.
const TEMPORAL: usize = size_of::<Temporal>() + 64;

/// A path in the graph: one node more than relationships.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Path {
    /// The nodes, from the first to the last.
    pub nodes: Vec<i64>,
    /// The relationships between them.
    pub relationships: Vec<i64>,
}

impl Path {
    fn size(&self) -> usize {
        64 + 8 * (self.nodes.len() + self.relationships.len())
    }
}

impl Value {
    /// A string.
    pub fn text(text: impl Into<Text>) -> Self {
        Value::Text(text.into())
    }

    /// A list.
    pub fn list(values: Vec<Value>) -> Self {
        Value::List(List::new(values))
    }

    /// A map.
    pub fn map(entries: Vec<(Arc<str>, Value)>) -> Self {
        Value::Map(Map::new(entries))
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The name of the value's type with its article, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Node(_) => "a node",
            Value::Relationship(_) => "a relationship",
            Value::Path(_) => "a path",
            Value::Temporal(it) => it.kind().name(),
        }
    }

    /// The approximate size in bytes, with shared parts counted at every occurrence.
    pub fn size(&self) -> usize {
        self.extent().bytes
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            Value::Text(text) => Extent { bytes: Extent::SCALAR.bytes + 32 + text.len(), depth: 0 },
            Value::List(list) => list.extent(),
            Value::Map(map) => map.extent(),
            Value::Path(path) => Extent { bytes: Extent::SCALAR.bytes + path.size(), depth: 0 },
            Value::Temporal(_) => Extent { bytes: Extent::SCALAR.bytes + TEMPORAL, depth: 0 },
            _ => Extent::SCALAR,
        }
    }

    /// The memory for keeping the value. The bodies of lists, maps and long texts count
    /// themselves.
    pub(crate) fn held(&self) -> usize {
        size_of::<Value>() + self.held_beside()
    }

    /// Like `held`, without the size of the `Value` itself.
    #[inline]
    pub(crate) fn held_beside(&self) -> usize {
        match self {
            Value::Text(text) => text.held(),
            Value::Path(path) => path.size(),
            Value::Temporal(_) => TEMPORAL,
            _ => 0,
        }
    }

    /// The cost of comparing or hashing the value, in budget steps; 0 if it is negligible.
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        match self {
            Value::Text(text) => text.len() / 1024,
            Value::List(_) | Value::Map(_) => self.extent().bytes / 32,
            Value::Path(path) => path.nodes.len() / 16,
            _ => 0,
        }
    }

    /// Whether a node or relationship can store this as a property.
    pub fn is_storable(&self) -> bool {
        match self {
            Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Temporal(_) => true,
            Value::List(list) => {
                list.iter().all(|value| value.is_storable() && !matches!(value, Value::List(_)))
            }
            _ => false,
        }
    }
}

/// Equivalence as in grouping: null equals null. [`equals`] is the language's `=`.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        order(self, other) == std::cmp::Ordering::Equal
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::text(value)
    }
}

impl From<Temporal> for Value {
    fn from(value: Temporal) -> Self {
        Value::Temporal(Arc::new(value))
    }
}

impl From<Option<bool>> for Value {
    fn from(value: Option<bool>) -> Self {
        value.map_or(Value::Null, Value::Boolean)
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Self {
        Value::list(values.into_iter().map(Into::into).collect())
    }
}
