//! The syntax tree of a query, before names are resolved.

use std::sync::Arc;

use crate::constraint::Constraint;
use crate::graph::Direction;
use crate::value::Value;

/// A byte range in the query text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// All spans are equal, so that derived comparisons of expressions ignore positions.
impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }
}

/// A name and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: Arc<str>,
    pub(crate) span: Span,
}

/// What a text can hold.
#[derive(Debug)]
pub(crate) enum Statement {
    Query(UnionQuery),
    Constraint(ConstraintCommand),
}

/// A statement about constraints.
#[derive(Debug)]
pub(crate) enum ConstraintCommand {
    Create { constraint: Constraint, if_not_exists: bool },
    Drop { name: Arc<str>, if_exists: bool },
    Show,
}

/// One or more queries joined by `UNION`.
#[derive(Debug)]
pub(crate) struct UnionQuery {
    pub(crate) parts: Vec<SingleQuery>,
    /// For each part but the first, whether it is joined by `UNION ALL`.
    pub(crate) unions: Vec<(bool, Span)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SingleQuery {
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Clause {
    Match { optional: bool, patterns: Vec<PathPattern>, filter: Option<Expr>, span: Span },
    Unwind { list: Expr, variable: Name },
    With(Projection),
    Return(Projection),
    Create { patterns: Vec<PathPattern>, span: Span },
    Merge { pattern: PathPattern, on_create: Vec<SetItem>, on_match: Vec<SetItem>, span: Span },
    Set { items: Vec<SetItem>, span: Span },
    Remove { items: Vec<RemoveItem>, span: Span },
    Delete { detach: bool, targets: Vec<Expr>, span: Span },
}

impl Clause {
    /// The clause's keyword and position if it changes the graph.
    pub(crate) fn write(&self) -> Option<(&'static str, Span)> {
        match self {
            Clause::Create { span, .. } => Some(("CREATE", *span)),
            Clause::Merge { span, .. } => Some(("MERGE", *span)),
            Clause::Set { span, .. } => Some(("SET", *span)),
            Clause::Remove { span, .. } => Some(("REMOVE", *span)),
            Clause::Delete { span, .. } => Some(("DELETE", *span)),
            _ => None,
        }
    }
}

/// What follows `WITH` or `RETURN`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Projection {
    pub(crate) distinct: bool,
    pub(crate) star: bool,
    pub(crate) items: Vec<ProjectionItem>,
    pub(crate) order: Vec<(Expr, bool)>,
    pub(crate) skip: Option<Expr>,
    pub(crate) limit: Option<Expr>,
    pub(crate) filter: Option<Expr>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProjectionItem {
    pub(crate) expr: Expr,
    pub(crate) alias: Option<Name>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SetItem {
    /// `n.key = value`
    Property { target: Expr, key: Arc<str>, value: Expr },
    /// `n = value`, or `n += value` if `merge`.
    All { variable: Name, value: Expr, merge: bool },
    /// `n:A:B`
    Labels { variable: Name, labels: Vec<Name> },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RemoveItem {
    Property { target: Expr, key: Arc<str> },
    Labels { variable: Name, labels: Vec<Name> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortest {
    One,
    All,
}

/// A chain of nodes with the relationships between them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathPattern {
    pub(crate) variable: Option<Name>,
    pub(crate) shortest: Option<Shortest>,
    pub(crate) start: NodePattern,
    pub(crate) steps: Vec<(RelPattern, NodePattern)>,
    pub(crate) span: Span,
}

impl PathPattern {
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodePattern> {
        std::iter::once(&self.start).chain(self.steps.iter().map(|(_, node)| node))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodePattern {
    pub(crate) variable: Option<Name>,
    pub(crate) labels: Vec<Name>,
    pub(crate) properties: Option<Expr>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelPattern {
    pub(crate) variable: Option<Name>,
    pub(crate) types: Vec<Name>,
    pub(crate) direction: Direction,
    /// The minimum and maximum length of a variable-length pattern.
    pub(crate) length: Option<(Option<u64>, Option<u64>)>,
    pub(crate) properties: Option<Expr>,
    pub(crate) span: Span,
}

/// An expression. `height` is the height of its tree, at most `MAX_HEIGHT`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub(crate) kind: Box<ExprKind>,
    pub(crate) span: Span,
    pub(crate) height: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    In,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    All,
    Any,
    None,
    Single,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprKind {
    Literal(Value),
    Parameter(Arc<str>),
    Variable(Arc<str>),
    Property(Expr, Arc<str>),
    Index(Expr, Expr),
    Slice(Expr, Option<Expr>, Option<Expr>),
    HasLabels(Expr, Vec<Name>),
    List(Vec<Expr>),
    Map(Vec<(Arc<str>, Expr)>),
    MapProjection(Name, Vec<MapPart>),
    Not(Expr),
    Minus(Expr),
    Plus(Expr),
    IsNull(Expr, bool),
    Logic(Logic, Vec<Expr>),
    Binary(BinaryOp, Expr, Expr),
    /// `a < b <= c`: each operator stands between its two neighbours.
    Comparison(Expr, Vec<(CompareOp, Expr)>),
    Case {
        subject: Option<Expr>,
        branches: Vec<(Expr, Expr)>,
        default: Option<Expr>,
    },
    Call {
        name: Arc<str>,
        distinct: bool,
        arguments: Vec<Expr>,
    },
    CountStar,
    ListComprehension {
        variable: Name,
        list: Expr,
        filter: Option<Expr>,
        map: Option<Expr>,
    },
    PatternComprehension {
        pattern: PathPattern,
        filter: Option<Expr>,
        map: Expr,
    },
    Quantifier {
        kind: Quantifier,
        variable: Name,
        list: Expr,
        filter: Expr,
    },
    Reduce {
        accumulator: Name,
        initial: Expr,
        variable: Name,
        list: Expr,
        body: Expr,
    },
    Pattern(PathPattern),
    Exists(SingleQuery),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MapPart {
    /// `.key`
    Property(Arc<str>),
    /// `.*`
    All,
    /// `key: value`
    Entry(Arc<str>, Expr),
    /// A variable, under its own name.
    Variable(Name),
}
