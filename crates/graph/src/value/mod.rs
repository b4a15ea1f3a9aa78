//! The values of the language while a query runs.

mod compare;
mod datum;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use compare::GroupKey;
pub use compare::{compare, equals, order};
pub use datum::{Datum, NodeDatum, PathDatum, RelationshipDatum};
pub(crate) use text::{number_text, plain_text};

/// A map of the language.
pub type Map = BTreeMap<Arc<str>, Value>;

/// A value. Nodes and relationships are their numbers: what they hold stays in the graph
/// until it is asked for.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Nothing, or unknown.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A string.
    Text(Arc<str>),
    /// Values in order.
    List(Arc<Vec<Value>>),
    /// Values by name.
    Map(Arc<Map>),
    /// A node of the graph.
    Node(i64),
    /// A relationship of the graph.
    Relationship(i64),
    /// A walk through the graph.
    Path(Arc<Path>),
}

/// A walk through the graph: one node more than relationships.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Path {
    /// The nodes, from the first to the last.
    pub nodes: Vec<i64>,
    /// The relationships between them.
    pub relationships: Vec<i64>,
}

impl Value {
    /// A string.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Value::Text(text.into())
    }

    /// A list.
    pub fn list(values: Vec<Value>) -> Self {
        Value::List(Arc::new(values))
    }

    /// Whether this is nothing.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The name of the value's type, for messages.
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
        }
    }

    /// About how many bytes the value takes, for the bound on memory.
    pub fn size(&self) -> usize {
        let inner = match self {
            Value::Text(text) => text.len() + 16,
            Value::List(list) => 40 + list.iter().map(Value::size).sum::<usize>(),
            Value::Map(map) => {
                48 + map.iter().map(|(key, value)| key.len() + 32 + value.size()).sum::<usize>()
            }
            Value::Path(path) => 64 + 8 * (path.nodes.len() + path.relationships.len()),
            _ => 0,
        };
        inner + size_of::<Value>()
    }

    /// Whether a node or relationship can keep this as a property.
    pub fn is_storable(&self) -> bool {
        match self {
            Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => true,
            Value::List(list) => {
                list.iter().all(|value| value.is_storable() && !matches!(value, Value::List(_)))
            }
            _ => false,
        }
    }
}

/// Alike as grouping sees it: null is like null. [`equals`] is the language's own `=`.
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
