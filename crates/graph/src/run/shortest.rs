//! Shortest paths by bidirectional search.

use std::collections::hash_map::Entry;

use isolith_types::FastMap;

use crate::error::Result;
use crate::graph::Hop;
use crate::ir::Symbol;
use crate::plan::ShortestPath;
use crate::value::{Path, Value};

use super::exec::{is_taken, node_at};
use super::expand::{EdgeSelector, edge_fits, wanted_properties};
use super::pipeline::Sink;
use super::project::is_true;
use super::{Flow, Row, Run, eval};
use crate::budget::HeldBytes;

/// The shortest path between two bound nodes, or all of them.
pub(super) fn shortest<'r>(
    run: &Run<'r>,
    it: &ShortestPath<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let (Some(from), Some(to)) = (node_at(run, row, it.from)?, node_at(run, row, it.to)?) else {
        return Ok(Flow::Continue);
    };
    run.adjacency();
    let wanted = wanted_properties(run, row, it.properties)?;
    if !it.filters.is_empty() || (from == to && it.min > 0) || !it.others.is_empty() {
        return by_length(run, it, (from, to), &wanted, row, next);
    }
    if from == to {
        row[it.rel] = Value::list(Vec::new());
        return next(row);
    }
    let mut held = run.budget.hold();
    let meeting = meet(run, it, (from, to), &wanted, &mut held)?;
    let Some(meeting) = meeting else { return Ok(Flow::Continue) };
    for middle in &meeting.nodes {
        let mut held = run.budget.hold();
        let mut halves = Vec::new();
        meeting.forth.walks(run, *middle, it.all, &mut halves, &mut held)?;
        let mut ends = Vec::new();
        meeting.back.walks(run, *middle, it.all, &mut ends, &mut held)?;
        for half in &halves {
            for end in &ends {
                run.budget.steps(1 + half.len() / 8 + end.len() / 8)?;
                // The first half goes from the middle to the start.
                let edges = half.iter().rev().chain(end);
                row[it.rel] = Value::list(edges.map(|edge| Value::Relationship(*edge)).collect());
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                if !it.all {
                    return Ok(Flow::Continue);
                }
            }
        }
    }
    Ok(Flow::Continue)
}

/// Where the two searches met, and what each has seen.
struct Meeting {
    nodes: Vec<i64>,
    forth: Search,
    back: Search,
}

/// A search from one end: for each node its distance, and the previous node and relationship.
struct Search {
    seen: FastMap<i64, (u64, (i64, i64))>,
    /// Further predecessors at the same distance.
    more: FastMap<i64, Vec<(i64, i64)>>,
    frontier: Vec<i64>,
    depth: u64,
    start: i64,
}

fn meet<'r>(
    run: &Run<'r>,
    it: &ShortestPath<'r>,
    (from, to): (i64, i64),
    wanted: &[(Symbol, Value)],
    held: &mut HeldBytes<'_>,
) -> Result<Option<Meeting>> {
    let mut forth = Search::new(from);
    let mut back = Search::new(to);
    while forth.depth + back.depth < it.max {
        if forth.frontier.is_empty() || back.frontier.is_empty() {
            return Ok(None);
        }
        // Advance the side with the smaller frontier.
        if forth.frontier.len() <= back.frontier.len() {
            forth.advance(run, &it.ways, wanted, it.all, held)?;
        } else {
            back.advance(run, &it.back, wanted, it.all, held)?;
        }
        // Each path has exactly one node at the depth of the first search.
        let met = |node: &&i64| back.seen.get(node).is_some_and(|(far, _)| *far == back.depth);
        let nodes: Vec<i64> = forth.frontier.iter().filter(met).copied().collect();
        if !nodes.is_empty() {
            return Ok(Some(Meeting { nodes, forth, back }));
        }
    }
    Ok(None)
}

impl Search {
    fn new(start: i64) -> Self {
        let seen = FastMap::from_iter([(start, (0, (start, 0)))]);
        Search { seen, more: FastMap::default(), frontier: vec![start], depth: 0, start }
    }

    fn advance<'r>(
        &mut self,
        run: &Run<'r>,
        ways: &EdgeSelector<'r>,
        wanted: &[(Symbol, Value)],
        all: bool,
        held: &mut HeldBytes<'_>,
    ) -> Result<()> {
        self.depth += 1;
        let mut ahead = Vec::new();
        let mut hops: Vec<Hop> = Vec::new();
        for &node in &self.frontier {
            hops.clear();
            ways.hops(run, node, &mut hops)?;
            for hop in &hops {
                run.budget.step()?;
                if !wanted.is_empty() && !edge_fits(run, hop.edge, wanted)? {
                    continue;
                }
                match self.seen.entry(hop.node) {
                    Entry::Vacant(entry) => {
                        held.keep(96)?;
                        entry.insert((self.depth, (node, hop.edge)));
                        ahead.push(hop.node);
                    }
                    Entry::Occupied(entry) if all && entry.get().0 == self.depth => {
                        held.keep(48)?;
                        self.more.entry(hop.node).or_default().push((node, hop.edge));
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        self.frontier = ahead;
        Ok(())
    }

    /// The paths from a node back to the start of the search: all, or one.
    fn walks(
        &self,
        run: &Run<'_>,
        from: i64,
        all: bool,
        walks: &mut Vec<Vec<i64>>,
        held: &mut HeldBytes<'_>,
    ) -> Result<()> {
        let mut open = vec![(from, Vec::new())];
        while let Some((node, walk)) = open.pop() {
            run.budget.steps(1 + walk.len() / 8)?;
            if node == self.start {
                held.keep(walk.len() * 8 + 40)?;
                walks.push(walk);
                if !all {
                    return Ok(());
                }
                continue;
            }
            let Some((_, first)) = self.seen.get(&node) else { continue };
            let more = self.more.get(&node);
            for (before, edge) in std::iter::once(first).chain(more.into_iter().flatten()) {
                let mut longer: Vec<i64> = walk.clone();
                longer.push(*edge);
                open.push((*before, longer));
            }
        }
        Ok(())
    }
}

/// Tries paths by increasing length until one satisfies the filters: for conditions on the path,
/// which may rule out the shortest ones.
fn by_length<'r>(
    run: &Run<'r>,
    it: &ShortestPath<'r>,
    (from, to): (i64, i64),
    wanted: &[(Symbol, Value)],
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let mut walks: Vec<(Vec<i64>, Vec<i64>)> = vec![(vec![from], Vec::new())];
    let mut held = run.budget.hold();
    let mut length = 0;
    loop {
        let mut found = false;
        if length >= it.min {
            for (nodes, edges) in walks.iter().filter(|(nodes, _)| nodes.last() == Some(&to)) {
                run.budget.steps(1 + nodes.len() / 8)?;
                if !satisfies(run, it, nodes, edges, row)? {
                    continue;
                }
                found = true;
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                if !it.all {
                    return Ok(Flow::Continue);
                }
            }
        }
        if found || walks.is_empty() || length >= it.max {
            return Ok(Flow::Continue);
        }
        length += 1;
        let mut ahead = run.budget.hold();
        walks = longer(run, it, &walks, wanted, row, &mut ahead)?;
        drop(std::mem::replace(&mut held, ahead));
    }
}

fn longer<'r>(
    run: &Run<'r>,
    it: &ShortestPath<'r>,
    walks: &[(Vec<i64>, Vec<i64>)],
    wanted: &[(Symbol, Value)],
    row: &Row,
    held: &mut HeldBytes<'_>,
) -> Result<Vec<(Vec<i64>, Vec<i64>)>> {
    let mut result = Vec::new();
    let mut hops = Vec::new();
    for (nodes, edges) in walks {
        let Some(&node) = nodes.last() else { continue };
        hops.clear();
        it.ways.hops(run, node, &mut hops)?;
        for hop in &hops {
            run.budget.steps(1 + edges.len() / 8)?;
            if edges.contains(&hop.edge)
                || is_taken(row, &it.others, hop)
                || !edge_fits(run, hop.edge, wanted)?
            {
                continue;
            }
            let (mut nodes, mut edges) = (nodes.clone(), edges.clone());
            nodes.push(hop.node);
            edges.push(hop.edge);
            held.keep(16 * nodes.len() + 80)?;
            result.push((nodes, edges));
        }
    }
    Ok(result)
}

/// Puts a path into the row and returns whether it satisfies the filters.
fn satisfies<'r>(
    run: &Run<'r>,
    it: &ShortestPath<'r>,
    nodes: &[i64],
    edges: &[i64],
    row: &mut Row,
) -> Result<bool> {
    row[it.rel] = Value::list(edges.iter().map(|edge| Value::Relationship(*edge)).collect());
    if let Some(slot) = it.path {
        let path = Path { nodes: nodes.to_vec(), relationships: edges.to_vec() };
        row[slot] = Value::Path(std::sync::Arc::new(path));
    }
    for filter in &it.filters {
        if !is_true(&eval(run, row, filter)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
