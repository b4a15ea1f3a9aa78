//! Functions of nodes, relationships, paths and maps.

use std::sync::Arc;

use crate::error::{Class, Detail, Error, Result};
use crate::graph::Entity;
use crate::run::Run;
use crate::value::{Map, Value};

use super::Function;

pub(super) fn call(run: &Run<'_>, function: Function, value: &Value) -> Result<Value> {
    match (function, value) {
        (_, Value::Null) => Ok(Value::Null),
        (Function::Id, Value::Node(id) | Value::Relationship(id)) => Ok(Value::Integer(*id)),
        (Function::ElementId, Value::Node(id) | Value::Relationship(id)) => {
            Ok(Value::text(id.to_string()))
        }
        (Function::Keys, Value::Node(_) | Value::Relationship(_) | Value::Map(_)) => {
            let map = properties(run, value)?;
            Ok(Value::list(map.into_keys().map(Value::Text).collect()))
        }
        (Function::Properties, Value::Node(_) | Value::Relationship(_) | Value::Map(_)) => {
            Ok(Value::Map(Arc::new(properties(run, value)?)))
        }
        (Function::Labels, Value::Node(node)) => labels(run, *node),
        (Function::TypeOf, Value::Relationship(edge)) => {
            Ok(Value::Text(run.graph.type_name(run.edge(*edge)?.kind)?))
        }
        (Function::StartNode, Value::Relationship(edge)) => Ok(Value::Node(run.edge(*edge)?.start)),
        (Function::EndNode, Value::Relationship(edge)) => Ok(Value::Node(run.edge(*edge)?.end)),
        (Function::Length, Value::Path(path)) => {
            Ok(Value::Integer(path.relationships.len() as i64))
        }
        (Function::Nodes, Value::Path(path)) => {
            Ok(Value::list(path.nodes.iter().map(|id| Value::Node(*id)).collect()))
        }
        (Function::Relationships, Value::Path(path)) => {
            Ok(Value::list(path.relationships.iter().map(|id| Value::Relationship(*id)).collect()))
        }
        (_, other) => {
            let name = super::FUNCTIONS.iter().find(|entry| entry.1 == function);
            let name = name.map_or("this", |entry| entry.0);
            let message = format!("{name}() does not take {}", other.type_name());
            Err(Error::run(Class::TypeError, Detail::InvalidArgumentValue, message))
        }
    }
}

/// All properties of a node or relationship, or the map itself.
pub(crate) fn properties(run: &Run<'_>, of: &Value) -> Result<Map> {
    let entries = match of {
        Value::Map(map) => return Ok((**map).clone()),
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            run.graph.node_properties(*node)?
        }
        Value::Relationship(edge) => {
            run.alive(Entity::Edge(*edge))?;
            run.graph.edge_properties(*edge)?
        }
        _ => Vec::new(),
    };
    let mut map = Map::new();
    for (key, value) in entries {
        map.insert(run.graph.key_name(key)?, value);
    }
    Ok(map)
}

fn labels(run: &Run<'_>, node: i64) -> Result<Value> {
    run.alive(Entity::Node(node))?;
    let mut labels = Vec::new();
    run.graph.node_labels(node, &mut labels)?;
    let mut names = Vec::with_capacity(labels.len());
    for label in labels {
        names.push(Value::Text(run.graph.label_name(label)?));
    }
    Ok(Value::list(names))
}
