use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Value;

/// A value that stands for itself outside of a query: plain data, with all that a node or
/// relationship holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub enum Datum {
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
    Text(String),
    /// Values in order.
    #[serde(deserialize_with = "nested::deserialize")]
    List(Vec<Datum>),
    /// Values by name.
    #[serde(deserialize_with = "nested::deserialize")]
    Map(BTreeMap<String, Datum>),
    /// A node.
    Node(Box<NodeDatum>),
    /// A relationship.
    Relationship(Box<RelationshipDatum>),
    /// A path.
    Path(Box<PathDatum>),
}

/// A node with all that it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeDatum {
    /// Its number in the graph.
    pub id: i64,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// Its properties.
    pub properties: BTreeMap<String, Datum>,
}

/// A relationship with all that it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationshipDatum {
    /// Its number in the graph.
    pub id: i64,
    /// Its type.
    pub kind: String,
    /// The number of the node where it begins.
    pub start: i64,
    /// The number of the node where it ends.
    pub end: i64,
    /// Its properties.
    pub properties: BTreeMap<String, Datum>,
}

/// A walk: one node more than relationships.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDatum {
    /// The nodes, from the first to the last.
    pub nodes: Vec<NodeDatum>,
    /// The relationships between them.
    pub relationships: Vec<RelationshipDatum>,
}

impl Datum {
    /// The value of a parameter. Nodes, relationships and paths are their numbers alone, so
    /// only those that the graph itself gave mean anything.
    pub fn to_value(&self) -> Value {
        match self {
            Datum::Null => Value::Null,
            Datum::Boolean(value) => Value::Boolean(*value),
            Datum::Integer(value) => Value::Integer(*value),
            Datum::Float(value) => Value::Float(*value),
            Datum::Text(text) => Value::text(text.as_str()),
            Datum::List(list) => Value::list(list.iter().map(Datum::to_value).collect()),
            Datum::Map(map) => {
                let entry = |(key, value): (&String, &Datum)| -> (Arc<str>, Value) {
                    (key.as_str().into(), value.to_value())
                };
                Value::map(map.iter().map(entry).collect())
            }
            Datum::Node(node) => Value::Node(node.id),
            Datum::Relationship(relationship) => Value::Relationship(relationship.id),
            Datum::Path(path) => Value::Path(Arc::new(super::Path {
                nodes: path.nodes.iter().map(|node| node.id).collect(),
                relationships: path.relationships.iter().map(|edge| edge.id).collect(),
            })),
        }
    }
}

/// Lists and maps of what another process sent, which may nest as deep as it likes.
mod nested {
    use std::cell::Cell;

    use serde::de::{Deserialize, Deserializer, Error};

    use crate::value::MAX_DEPTH;

    thread_local! {
        static DEPTH: Cell<u16> = const { Cell::new(0) };
    }

    struct Level;

    impl Drop for Level {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        if DEPTH.get() >= MAX_DEPTH {
            return Err(D::Error::custom("a value nests too deep"));
        }
        DEPTH.set(DEPTH.get() + 1);
        let _level = Level;
        T::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cross_the_boundary() {
        let node = NodeDatum {
            id: 7,
            labels: vec!["A".into()],
            properties: [("k".to_owned(), Datum::Float(1.5))].into(),
        };
        let datum = Datum::List(vec![
            Datum::Null,
            Datum::Path(Box::new(PathDatum { nodes: vec![node], relationships: vec![] })),
        ]);
        let bytes = postcard::to_stdvec(&datum).unwrap();
        assert_eq!(postcard::from_bytes::<Datum>(&bytes).unwrap(), datum);
        assert_eq!(
            datum.to_json().to_string(),
            r#"[null,{"nodes":[{"id":7,"labels":["A"],"properties":{"k":1.5}}],"relationships":[]}]"#
        );
    }

    #[test]
    fn deep_data_are_refused_where_they_arrive() {
        let nested = |depth: usize| {
            let mut bytes = [5, 1].repeat(depth);
            bytes.push(0);
            postcard::from_bytes::<Datum>(&bytes).map(drop)
        };
        assert!(nested(100).is_ok());
        assert!(nested(101).is_err());
        assert!(nested(1_000_000).is_err());
        assert!(nested(100).is_ok(), "a refusal leaves nothing behind");
    }

    #[test]
    fn a_datum_is_small() {
        assert!(size_of::<Datum>() <= 32);
    }
}
