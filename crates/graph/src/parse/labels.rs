//! Label and type expressions, such as `:A|B`, `:!A` and `:A&(B|C)`.

use crate::ast::{LabelExpr, Name};
use crate::error::Result;

use super::Parser;
use super::lexer::Token;

/// Labels that must all be there, or any other expression.
pub(super) enum Labels {
    All(Vec<Name>),
    Other(LabelExpr),
}

impl Parser<'_> {
    /// Label names after colons.
    pub(super) fn labels(&mut self) -> Result<Vec<Name>> {
        let span = self.span();
        match self.label_expression(true)? {
            Labels::All(names) => Ok(names),
            Labels::Other(_) => self.unsupported(span, "label expressions (|, !, %) here"),
        }
    }

    /// A label expression, which begins with a colon. `bar`: whether it may contain `|`.
    pub(super) fn label_expression(&mut self, bar: bool) -> Result<Labels> {
        let mut terms = Vec::new();
        while self.eat(":") {
            terms.push(self.label_choice(bar)?);
        }
        let all = match terms.len() {
            1 => terms.remove(0),
            _ => LabelExpr::All(terms),
        };
        let mut names = Vec::new();
        Ok(if all.as_names(&mut names) { Labels::All(names) } else { Labels::Other(all) })
    }

    fn label_choice(&mut self, bar: bool) -> Result<LabelExpr> {
        let first = self.label_terms()?;
        if !bar || !self.is("|") {
            return Ok(first);
        }
        let mut choices = vec![first];
        while self.eat("|") {
            // Relationships may repeat the colon, as in `:A|:B`.
            self.eat(":");
            choices.push(self.label_terms()?);
        }
        Ok(LabelExpr::Any(choices))
    }

    fn label_terms(&mut self) -> Result<LabelExpr> {
        let first = self.label_factor()?;
        if !self.is("&") {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.eat("&") {
            terms.push(self.label_factor()?);
        }
        Ok(LabelExpr::All(terms))
    }

    fn label_factor(&mut self) -> Result<LabelExpr> {
        if self.eat("!") {
            return Ok(LabelExpr::Not(Box::new(self.deeper(Self::label_factor)?)));
        }
        if self.eat("%") {
            return Ok(LabelExpr::Wildcard);
        }
        if self.eat("(") {
            let inner = self.deeper(|parser| parser.label_choice(true))?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.is("$") || matches!(self.token(), Token::Parameter(_)) {
            return self.unsupported(self.span(), "dynamic labels and types ($(…))");
        }
        Ok(LabelExpr::Name(self.any_name("a label")?))
    }
}
