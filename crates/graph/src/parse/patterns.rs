use crate::ast::{Expr, ExprKind, LabelExpr, Name, NodePattern, PathPattern, RelPattern, Shortest};
use crate::error::{Detail, Result};
use crate::graph::Direction;

use super::Parser;
use super::labels::Labels;
use super::lexer::Token;

impl Parser<'_> {
    pub(super) fn patterns(&mut self) -> Result<Vec<PathPattern>> {
        let mut patterns = vec![self.path_pattern()?];
        while self.eat(",") {
            patterns.push(self.path_pattern()?);
        }
        Ok(patterns)
    }

    /// A pattern, optionally named or in `shortestPath()`.
    pub(super) fn path_pattern(&mut self) -> Result<PathPattern> {
        let start = self.span();
        let variable = if self.is_variable() && *self.ahead(1) == Token::Symbol("=") {
            let name = self.variable()?;
            self.advance();
            Some(name)
        } else {
            None
        };
        for word in ["SHORTEST", "ANY", "ALL"] {
            if self.is_word(word) && !matches!(self.ahead(1), Token::Symbol("(")) {
                return self.unsupported(self.span(), "SHORTEST, ANY and ALL before a pattern");
            }
        }
        let shortest = self.shortest();
        let mut pattern = if shortest.is_some() {
            self.advance();
            self.expect("(")?;
            let pattern = self.anonymous_pattern()?;
            self.expect(")")?;
            pattern
        } else {
            self.anonymous_pattern()?
        };
        pattern.variable = variable;
        pattern.shortest = shortest;
        pattern.span = self.since(start);
        Ok(pattern)
    }

    pub(super) fn shortest(&self) -> Option<Shortest> {
        if *self.ahead(1) != Token::Symbol("(") {
            None
        } else if self.is_word("shortestPath") {
            Some(Shortest::One)
        } else if self.is_word("allShortestPaths") {
            Some(Shortest::All)
        } else {
            None
        }
    }

    /// A pattern without a name: nodes and the relationships between them.
    pub(super) fn anonymous_pattern(&mut self) -> Result<PathPattern> {
        let start_span = self.span();
        let start = self.node_pattern()?;
        let mut steps = Vec::new();
        while self.is("-") || self.is("<") {
            let relationship = self.rel_pattern()?;
            steps.push((relationship, self.node_pattern()?));
        }
        let span = self.since(start_span);
        Ok(PathPattern { variable: None, shortest: None, start, steps, span })
    }

    fn node_pattern(&mut self) -> Result<NodePattern> {
        let start = self.span();
        self.expect("(")?;
        if self.is("(") {
            return self.unsupported(start, "quantified path patterns");
        }
        let variable = if self.is_variable() { Some(self.variable()?) } else { None };
        let (mut labels, mut choice) = (Vec::new(), None);
        if self.is(":") {
            match self.label_expression(true)? {
                Labels::All(names) => labels = names,
                Labels::Other(other) => choice = Some(other),
            }
        }
        let properties = self.pattern_properties()?;
        let filter = self.filter()?;
        self.expect(")")?;
        let span = self.since(start);
        Ok(NodePattern { variable, labels, choice, properties, filter, span })
    }

    fn pattern_properties(&mut self) -> Result<Option<Expr>> {
        match self.token() {
            Token::Symbol("{") => self.map().map(Some),
            Token::Parameter(name) => {
                let kind = Box::new(ExprKind::Parameter(name.clone()));
                let span = self.span();
                self.advance();
                Ok(Some(Expr { kind, span, height: 1 }))
            }
            _ => Ok(None),
        }
    }

    fn rel_pattern(&mut self) -> Result<RelPattern> {
        let start = self.span();
        let left = self.eat("<");
        self.expect("-")?;
        let (mut variable, mut types, mut length, mut properties) = (None, Vec::new(), None, None);
        let (mut choice, mut filter) = (None, None);
        if self.eat("[") {
            if self.is_variable() {
                variable = Some(self.variable()?);
            }
            if self.is(":") {
                (types, choice) = self.types()?;
            }
            if self.eat("*") {
                length = Some(self.bounds()?);
            }
            if self.is("..") {
                let message = "write the bounds of a length after a star: *1..3";
                let detail = Detail::InvalidRelationshipPattern;
                return self.error(self.span(), detail, message);
            }
            properties = self.pattern_properties()?;
            filter = self.filter()?;
            self.expect("]")?;
        }
        self.expect("-")?;
        let right = self.eat(">");
        if let Some(quantifier) = self.quantified()? {
            if length.is_some() {
                let detail = Detail::InvalidRelationshipPattern;
                return self.error(self.span(), detail, "a relationship has two lengths");
            }
            length = Some(quantifier);
        }
        let direction = match (left, right) {
            (true, false) => Direction::In,
            (false, true) => Direction::Out,
            _ => Direction::Both,
        };
        let span = self.since(start);
        Ok(RelPattern { variable, types, choice, direction, length, properties, filter, span })
    }

    /// The types of a relationship: one of several, or any other expression.
    fn types(&mut self) -> Result<(Vec<Name>, Option<LabelExpr>)> {
        let all = match self.label_expression(true)? {
            Labels::All(names) => LabelExpr::All(names.into_iter().map(LabelExpr::Name).collect()),
            Labels::Other(other) => other,
        };
        let all = match all {
            LabelExpr::All(mut terms) if terms.len() == 1 => terms.remove(0),
            all => all,
        };
        Ok(match all.as_choice() {
            Some(types) => (types, None),
            None => (Vec::new(), Some(all)),
        })
    }

    /// A quantifier after a relationship: `+`, `*`, `{2}` or `{1,3}`.
    fn quantified(&mut self) -> Result<Option<(Option<u64>, Option<u64>)>> {
        if self.eat("+") {
            return Ok(Some((Some(1), None)));
        }
        if self.eat("*") {
            return Ok(Some((Some(0), None)));
        }
        if !self.eat("{") {
            return Ok(None);
        }
        let min = self.bound()?;
        let max = if self.eat(",") { self.bound()? } else { min };
        self.expect("}")?;
        Ok(Some((Some(min.unwrap_or(0)), max)))
    }

    /// The bounds after a star: nothing, `2`, `2..`, `..3` or `2..3`.
    fn bounds(&mut self) -> Result<(Option<u64>, Option<u64>)> {
        let min = self.bound()?;
        if self.eat("..") {
            let max = self.bound()?;
            return Ok((min, max));
        }
        Ok((min, min))
    }

    fn bound(&mut self) -> Result<Option<u64>> {
        match *self.token() {
            Token::Integer(number) => {
                self.advance();
                Ok(Some(number))
            }
            Token::Symbol("-") | Token::Float(_) => self.error(
                self.span(),
                Detail::InvalidRelationshipPattern,
                "a length must be a non-negative integer",
            ),
            _ => Ok(None),
        }
    }

    /// Whether this parenthesis begins a pattern with at least one relationship.
    pub(super) fn is_pattern(&self) -> bool {
        let close = self.matching_brackets[self.at];
        if close == u32::MAX {
            return false;
        }
        let close = close as usize;
        let symbol = |at: usize, symbol: &str| matches!(self.tokens.get(at), Some((Token::Symbol(it), _)) if *it == symbol);
        let line = |at: usize| symbol(at, "-") && (symbol(at + 1, "-") || symbol(at + 1, "["));
        if !(line(close + 1) || symbol(close + 1, "<") && line(close + 2)) {
            return false;
        }
        // The parentheses must contain a node: a name, labels, properties.
        let mut at = self.at + 1;
        if matches!(self.tokens[at].0, Token::Word { .. }) {
            at += 1;
        }
        if symbol(at, ":") {
            let part = |at: usize| match &self.tokens[at].0 {
                Token::Word { text, quoted } => *quoted || !text.eq_ignore_ascii_case("where"),
                Token::Symbol(it) => [":", "|", "&", "!", "%", "(", ")"].contains(it),
                _ => false,
            };
            while at < close && part(at) {
                at += 1;
            }
        }
        if symbol(at, "{") {
            at = (self.matching_brackets[at] as usize).saturating_add(1);
        } else if matches!(self.tokens[at].0, Token::Parameter(_)) {
            at += 1;
        }
        at == close
            || matches!(&self.tokens[at].0, Token::Word { text, quoted: false } if text.eq_ignore_ascii_case("where"))
    }
}
