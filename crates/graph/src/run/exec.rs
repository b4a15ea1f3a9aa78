//! Executes the operators that find rows.

use crate::error::{Error, Result};
use crate::graph::{Entity, Hop, LookupResult};
use crate::ir::{Ex, PatternRel, Slot, Symbol};
use crate::plan::{Op, Seek, Weight};
use crate::value::{Path, Value, equals};

use super::pipeline::Sink;
use super::project::is_true;
use super::{Flow, Row, Run, eval, expand, reach, shortest, subquery};

/// Runs operators on a row; each result goes to `out`.
pub(crate) fn exec<'r>(
    run: &Run<'r>,
    ops: &[Op<'r>],
    row: &mut Row,
    out: &mut Sink<'_>,
) -> Result<Flow> {
    let Some((op, rest)) = ops.split_first() else { return out(row) };
    let next: &mut Sink<'_> = &mut |row: &mut Row| exec(run, rest, row, out);
    match op {
        Op::CheckNode { slot } => match &row[*slot] {
            Value::Node(_) => next(row),
            Value::Null => Ok(Flow::Continue),
            other => Err(wrong_kind("node", other)),
        },
        Op::Labels { slot, labels } => {
            if has_labels(run, &row[*slot], labels)? {
                next(row)
            } else {
                Ok(Flow::Continue)
            }
        }
        Op::Scan { slot, label } => {
            let weight = match rest.first() {
                Some(Op::Weight(it)) if it.from == *slot => Some(it),
                _ => None,
            };
            scan(run, *slot, *label, weight, row, next)
        }
        Op::Seek { slot, seek } => seek_node(run, *slot, seek, row, rest, out),
        Op::Expand(it) => expand::expand(run, it, row, next),
        Op::VarExpand(it) => expand::var_expand(run, it, row, next),
        Op::Reach(it) => reach::reach(run, it, row, next),
        Op::Weight(it) => expand::weigh(run, it, row, next),
        Op::Total { what, slot, rel } => expand::total(run, what, *slot, *rel, row, next),
        Op::BoundRel(it) => expand::bound_rel(run, it, row, next),
        Op::BoundRels(it) => expand::bound_rels(run, it, row, next),
        Op::Shortest(it) => shortest::shortest(run, it, row, next),
        Op::NodeProperty { slot, key, value } | Op::RelProperty { slot, key, value } => {
            if has_property(run, row, *slot, *key, value)? {
                next(row)
            } else {
                Ok(Flow::Continue)
            }
        }
        Op::Filter(ex) => {
            let value = eval(run, row, ex)?;
            if is_true(&value)? { next(row) } else { Ok(Flow::Continue) }
        }
        Op::Path { slot, start, rels } => {
            row[*slot] = path(run, row, *start, rels)?;
            next(row)
        }
        Op::Optional { ops, slots } => optional(run, ops, slots, row, next),
        Op::Unwind { list, slot } => unwind(run, list, *slot, row, next),
        Op::Call(call) => subquery::call(run, call, row, next),
        Op::Procedure(call) => subquery::procedure(run, call, row, next),
    }
}

pub(super) fn wrong_kind(wanted: &str, found: &Value) -> Error {
    Error::type_mismatch(format!("this pattern needs a {wanted}, not {}", found.type_name()))
}

pub(crate) fn has_labels(run: &Run<'_>, value: &Value, labels: &[Symbol]) -> Result<bool> {
    let Value::Node(node) = value else { return Ok(false) };
    for label in labels {
        let Some(label) = run.label(*label)? else { return Ok(false) };
        if !run.graph.has_label(*node, label)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Scans nodes, skipping those with fewer relationships than the next operator wants.
fn scan<'r>(
    run: &Run<'r>,
    slot: Slot,
    label: Option<Symbol>,
    weight: Option<&Weight<'r>>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let label = match label {
        Some(label) => match run.label(label)? {
            Some(label) => Some(label),
            None => return Ok(Flow::Continue),
        },
        None => None,
    };
    // Pages grow, so that a query for one node does not read thousands.
    let mut page = 64;
    let mut nodes = Vec::new();
    let mut after = None;
    loop {
        nodes.clear();
        run.graph.nodes(label, after, page, &mut nodes)?;
        for &node in &nodes {
            run.budget.step()?;
            if let Some(weight) = weight
                && expand::is_too_light(run, weight, node)?
            {
                continue;
            }
            row[slot] = Value::Node(node);
            if next(row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if nodes.len() < page {
            return Ok(Flow::Continue);
        }
        after = nodes.last().copied();
        page = (page * 4).min(16_384);
    }
}

fn seek_node<'r>(
    run: &Run<'r>,
    slot: Slot,
    seek: &Seek<'r>,
    row: &mut Row,
    rest: &[Op<'r>],
    out: &mut Sink<'_>,
) -> Result<Flow> {
    let mut nodes = Vec::new();
    let found = sought(run, seek, row, &mut nodes)?;
    let rest = match rest.split_first() {
        // The lookup was exact, so skip the check of its property.
        Some((Op::NodeProperty { .. }, after)) if found == LookupResult::Exact => after,
        _ => rest,
    };
    for node in nodes {
        run.budget.step()?;
        row[slot] = Value::Node(node);
        if exec(run, rest, row, out)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Looks up nodes in an index. If the result is exact for the pattern's own property, that need
/// not be checked again.
fn sought<'r>(
    run: &Run<'r>,
    seek: &Seek<'r>,
    row: &mut Row,
    nodes: &mut Vec<i64>,
) -> Result<LookupResult> {
    match seek {
        Seek::Id(ex) => {
            let id = match eval(run, row, ex)? {
                Value::Integer(id) => Some(id),
                Value::Float(id) if id.fract() == 0.0 => Some(id as i64),
                _ => None,
            };
            if let Some(id) = id
                && run.graph.has_node(id)?
            {
                nodes.push(id);
            }
        }
        Seek::Property { label, key, value, many, checked } => {
            let value = eval(run, row, value)?;
            let label = match label {
                Some(label) => match run.label(*label)? {
                    Some(label) => Some(label),
                    None => return Ok(LookupResult::Candidates),
                },
                None => None,
            };
            let Some(key) = run.key(*key)? else { return Ok(LookupResult::Candidates) };
            match (&value, many) {
                (Value::List(values), true) => {
                    for value in values.iter().filter(|value| !value.is_null()) {
                        run.budget.step()?;
                        run.graph.lookup(label, key, value, nodes)?;
                    }
                    nodes.sort_unstable();
                    nodes.dedup();
                }
                (Value::Null, _) | (_, true) => {}
                (value, false) => {
                    let found = run.graph.lookup(label, key, value, nodes)?;
                    return Ok(if *checked { found } else { LookupResult::Candidates });
                }
            }
        }
    }
    Ok(LookupResult::Candidates)
}

/// Whether a node, a relationship, or each of a list of relationships has a property with this
/// value.
fn has_property<'r>(
    run: &Run<'r>,
    row: &mut Row,
    slot: Slot,
    key: Symbol,
    value: &'r Ex,
) -> Result<bool> {
    let wanted = eval(run, row, value)?;
    if wanted.is_null() {
        return Ok(false);
    }
    let Some(key) = run.key(key)? else {
        return Ok(matches!(&row[slot], Value::List(list) if list.is_empty()));
    };
    let fits = |value: &Value| -> Result<bool> {
        let found = match value {
            Value::Node(node) => run.graph.node_property(*node, key)?,
            Value::Relationship(edge) => run.graph.edge_property(*edge, key)?,
            _ => Value::Null,
        };
        Ok(equals(&found, &wanted) == Some(true))
    };
    match &row[slot] {
        Value::List(list) => {
            for value in list.iter() {
                if !fits(value)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        value => fits(value),
    }
}

/// Builds the path along bound relationships.
fn path<'r>(
    run: &Run<'r>,
    row: &Row,
    start: Slot,
    rels: &[(Slot, &'r PatternRel)],
) -> Result<Value> {
    let Value::Node(mut node) = row[start] else { return Ok(Value::Null) };
    let mut path = Path { nodes: vec![node], relationships: Vec::new() };
    let mut walk = |edge: i64| -> Result<()> {
        run.budget.step()?;
        let found = run.edge(edge)?;
        node = if found.start == node { found.end } else { found.start };
        path.relationships.push(edge);
        path.nodes.push(node);
        Ok(())
    };
    for (slot, _) in rels {
        match &row[*slot] {
            Value::Relationship(edge) => walk(*edge)?,
            Value::List(list) => {
                for value in list.iter() {
                    if let Value::Relationship(edge) = value {
                        walk(*edge)?;
                    }
                }
            }
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::Path(std::sync::Arc::new(path)))
}

fn optional<'r>(
    run: &Run<'r>,
    ops: &[Op<'r>],
    slots: &[Slot],
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let mut found = false;
    let flow = exec(run, ops, row, &mut |row| {
        found = true;
        next(row)
    })?;
    if found || flow == Flow::Stop {
        return Ok(flow);
    }
    for slot in slots {
        row[*slot] = Value::Null;
    }
    next(row)
}

fn unwind<'r>(
    run: &Run<'r>,
    list: &'r Ex,
    slot: Slot,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    match eval(run, row, list)? {
        Value::Null => Ok(Flow::Continue),
        Value::List(list) => {
            for value in list.iter() {
                run.budget.step()?;
                row[slot] = value.clone();
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        single => {
            row[slot] = single;
            next(row)
        }
    }
}

/// Whether the pattern already uses a relationship.
pub(super) fn is_taken(row: &Row, others: &[Slot], hop: &Hop) -> bool {
    others.iter().any(|slot| match &row[*slot] {
        Value::Relationship(edge) => *edge == hop.edge,
        Value::List(list) => {
            list.iter().any(|value| matches!(value, Value::Relationship(edge) if *edge == hop.edge))
        }
        _ => false,
    })
}

/// The node in a slot; `None` if it is null, which ends the match.
pub(super) fn node_at(run: &Run<'_>, row: &Row, slot: Slot) -> Result<Option<i64>> {
    match &row[slot] {
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            Ok(Some(*node))
        }
        Value::Null => Ok(None),
        other => Err(wrong_kind("node", other)),
    }
}
