//! Plans the operators that find a pattern in a graph: where to start, which way to expand, and
//! when to check each condition.

mod pattern;
mod shortcuts;

pub(crate) use pattern::plan;
pub(crate) use shortcuts::{groups_differ, heaviest_first, shorten};

use std::cell::Cell;
use std::rc::Rc;

use crate::ast::Shortest;
use crate::error::Result;
use crate::ir::{Call, Ex, Match, PatternRel, ProcedureCall, Slot, Symbol};
use crate::run::{EdgeSelector, Run};

/// An operator: takes a row and produces any number of rows.
pub(crate) enum Op<'r> {
    /// Requires that the slot holds a node.
    CheckNode {
        slot: Slot,
    },
    Labels {
        slot: Slot,
        labels: &'r [Symbol],
    },
    /// All nodes, or all nodes with a label.
    Scan {
        slot: Slot,
        label: Option<Symbol>,
    },
    /// The nodes that an index finds. Their property is checked again.
    Seek {
        slot: Slot,
        seek: Seek<'r>,
    },
    Expand(Expand<'r>),
    VarExpand(VarExpand<'r>),
    Reach(VarExpand<'r>),
    Weight(Weight<'r>),
    /// The number of nodes or relationships, in one row.
    Total {
        what: Total<'r>,
        slot: Slot,
        rel: Slot,
    },
    BoundRel(BoundRel<'r>),
    BoundRels(BoundRel<'r>),
    Shortest(ShortestPath<'r>),
    NodeProperty {
        slot: Slot,
        key: Symbol,
        value: &'r Ex,
    },
    RelProperty {
        slot: Slot,
        key: Symbol,
        value: &'r Ex,
    },
    Filter(&'r Ex),
    Path {
        slot: Slot,
        start: Slot,
        rels: Vec<(Slot, &'r PatternRel)>,
    },
    /// The rows of the operators or, if there are none, one row with null in these slots.
    Optional {
        ops: Vec<Op<'r>>,
        slots: Vec<Slot>,
    },
    Unwind {
        list: &'r Ex,
        slot: Slot,
    },
    /// A subquery that only reads.
    Call(&'r Call),
    Procedure(&'r ProcedureCall),
}

/// How a node is looked up.
pub(crate) enum Seek<'r> {
    Id(&'r Ex),
    /// By a property that equals a value, or one of several.
    Property {
        label: Option<Symbol>,
        key: Symbol,
        value: &'r Ex,
        many: bool,
        /// Whether the next operator checks this property.
        checked: bool,
    },
}

/// From a bound node to its neighbours, or to another bound node.
pub(crate) struct Expand<'r> {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) to_bound: bool,
    pub(crate) rel: Slot,
    pub(crate) ways: EdgeSelector<'r>,
    /// Earlier relationships of the pattern, which must be different.
    pub(crate) others: Vec<Slot>,
}

/// A variable-length [`Expand`].
pub(crate) struct VarExpand<'r> {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) to_bound: bool,
    pub(crate) rel: Slot,
    /// Whether the relationships are used later.
    pub(crate) keep: bool,
    /// Whether the pattern is traversed from right to left.
    pub(crate) reversed: bool,
    pub(crate) ways: EdgeSelector<'r>,
    pub(crate) properties: &'r [(Symbol, Ex)],
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) others: Vec<Slot>,
}

/// Counts the relationships of a node.
pub(crate) struct Weight<'r> {
    pub(crate) from: Slot,
    pub(crate) ways: EdgeSelector<'r>,
    /// The slot for the count.
    pub(crate) slot: Slot,
    pub(crate) rel: Slot,
    /// Nodes with fewer relationships are skipped.
    pub(crate) least: Rc<Cell<i64>>,
}

/// What is counted in total.
pub(crate) enum Total<'r> {
    Nodes(Option<Symbol>),
    Relationships(&'r [Symbol]),
}

pub(crate) struct BoundRel<'r> {
    pub(crate) rel: &'r PatternRel,
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) from_bound: bool,
    pub(crate) to_bound: bool,
    pub(crate) others: Vec<Slot>,
}

/// The shortest paths between two bound nodes.
pub(crate) struct ShortestPath<'r> {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) rel: Slot,
    pub(crate) all: bool,
    pub(crate) ways: EdgeSelector<'r>,
    pub(crate) back: EdgeSelector<'r>,
    pub(crate) properties: &'r [(Symbol, Ex)],
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) others: Vec<Slot>,
    /// Conditions on the path, and the slot where they find it.
    pub(crate) filters: Vec<&'r Ex>,
    pub(crate) path: Option<Slot>,
}

impl ShortestPath<'_> {
    pub(crate) fn is_all(shortest: Shortest) -> bool {
        shortest == Shortest::All
    }
}

/// Plans a `MATCH`.
pub(crate) fn clause<'r>(run: &Run<'r>, clause: &'r Match) -> Result<Vec<Op<'r>>> {
    let ops = plan(run, clause)?;
    if !clause.optional {
        return Ok(ops);
    }
    let pattern = &clause.pattern;
    let nodes = pattern.nodes.iter().filter(|node| !node.bound).map(|node| node.slot);
    let rels = pattern.rels.iter().filter(|rel| !rel.bound).map(|rel| rel.slot);
    let paths = pattern.paths.iter().map(|path| path.slot);
    Ok(vec![Op::Optional { ops, slots: nodes.chain(rels).chain(paths).collect() }])
}
