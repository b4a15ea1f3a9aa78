//! Skips work whose result is not used: listing relationships that are only counted, and
//! enumerating paths where only the set of reached nodes matters.

use std::rc::Rc;

use crate::error::Result;
use crate::functions::AggregateKind;
use crate::graph::Direction;
use crate::ir::{Ex, Project, Slot};
use crate::run::Run;

use super::{Expand, Op, Total, Weight};

/// Simplifies the operators before a projection. Returns the slot that holds how many rows a
/// row represents, if there is one.
pub(crate) fn shorten(ops: &mut Vec<Op<'_>>, project: &Project) -> Option<Slot> {
    if ignores_repetition(project) {
        reach(ops, project);
        return None;
    }
    weigh(ops, project)
}

/// Whether every row of these operators is a group of its own: they visit each node once, and
/// one of the keys is the node or a property with distinct values.
pub(crate) fn groups_differ(run: &Run<'_>, ops: &[Op<'_>], project: &Project) -> Result<bool> {
    let Some((Op::Scan { slot, label }, rest)) = ops.split_first() else { return Ok(false) };
    let once = |op: &Op<'_>| {
        matches!(op, Op::Labels { .. } | Op::NodeProperty { .. } | Op::Filter(_) | Op::Weight(_))
    };
    if project.aggregates.is_none() || !rest.iter().all(once) {
        return Ok(false);
    }
    let is_node = |ex: &Ex| matches!(ex, Ex::Slot(key) if key == slot);
    if project.pre.iter().any(|(ex, _)| is_node(ex)) {
        return Ok(true);
    }
    // Checking for distinct values pays only if most nodes are read.
    let label = match label {
        Some(label) => match run.label(*label)? {
            Some(label) => Some(label),
            None => return Ok(false),
        },
        None => None,
    };
    let all = rest.iter().all(|op| matches!(op, Op::Weight(_)));
    if !all || run.graph.node_count(label)? < run.graph.node_count(None)? / 4 {
        return Ok(false);
    }
    for (ex, _) in &project.pre {
        if let Ex::Property(of, key) = ex
            && is_node(of)
            && let Some(key) = run.key(*key)?
            && run.graph.has_unique_values(label, key)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the result is the rows with the highest counts, so that the rest can be skipped once
/// enough are known. Nothing that is skipped may be able to fail.
pub(crate) fn heaviest_first(project: &Project) -> bool {
    let (Some([count]), Some((first, true))) =
        (project.aggregates.as_deref(), project.order.first())
    else {
        return false;
    };
    let is_count = |ex: &Ex| matches!(ex, Ex::Slot(slot) if *slot == count.slot);
    let shows_count =
        |(ex, slot): &(Ex, Slot)| is_count(ex) && matches!(first, Ex::Slot(shown) if shown == slot);
    let cannot_fail = |ex: &Ex| match ex {
        Ex::Slot(_) | Ex::Value(_) => true,
        Ex::Property(of, _) => matches!(**of, Ex::Slot(_)),
        _ => false,
    };
    let items = project.pre.iter().chain(&project.post).map(|(ex, _)| ex);
    let order = project.order.iter().map(|(ex, _)| ex);
    (is_count(first) || project.post.iter().any(shows_count))
        && items.chain(order).chain(&count.arguments).all(cannot_fail)
}

/// Whether duplicate rows do not change the result.
fn ignores_repetition(project: &Project) -> bool {
    match &project.aggregates {
        None => project.distinct && project.filter.is_none(),
        Some(aggregates) => aggregates.iter().all(|aggregate| {
            aggregate.distinct || matches!(aggregate.kind, AggregateKind::Min | AggregateKind::Max)
        }),
    }
}

/// Whether the projection uses a slot.
fn uses(project: &Project, slot: Slot) -> bool {
    let wanted = |it: Slot| it == slot;
    let items = project.pre.iter().chain(&project.post).map(|(ex, _)| ex);
    let arguments = project.aggregates.iter().flatten().flat_map(|it| &it.arguments);
    let order = project.order.iter().map(|(ex, _)| ex);
    let all = items.chain(arguments).chain(order).chain(&project.filter);
    all.into_iter().any(|ex| ex.uses(&wanted)) || project.keep.contains(&slot)
}

/// Replaces variable-length expansions whose relationships are unused by the set of reached
/// nodes.
fn reach<'r>(ops: &mut Vec<Op<'r>>, project: &Project) {
    let taken: Vec<Op<'r>> = std::mem::take(ops);
    for op in taken {
        ops.push(match op {
            Op::VarExpand(it)
                if !uses(project, it.rel)
                    && it.min <= 1
                    && it.others.is_empty()
                    && it.properties.is_empty()
                    && (it.ways.direction != Direction::Both || it.min == 0) =>
            {
                if it.keep {
                    Op::VarExpand(it)
                } else {
                    Op::Reach(it)
                }
            }
            op => op,
        });
    }
}

/// Replaces the last expansion, or all operators, by a count if only the count is used.
fn weigh(ops: &mut Vec<Op<'_>>, project: &Project) -> Option<Slot> {
    let (rel, to) = match ops.last()? {
        Op::Expand(it) if !it.to_bound && it.others.is_empty() => (it.rel, it.to),
        Op::Scan { slot, .. } if ops.len() == 1 => (*slot, *slot),
        _ => return None,
    };
    if !counts_only(project, rel, to) {
        return None;
    }
    // The reached node is not used, so its slot can hold the count.
    let alone = project.pre.is_empty();
    match ops.pop()? {
        Op::Scan { slot, label } if alone => {
            ops.push(Op::Total { what: Total::Nodes(label), slot, rel: slot });
            Some(slot)
        }
        Op::Expand(it) => {
            let from_all = matches!(ops[..], [Op::Scan { slot, label: None }] if slot == it.from);
            let unseen = alone && !uses(project, it.from);
            if from_all && unseen && it.ways.direction != Direction::Both {
                ops.clear();
                let what = Total::Relationships(it.ways.types);
                ops.push(Op::Total { what, slot: it.to, rel: it.rel });
                return Some(it.to);
            }
            let Expand { from, ways, to: slot, rel, .. } = it;
            ops.push(Op::Weight(Weight { from, ways, slot, rel, least: Rc::default() }));
            Some(slot)
        }
        op => {
            ops.push(op);
            None
        }
    }
}

/// Whether these slots are used for counting only, and are never null.
fn counts_only(project: &Project, rel: Slot, to: Slot) -> bool {
    let is_one = |slot: Slot| slot == rel || slot == to;
    let Some(aggregates) = &project.aggregates else { return false };
    let counted = aggregates.iter().all(|aggregate| match aggregate.kind {
        AggregateKind::CountRows => true,
        AggregateKind::Count => {
            let argument = &aggregate.arguments[0];
            !aggregate.distinct && (matches!(argument, Ex::Slot(_)) || !argument.uses(&is_one))
        }
        _ => false,
    });
    counted && !project.pre.iter().any(|(ex, _)| ex.uses(&is_one))
}
