//! Errors of queries.

use std::fmt;

use isolith_types::{Code, Failure};

use crate::graph::Entity;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a query was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The query is invalid, by itself or for the data it met.
    #[error("{0}")]
    Query(Box<Problem>),
    /// The query uses an unsupported part of the language.
    #[error("not supported: {what}{}", at(.position))]
    Unsupported {
        /// The name of the unsupported feature.
        what: String,
        /// Its position in the query, if known.
        position: Option<QueryPosition>,
    },
    /// The deadline passed.
    #[error("the query did not finish within its deadline")]
    Timeout,
    /// The caller cancelled the query.
    #[error("the query was cancelled")]
    Cancelled,
    /// The query exceeds its memory or another limit on size.
    #[error("{0}")]
    TooLarge(String),
    /// The graph could not be read or written, or refused a change.
    #[error("{0}")]
    Storage(Failure),
}

fn at(position: &Option<QueryPosition>) -> String {
    position.as_ref().map(|position| format!(" ({position})")).unwrap_or_default()
}

/// What is wrong with a query.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The class of the error in openCypher's Technology Compatibility Kit (TCK).
    pub class: Class,
    /// The detail of the error in the TCK.
    pub detail: Detail,
    /// When it was found.
    pub phase: Phase,
    /// A description, in one sentence.
    pub message: String,
    /// Its position in the query, if known.
    pub position: Option<QueryPosition>,
    /// The node or relationship that would violate a constraint.
    pub entity: Option<Entity>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(position) = &self.position {
            write!(f, " ({position})")?;
        }
        Ok(())
    }
}

/// A position in the text of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPosition {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The line, shortened if it is long, with a caret below it.
    pub excerpt: String,
}

impl QueryPosition {
    /// The position at a byte offset of the text.
    pub fn of(text: &str, offset: usize) -> Self {
        const AROUND: usize = 60;
        let offset = floor(text, offset);
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let line = text[..start].matches('\n').count() + 1;
        let column = text[start..offset].chars().count() + 1;
        let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
        let from = floor(text, offset.saturating_sub(AROUND).max(start));
        let to = floor(text, (offset + AROUND).min(end)).max(offset);
        let lead = if from > start { "…" } else { "" };
        let trail = if to < end { "…" } else { "" };
        let shown = text[from..to].replace(['\t', '\r'], " ");
        let blank = lead.chars().count() + text[from..offset].chars().count();
        let excerpt = format!("{lead}{shown}{trail}\n{}^", " ".repeat(blank));
        QueryPosition { line, column, excerpt }
    }
}

/// The start of the character that contains this byte.
fn floor(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for QueryPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// When a problem was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the query ran.
    Compile,
    /// While it ran.
    Run,
}

/// The error classes of openCypher's TCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Class {
    SyntaxError,
    SemanticError,
    TypeError,
    ArgumentError,
    ArithmeticError,
    EntityNotFound,
    ParameterMissing,
    ProcedureError,
    ConstraintVerificationFailed,
}

/// The error details of openCypher's TCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Detail {
    AmbiguousAggregationExpression,
    ColumnNameConflict,
    ConstraintValidationFailed,
    CreatingVarLength,
    DeleteConnectedNode,
    DeletedEntityAccess,
    DifferentColumnsInUnion,
    DivisionByZero,
    FloatingPointOverflow,
    IntegerOverflow,
    InvalidAggregation,
    InvalidArgumentPassingMode,
    InvalidArgumentType,
    InvalidArgumentValue,
    InvalidClauseComposition,
    InvalidDelete,
    InvalidNumberLiteral,
    InvalidNumberOfArguments,
    InvalidParameterUse,
    InvalidPropertyType,
    InvalidRelationshipPattern,
    InvalidUnicodeCharacter,
    InvalidUnicodeLiteral,
    ListElementAccessByNonInteger,
    MapElementAccessByNonString,
    MergeReadOwnWrites,
    MissingParameter,
    NegativeIntegerArgument,
    NestedAggregation,
    NoExpressionAlias,
    NoSingleRelationshipType,
    NoVariablesInScope,
    NonConstantExpression,
    NumberOutOfRange,
    ProcedureNotFound,
    RelationshipUniquenessViolation,
    RequiresDirectedRelationship,
    UndefinedVariable,
    UnexpectedSyntax,
    UnknownFunction,
    VariableAlreadyBound,
    VariableTypeConflict,
}

impl Error {
    /// A problem found while the query runs.
    pub(crate) fn run(class: Class, detail: Detail, message: impl Into<String>) -> Self {
        let message = message.into();
        let (phase, position, entity) = (Phase::Run, None, None);
        Error::Query(Box::new(Problem { class, detail, phase, message, position, entity }))
    }

    /// A violation of a constraint.
    pub(crate) fn violation(entity: Entity, message: String) -> Self {
        let class = Class::ConstraintVerificationFailed;
        let detail = Detail::ConstraintValidationFailed;
        let (phase, position, entity) = (Phase::Run, None, Some(entity));
        Error::Query(Box::new(Problem { class, detail, phase, message, position, entity }))
    }

    /// A value of a type that an operation does not accept.
    pub(crate) fn type_mismatch(message: impl Into<String>) -> Self {
        Error::run(Class::TypeError, Detail::InvalidArgumentType, message)
    }

    /// The error's position in the query, if known.
    pub fn position(&self) -> Option<&QueryPosition> {
        match self {
            Error::Query(problem) => problem.position.as_ref(),
            Error::Unsupported { position, .. } => position.as_ref(),
            _ => None,
        }
    }

    /// The node or relationship that would violate a constraint, if that is the error.
    pub fn violating(&self) -> Option<Entity> {
        match self {
            Error::Query(problem) => problem.entity,
            _ => None,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::Storage(failure)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match error.position() {
            Some(position) => format!("{error}\n{}", position.excerpt),
            None => error.to_string(),
        };
        match error {
            Error::Storage(failure) => failure,
            Error::Query(_) => Failure::new(Code::BadInput, message),
            Error::Unsupported { .. } => Failure::new(Code::BadInput, message)
                .with_hint("docs/cypher.md lists what the language has here"),
            Error::Timeout => Failure::new(Code::Timeout, message)
                .with_hint("bound the pattern, or add a LIMIT, labels or a look-up by property"),
            Error::Cancelled => Failure::new(Code::Interrupted, message),
            Error::TooLarge(_) => {
                Failure::new(Code::TooLarge, message).with_hint("bound the pattern, or add a LIMIT")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_marked_with_a_caret() {
        let position = QueryPosition::of("MATCH (n)\nRETURN é n", 20);
        assert_eq!((position.line, position.column), (2, 10));
        assert_eq!(position.excerpt, "RETURN é n\n         ^");
        let far = QueryPosition::of(&"x".repeat(1000), 500);
        assert!(far.excerpt.chars().count() < 200);
        let end = QueryPosition::of("RETURN", 99);
        assert_eq!((end.line, end.column), (1, 7));
    }
}
