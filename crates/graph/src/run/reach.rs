//! Finds reachable nodes where the relationships do not matter.

use isolith_types::FastSet;

use crate::error::Result;
use crate::plan::VarExpand;
use crate::value::Value;

use super::expand::ends;
use super::pipeline::Sink;
use super::{Flow, Row, Run};

/// Every node within the bounds, once. With a minimum length of 0 or 1, walks that use no
/// relationship twice reach the same nodes as arbitrary walks of at most that length: the
/// shortest walk between two nodes, and the shortest directed cycle through the first, never
/// use one twice.
pub(super) fn reach<'r>(
    run: &Run<'r>,
    it: &VarExpand<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let Some((from, target)) = ends(run, row, it.from, it.to_bound.then_some(it.to))? else {
        return Ok(Flow::Continue);
    };
    let mut arrive = |node: i64, row: &mut Row| -> Result<Flow> {
        match target {
            Some(target) if target != node => return Ok(Flow::Continue),
            Some(_) => {}
            None => row[it.to] = Value::Node(node),
        }
        next(row)
    };
    let mut seen = Seen::new(run);
    let mut frontier = vec![from];
    let mut ahead = Vec::new();
    let mut hops = Vec::new();
    let mut held = run.budget.hold();
    held.keep(seen.bits.len() * 8)?;
    if it.min == 0 {
        seen.insert(run, from);
        if arrive(from, row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    let mut depth = 0;
    while depth < it.max && !frontier.is_empty() {
        for &node in &frontier {
            hops.clear();
            it.ways.hops(run, node, &mut hops)?;
            for hop in &hops {
                run.budget.step()?;
                if !seen.insert(run, hop.node) {
                    continue;
                }
                held.keep(16)?;
                // The start node was already expanded, even if it is reached only now.
                if hop.node != from {
                    ahead.push(hop.node);
                }
                if arrive(hop.node, row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        frontier.clear();
        std::mem::swap(&mut frontier, &mut ahead);
        depth += 1;
    }
    Ok(Flow::Continue)
}

/// The visited nodes: a bit set if there is an adjacency, a hash set otherwise.
pub(super) struct Seen {
    bits: Vec<u64>,
    set: FastSet<i64>,
    count: usize,
}

impl Seen {
    pub(super) fn new(run: &Run<'_>) -> Self {
        let words = run.adjacency().map_or(0, |adjacency| adjacency.nodes.len() / 64 + 1);
        Seen { bits: vec![0; words], set: FastSet::default(), count: 0 }
    }

    /// Returns false if the node was already visited.
    pub(super) fn insert(&mut self, run: &Run<'_>, node: i64) -> bool {
        let position = run.adjacency().and_then(|adjacency| adjacency.position(node));
        let new = match position {
            Some(position) => {
                let word = &mut self.bits[position as usize / 64];
                let bit = 1 << (position % 64);
                let new = *word & bit == 0;
                *word |= bit;
                new
            }
            None => self.set.insert(node),
        };
        self.count += usize::from(new);
        new
    }
}
