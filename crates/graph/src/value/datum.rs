use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Map, Value};

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
    List(Vec<Datum>),
    /// Values by name.
    Map(BTreeMap<String, Datum>),
    /// A node.
    Node(NodeDatum),
    /// A relationship.
    Relationship(RelationshipDatum),
    /// A path.
    Path(PathDatum),
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
                Value::Map(Arc::new(map.iter().map(entry).collect::<Map>()))
            }
            Datum::Node(node) => Value::Node(node.id),
            Datum::Relationship(relationship) => Value::Relationship(relationship.id),
            Datum::Path(path) => Value::Path(Arc::new(super::Path {
                nodes: path.nodes.iter().map(|node| node.id).collect(),
                relationships: path.relationships.iter().map(|edge| edge.id).collect(),
            })),
        }
    }

    /// What a JSON value says. A number beyond 64 bits becomes a float.
    pub fn from_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Datum::Null,
            Json::Bool(value) => Datum::Boolean(*value),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Datum::Integer(number),
                None => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Datum::Text(text.clone()),
            Json::Array(list) => Datum::List(list.iter().map(Datum::from_json).collect()),
            Json::Object(map) => Datum::Map(
                map.iter().map(|(key, value)| (key.clone(), Datum::from_json(value))).collect(),
            ),
        }
    }

    /// The value as JSON. A number that JSON has no form for becomes a string.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Datum::Null => Json::Null,
            Datum::Boolean(value) => Json::Bool(*value),
            Datum::Integer(value) => Json::from(*value),
            Datum::Float(value) => serde_json::Number::from_f64(*value)
                .map_or_else(|| Json::String(super::number_text(*value)), Json::Number),
            Datum::Text(text) => Json::String(text.clone()),
            Datum::List(list) => Json::Array(list.iter().map(Datum::to_json).collect()),
            Datum::Map(map) => object(map),
            Datum::Node(node) => node.to_json(),
            Datum::Relationship(relationship) => relationship.to_json(),
            Datum::Path(path) => serde_json::json!({
                "nodes": path.nodes.iter().map(NodeDatum::to_json).collect::<Vec<_>>(),
                "relationships":
                    path.relationships.iter().map(RelationshipDatum::to_json).collect::<Vec<_>>(),
            }),
        }
    }
}

impl NodeDatum {
    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id, "labels": self.labels, "properties": object(&self.properties),
        })
    }
}

impl RelationshipDatum {
    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id, "type": self.kind, "start": self.start, "end": self.end,
            "properties": object(&self.properties),
        })
    }
}

fn object(map: &BTreeMap<String, Datum>) -> serde_json::Value {
    map.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()
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
            Datum::Path(PathDatum { nodes: vec![node], relationships: vec![] }),
        ]);
        let bytes = postcard::to_stdvec(&datum).unwrap();
        assert_eq!(postcard::from_bytes::<Datum>(&bytes).unwrap(), datum);
        assert_eq!(
            datum.to_json().to_string(),
            r#"[null,{"nodes":[{"id":7,"labels":["A"],"properties":{"k":1.5}}],"relationships":[]}]"#
        );
    }

    #[test]
    fn json_becomes_parameters() {
        let json =
            serde_json::json!({"a": [1, 1.5, "x", null, true], "b": 18446744073709551615_u64});
        let Datum::Map(map) = Datum::from_json(&json) else { panic!("a map") };
        assert_eq!(map["b"], Datum::Float(18446744073709551615.0));
        assert_eq!(Datum::Map(map).to_json()["a"], json["a"]);
    }
}
