//! A query with resolved names: variables are slots of a row; properties, labels and types are
//! symbols.

use std::sync::Arc;

use crate::ast::{BinaryOp, CompareOp, Logic, Quantifier, Shortest, SubqueryKind};
use crate::functions::{AggregateKind, Function};
use crate::graph::Direction;
use crate::procedures::Procedure;
use crate::value::Value;

/// The index of a variable's value in a row.
pub(crate) type Slot = usize;

/// An index into [`Program::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Symbol(pub(crate) u32);

/// A checked query, ready to be planned for a graph.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) union: Subquery,
    pub(crate) columns: Vec<String>,
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) parameters: Vec<Arc<str>>,
    pub(crate) slots: usize,
    /// The names of variables, by slot.
    pub(crate) variables: Vec<Option<Arc<str>>>,
    pub(crate) writes: bool,
}

#[derive(Debug)]
pub(crate) enum QueryStep {
    Match(Match),
    Unwind { list: Ex, slot: Slot },
    Project(Project),
    Create(Vec<CreateItem>),
    Merge(Box<Merge>),
    Set(Vec<SetOp>),
    Delete { detach: bool, targets: Vec<Ex> },
    Foreach { list: Ex, slot: Slot, body: Vec<QueryStep> },
    Call(Box<Call>),
    Procedure(Box<ProcedureCall>),
}

/// A call of a procedure, for every row.
#[derive(Debug)]
pub(crate) struct ProcedureCall {
    pub(crate) procedure: Arc<Procedure>,
    pub(crate) arguments: Vec<Ex>,
    /// The outputs that are used, and their slots.
    pub(crate) outputs: Vec<(usize, Slot)>,
    pub(crate) filters: Vec<Ex>,
}

/// Queries joined by `UNION`, within another one.
#[derive(Debug)]
pub(crate) struct Subquery {
    pub(crate) parts: Vec<Vec<QueryStep>>,
    /// Whether duplicate rows of the parts are kept.
    pub(crate) union_all: bool,
    /// The slots of the columns, for each part.
    pub(crate) outputs: Vec<Vec<Slot>>,
}

/// A subquery that runs for every row.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) subquery: Subquery,
    /// The slots that get the columns.
    pub(crate) columns: Vec<Slot>,
    /// Whether a row without results is kept.
    pub(crate) optional: bool,
    pub(crate) writes: bool,
}

#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) optional: bool,
    pub(crate) pattern: Pattern,
    /// Conditions that must all hold.
    pub(crate) filters: Vec<Ex>,
}

/// All patterns of one clause, as a graph.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    pub(crate) nodes: Vec<PatternNode>,
    pub(crate) rels: Vec<PatternRel>,
    pub(crate) paths: Vec<PatternPath>,
    /// Conditions written in the pattern itself.
    pub(crate) conditions: Vec<Ex>,
}

#[derive(Debug)]
pub(crate) struct PatternNode {
    pub(crate) slot: Slot,
    /// Whether an earlier clause set the slot.
    pub(crate) bound: bool,
    pub(crate) labels: Vec<Symbol>,
    pub(crate) properties: Vec<(Symbol, Ex)>,
}

#[derive(Debug)]
pub(crate) struct PatternRel {
    pub(crate) slot: Slot,
    pub(crate) bound: bool,
    pub(crate) types: Vec<Symbol>,
    pub(crate) properties: Vec<(Symbol, Ex)>,
    /// Indexes into [`Pattern::nodes`]; the direction is seen from `from`.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) direction: Direction,
    pub(crate) length: Option<(u64, u64)>,
    pub(crate) shortest: Option<Shortest>,
    pub(crate) named: bool,
}

#[derive(Debug)]
pub(crate) struct PatternPath {
    pub(crate) slot: Slot,
    pub(crate) start: usize,
    pub(crate) rels: Vec<usize>,
}

/// `WITH` or `RETURN`, in the order of execution.
#[derive(Debug)]
pub(crate) struct Project {
    /// Evaluated for every row: all items, or the grouping keys.
    pub(crate) pre: Vec<(Ex, Slot)>,
    pub(crate) aggregates: Option<Vec<Aggregate>>,
    /// Evaluated for every group.
    pub(crate) post: Vec<(Ex, Slot)>,
    pub(crate) distinct: bool,
    pub(crate) order: Vec<(Ex, bool)>,
    pub(crate) skip: Option<Ex>,
    pub(crate) limit: Option<Ex>,
    pub(crate) filter: Option<Ex>,
    /// The slots of the columns.
    pub(crate) columns: Vec<Slot>,
    /// The slots that outlive it: the columns and those the filter uses.
    pub(crate) keep: Vec<Slot>,
}

#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) distinct: bool,
    pub(crate) arguments: Vec<Ex>,
    pub(crate) slot: Slot,
}

#[derive(Debug)]
pub(crate) enum CreateItem {
    Node { slot: Slot, labels: Vec<Arc<str>>, properties: Option<Ex> },
    Rel { slot: Slot, kind: Arc<str>, from: Slot, to: Slot, properties: Option<Ex> },
    Path { slot: Slot, nodes: Vec<Slot>, rels: Vec<Slot> },
}

#[derive(Debug)]
pub(crate) struct Merge {
    pub(crate) pattern: Match,
    pub(crate) create: Vec<CreateItem>,
    pub(crate) on_create: Vec<SetOp>,
    pub(crate) on_match: Vec<SetOp>,
}

#[derive(Debug)]
pub(crate) enum SetOp {
    Property { target: Ex, key: Arc<str>, value: Ex },
    All { slot: Slot, value: Ex, merge: bool },
    Labels { slot: Slot, labels: Vec<Arc<str>>, remove: bool },
}

/// An expression with resolved names.
#[derive(Debug)]
pub(crate) enum Ex {
    Value(Value),
    Parameter(usize),
    Slot(Slot),
    Property(Box<Ex>, Symbol),
    Index(Box<(Ex, Ex)>),
    Slice(Box<(Ex, Option<Ex>, Option<Ex>)>),
    HasLabels(Box<Ex>, Vec<Symbol>),
    /// Whether a node has any label.
    IsLabelled(Box<Ex>),
    List(Vec<Ex>),
    Map(Vec<(Arc<str>, Ex)>),
    MapProjection(Slot, Vec<MapEntry>),
    Not(Box<Ex>),
    Minus(Box<Ex>),
    Plus(Box<Ex>),
    IsNull(Box<Ex>, bool),
    Logic(Logic, Vec<Ex>),
    Binary(BinaryOp, Box<(Ex, Ex)>),
    Compare(CompareOp, Box<(Ex, Ex)>),
    Case(Box<Case>),
    Call(Function, Vec<Ex>),
    ListComprehension(Box<ListComprehension>),
    Quantifier(Quantifier, Box<ListComprehension>),
    Reduce(Box<Reduce>),
    PatternComprehension(Box<PatternComprehension>),
    Subquery(SubqueryKind, Box<Subquery>),
    /// The shortest path between two bound nodes, as a value.
    ShortestPath(Box<PatternComprehension>),
}

#[derive(Debug)]
pub(crate) enum MapEntry {
    Property(Symbol),
    All,
    Entry(Arc<str>, Ex),
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) subject: Option<Ex>,
    pub(crate) branches: Vec<(Ex, Ex)>,
    pub(crate) default: Option<Ex>,
}

#[derive(Debug)]
pub(crate) struct ListComprehension {
    pub(crate) slot: Slot,
    pub(crate) list: Ex,
    pub(crate) filter: Option<Ex>,
    pub(crate) map: Option<Ex>,
}

#[derive(Debug)]
pub(crate) struct Reduce {
    pub(crate) accumulator: Slot,
    pub(crate) initial: Ex,
    pub(crate) slot: Slot,
    pub(crate) list: Ex,
    pub(crate) body: Ex,
}

#[derive(Debug)]
pub(crate) struct PatternComprehension {
    pub(crate) pattern: Match,
    pub(crate) map: Ex,
}

impl Ex {
    /// Visits this expression and every one within it.
    pub(crate) fn visit(&self, see: &mut dyn FnMut(&Ex)) {
        see(self);
        match self {
            Ex::Value(_) | Ex::Parameter(_) | Ex::Slot(_) => {}
            Ex::Property(inner, _)
            | Ex::HasLabels(inner, _)
            | Ex::IsLabelled(inner)
            | Ex::Not(inner)
            | Ex::Minus(inner)
            | Ex::Plus(inner)
            | Ex::IsNull(inner, _) => inner.visit(see),
            Ex::Index(pair) | Ex::Binary(_, pair) | Ex::Compare(_, pair) => {
                pair.0.visit(see);
                pair.1.visit(see);
            }
            Ex::Slice(parts) => {
                parts.0.visit(see);
                visit_all(parts.1.iter().chain(&parts.2), see);
            }
            Ex::List(items) | Ex::Logic(_, items) | Ex::Call(_, items) => {
                visit_all(items.iter(), see);
            }
            Ex::Map(entries) => visit_all(entries.iter().map(|(_, value)| value), see),
            Ex::MapProjection(slot, entries) => {
                see(&Ex::Slot(*slot));
                for entry in entries {
                    if let MapEntry::Entry(_, value) = entry {
                        value.visit(see);
                    }
                }
            }
            Ex::Case(case) => {
                visit_all(case.subject.iter().chain(&case.default), see);
                for (when, then) in &case.branches {
                    when.visit(see);
                    then.visit(see);
                }
            }
            Ex::ListComprehension(it) | Ex::Quantifier(_, it) => {
                it.list.visit(see);
                visit_all(it.filter.iter().chain(&it.map), see);
            }
            Ex::Reduce(it) => visit_all([&it.initial, &it.list, &it.body].into_iter(), see),
            Ex::PatternComprehension(it) | Ex::ShortestPath(it) => {
                it.pattern.visit(see);
                it.map.visit(see);
            }
            Ex::Subquery(_, subquery) => subquery.visit(see),
        }
    }

    /// Whether the expression uses a slot for which `wanted` is true.
    pub(crate) fn uses(&self, wanted: &dyn Fn(Slot) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |ex| {
            if let Ex::Slot(slot) = ex {
                found |= wanted(*slot);
            }
        });
        found
    }
}

fn visit_all<'a>(items: impl Iterator<Item = &'a Ex>, see: &mut dyn FnMut(&Ex)) {
    items.for_each(|item| item.visit(see));
}

impl Match {
    pub(crate) fn visit(&self, see: &mut dyn FnMut(&Ex)) {
        for node in &self.pattern.nodes {
            see(&Ex::Slot(node.slot));
            visit_all(node.properties.iter().map(|(_, value)| value), see);
        }
        for rel in &self.pattern.rels {
            see(&Ex::Slot(rel.slot));
            visit_all(rel.properties.iter().map(|(_, value)| value), see);
        }
        visit_all(self.filters.iter().chain(&self.pattern.conditions), see);
    }
}

impl Subquery {
    /// A subquery that only looks for a pattern.
    pub(crate) fn of_pattern(pattern: Pattern) -> Self {
        let pattern = Match { optional: false, pattern, filters: Vec::new() };
        let parts = vec![vec![QueryStep::Match(pattern)]];
        Subquery { parts, union_all: true, outputs: vec![Vec::new()] }
    }

    fn visit(&self, see: &mut dyn FnMut(&Ex)) {
        self.parts.iter().flatten().for_each(|step| step.visit(see));
    }
}

impl QueryStep {
    /// Visits the expressions of a reading step.
    pub(crate) fn visit(&self, see: &mut dyn FnMut(&Ex)) {
        match self {
            QueryStep::Match(it) => it.visit(see),
            QueryStep::Unwind { list, .. } => list.visit(see),
            QueryStep::Project(project) => {
                let items = project.pre.iter().chain(&project.post);
                visit_all(items.map(|(ex, _)| ex), see);
                for aggregate in project.aggregates.iter().flatten() {
                    visit_all(aggregate.arguments.iter(), see);
                }
                visit_all(project.order.iter().map(|(ex, _)| ex), see);
                visit_all(project.filter.iter().chain(&project.skip).chain(&project.limit), see);
            }
            QueryStep::Call(call) => call.subquery.visit(see),
            QueryStep::Procedure(call) => {
                visit_all(call.arguments.iter().chain(&call.filters), see);
            }
            QueryStep::Create(_)
            | QueryStep::Merge(_)
            | QueryStep::Set(_)
            | QueryStep::Delete { .. }
            | QueryStep::Foreach { .. } => {}
        }
    }
}
