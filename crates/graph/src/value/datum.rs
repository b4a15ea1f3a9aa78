use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::Value;
use crate::temporal::Temporal;

/// A value outside of a query: plain data, with the complete content of nodes and
/// relationships.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub enum Datum {
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
    Text(String),
    /// A list.
    #[serde(deserialize_with = "nested::deserialize")]
    List(Vec<Datum>),
    /// A map.
    #[serde(deserialize_with = "nested::deserialize")]
    Map(BTreeMap<String, Datum>),
    /// A node.
    Node(Box<NodeDatum>),
    /// A relationship.
    Relationship(Box<RelationshipDatum>),
    /// A path.
    Path(Box<PathDatum>),
    /// A date, a time, or a duration.
    #[serde(deserialize_with = "valid_temporal")]
    Temporal(Box<Temporal>),
}

/// A node with its labels and properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeDatum {
    /// Its id in the graph.
    pub id: i64,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// Its properties.
    pub properties: BTreeMap<String, Datum>,
}

/// A relationship with its type, ends and properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationshipDatum {
    /// Its id in the graph.
    pub id: i64,
    /// Its type.
    pub kind: String,
    /// The id of its start node.
    pub start: i64,
    /// The id of its end node.
    pub end: i64,
    /// Its properties.
    pub properties: BTreeMap<String, Datum>,
}

/// A path: one node more than relationships.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDatum {
    /// The nodes, from the first to the last.
    pub nodes: Vec<NodeDatum>,
    /// The relationships between them.
    pub relationships: Vec<RelationshipDatum>,
}

impl Datum {
    /// Converts a parameter to a value. Nodes, relationships and paths are reduced to their ids, so
    /// only those returned by the same graph are meaningful.
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
            Datum::Temporal(it) => Value::from((**it).clone()),
        }
    }
}

/// Refuses temporal values that are out of range.
fn valid_temporal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Temporal>, D::Error> {
    let it = Box::<Temporal>::deserialize(deserializer)?;
    if it.is_valid() { Ok(it) } else { Err(D::Error::custom("a temporal value is out of range")) }
}

/// Limits the depth of lists and maps that another process sends.
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
            return Err(D::Error::custom("a value is nested too deeply"));
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
    fn data_survives_serialization() {
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
    fn deserialization_refuses_deep_data() {
        let nested = |depth: usize| {
            let mut bytes = [5, 1].repeat(depth);
            bytes.push(0);
            postcard::from_bytes::<Datum>(&bytes).map(drop)
        };
        assert!(nested(100).is_ok());
        assert!(nested(101).is_err());
        assert!(nested(1_000_000).is_err());
        assert!(nested(100).is_ok(), "the depth is reset after a refusal");
    }

    #[test]
    fn a_datum_is_small() {
        assert!(size_of::<Datum>() <= 32);
    }
}
