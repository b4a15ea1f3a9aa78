//! Constraints: rules that nodes and relationships must satisfy when a query ends.
//!
//! A constraint is stored as the statement that creates it, which [`Constraint`] formats and
//! parses.

mod command;
mod format;
mod property_type;
mod verify;

use std::sync::Arc;

pub use property_type::{PropertyType, Scalar};
pub use verify::{ChangedEntities, verify};

use crate::ast::{ConstraintCommand, Statement};
use crate::error::{Class, Detail, Error, Result};
use crate::parse::parse;
use crate::value::Datum;

/// The columns of `SHOW CONSTRAINTS`.
pub(crate) const COLUMNS: [&str; 8] = [
    "name",
    "type",
    "entityType",
    "labelsOrTypes",
    "properties",
    "propertyType",
    "ends",
    "createStatement",
];

/// A rule for the nodes with a label or the relationships of a type. It covers what users add; what
/// is derived from files and facts is neither checked nor compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// Its name, unique in the graph.
    pub name: Arc<str>,
    /// What it applies to.
    pub target: ConstraintTarget,
    /// What it requires.
    pub rule: Rule,
}

/// What a constraint applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstraintTarget {
    /// Nodes with this label.
    Label(Arc<str>),
    /// Relationships of this type.
    Type(Arc<str>),
}

/// What a constraint requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// No two nodes have the same values of these properties; those without one of them are not
    /// compared.
    Unique(Vec<Arc<str>>),
    /// The property is set.
    Exists(Arc<str>),
    /// All these properties are set, and no two nodes have the same values.
    Key(Vec<Arc<str>>),
    /// The property, if it is set, has one of these types.
    Typed(Arc<str>, Vec<PropertyType>),
    /// The relationship starts and ends at nodes with one of these pairs of labels.
    Ends(Vec<(Arc<str>, Arc<str>)>),
}

impl ConstraintTarget {
    /// The label or type.
    pub fn name(&self) -> &Arc<str> {
        match self {
            ConstraintTarget::Label(name) | ConstraintTarget::Type(name) => name,
        }
    }
}

impl Rule {
    /// The properties that it is about.
    pub fn properties(&self) -> &[Arc<str>] {
        match self {
            Rule::Unique(keys) | Rule::Key(keys) => keys,
            Rule::Exists(key) | Rule::Typed(key, _) => std::slice::from_ref(key),
            Rule::Ends(_) => &[],
        }
    }

    /// A short name, for names of constraints.
    fn short_name(&self) -> &'static str {
        match self {
            Rule::Unique(_) => "unique",
            Rule::Exists(_) => "exists",
            Rule::Key(_) => "key",
            Rule::Typed(..) => "type",
            Rule::Ends(_) => "ends",
        }
    }
}

impl Constraint {
    /// Parses the statement that creates a constraint.
    ///
    /// # Errors
    /// If it is not such a statement.
    pub fn parse(statement: &str) -> Result<Self> {
        match parse(statement)? {
            Statement::Constraint(ConstraintCommand::Create { constraint, .. }) => Ok(constraint),
            _ => Err(Error::run(
                Class::SyntaxError,
                Detail::UnexpectedSyntax,
                "not a statement that creates a constraint",
            )),
        }
    }

    /// The name of a constraint that was created without one.
    pub(crate) fn default_name(target: &ConstraintTarget, rule: &Rule) -> Arc<str> {
        let parts = std::iter::once(target.name()).chain(rule.properties());
        let parts: Vec<&str> = parts.map(|part| &**part).collect();
        format!("{}_{}", parts.join("_"), rule.short_name()).into()
    }

    /// Whether the other one requires the same, whatever their names.
    pub(crate) fn is_equivalent(&self, other: &Constraint) -> bool {
        self.target == other.target && self.rule == other.rule
    }

    /// The row of `SHOW CONSTRAINTS`, in the order of [`COLUMNS`].
    pub(crate) fn row(&self) -> Vec<Datum> {
        let text = |text: &str| Datum::Text(text.to_owned());
        let texts = |texts: &[Arc<str>]| Datum::List(texts.iter().map(|it| text(it)).collect());
        let is_node = matches!(self.target, ConstraintTarget::Label(_));
        let entity = if is_node { "NODE" } else { "RELATIONSHIP" };
        let kind = match &self.rule {
            Rule::Unique(_) => "UNIQUENESS".to_owned(),
            Rule::Exists(_) => format!("{entity}_PROPERTY_EXISTENCE"),
            Rule::Key(_) => "NODE_KEY".to_owned(),
            Rule::Typed(..) => format!("{entity}_PROPERTY_TYPE"),
            Rule::Ends(_) => "RELATIONSHIP_ENDS".to_owned(),
        };
        let types = match &self.rule {
            Rule::Typed(_, types) => Datum::Text(format::types(types)),
            _ => Datum::Null,
        };
        let ends = match &self.rule {
            Rule::Ends(pairs) => {
                let pair = |(from, to): &(Arc<str>, Arc<str>)| texts(&[from.clone(), to.clone()]);
                Datum::List(pairs.iter().map(pair).collect())
            }
            _ => Datum::Null,
        };
        vec![
            text(&self.name),
            Datum::Text(kind),
            text(entity),
            texts(std::slice::from_ref(self.target.name())),
            texts(self.rule.properties()),
            types,
            ends,
            Datum::Text(self.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_parsed_as_they_are_formatted() {
        for statement in [
            "CREATE CONSTRAINT a FOR (n:Person) REQUIRE n.email IS UNIQUE",
            "CREATE CONSTRAINT b FOR (n:Person) REQUIRE (n.first, n.`last name`) IS NODE KEY",
            "CREATE CONSTRAINT c FOR (n:`a``b`) REQUIRE n.x IS NOT NULL",
            "CREATE CONSTRAINT d FOR (n:P) REQUIRE n.x IS :: FLOAT | INTEGER | LIST<STRING NOT NULL>",
            "CREATE CONSTRAINT e FOR ()-[r:KNOWS]-() REQUIRE r.since IS :: INTEGER",
            "CREATE CONSTRAINT f FOR ()-[r:KNOWS]->() REQUIRE (:A)-[r]->(:B) OR (:A)-[r]->(:`C d`)",
            "CREATE CONSTRAINT `T.x` FOR (n:`match`) REQUIRE n.`in` IS :: BOOLEAN",
        ] {
            let constraint = Constraint::parse(statement).unwrap();
            assert_eq!(constraint.to_string(), statement);
        }
    }

    #[test]
    fn names_follow_from_what_is_required() {
        let parse = |text: &str| Constraint::parse(text).unwrap().name.to_string();
        let name = parse("CREATE CONSTRAINT IF NOT EXISTS FOR (p:Person) REQUIRE p.id IS UNIQUE");
        assert_eq!(name, "Person_id_unique");
        let name = parse("CREATE CONSTRAINT FOR ()<-[k:KNOWS]-() REQUIRE k.since IS TYPED INT");
        assert_eq!(name, "KNOWS_since_type");
    }

    #[test]
    fn other_statements_are_refused() {
        for (statement, message) in [
            ("RETURN 1", "not a statement that creates a constraint"),
            ("CREATE CONSTRAINT FOR (n) REQUIRE n.x IS UNIQUE", "exactly one label"),
            ("CREATE CONSTRAINT FOR (n:A:B) REQUIRE n.x IS UNIQUE", "exactly one label"),
            ("CREATE CONSTRAINT FOR (n:A) REQUIRE m.x IS UNIQUE", "expected n, found"),
            ("CREATE CONSTRAINT FOR (n:A) REQUIRE n.x IS :: POINT", "POINT"),
            ("CREATE CONSTRAINT FOR (n:A) REQUIRE (n.x, n.y) IS NOT NULL", "one property"),
            ("CREATE CONSTRAINT FOR ()-[r:T]-() REQUIRE r.x IS UNIQUE", "relationships"),
            ("CREATE CONSTRAINT FOR (n:A) REQUIRE n.x IS", "expected"),
            ("CREATE CONSTRAINT ON (n:A) ASSERT n.x IS UNIQUE", "write FOR (n:Label) REQUIRE"),
            ("CREATE CONSTRAINT FOR (n:A) REQUIRE n.x IS UNIQUE RETURN 1", "end of the statement"),
        ] {
            let error = Constraint::parse(statement).unwrap_err().to_string();
            assert!(error.contains(message), "{statement}: {error}");
        }
    }
}
