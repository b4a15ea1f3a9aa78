//! The clauses that change the graph. They get all rows at once: later rows see the changes of
//! earlier ones, and nothing is read in advance.

use std::sync::Arc;

use crate::error::{Class, Detail, Error, Result};
use crate::functions::properties;
use crate::graph::{Direction, Entity, GraphMut};
use crate::ir::{CreateItem, Ex, Merge, QueryStep, SetOp, Slot};
use crate::value::{Map, Path, Value};

use super::exec::exec;
use super::{Flow, Row, Run, eval, read_only, row_held, subquery};

/// Applies a clause to every row.
pub(super) fn write<'r>(run: &Run<'r>, step: &'r QueryStep, rows: &mut Vec<Row>) -> Result<()> {
    let writer = run.writer.ok_or_else(read_only)?;
    match step {
        QueryStep::Create(items) => each(run, rows, |row| create(run, writer, items, row)),
        QueryStep::Set(ops) => each(run, rows, |row| set_all(run, writer, ops, row)),
        QueryStep::Delete { detach, targets } => delete(run, writer, *detach, targets, rows),
        QueryStep::Merge(it) => {
            let mut result = Vec::new();
            for mut row in std::mem::take(rows) {
                run.budget.step()?;
                merge(run, writer, it, &mut row, &mut result)?;
            }
            *rows = result;
            Ok(())
        }
        QueryStep::Call(it) => {
            let mut result = Vec::new();
            for mut row in std::mem::take(rows) {
                subquery::call(run, it, &mut row, &mut |row| {
                    run.budget.keep(row_held(row))?;
                    result.push(row.clone());
                    Ok(Flow::Continue)
                })?;
                run.budget.release(row_held(&row));
            }
            *rows = result;
            Ok(())
        }
        QueryStep::Foreach { list, slot, body } => {
            each(run, rows, |row| foreach(run, list, *slot, body, row))
        }
        QueryStep::Match(_)
        | QueryStep::Unwind { .. }
        | QueryStep::Procedure(_)
        | QueryStep::Project(_) => Ok(()),
    }
}

fn each(
    run: &Run<'_>,
    rows: &mut [Row],
    mut apply: impl FnMut(&mut Row) -> Result<()>,
) -> Result<()> {
    for row in rows {
        run.budget.step()?;
        apply(row)?;
    }
    Ok(())
}

/// Runs the body of `FOREACH` for every element of a list.
fn foreach<'r>(
    run: &Run<'r>,
    list: &'r Ex,
    slot: Slot,
    body: &'r [QueryStep],
    row: &mut Row,
) -> Result<()> {
    let list = match eval(run, row, list)? {
        Value::List(list) => list,
        Value::Null => return Ok(()),
        other => {
            let message = format!("FOREACH needs a list, not {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    };
    for value in list.iter() {
        run.budget.step()?;
        let mut row = row.clone();
        row[slot] = value.clone();
        let mut rows = vec![row];
        for step in body {
            write(run, step, &mut rows)?;
        }
    }
    Ok(())
}

fn create<'r>(
    run: &Run<'r>,
    writer: &dyn GraphMut,
    items: &'r [CreateItem],
    row: &mut Row,
) -> Result<()> {
    for item in items {
        match item {
            CreateItem::Node { slot, labels, properties } => {
                let properties = evaluated(run, row, properties)?;
                row[*slot] = create_node(run, writer, labels, &properties)?;
            }
            CreateItem::Rel { slot, kind, from, to, properties } => {
                let properties = evaluated(run, row, properties)?;
                row[*slot] = create_rel(run, writer, kind, &row[*from], &row[*to], &properties)?;
            }
            CreateItem::Path { slot, nodes, rels } => row[*slot] = path(row, nodes, rels),
        }
    }
    Ok(())
}

fn path(row: &Row, nodes: &[Slot], rels: &[Slot]) -> Value {
    let node = |slot: &Slot| if let Value::Node(id) = row[*slot] { id } else { 0 };
    let rel = |slot: &Slot| if let Value::Relationship(id) = row[*slot] { id } else { 0 };
    Value::Path(Arc::new(Path {
        nodes: nodes.iter().map(node).collect(),
        relationships: rels.iter().map(rel).collect(),
    }))
}

type Properties = Vec<(Arc<str>, Value)>;

fn evaluated<'r>(run: &Run<'r>, row: &mut Row, ex: &'r Option<Ex>) -> Result<Properties> {
    let Some(ex) = ex else { return Ok(Vec::new()) };
    match eval(run, row, ex)? {
        Value::Map(map) => {
            let entries = map.entries().iter().filter(|(_, value)| !value.is_null());
            Ok(entries.cloned().collect())
        }
        Value::Null => Ok(Vec::new()),
        other => Err(Error::type_mismatch(format!(
            "properties must be a map, not {}",
            other.type_name()
        ))),
    }
}

/// Fails if no node or relationship can store this property.
fn storable(key: &str, value: &Value) -> Result<()> {
    if key.is_empty() {
        let message = "the name of a property cannot be empty";
        return Err(Error::run(Class::ArgumentError, Detail::InvalidArgumentValue, message));
    }
    if value.is_null() || value.is_storable() {
        return Ok(());
    }
    let message = format!(
        "the property {key} cannot hold {}",
        match value {
            Value::List(_) => "a list that contains anything but strings, numbers and booleans",
            other => other.type_name(),
        }
    );
    Err(Error::run(Class::TypeError, Detail::InvalidPropertyType, message))
}

fn create_node(
    run: &Run<'_>,
    writer: &dyn GraphMut,
    labels: &[Arc<str>],
    properties: &[(Arc<str>, Value)],
) -> Result<Value> {
    for (key, value) in properties {
        storable(key, value)?;
    }
    let mut unique: Vec<Arc<str>> = Vec::with_capacity(labels.len());
    for label in labels {
        if !unique.contains(label) {
            unique.push(label.clone());
        }
    }
    let node = writer.create_node(&unique, properties)?;
    run.note_change(Entity::Node(node));
    run.count(|stats| {
        stats.nodes_created += 1;
        stats.labels_added += unique.len() as u64;
        stats.properties_set += properties.len() as u64;
    });
    Ok(Value::Node(node))
}

fn create_rel(
    run: &Run<'_>,
    writer: &dyn GraphMut,
    kind: &str,
    from: &Value,
    to: &Value,
    properties: &[(Arc<str>, Value)],
) -> Result<Value> {
    let end = |value: &Value| match value {
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            Ok(*node)
        }
        other => Err(Error::type_mismatch(format!(
            "a relationship must connect nodes; one end is {}",
            other.type_name()
        ))),
    };
    for (key, value) in properties {
        storable(key, value)?;
    }
    let edge = writer.create_edge(kind, end(from)?, end(to)?, properties)?;
    run.note_change(Entity::Edge(edge));
    run.count(|stats| {
        stats.relationships_created += 1;
        stats.properties_set += properties.len() as u64;
    });
    Ok(Value::Relationship(edge))
}

fn merge<'r>(
    run: &Run<'r>,
    writer: &dyn GraphMut,
    it: &'r Merge,
    row: &mut Row,
    result: &mut Vec<Row>,
) -> Result<()> {
    let pattern = &it.pattern.pattern;
    let mut wanted: Vec<(Slot, Properties)> = Vec::new();
    let nodes = pattern.nodes.iter().map(|node| (node.slot, &node.properties));
    let rels = pattern.rels.iter().map(|rel| (rel.slot, &rel.properties));
    for (slot, entries) in nodes.chain(rels) {
        let mut properties = Vec::new();
        for (key, ex) in entries {
            let value = eval(run, row, ex)?;
            if value.is_null() {
                let message = format!("MERGE cannot match null in {}", run.name(*key));
                let detail = Detail::MergeReadOwnWrites;
                return Err(Error::run(Class::SemanticError, detail, message));
            }
            properties.push((run.name(*key).clone(), value));
        }
        wanted.push((slot, properties));
    }
    for node in pattern.nodes.iter().filter(|node| node.bound) {
        match &row[node.slot] {
            Value::Node(id) => run.alive(Entity::Node(*id))?,
            other => {
                let message = format!("MERGE needs a node, not {}", other.type_name());
                return Err(Error::type_mismatch(message));
            }
        }
    }
    // A plan made while names are missing lacks statistics, so it is not cached.
    let ops = if run.knows(&it.pattern)? {
        run.plan(&it.pattern)?
    } else {
        std::rc::Rc::new(crate::plan::plan(run, &it.pattern)?)
    };
    let mut found = Vec::new();
    exec(run, &ops, row, &mut |row| {
        run.budget.keep(row_held(row))?;
        found.push(row.clone());
        Ok(Flow::Continue)
    })?;
    if found.is_empty() {
        merge_create(run, writer, it, &wanted, row)?;
        set_all(run, writer, &it.on_create, row)?;
        result.push(row.clone());
        return Ok(());
    }
    for mut row in found {
        set_all(run, writer, &it.on_match, &mut row)?;
        result.push(row);
    }
    Ok(())
}

fn merge_create<'r>(
    run: &Run<'r>,
    writer: &dyn GraphMut,
    it: &'r Merge,
    wanted: &[(Slot, Properties)],
    row: &mut Row,
) -> Result<()> {
    let of = |slot: &Slot| {
        let entry = wanted.iter().find(|(wanted, _)| wanted == slot);
        entry.map_or(&[][..], |(_, properties)| properties)
    };
    for item in &it.create {
        match item {
            CreateItem::Node { slot, labels, .. } => {
                row[*slot] = create_node(run, writer, labels, of(slot))?;
            }
            CreateItem::Rel { slot, kind, from, to, .. } => {
                row[*slot] = create_rel(run, writer, kind, &row[*from], &row[*to], of(slot))?;
            }
            CreateItem::Path { slot, nodes, rels } => row[*slot] = path(row, nodes, rels),
        }
    }
    Ok(())
}

fn set_all<'r>(
    run: &Run<'r>,
    writer: &dyn GraphMut,
    ops: &'r [SetOp],
    row: &mut Row,
) -> Result<()> {
    for op in ops {
        match op {
            SetOp::Property { target, key, value } => {
                let target = eval(run, row, target)?;
                let value = eval(run, row, value)?;
                if let Some(entity) = entity(run, &target)? {
                    set(run, writer, entity, key, &value)?;
                }
            }
            SetOp::All { slot, value, merge } => {
                let value = eval(run, row, value)?;
                if let Some(entity) = entity(run, &row[*slot])? {
                    replace(run, writer, entity, &value, *merge)?;
                }
            }
            SetOp::Labels { slot, labels, remove } => {
                relabel(run, writer, &row[*slot], labels, *remove)?;
            }
        }
    }
    Ok(())
}

/// The entity to change; `None` if it is null.
fn entity(run: &Run<'_>, value: &Value) -> Result<Option<Entity>> {
    let entity = match value {
        Value::Null => return Ok(None),
        Value::Node(node) => Entity::Node(*node),
        Value::Relationship(edge) => Entity::Edge(*edge),
        other => {
            let message = format!("SET changes nodes and relationships, not {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    };
    run.alive(entity)?;
    Ok(Some(entity))
}

fn set(
    run: &Run<'_>,
    writer: &dyn GraphMut,
    entity: Entity,
    key: &str,
    value: &Value,
) -> Result<()> {
    storable(key, value)?;
    writer.set_property(entity, key, value)?;
    run.note_change(entity);
    run.count(|stats| stats.properties_set += 1);
    Ok(())
}

fn replace(
    run: &Run<'_>,
    writer: &dyn GraphMut,
    entity: Entity,
    value: &Value,
    merge: bool,
) -> Result<()> {
    let new: Map = match value {
        Value::Map(map) => map.clone(),
        Value::Node(_) | Value::Relationship(_) => properties(run, value)?,
        Value::Null => Map::new(Vec::new()),
        other => {
            let message = format!("properties must be a map, not {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    };
    if !merge {
        let whole = match entity {
            Entity::Node(node) => Value::Node(node),
            Entity::Edge(edge) => Value::Relationship(edge),
        };
        for key in properties(run, &whole)?.keys().filter(|key| new.get(key).is_none()) {
            set(run, writer, entity, key, &Value::Null)?;
        }
    }
    for (key, value) in new.entries() {
        set(run, writer, entity, key, value)?;
    }
    Ok(())
}

fn relabel(
    run: &Run<'_>,
    writer: &dyn GraphMut,
    target: &Value,
    labels: &[Arc<str>],
    remove: bool,
) -> Result<()> {
    let node = match target {
        Value::Null => return Ok(()),
        Value::Node(node) => *node,
        other => {
            let message = format!("only nodes have labels, not {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    };
    run.alive(Entity::Node(node))?;
    run.note_change(Entity::Node(node));
    if remove && !run.constraints.is_empty() {
        run.changed.borrow_mut().unlabelled.insert(node);
    }
    for label in labels {
        let changed = if remove {
            writer.remove_label(node, label)?
        } else {
            writer.add_label(node, label)?
        };
        let changed = u64::from(changed);
        run.count(|stats| {
            if remove {
                stats.labels_removed += changed;
            } else {
                stats.labels_added += changed;
            }
        });
    }
    Ok(())
}

/// Deletes what the rows name: relationships first, so that the order of nodes and their
/// relationships does not matter.
fn delete<'r>(
    run: &Run<'r>,
    writer: &dyn GraphMut,
    detach: bool,
    targets: &'r [Ex],
    rows: &mut [Row],
) -> Result<()> {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut held = run.budget.hold();
    for row in rows {
        run.budget.step()?;
        for target in targets {
            match eval(run, row, target)? {
                Value::Null => {}
                Value::Node(node) => nodes.push(node),
                Value::Relationship(edge) => edges.push(edge),
                Value::Path(path) => {
                    held.keep(16 * path.nodes.len())?;
                    nodes.extend(&path.nodes);
                    edges.extend(&path.relationships);
                }
                other => {
                    let message =
                        format!("DELETE takes nodes and relationships, not {}", other.type_name());
                    return Err(Error::type_mismatch(message));
                }
            }
        }
    }
    for edge in edges {
        run.budget.step()?;
        delete_edge(run, writer, edge)?;
    }
    for node in nodes {
        run.budget.step()?;
        if run.is_deleted(Entity::Node(node)) {
            continue;
        }
        // Report a read-only node first: DETACH would not help.
        writer.refuse_change(Entity::Node(node))?;
        let mut hops = Vec::new();
        run.graph.edges(node, Direction::Both, &[], &mut hops)?;
        if !detach && !hops.is_empty() {
            let left = match hops.len() {
                1 => "a relationship; DETACH DELETE deletes it, too".to_owned(),
                many => format!("{many} relationships; DETACH DELETE deletes them, too"),
            };
            let message = format!("node {node} still has {left}");
            let class = Class::ConstraintVerificationFailed;
            return Err(Error::run(class, Detail::DeleteConnectedNode, message));
        }
        for hop in hops {
            run.budget.step()?;
            delete_edge(run, writer, hop.edge)?;
        }
        writer.delete_node(node)?;
        run.deleted.borrow_mut().insert(Entity::Node(node));
        run.count(|stats| stats.nodes_deleted += 1);
    }
    Ok(())
}

fn delete_edge(run: &Run<'_>, writer: &dyn GraphMut, edge: i64) -> Result<()> {
    if run.is_deleted(Entity::Edge(edge)) {
        return Ok(());
    }
    let deleted = run.edge(edge)?;
    writer.delete_edge(edge)?;
    run.deleted_edges.borrow_mut().insert(edge, deleted);
    run.deleted.borrow_mut().insert(Entity::Edge(edge));
    run.count(|stats| stats.relationships_deleted += 1);
    Ok(())
}
