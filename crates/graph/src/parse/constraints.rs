//! The statements about constraints.

use std::sync::Arc;

use crate::ast::{ConstraintCommand, Name, PathPattern};
use crate::constraint::{Constraint, ConstraintTarget, PropertyType, Rule, Scalar};
use crate::error::{Detail, Result};
use crate::graph::Direction;

use super::Parser;
use super::lexer::Token;

/// A constraint's target with its variable.
struct Declared {
    variable: Arc<str>,
    target: ConstraintTarget,
}

impl Parser<'_> {
    /// A statement about constraints, if this is one.
    pub(super) fn constraint_command(&mut self) -> Result<Option<ConstraintCommand>> {
        let about = |word| self.is_word_at(1, word);
        let command = if self.is_word("CREATE") && about("CONSTRAINT") {
            self.skip(2);
            self.create_constraint()?
        } else if self.is_word("DROP") && about("CONSTRAINT") {
            self.skip(2);
            let name = self.any_name("the name of a constraint")?.text;
            let if_exists = self.is_word("IF");
            if if_exists {
                self.skip(1);
                self.expect_word("EXISTS")?;
            }
            ConstraintCommand::Drop { name, if_exists }
        } else if self.is_word("SHOW") && (about("CONSTRAINT") || about("CONSTRAINTS")) {
            self.skip(2);
            ConstraintCommand::Show
        } else {
            return Ok(None);
        };
        self.eat(";");
        if *self.token() != Token::End {
            return self.unexpected("the end of the statement");
        }
        Ok(Some(command))
    }

    fn skip(&mut self, tokens: usize) {
        (0..tokens).for_each(|_| self.advance());
    }

    /// What follows `CREATE CONSTRAINT`.
    fn create_constraint(&mut self) -> Result<ConstraintCommand> {
        let is_unnamed = self.is_word("FOR")
            || self.is_word("ON") && *self.ahead(1) == Token::Symbol("(")
            || self.is_word("IF") && self.is_word_at(1, "NOT");
        let name = match is_unnamed {
            true => None,
            false => Some(self.any_name("the name of a constraint")?.text),
        };
        let if_not_exists = self.eat_word("IF");
        if if_not_exists {
            self.expect_word("NOT")?;
            self.expect_word("EXISTS")?;
        }
        if self.is_word("ON") {
            let message =
                "ON … ASSERT is older syntax: write FOR (n:Label) REQUIRE n.key IS UNIQUE";
            return self.error(self.span(), Detail::UnexpectedSyntax, message);
        }
        self.expect_word("FOR")?;
        let declared = self.constraint_target()?;
        self.expect_word("REQUIRE")?;
        let rule = self.rule(&declared)?;
        let Declared { target, .. } = declared;
        let name = name.unwrap_or_else(|| Constraint::default_name(&target, &rule));
        Ok(ConstraintCommand::Create {
            constraint: Constraint { name, target, rule },
            if_not_exists,
        })
    }

    /// `(n:Label)` or `()-[r:TYPE]-()`.
    fn constraint_target(&mut self) -> Result<Declared> {
        let pattern = self.anonymous_pattern()?;
        let refuse = |message: &str| self.error(pattern.span, Detail::UnexpectedSyntax, message);
        if pattern.nodes().any(|node| node.properties.is_some()) {
            return refuse("a constraint applies to a label or a type, without properties");
        }
        match pattern.steps.as_slice() {
            [] => match (&pattern.start.variable, pattern.start.labels.as_slice()) {
                (Some(variable), [label]) => Ok(Declared {
                    variable: variable.text.clone(),
                    target: ConstraintTarget::Label(label.text.clone()),
                }),
                _ => refuse("a constraint needs a variable with exactly one label: (n:Label)"),
            },
            [(rel, _)] if pattern.nodes().all(|node| node.labels.is_empty()) => {
                match (&rel.variable, rel.types.as_slice(), rel.length) {
                    (Some(variable), [kind], None) if rel.properties.is_none() => Ok(Declared {
                        variable: variable.text.clone(),
                        target: ConstraintTarget::Type(kind.text.clone()),
                    }),
                    _ => refuse("a constraint needs a variable with exactly one type: ()-[r:T]-()"),
                }
            }
            _ => refuse("write FOR (n:Label) or FOR ()-[r:TYPE]-()"),
        }
    }

    /// What follows `REQUIRE`.
    fn rule(&mut self, declared: &Declared) -> Result<Rule> {
        if self.is_pattern() {
            return self.ends(declared);
        }
        let start = self.span();
        let mut keys = Vec::new();
        if self.eat("(") {
            keys.push(self.constrained_property(declared)?);
            while self.eat(",") {
                keys.push(self.constrained_property(declared)?);
            }
            self.expect(")")?;
        } else {
            keys.push(self.constrained_property(declared)?);
        }
        let span = self.since(start);
        self.expect_word("IS")?;
        let is_node = matches!(declared.target, ConstraintTarget::Label(_));
        let of_nodes = |parser: &Self, what: &str| match is_node {
            true => Ok(()),
            false => parser.unsupported(span, &format!("{what} of relationships")),
        };
        if self.eat_word("UNIQUE") {
            of_nodes(self, "uniqueness")?;
            return Ok(Rule::Unique(keys));
        }
        if self.is_word_at(1, "KEY") && (self.is_word("NODE") || self.is_word("RELATIONSHIP")) {
            self.skip(1);
        }
        if self.eat_word("KEY") {
            of_nodes(self, "keys")?;
            return Ok(Rule::Key(keys));
        }
        let (Some(key), true) = (keys.pop(), keys.is_empty()) else {
            let message = "this kind of constraint is about one property";
            return self.error(span, Detail::UnexpectedSyntax, message);
        };
        if self.eat_word("NOT") {
            self.expect_word("NULL")?;
            return Ok(Rule::Exists(key));
        }
        if self.eat_word("TYPED") || self.is(":") && *self.ahead(1) == Token::Symbol(":") {
            while self.eat(":") {}
            return Ok(Rule::Typed(key, self.property_types()?));
        }
        self.unexpected("UNIQUE, NOT NULL, NODE KEY or :: and a type")
    }

    /// `n.key` of the constraint's variable.
    fn constrained_property(&mut self, declared: &Declared) -> Result<Arc<str>> {
        let Declared { variable, .. } = declared;
        if !self.is_variable() || !self.is_named(variable) {
            return self.unexpected(variable);
        }
        self.advance();
        self.expect(".")?;
        self.key()
    }

    fn is_named(&self, name: &str) -> bool {
        matches!(self.token(), Token::Word { text, .. } if **text == *name)
    }

    /// `(:A)-[r]->(:B) OR …`
    fn ends(&mut self, declared: &Declared) -> Result<Rule> {
        let mut pairs = Vec::new();
        loop {
            let pattern = self.anonymous_pattern()?;
            let Some(pair) = ends_of(&pattern, declared) else {
                let variable = &declared.variable;
                let message = format!("write REQUIRE (:Label)-[{variable}]->(:Label)");
                return self.error(pattern.span, Detail::UnexpectedSyntax, message);
            };
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
            if !self.eat_word("OR") {
                return Ok(Rule::Ends(pairs));
            }
        }
    }

    /// `A | B | LIST<C NOT NULL>`
    fn property_types(&mut self) -> Result<Vec<PropertyType>> {
        let mut types = Vec::new();
        loop {
            let kind = if self.is_word("LIST") && *self.ahead(1) == Token::Symbol("<") {
                self.skip(2);
                let scalar = self.scalar_type()?;
                if self.eat_word("NOT") {
                    self.expect_word("NULL")?;
                }
                self.expect(">")?;
                PropertyType::List(scalar)
            } else {
                PropertyType::Scalar(self.scalar_type()?)
            };
            if !types.contains(&kind) {
                types.push(kind);
            }
            if !self.eat("|") {
                return Ok(types);
            }
        }
    }

    fn scalar_type(&mut self) -> Result<Scalar> {
        let Name { mut text, span } = self.any_name("a type")?;
        if ["LOCAL", "ZONED"].iter().any(|first| text.eq_ignore_ascii_case(first)) {
            text = format!("{text} {}", self.any_name("TIME or DATETIME")?.text).into();
        }
        match Scalar::named(&text) {
            Some(scalar) => Ok(scalar),
            None => self.unsupported(span, &format!("the property type {text}")),
        }
    }
}

/// The labels of `(:A)-[r]->(:B)`.
fn ends_of(pattern: &PathPattern, declared: &Declared) -> Option<(Arc<str>, Arc<str>)> {
    let ConstraintTarget::Type(_) = declared.target else { return None };
    let [(rel, end)] = pattern.steps.as_slice() else { return None };
    let is_meant = rel.variable.as_ref()?.text == declared.variable
        && rel.types.is_empty()
        && rel.length.is_none()
        && rel.properties.is_none();
    let nodes = [&pattern.start, end];
    if !is_meant || nodes.iter().any(|node| node.variable.is_some() || node.properties.is_some()) {
        return None;
    }
    let ([from], [to]) = (pattern.start.labels.as_slice(), end.labels.as_slice()) else {
        return None;
    };
    let (from, to) = (from.text.clone(), to.text.clone());
    match rel.direction {
        Direction::Out => Some((from, to)),
        Direction::In => Some((to, from)),
        Direction::Both => None,
    }
}
