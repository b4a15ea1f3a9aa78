//! From values to plain data.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::functions::properties;
use crate::graph::Entity;
use crate::value::{Datum, NodeDatum, PathDatum, RelationshipDatum, Value};

use super::Run;

pub(super) fn datum(run: &Run<'_>, value: &Value) -> Result<Datum> {
    Ok(match value {
        Value::Null => Datum::Null,
        Value::Boolean(value) => Datum::Boolean(*value),
        Value::Integer(value) => Datum::Integer(*value),
        Value::Float(value) => Datum::Float(*value),
        Value::Text(text) => Datum::Text(text.to_string()),
        Value::List(list) => {
            Datum::List(list.iter().map(|value| datum(run, value)).collect::<Result<_>>()?)
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| Ok((key.to_string(), datum(run, value)?)));
            Datum::Map(entries.collect::<Result<_>>()?)
        }
        Value::Node(id) => Datum::Node(node(run, *id)?),
        Value::Relationship(id) => Datum::Relationship(relationship(run, *id)?),
        Value::Path(path) => Datum::Path(PathDatum {
            nodes: path.nodes.iter().map(|id| node(run, *id)).collect::<Result<_>>()?,
            relationships: path
                .relationships
                .iter()
                .map(|id| relationship(run, *id))
                .collect::<Result<_>>()?,
        }),
    })
}

/// A node; one that the query has deleted is empty.
fn node(run: &Run<'_>, id: i64) -> Result<NodeDatum> {
    if run.is_deleted(Entity::Node(id)) {
        return Ok(NodeDatum { id, labels: Vec::new(), properties: BTreeMap::new() });
    }
    let mut numbers = Vec::new();
    run.graph.node_labels(id, &mut numbers)?;
    let mut labels = Vec::with_capacity(numbers.len());
    for label in numbers {
        labels.push(run.graph.label_name(label)?.to_string());
    }
    labels.sort_unstable();
    Ok(NodeDatum { id, labels, properties: entries(run, &Value::Node(id))? })
}

fn relationship(run: &Run<'_>, id: i64) -> Result<RelationshipDatum> {
    let edge = run.edge(id)?;
    let kind = run.graph.type_name(edge.kind)?.to_string();
    let properties = if run.is_deleted(Entity::Edge(id)) {
        BTreeMap::new()
    } else {
        entries(run, &Value::Relationship(id))?
    };
    Ok(RelationshipDatum { id, kind, start: edge.start, end: edge.end, properties })
}

fn entries(run: &Run<'_>, of: &Value) -> Result<BTreeMap<String, Datum>> {
    let all = properties(run, of)?;
    all.iter().map(|(key, value)| Ok((key.to_string(), datum(run, value)?))).collect()
}
