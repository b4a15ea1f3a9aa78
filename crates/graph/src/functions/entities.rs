//! Functions on nodes, relationships, paths and maps.

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
            run.budget.list(map.len())?;
            Ok(Value::list(map.keys().map(|key| Value::text(key.clone())).collect()))
        }
        (Function::Properties, Value::Node(_) | Value::Relationship(_) | Value::Map(_)) => {
            Ok(Value::Map(properties(run, value)?))
        }
        (Function::Labels, Value::Node(node)) => labels(run, *node),
        (Function::TypeOf, Value::Relationship(edge)) => {
            Ok(Value::text(run.graph.type_name(run.edge(*edge)?.kind)?))
        }
        (Function::StartNode, Value::Relationship(edge)) => Ok(Value::Node(run.edge(*edge)?.start)),
        (Function::EndNode, Value::Relationship(edge)) => Ok(Value::Node(run.edge(*edge)?.end)),
        (Function::Length, Value::Path(path)) => {
            Ok(Value::Integer(path.relationships.len() as i64))
        }
        (Function::Nodes, Value::Path(path)) => {
            run.budget.list(path.nodes.len())?;
            Ok(Value::list(path.nodes.iter().map(|id| Value::Node(*id)).collect()))
        }
        (Function::Relationships, Value::Path(path)) => {
            run.budget.list(path.relationships.len())?;
            Ok(Value::list(path.relationships.iter().map(|id| Value::Relationship(*id)).collect()))
        }
        (_, other) => {
            let name = super::FUNCTIONS.iter().find(|entry| entry.1 == function);
            let name = name.map_or("this", |entry| entry.0);
            let message = format!("{name}() does not accept {}", other.type_name());
            Err(Error::run(Class::TypeError, Detail::InvalidArgumentValue, message))
        }
    }
}

/// All properties of a node or relationship, or the map itself.
pub(crate) fn properties(run: &Run<'_>, of: &Value) -> Result<Map> {
    let entries = match of {
        Value::Map(map) => return Ok(map.clone()),
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
    let mut named = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        named.push((run.graph.key_name(key)?, value));
    }
    Ok(Map::new(named))
}

fn labels(run: &Run<'_>, node: i64) -> Result<Value> {
    run.alive(Entity::Node(node))?;
    let mut labels = Vec::new();
    run.graph.node_labels(node, &mut labels)?;
    let mut names = Vec::with_capacity(labels.len());
    for label in labels {
        names.push(Value::text(run.graph.label_name(label)?));
    }
    Ok(Value::list(names))
}
