//! Expands nodes along their relationships.

use std::cell::OnceCell;
use std::rc::Rc;

use isolith_types::FastSet;

use crate::csr::{Adjacency, List};
use crate::error::Result;
use crate::graph::{Direction, Hop, TypeId};
use crate::ir::{Slot, Symbol};
use crate::plan::{BoundRel, Expand, Total, VarExpand, Weight};
use crate::value::{Value, equals};

use super::exec::{is_taken, node_at, wrong_kind};
use super::pipeline::Sink;
use super::{Flow, Row, Run, eval};

/// The types and direction of relationships to follow, resolved on first use.
pub(crate) struct EdgeSelector<'r> {
    pub(crate) types: &'r [Symbol],
    pub(crate) direction: Direction,
    kinds: OnceCell<Option<Rc<Vec<TypeId>>>>,
    lists: OnceCell<Vec<List<'r>>>,
}

impl<'r> EdgeSelector<'r> {
    pub(crate) fn new(types: &'r [Symbol], direction: Direction) -> Self {
        EdgeSelector { types, direction, kinds: OnceCell::new(), lists: OnceCell::new() }
    }

    fn kinds(&self, run: &Run<'r>) -> Result<Option<Rc<Vec<TypeId>>>> {
        if let Some(kinds) = self.kinds.get() {
            return Ok(kinds.clone());
        }
        let kinds = run.kinds(self.types)?.map(Rc::new);
        // A query that writes may create new types.
        if !run.program.writes {
            let _ = self.kinds.set(kinds.clone());
        }
        Ok(kinds)
    }

    /// The adjacency and its lists for these types, if there is an adjacency.
    fn lists<'s>(
        &'s self,
        run: &'s Run<'r>,
    ) -> Result<Option<(&'s Adjacency<'r>, &'s [List<'r>])>> {
        let Some(adjacency) = run.adjacency_if_worthwhile() else { return Ok(None) };
        if self.lists.get().is_none() {
            let lists = match self.kinds(run)? {
                Some(kinds) => adjacency.lists(self.direction, &kinds),
                None => Vec::new(),
            };
            let _ = self.lists.set(lists);
        }
        Ok(self.lists.get().map(|lists| (adjacency, &lists[..])))
    }

    /// Appends the relationships of a node.
    pub(super) fn hops(&self, run: &Run<'r>, node: i64, hops: &mut Vec<Hop>) -> Result<()> {
        if let Some((adjacency, lists)) = self.lists(run)? {
            if let Some(position) = adjacency.position(node) {
                adjacency.edges(lists, position, hops);
            }
        } else if let Some(kinds) = self.kinds(run)? {
            run.graph.edges(node, self.direction, &kinds, hops)?;
        }
        run.budget.steps(hops.len())
    }

    fn degree(&self, run: &Run<'r>, node: i64) -> Result<u64> {
        if let Some((adjacency, lists)) = self.lists(run)? {
            return Ok(adjacency.position(node).map_or(0, |at| adjacency.degree(lists, at)));
        }
        match self.kinds(run)? {
            Some(kinds) => Ok(run.graph.degree(node, self.direction, &kinds)?),
            None => Ok(0),
        }
    }
}

/// The start node, and the end node if it is bound; `None` if either is null.
pub(super) fn ends(
    run: &Run<'_>,
    row: &Row,
    from: Slot,
    to: Option<Slot>,
) -> Result<Option<(i64, Option<i64>)>> {
    let Some(from) = node_at(run, row, from)? else { return Ok(None) };
    let Some(to) = to else { return Ok(Some((from, None))) };
    Ok(node_at(run, row, to)?.map(|target| (from, Some(target))))
}

/// Expands one relationship.
pub(super) fn expand<'r>(
    run: &Run<'r>,
    it: &Expand<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let Some((from, target)) = ends(run, row, it.from, it.to_bound.then_some(it.to))? else {
        return Ok(Flow::Continue);
    };
    let mut hops = Vec::new();
    it.ways.hops(run, from, &mut hops)?;
    for hop in &hops {
        if target.is_some_and(|target| target != hop.node) || is_taken(row, &it.others, hop) {
            continue;
        }
        run.budget.step()?;
        row[it.rel] = Value::Relationship(hop.edge);
        if target.is_none() {
            row[it.to] = Value::Node(hop.node);
        }
        if next(row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Counts the relationships of a node without listing them.
pub(super) fn weigh<'r>(
    run: &Run<'r>,
    it: &Weight<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let Some(from) = node_at(run, row, it.from)? else { return Ok(Flow::Continue) };
    let degree = it.ways.degree(run, from)?;
    if degree == 0 {
        return Ok(Flow::Continue);
    }
    row[it.slot] = Value::Integer(i64::try_from(degree).unwrap_or(i64::MAX));
    row[it.rel] = Value::Boolean(true);
    next(row)
}

/// Whether a node has fewer relationships than the current minimum.
pub(super) fn is_too_light<'r>(run: &Run<'r>, it: &Weight<'r>, node: i64) -> Result<bool> {
    let least = it.least.get();
    Ok(least > 0 && it.ways.degree(run, node)? < least.unsigned_abs())
}

/// Counts all nodes or relationships.
pub(super) fn total(
    run: &Run<'_>,
    what: &Total<'_>,
    slot: Slot,
    rel: Slot,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let count = match what {
        Total::Nodes(None) => run.graph.node_count(None)?,
        Total::Nodes(Some(label)) => match run.label(*label)? {
            Some(label) => run.graph.node_count(Some(label))?,
            None => 0,
        },
        Total::Relationships(types) => match run.kinds(types)? {
            None => 0,
            Some(kinds) if kinds.is_empty() => run.graph.edge_count(None)?,
            Some(kinds) => {
                let mut count = 0;
                for kind in kinds {
                    count += run.graph.edge_count(Some(kind))?;
                }
                count
            }
        },
    };
    if count == 0 {
        return Ok(Flow::Continue);
    }
    row[rel] = Value::Boolean(true);
    row[slot] = Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    next(row)
}

/// The properties that each relationship must have.
pub(super) fn wanted_properties<'r>(
    run: &Run<'r>,
    row: &mut Row,
    properties: &'r [(Symbol, crate::ir::Ex)],
) -> Result<Vec<(Symbol, Value)>> {
    properties.iter().map(|(key, value)| Ok((*key, eval(run, row, value)?))).collect()
}

pub(super) fn edge_fits(run: &Run<'_>, edge: i64, wanted: &[(Symbol, Value)]) -> Result<bool> {
    for (key, value) in wanted {
        let Some(key) = run.key(*key)? else { return Ok(false) };
        if equals(&run.graph.edge_property(edge, key)?, value) != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Variable-length expansion: every path that uses no relationship twice. The path is kept on
/// the heap, not the stack, as it may be as long as the graph is large.
pub(super) fn var_expand<'r>(
    run: &Run<'r>,
    it: &VarExpand<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let Some((from, target)) = ends(run, row, it.from, it.to_bound.then_some(it.to))? else {
        return Ok(Flow::Continue);
    };
    run.adjacency();
    let wanted = wanted_properties(run, row, it.properties)?;
    let mut walk = PathWalk::default();
    let mut held = run.budget.hold();
    if it.min == 0 && arrive(it, &walk, from, target, row, next)? == Flow::Stop {
        return Ok(Flow::Stop);
    }
    if it.max == 0 {
        return Ok(Flow::Continue);
    }
    let mut levels: Vec<(Vec<Hop>, usize)> = vec![(Vec::new(), 0)];
    it.ways.hops(run, from, &mut levels[0].0)?;
    while let Some((hops, at)) = levels.last_mut() {
        let Some(hop) = hops.get(*at).copied() else {
            if let Some((hops, _)) = levels.pop() {
                held.release(hops.len() * size_of::<Hop>());
            }
            walk.back();
            continue;
        };
        *at += 1;
        run.budget.step()?;
        if walk.has(hop.edge)
            || is_taken(row, &it.others, &hop)
            || !edge_fits(run, hop.edge, &wanted)?
        {
            continue;
        }
        walk.forth(hop.edge);
        let length = walk.edges.len() as u64;
        if length >= it.min {
            // The path so far is copied for every end node.
            run.budget.steps(walk.edges.len() / 8)?;
            if arrive(it, &walk, hop.node, target, row, next)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if length < it.max {
            let mut hops = Vec::new();
            it.ways.hops(run, hop.node, &mut hops)?;
            held.keep(hops.len() * size_of::<Hop>())?;
            levels.push((hops, 0));
        } else {
            walk.back();
        }
    }
    Ok(Flow::Continue)
}

fn arrive(
    it: &VarExpand<'_>,
    walk: &PathWalk,
    node: i64,
    target: Option<i64>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    match target {
        Some(target) if target != node => return Ok(Flow::Continue),
        Some(_) => {}
        None => row[it.to] = Value::Node(node),
    }
    if it.keep {
        row[it.rel] = walk.value(it.reversed);
    }
    next(row)
}

/// The relationships of a path, with a set for fast lookup once there are many.
#[derive(Default)]
struct PathWalk {
    edges: Vec<i64>,
    set: FastSet<i64>,
}

impl PathWalk {
    const FEW: usize = 16;

    fn has(&self, edge: i64) -> bool {
        if self.edges.len() <= Self::FEW {
            self.edges.contains(&edge)
        } else {
            self.set.contains(&edge)
        }
    }

    fn forth(&mut self, edge: i64) {
        self.edges.push(edge);
        if self.edges.len() == Self::FEW + 1 {
            self.set = self.edges.iter().copied().collect();
        } else if self.edges.len() > Self::FEW {
            self.set.insert(edge);
        }
    }

    fn back(&mut self) {
        if let Some(edge) = self.edges.pop() {
            self.set.remove(&edge);
        }
    }

    fn value(&self, reversed: bool) -> Value {
        let values = self.edges.iter().map(|edge| Value::Relationship(*edge));
        Value::list(if reversed { values.rev().collect() } else { values.collect() })
    }
}

/// A relationship that is already bound: finds its ends.
pub(super) fn bound_rel<'r>(
    run: &Run<'r>,
    it: &BoundRel<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let edge = match &row[it.rel.slot] {
        Value::Relationship(edge) => *edge,
        Value::Null => return Ok(Flow::Continue),
        other => return Err(wrong_kind("relationship", other)),
    };
    let found = run.edge(edge)?;
    let kinds = run.kinds(&it.rel.types)?;
    if !kinds.is_some_and(|kinds| kinds.is_empty() || kinds.contains(&found.kind)) {
        return Ok(Flow::Continue);
    }
    let hop = Hop { edge, node: found.end, kind: found.kind };
    if is_taken(row, &it.others, &hop) {
        return Ok(Flow::Continue);
    }
    let ways: &[(i64, i64)] = match it.rel.direction {
        Direction::Out => &[(found.start, found.end)],
        Direction::In => &[(found.end, found.start)],
        Direction::Both if found.start == found.end => &[(found.start, found.end)],
        Direction::Both => &[(found.start, found.end), (found.end, found.start)],
    };
    for (from, to) in ways {
        let fits = |bound: bool, slot: usize, node: i64, row: &Row| {
            !bound || matches!(row[slot], Value::Node(there) if there == node)
        };
        if !fits(it.from_bound, it.from, *from, row) || !fits(it.to_bound, it.to, *to, row) {
            continue;
        }
        if it.from == it.to && from != to {
            continue;
        }
        if !it.from_bound {
            row[it.from] = Value::Node(*from);
        }
        if !it.to_bound {
            row[it.to] = Value::Node(*to);
        }
        if next(row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// A list of relationships that is already bound, from a bound node.
pub(super) fn bound_rels<'r>(
    run: &Run<'r>,
    it: &BoundRel<'r>,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let list = match &row[it.rel.slot] {
        Value::List(list) => list.clone(),
        Value::Null => return Ok(Flow::Continue),
        other => return Err(wrong_kind("list of relationships", other)),
    };
    let Some(mut node) = node_at(run, row, it.from)? else { return Ok(Flow::Continue) };
    let (min, max) = it.rel.length.unwrap_or((1, 1));
    if !(min..=max).contains(&(list.len() as u64)) {
        return Ok(Flow::Continue);
    }
    let Some(kinds) = run.kinds(&it.rel.types)? else { return Ok(Flow::Continue) };
    for (at, value) in list.iter().enumerate() {
        let Value::Relationship(edge) = value else {
            return Err(wrong_kind("relationship", value));
        };
        let found = run.edge(*edge)?;
        let hop = Hop { edge: *edge, node: found.end, kind: found.kind };
        if list[..at].contains(value)
            || is_taken(row, &it.others, &hop)
            || !(kinds.is_empty() || kinds.contains(&found.kind))
        {
            return Ok(Flow::Continue);
        }
        node = match it.rel.direction {
            Direction::Out | Direction::Both if found.start == node => found.end,
            Direction::In | Direction::Both if found.end == node => found.start,
            _ => return Ok(Flow::Continue),
        };
    }
    if it.to_bound && !matches!(row[it.to], Value::Node(there) if there == node) {
        return Ok(Flow::Continue);
    }
    row[it.to] = Value::Node(node);
    next(row)
}
