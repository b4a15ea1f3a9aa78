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
    /// A query that is not run, but described.
    Explain(UnionQuery),
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnionQuery {
    pub(crate) parts: Vec<SingleQuery>,
    /// For each part but the first, whether it is joined by `UNION ALL`.
    pub(crate) unions: Vec<(bool, Span)>,
}

impl UnionQuery {
    pub(crate) fn writes(&self) -> bool {
        let clauses = self.parts.iter().flat_map(|part| &part.clauses);
        clauses.into_iter().any(|clause| clause.write().is_some())
    }
}

/// What a subquery in an expression gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubqueryKind {
    /// Whether there is a row.
    Exists,
    /// The number of rows.
    Count,
    /// The values of the only column.
    Collect,
}

impl SubqueryKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SubqueryKind::Exists => "EXISTS",
            SubqueryKind::Count => "COUNT",
            SubqueryKind::Collect => "COLLECT",
        }
    }
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
    Foreach { variable: Name, list: Expr, body: SingleQuery, span: Span },
    Call { subquery: UnionQuery, imports: Imports, optional: bool, span: Span },
    Procedure(ProcedureClause),
}

/// A call of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProcedureClause {
    pub(crate) name: Name,
    /// `None` without parentheses.
    pub(crate) arguments: Option<Vec<Expr>>,
    pub(crate) yields: Option<Yields>,
    pub(crate) filter: Option<Expr>,
    pub(crate) span: Span,
}

/// What follows `YIELD`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yields {
    Star,
    /// Outputs, and what they are renamed to.
    Items(Vec<(Name, Option<Name>)>),
}

/// The variables that a subquery in `CALL` sees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Imports {
    /// Those of a `WITH` at its beginning.
    With,
    /// `CALL (*)`
    All,
    /// `CALL (a, b)`
    Names(Vec<Name>),
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
            Clause::Foreach { span, .. } => Some(("FOREACH", *span)),
            Clause::Call { subquery, span, .. } if subquery.writes() => {
                Some(("a CALL that writes", *span))
            }
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

/// A condition on the labels of a node, or on the type of a relationship.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelExpr {
    Name(Name),
    /// `%`: any label.
    Wildcard,
    Not(Box<LabelExpr>),
    All(Vec<LabelExpr>),
    Any(Vec<LabelExpr>),
}

impl LabelExpr {
    /// Appends the names if all of them are required, and nothing else.
    pub(crate) fn as_names(&self, names: &mut Vec<Name>) -> bool {
        match self {
            LabelExpr::Name(name) => {
                names.push(name.clone());
                true
            }
            LabelExpr::All(terms) => terms.iter().all(|term| term.as_names(names)),
            LabelExpr::Wildcard | LabelExpr::Not(_) | LabelExpr::Any(_) => false,
        }
    }

    /// The names if one of them is required, and nothing else.
    pub(crate) fn as_choice(&self) -> Option<Vec<Name>> {
        let name = |expr: &LabelExpr| match expr {
            LabelExpr::Name(name) => Some(name.clone()),
            _ => None,
        };
        match self {
            LabelExpr::Any(choices) => choices.iter().map(name).collect(),
            expr => Some(vec![name(expr)?]),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodePattern {
    pub(crate) variable: Option<Name>,
    pub(crate) labels: Vec<Name>,
    /// A label expression that is not just a list of labels.
    pub(crate) choice: Option<LabelExpr>,
    pub(crate) filter: Option<Expr>,
    pub(crate) properties: Option<Expr>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelPattern {
    pub(crate) variable: Option<Name>,
    pub(crate) types: Vec<Name>,
    /// A type expression that is not just a choice of types.
    pub(crate) choice: Option<LabelExpr>,
    pub(crate) filter: Option<Expr>,
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
    /// `||`, for strings and lists only.
    Concatenate,
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
    IsLabelled(Expr, LabelExpr),
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
    Subquery(SubqueryKind, UnionQuery),
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
