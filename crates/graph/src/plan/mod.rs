//! From a pattern to the operators that find it in a graph: where to start, which way to go,
//! and what can be checked when.

mod pattern;
mod shortcuts;

pub(crate) use pattern::plan;
pub(crate) use shortcuts::{groups_differ, heaviest_first, shorten};

use std::cell::Cell;
use std::rc::Rc;

use crate::ast::Shortest;
use crate::error::Result;
use crate::ir::{Ex, Match, PatternRel, Slot, Symbol};
use crate::run::{Run, Ways};

/// Something that takes a row and gives none, one or many.
pub(crate) enum Op<'r> {
    /// The slot must hold a node.
    CheckNode {
        slot: Slot,
    },
    Labels {
        slot: Slot,
        labels: &'r [Symbol],
    },
    /// All nodes, or all with a label.
    Scan {
        slot: Slot,
        label: Option<Symbol>,
    },
    /// The nodes that an index knows. What they were sought by is checked once more.
    Seek {
        slot: Slot,
        seek: Seek<'r>,
    },
    Expand(Expand<'r>),
    VarExpand(VarExpand<'r>),
    Reach(VarExpand<'r>),
    Weight(Weight<'r>),
    /// How many nodes there are, or relationships, in one row.
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
    /// What the operators find, or once null in all these slots.
    Optional {
        ops: Vec<Op<'r>>,
        slots: Vec<Slot>,
    },
    Unwind {
        list: &'r Ex,
        slot: Slot,
    },
}

/// What a node is sought by.
pub(crate) enum Seek<'r> {
    Id(&'r Ex),
    /// A property that equals a value, or one of many.
    Property {
        label: Option<Symbol>,
        key: Symbol,
        value: &'r Ex,
        many: bool,
        /// Whether the next operator checks this very property.
        checked: bool,
    },
}

/// From a bound node to its neighbours, or to one that is bound, too.
pub(crate) struct Expand<'r> {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) to_bound: bool,
    pub(crate) rel: Slot,
    pub(crate) ways: Ways<'r>,
    /// Relationships of the same pattern, which must be others.
    pub(crate) others: Vec<Slot>,
}

/// The same over many relationships.
pub(crate) struct VarExpand<'r> {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) to_bound: bool,
    pub(crate) rel: Slot,
    /// Whether anyone looks at the relationships.
    pub(crate) keep: bool,
    /// Whether the walk goes from the pattern's right to its left.
    pub(crate) reversed: bool,
    pub(crate) ways: Ways<'r>,
    pub(crate) properties: &'r [(Symbol, Ex)],
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) others: Vec<Slot>,
}

/// How many relationships a node has.
pub(crate) struct Weight<'r> {
    pub(crate) from: Slot,
    pub(crate) ways: Ways<'r>,
    /// Where the number goes.
    pub(crate) slot: Slot,
    pub(crate) rel: Slot,
    /// Nodes that have fewer are not wanted.
    pub(crate) least: Rc<Cell<i64>>,
}

/// What is counted as a whole.
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
    pub(crate) ways: Ways<'r>,
    pub(crate) back: Ways<'r>,
    pub(crate) properties: &'r [(Symbol, Ex)],
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) others: Vec<Slot>,
    /// What the path itself must fulfil, and the slot where the filters find it.
    pub(crate) filters: Vec<&'r Ex>,
    pub(crate) path: Option<Slot>,
}

impl ShortestPath<'_> {
    pub(crate) fn is_all(shortest: Shortest) -> bool {
        shortest == Shortest::All
    }
}

/// The operators of a `MATCH`.
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
