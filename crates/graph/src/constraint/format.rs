//! Constraints as statements.

use std::borrow::Cow;
use std::fmt;

use super::{Constraint, ConstraintTarget, PropertyType, Rule};
use crate::parse::is_reserved;

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = quoted(self.target.name());
        let (variable, pattern) = match (&self.target, &self.rule) {
            (ConstraintTarget::Label(_), _) => ("n", format!("(n:{target})")),
            (ConstraintTarget::Type(_), Rule::Ends(_)) => ("r", format!("()-[r:{target}]->()")),
            (ConstraintTarget::Type(_), _) => ("r", format!("()-[r:{target}]-()")),
        };
        write!(f, "CREATE CONSTRAINT {} FOR {pattern} REQUIRE ", quoted(&self.name))?;
        let keys = self.rule.properties().iter().map(|key| format!("{variable}.{}", quoted(key)));
        let keys: Vec<String> = keys.collect();
        match (keys.as_slice(), &self.rule) {
            (_, Rule::Ends(pairs)) => {
                let pairs = pairs
                    .iter()
                    .map(|(from, to)| format!("(:{})-[r]->(:{})", quoted(from), quoted(to)));
                return f.write_str(&pairs.collect::<Vec<_>>().join(" OR "));
            }
            ([key], _) => f.write_str(key)?,
            (keys, _) => write!(f, "({})", keys.join(", "))?,
        }
        match &self.rule {
            Rule::Unique(_) => f.write_str(" IS UNIQUE"),
            Rule::Exists(_) => f.write_str(" IS NOT NULL"),
            Rule::Key(_) => f.write_str(" IS NODE KEY"),
            Rule::Typed(_, kinds) => write!(f, " IS :: {}", types(kinds)),
            Rule::Ends(_) => Ok(()),
        }
    }
}

/// Types as Cypher writes them.
pub(super) fn types(types: &[PropertyType]) -> String {
    let text = |kind: &PropertyType| match kind {
        PropertyType::Scalar(scalar) => scalar.name().to_owned(),
        PropertyType::List(scalar) => format!("LIST<{} NOT NULL>", scalar.name()),
    };
    types.iter().map(text).collect::<Vec<_>>().join(" | ")
}

/// A name as a query must write it.
fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !is_reserved(name);
    match is_plain {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("`{}`", name.replace('`', "``"))),
    }
}
