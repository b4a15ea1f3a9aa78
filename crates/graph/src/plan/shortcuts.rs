//! What can be left out because nobody looks: the relationships behind a count, the walks
//! behind a set of nodes.

use crate::error::Result;
use crate::functions::AggregateKind;
use crate::graph::Direction;
use crate::ir::{Ex, Project, Slot};
use crate::run::Run;

use super::{Op, Weight};

/// Shortens the operators before a projection. Gives the slot that says how many rows a row
/// stands for, if there is one.
pub(crate) fn shorten<'r>(
    run: &Run<'r>,
    ops: &mut Vec<Op<'r>>,
    project: &'r Project,
) -> Result<Option<Slot>> {
    let _ = run;
    if ignores_repetition(project) {
        reach(ops, project);
        return Ok(None);
    }
    Ok(weigh(ops, project))
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

/// Turns the last step into the number of its results, if only that number is asked for.
fn weigh<'r>(ops: &mut Vec<Op<'r>>, project: &'r Project) -> Option<Slot> {
    let aggregates = project.aggregates.as_ref()?;
    let Some(Op::Expand(it)) = ops.last() else { return None };
    if it.to_bound || !it.others.is_empty() {
        return None;
    }
    let (rel, to) = (it.rel, it.to);
    let counted = aggregates.iter().all(|aggregate| match aggregate.kind {
        AggregateKind::CountRows => true,
        AggregateKind::Count => {
            // One of them is there for each result; anything else that is counted does
            // not depend on it.
            !aggregate.distinct
                && match &aggregate.arguments[0] {
                    Ex::Slot(_) => true,
                    ex => !ex.uses(&|slot| slot == rel || slot == to),
                }
        }
        _ => false,
    });
    let grouped = project.pre.iter().any(|(ex, _)| ex.uses(&|slot| slot == rel || slot == to));
    if !counted || grouped {
        return None;
    }
    let Some(Op::Expand(it)) = ops.pop() else { return None };
    // The relationship's slot is free to say that it is there, the node's as well; the number
    // needs one of its own, which is the node's.
    ops.push(Op::Weight(Weight {
        from: it.from,
        ways: it.ways,
        slot: it.to,
        rel: it.rel,
        to: it.rel,
    }));
    Some(it.to)
}
