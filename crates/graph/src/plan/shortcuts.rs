//! What can be left out because nobody looks: the relationships behind a count, the walks
//! behind a set of nodes.

use crate::functions::AggregateKind;
use crate::graph::Direction;
use crate::ir::{Ex, Project, Slot};

use super::{Op, Total, Weight};

/// Shortens the operators before a projection. Gives the slot that says how many rows a row
/// stands for, if there is one.
pub(crate) fn shorten(ops: &mut Vec<Op<'_>>, project: &Project) -> Option<Slot> {
    if ignores_repetition(project) {
        reach(ops, project);
        return None;
    }
    weigh(ops, project)
}

/// Whether every row that these operators make of one is a group of its own: they go
/// through nodes, each of which comes once, and the node is one of the keys.
pub(crate) fn groups_differ(ops: &[Op<'_>], project: &Project) -> bool {
    let Some((Op::Scan { slot, .. }, rest)) = ops.split_first() else { return false };
    let once = |op: &Op<'_>| {
        matches!(op, Op::Labels { .. } | Op::NodeProperty { .. } | Op::Filter(_) | Op::Weight(_))
    };
    rest.iter().all(once)
        && project.pre.iter().any(|(ex, _)| matches!(ex, Ex::Slot(key) if key == slot))
}

/// Whether the same row twice changes nothing.
fn ignores_repetition(project: &Project) -> bool {
    match &project.aggregates {
        None => project.distinct && project.filter.is_none(),
        Some(aggregates) => aggregates.iter().all(|aggregate| {
            aggregate.distinct || matches!(aggregate.kind, AggregateKind::Min | AggregateKind::Max)
        }),
    }
}

/// Whether the projection looks at a slot.
fn uses(project: &Project, slot: Slot) -> bool {
    let wanted = |it: Slot| it == slot;
    let items = project.pre.iter().chain(&project.post).map(|(ex, _)| ex);
    let arguments = project.aggregates.iter().flatten().flat_map(|it| &it.arguments);
    let order = project.order.iter().map(|(ex, _)| ex);
    let all = items.chain(arguments).chain(order).chain(&project.filter);
    all.into_iter().any(|ex| ex.uses(&wanted)) || project.keep.contains(&slot)
}

/// Turns walks whose relationships nobody looks at into sets of the nodes that they reach.
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

/// Turns the last step, or all of them, into the number of results, if only that number is
/// asked for.
fn weigh(ops: &mut Vec<Op<'_>>, project: &Project) -> Option<Slot> {
    let (rel, to) = match ops.last()? {
        Op::Expand(it) if !it.to_bound && it.others.is_empty() => (it.rel, it.to),
        Op::Scan { slot, .. } if ops.len() == 1 => (*slot, *slot),
        _ => return None,
    };
    if !counts_only(project, rel, to) {
        return None;
    }
    // Which node is reached is not asked for, so its slot can hold the number.
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
            ops.push(Op::Weight(Weight { from: it.from, ways: it.ways, slot: it.to, rel: it.rel }));
            Some(it.to)
        }
        op => {
            ops.push(op);
            None
        }
    }
}

/// Whether these slots are counted at most, and always count.
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
