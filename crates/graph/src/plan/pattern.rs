use std::collections::HashSet;

use crate::ast::{BinaryOp, CompareOp};
use crate::error::{Error, Result};
use crate::functions::Function;
use crate::ir::{Ex, Match, Pattern, PatternRel, Slot, Symbol};
use crate::run::{EdgeSelector, Run};

use super::{BoundRel, Expand, Op, Seek, ShortestPath, VarExpand};

/// The maximum number of nodes and relationships of a pattern.
const MAX_PARTS: usize = 400;

/// Plans the operators that find a pattern.
pub(crate) fn plan<'r>(run: &Run<'r>, clause: &'r Match) -> Result<Vec<Op<'r>>> {
    let pattern = &clause.pattern;
    let parts = pattern.nodes.len() + pattern.rels.len();
    let parts = parts + pattern.conditions.len() + clause.filters.len();
    if parts > MAX_PARTS {
        let message = format!("a pattern of more than {MAX_PARTS} nodes and relationships");
        return Err(Error::TooLarge(message));
    }
    let mut planner = Planner::new(run, clause);
    planner.known();
    while planner.step()? {}
    Ok(planner.ops)
}

/// A condition, checked as soon as all slots it uses are bound.
enum Check<'r> {
    Filter(&'r Ex),
    NodeProperty { slot: Slot, key: Symbol, value: &'r Ex },
    RelProperty { slot: Slot, key: Symbol, value: &'r Ex },
    Path(usize),
}

struct Planner<'p, 'r> {
    run: &'p Run<'r>,
    clause: &'r Match,
    pattern: &'r Pattern,
    ops: Vec<Op<'r>>,
    /// The slots of this pattern that are not bound yet.
    open: HashSet<Slot>,
    /// The relationships planned so far, in order.
    done: Vec<usize>,
    checks: Vec<Check<'r>>,
}

impl<'p, 'r> Planner<'p, 'r> {
    fn new(run: &'p Run<'r>, clause: &'r Match) -> Self {
        let pattern = &clause.pattern;
        let nodes = pattern.nodes.iter().filter(|node| !node.bound).map(|node| node.slot);
        let rels = pattern.rels.iter().filter(|rel| !rel.bound).map(|rel| rel.slot);
        let paths = pattern.paths.iter().map(|path| path.slot);
        let open = nodes.chain(rels).chain(paths).collect();
        let mut checks = Vec::new();
        for node in &pattern.nodes {
            let slot = node.slot;
            let properties = node.properties.iter();
            checks.extend(properties.map(|(key, value)| Check::NodeProperty {
                slot,
                key: *key,
                value,
            }));
        }
        for rel in pattern.rels.iter().filter(|rel| rel.length.is_none() || rel.bound) {
            checks.extend(rel_checks(rel));
        }
        checks.extend((0..pattern.paths.len()).map(Check::Path));
        checks.extend(pattern.conditions.iter().chain(&clause.filters).map(Check::Filter));
        Planner { run, clause, pattern, ops: Vec::new(), open, done: Vec::new(), checks }
    }

    fn is_bound(&self, node: usize) -> bool {
        !self.open.contains(&self.pattern.nodes[node].slot)
    }

    fn is_ready(&self, ex: &Ex) -> bool {
        !ex.uses(&|slot| self.open.contains(&slot))
    }

    /// Adds checks for what earlier clauses have bound.
    fn known(&mut self) {
        for node in self.pattern.nodes.iter().filter(|node| node.bound) {
            self.ops.push(Op::CheckNode { slot: node.slot });
            if !node.labels.is_empty() {
                self.ops.push(Op::Labels { slot: node.slot, labels: &node.labels });
            }
        }
        self.check();
    }

    /// Adds all pending checks whose slots are bound.
    fn check(&mut self) {
        let checks = std::mem::take(&mut self.checks);
        for check in checks {
            let ready = match &check {
                Check::Filter(ex) => self.is_ready(ex),
                Check::NodeProperty { slot, value, .. }
                | Check::RelProperty { slot, value, .. } => {
                    !self.open.contains(slot) && self.is_ready(value)
                }
                Check::Path(at) => {
                    let path = &self.pattern.paths[*at];
                    path.rels.iter().all(|rel| self.done.contains(rel)) && self.is_bound(path.start)
                }
            };
            if !ready {
                self.checks.push(check);
                continue;
            }
            match check {
                Check::Filter(ex) => self.ops.push(Op::Filter(ex)),
                Check::NodeProperty { slot, key, value } => {
                    self.ops.push(Op::NodeProperty { slot, key, value });
                }
                Check::RelProperty { slot, key, value } => {
                    self.ops.push(Op::RelProperty { slot, key, value });
                }
                Check::Path(at) => self.path(at),
            }
        }
    }

    fn path(&mut self, at: usize) {
        let path = &self.pattern.paths[at];
        let rels = path.rels.iter().map(|&rel| &self.pattern.rels[rel]);
        let rels = rels.map(|rel| (rel.slot, rel)).collect();
        let start = self.pattern.nodes[path.start].slot;
        self.ops.push(Op::Path { slot: path.slot, start, rels });
        self.open.remove(&path.slot);
        // Filters may depend on the path.
        self.check();
    }

    /// Plans one more relationship or node; false if there is nothing left.
    fn step(&mut self) -> Result<bool> {
        let waiting = |rel: &usize| !self.done.contains(rel);
        let rels: Vec<usize> = (0..self.pattern.rels.len()).filter(waiting).collect();
        let mut best: Option<(f64, usize)> = None;
        for at in rels {
            if let Some(cost) = self.cost(at)?
                && best.is_none_or(|(least, _)| cost < least)
            {
                best = Some((cost, at));
            }
        }
        if let Some((_, at)) = best {
            self.relationship(at);
            return Ok(true);
        }
        let mut start: Option<(f64, usize, Op<'r>)> = None;
        for node in 0..self.pattern.nodes.len() {
            if self.is_bound(node) {
                continue;
            }
            let (cost, op) = self.start(node)?;
            if start.as_ref().is_none_or(|(least, _, _)| cost < *least) {
                start = Some((cost, node, op));
            }
        }
        let Some((_, node, op)) = start else { return Ok(false) };
        // A scan by the only label makes the label check redundant.
        let labels = &self.pattern.nodes[node].labels[..];
        let checked = matches!((&op, labels), (Op::Scan { label: Some(_), .. }, [_]));
        self.start_with(op);
        if checked {
            self.open.remove(&self.pattern.nodes[node].slot);
        } else {
            self.bind(node);
        }
        self.check();
        Ok(true)
    }

    /// Adds an operator that finds a node, followed by the check of the property it is looked up
    /// by.
    fn start_with(&mut self, mut op: Op<'r>) {
        let mut check = None;
        if let Op::Seek { slot, seek: Seek::Property { value, checked, .. } } = &mut op {
            let is_same = |it: &Check<'r>| match it {
                Check::NodeProperty { slot: at, value: by, .. } => {
                    at == slot && std::ptr::eq(*by, *value)
                }
                _ => false,
            };
            check = self.checks.iter().position(is_same).map(|at| self.checks.remove(at));
            *checked = check.is_some();
        }
        self.ops.push(op);
        if let Some(Check::NodeProperty { slot, key, value }) = check {
            self.ops.push(Op::NodeProperty { slot, key, value });
        }
    }

    /// Marks a node as bound.
    fn bind(&mut self, node: usize) {
        let node = &self.pattern.nodes[node];
        if self.open.remove(&node.slot) && !node.labels.is_empty() {
            self.ops.push(Op::Labels { slot: node.slot, labels: &node.labels });
        }
    }

    /// The estimated number of rows per row if this relationship comes next; `None` if it cannot.
    fn cost(&self, at: usize) -> Result<Option<f64>> {
        let rel = &self.pattern.rels[at];
        let (from, to) = (self.is_bound(rel.from), self.is_bound(rel.to));
        if rel.bound {
            let list = rel.length.is_some();
            return Ok((!list || from).then_some(0.0));
        }
        if rel.shortest.is_some() {
            return Ok((from && to).then_some(0.5));
        }
        if !from && !to {
            return Ok(None);
        }
        let mut fan = self.fan_out(&rel.types)?;
        if from && to {
            fan *= 0.01;
        }
        if rel.length.is_some() {
            fan = (fan * 4.0).max(4.0) + 1000.0;
        }
        Ok(Some(fan))
    }

    fn fan_out(&self, types: &[Symbol]) -> Result<f64> {
        let nodes = self.run.graph.node_count(None)?.max(1) as f64;
        let edges = match self.run.kinds(types)? {
            None => 0,
            Some(kinds) if kinds.is_empty() => self.run.graph.edge_count(None)?,
            Some(kinds) => {
                let mut count = 0;
                for kind in kinds {
                    count += self.run.graph.edge_count(Some(kind))?;
                }
                count
            }
        };
        Ok(edges as f64 / nodes)
    }

    fn others(&self, at: usize) -> Vec<Slot> {
        let rel = &self.pattern.rels[at];
        let apart = |other: &PatternRel| {
            !rel.types.is_empty()
                && !other.types.is_empty()
                && !rel.types.iter().any(|kind| other.types.contains(kind))
        };
        let others = self.done.iter().map(|&other| &self.pattern.rels[other]);
        // Relationships of disjoint types differ anyway.
        others.filter(|other| !apart(other)).map(|other| other.slot).collect()
    }

    fn relationship(&mut self, at: usize) {
        let rel = &self.pattern.rels[at];
        let others = self.others(at);
        let (from_bound, to_bound) = (self.is_bound(rel.from), self.is_bound(rel.to));
        let slot = |node: usize| self.pattern.nodes[node].slot;
        let (from, to) = (slot(rel.from), slot(rel.to));
        self.done.push(at);
        if rel.bound {
            let bound = BoundRel { rel, from, to, from_bound, to_bound, others };
            self.ops.push(match rel.length {
                Some(_) => Op::BoundRels(bound),
                None => Op::BoundRel(bound),
            });
            self.arrive(rel);
            return;
        }
        if let Some(shortest) = rel.shortest {
            let all = ShortestPath::is_all(shortest);
            self.shortest(rel, at, all, others);
            self.arrive(rel);
            return;
        }
        self.expand(rel, at, (from, to), (from_bound, to_bound), others);
        self.arrive(rel);
    }

    /// Expands a relationship from its bound end.
    fn expand(
        &mut self,
        rel: &'r PatternRel,
        at: usize,
        (mut from, mut to): (Slot, Slot),
        (from_bound, to_bound): (bool, bool),
        others: Vec<Slot>,
    ) {
        let reversed = !from_bound;
        let mut direction = rel.direction;
        if reversed {
            std::mem::swap(&mut from, &mut to);
            direction = direction.reversed();
        }
        let to_bound = from_bound && to_bound;
        let ways = EdgeSelector::new(&rel.types, direction);
        let Some((min, max)) = rel.length else {
            let expand = Expand { from, to, to_bound, rel: rel.slot, ways, others };
            self.ops.push(Op::Expand(expand));
            return;
        };
        let ready = rel.properties.iter().all(|(_, value)| self.is_ready(value));
        if !ready {
            self.checks.extend(rel_checks(rel));
        }
        let keep = rel.named || !ready || self.is_watched(at);
        self.ops.push(Op::VarExpand(VarExpand {
            from,
            to,
            to_bound,
            rel: rel.slot,
            keep,
            reversed,
            ways,
            properties: if ready { &rel.properties } else { &[] },
            min,
            max,
            others,
        }));
    }

    /// Whether a path or another relationship uses this one.
    fn is_watched(&self, at: usize) -> bool {
        self.pattern.rels.len() > 1 || self.pattern.paths.iter().any(|path| path.rels.contains(&at))
    }

    fn arrive(&mut self, rel: &'r PatternRel) {
        self.open.remove(&rel.slot);
        self.bind(rel.from);
        self.bind(rel.to);
        self.check();
    }

    fn shortest(&mut self, rel: &'r PatternRel, at: usize, all: bool, others: Vec<Slot>) {
        let (min, max) = rel.length.unwrap_or((1, 1));
        let path = self.pattern.paths.iter().find(|path| path.rels.contains(&at));
        let path = path.map(|path| path.slot);
        // Filters on the path are part of the search: the result is the shortest path that
        // satisfies them.
        let looks = |ex: &Ex| ex.uses(&|slot| slot == rel.slot || Some(slot) == path);
        let (filters, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.checks)
            .into_iter()
            .partition(|check| matches!(check, Check::Filter(ex) if looks(ex)));
        self.checks = rest;
        let filters = filters.into_iter().filter_map(|check| match check {
            Check::Filter(ex) => Some(ex),
            _ => None,
        });
        let slot = |node: usize| self.pattern.nodes[node].slot;
        self.ops.push(Op::Shortest(ShortestPath {
            from: slot(rel.from),
            to: slot(rel.to),
            rel: rel.slot,
            all,
            ways: EdgeSelector::new(&rel.types, rel.direction),
            back: EdgeSelector::new(&rel.types, rel.direction.reversed()),
            properties: &rel.properties,
            min,
            max,
            others,
            filters: filters.collect(),
            path,
        }));
    }

    /// The cheapest operator that finds a node, and the estimated number of nodes.
    fn start(&self, at: usize) -> Result<(f64, Op<'r>)> {
        let node = &self.pattern.nodes[at];
        let slot = node.slot;
        let graph = self.run.graph;
        let mut best = (graph.node_count(None)? as f64 + 1.0, Op::Scan { slot, label: None });
        for label in &node.labels {
            let count = match self.run.label(*label)? {
                // A query that writes may add many nodes before it reads again.
                Some(label) if self.run.program.writes => {
                    (graph.node_count(Some(label))? as f64).max(16.0)
                }
                Some(label) => graph.node_count(Some(label))? as f64,
                None => 0.0,
            };
            if count < best.0 {
                best = (count, Op::Scan { slot, label: Some(*label) });
            }
        }
        for (key, value) in node.properties.iter().filter(|(_, value)| self.is_ready(value)) {
            self.seek(at, *key, value, false, &mut best)?;
        }
        for filter in self.pattern.conditions.iter().chain(&self.clause.filters) {
            self.seek_by_filter(at, filter, &mut best)?;
        }
        Ok(best)
    }

    fn seek_by_filter(&self, at: usize, filter: &'r Ex, best: &mut (f64, Op<'r>)) -> Result<()> {
        let slot = self.pattern.nodes[at].slot;
        let property = |ex: &'r Ex| match ex {
            Ex::Property(of, key) if matches!(**of, Ex::Slot(it) if it == slot) => Some(*key),
            _ => None,
        };
        let is_id = |ex: &Ex| matches!(ex, Ex::Call(Function::Id, of) if matches!(of[..], [Ex::Slot(it)] if it == slot));
        match filter {
            Ex::Compare(CompareOp::Equal, pair) => {
                for (left, right) in [(&pair.0, &pair.1), (&pair.1, &pair.0)] {
                    if !self.is_ready(right) {
                        continue;
                    }
                    if is_id(left) && best.0 > 0.5 {
                        *best = (0.5, Op::Seek { slot, seek: Seek::Id(right) });
                    } else if let Some(key) = property(left) {
                        self.seek(at, key, right, false, best)?;
                    }
                }
            }
            Ex::Binary(BinaryOp::In, pair) if self.is_ready(&pair.1) => {
                if let Some(key) = property(&pair.0) {
                    self.seek(at, key, &pair.1, true, best)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn seek(
        &self,
        at: usize,
        key: Symbol,
        value: &'r Ex,
        many: bool,
        best: &mut (f64, Op<'r>),
    ) -> Result<()> {
        let node = &self.pattern.nodes[at];
        let Some(key_id) = self.run.key(key)? else { return Ok(()) };
        let labels = node.labels.iter().copied().map(Some).chain([None]);
        for label in labels {
            let label_id = match label {
                Some(label) => match self.run.label(label)? {
                    Some(label) => Some(label),
                    None => continue,
                },
                None => None,
            };
            let Some(count) = self.run.graph.lookup_estimate(label_id, key_id)? else { continue };
            let cost = if many { count as f64 * 4.0 + 1.0 } else { count as f64 };
            if cost < best.0 {
                let seek = Seek::Property { label, key, value, many, checked: false };
                *best = (cost, Op::Seek { slot: node.slot, seek });
            }
        }
        Ok(())
    }
}

fn rel_checks(rel: &PatternRel) -> impl Iterator<Item = Check<'_>> {
    let slot = rel.slot;
    rel.properties.iter().map(move |(key, value)| Check::RelProperty { slot, key: *key, value })
}
