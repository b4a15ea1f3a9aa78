use crate::ast::{
    Clause, Expr, ExprKind, Imports, Name, ProcedureClause, Projection, ProjectionItem, RemoveItem,
    SetItem, SingleQuery, Span, Statement, UnionQuery, Yields,
};
use crate::error::{Detail, Result};

use super::Parser;
use super::lexer::Token;

/// Clauses of other dialects, which are refused by name.
const UNSUPPORTED_CLAUSES: [(&str, &str); 6] = [
    ("LOAD", "LOAD CSV"),
    ("USE", "USE"),
    ("USING", "planner hints (USING)"),
    ("PROFILE", "PROFILE"),
    ("DROP", "DROP"),
    ("SHOW", "SHOW"),
];

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement> {
        if let Some(command) = self.constraint_command()? {
            return Ok(Statement::Constraint(command));
        }
        let is_explained = self.eat_word("EXPLAIN");
        let query = self.union_query()?;
        self.eat(";");
        if *self.token() != Token::End {
            return self.unexpected("a clause or the end of the query");
        }
        Ok(if is_explained { Statement::Explain(query) } else { Statement::Query(query) })
    }

    pub(super) fn union_query(&mut self) -> Result<UnionQuery> {
        let mut parts = vec![self.single_query()?];
        let mut unions = Vec::new();
        while self.is_word("UNION") {
            let span = self.span();
            self.advance();
            let all = self.eat_word("ALL");
            if !all {
                self.eat_word("DISTINCT");
            }
            unions.push((all, span));
            parts.push(self.single_query()?);
        }
        Ok(UnionQuery { parts, unions })
    }

    pub(super) fn single_query(&mut self) -> Result<SingleQuery> {
        let mut clauses = Vec::new();
        while let Some(clause) = self.clause()? {
            clauses.push(clause);
        }
        if clauses.is_empty() {
            return self.unexpected("a clause");
        }
        Ok(SingleQuery { clauses })
    }

    pub(super) fn clause(&mut self) -> Result<Option<Clause>> {
        let span = self.span();
        let Token::Word { text, quoted: false } = self.token() else { return Ok(None) };
        let word = text.to_ascii_uppercase();
        if let Some((_, what)) = UNSUPPORTED_CLAUSES.iter().find(|(name, _)| *name == word) {
            return self.unsupported(span, what);
        }
        let clause = match word.as_str() {
            "OPTIONAL" if self.is_word_at(1, "CALL") => {
                self.advance();
                self.call_clause(span, true)?
            }
            "OPTIONAL" | "MATCH" => self.match_clause(span)?,
            "CALL" => self.call_clause(span, false)?,
            "FOREACH" => self.foreach(span)?,
            "UNWIND" => {
                self.advance();
                let list = self.expression()?;
                self.expect_word("AS")?;
                Clause::Unwind { list, variable: self.variable()? }
            }
            "WITH" => {
                self.advance();
                Clause::With(self.projection(span, true)?)
            }
            "RETURN" => {
                self.advance();
                Clause::Return(self.projection(span, false)?)
            }
            "CREATE" => {
                self.advance();
                if self.is_word("CONSTRAINT") {
                    let message = "CREATE CONSTRAINT must be a statement of its own";
                    return self.error(span, Detail::InvalidClauseComposition, message);
                }
                if self.is_word("INDEX") {
                    return self.unsupported(span, "CREATE INDEX");
                }
                Clause::Create { patterns: self.patterns()?, span }
            }
            "MERGE" => self.merge(span)?,
            "SET" => {
                self.advance();
                Clause::Set { items: self.set_items()?, span }
            }
            "REMOVE" => self.remove(span)?,
            "DETACH" | "DELETE" => self.delete(span)?,
            _ => return Ok(None),
        };
        Ok(Some(clause))
    }

    fn match_clause(&mut self, span: Span) -> Result<Clause> {
        let optional = self.eat_word("OPTIONAL");
        self.expect_word("MATCH")?;
        let patterns = self.patterns()?;
        let filter = self.filter()?;
        Ok(Clause::Match { optional, patterns, filter, span })
    }

    /// `CALL { … }` or `CALL (a, b) { … }`
    fn call_clause(&mut self, span: Span, optional: bool) -> Result<Clause> {
        self.advance();
        if matches!(self.token(), Token::Word { .. }) {
            return self.procedure(span, optional);
        }
        let imports = if self.eat("(") {
            let mut names = Vec::new();
            if self.eat("*") {
                self.expect(")")?;
                Imports::All
            } else {
                while self.is_variable() {
                    names.push(self.variable()?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect(")")?;
                Imports::Names(names)
            }
        } else {
            Imports::With
        };
        self.expect("{")?;
        let subquery = self.deeper(Self::union_query)?;
        self.expect("}")?;
        if self.is_word("IN") {
            return self.unsupported(self.span(), "CALL { … } IN TRANSACTIONS");
        }
        Ok(Clause::Call { subquery, imports, optional, span })
    }

    /// `CALL name(…) YIELD a, b AS c WHERE …`
    fn procedure(&mut self, span: Span, optional: bool) -> Result<Clause> {
        if optional {
            return self.unsupported(span, "OPTIONAL CALL of a procedure");
        }
        let start = self.span();
        let mut name = self.any_name("the name of a procedure")?.text.to_string();
        while self.eat(".") {
            name.push('.');
            name.push_str(&self.any_name("the name of a procedure")?.text);
        }
        let name = Name { text: name.into(), span: self.since(start) };
        let arguments = if self.eat("(") {
            let mut arguments = Vec::new();
            while !self.is(")") {
                arguments.push(self.expression()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
            Some(arguments)
        } else {
            None
        };
        let (mut yields, mut filter) = (None, None);
        if self.eat_word("YIELD") {
            yields = Some(self.yields()?);
            filter = self.filter()?;
        }
        Ok(Clause::Procedure(ProcedureClause { name, arguments, yields, filter, span }))
    }

    fn yields(&mut self) -> Result<Yields> {
        if self.eat("*") {
            return Ok(Yields::Star);
        }
        let mut items = Vec::new();
        loop {
            let output = self.any_name("an output of the procedure")?;
            let alias = if self.eat_word("AS") { Some(self.variable()?) } else { None };
            items.push((output, alias));
            if !self.eat(",") {
                return Ok(Yields::Items(items));
            }
        }
    }

    /// `FOREACH (x IN list | …)`
    fn foreach(&mut self, span: Span) -> Result<Clause> {
        self.advance();
        self.expect("(")?;
        let variable = self.variable()?;
        self.expect_word("IN")?;
        let list = self.until_bar()?;
        self.expect("|")?;
        let body = self.deeper(Self::single_query)?;
        self.expect(")")?;
        if body.clauses.iter().any(|clause| clause.write().is_none()) {
            let message = "FOREACH can only contain clauses that write";
            return self.error(span, Detail::InvalidClauseComposition, message);
        }
        Ok(Clause::Foreach { variable, list, body, span })
    }

    pub(super) fn filter(&mut self) -> Result<Option<Expr>> {
        if self.eat_word("WHERE") { self.expression().map(Some) } else { Ok(None) }
    }

    fn projection(&mut self, span: Span, with: bool) -> Result<Projection> {
        let distinct = self.eat_word("DISTINCT");
        let star = self.eat("*");
        let mut items = Vec::new();
        if !star || self.eat(",") {
            loop {
                let expr = self.expression()?;
                let alias = if self.eat_word("AS") { Some(self.alias()?) } else { None };
                items.push(ProjectionItem { expr, alias });
                if !self.eat(",") {
                    break;
                }
            }
        }
        let mut order = Vec::new();
        if self.eat_word("ORDER") {
            self.expect_word("BY")?;
            loop {
                let key = self.expression()?;
                let descending = if self.eat_word("DESC") || self.eat_word("DESCENDING") {
                    true
                } else {
                    let _ = self.eat_word("ASC") || self.eat_word("ASCENDING");
                    false
                };
                order.push((key, descending));
                if !self.eat(",") {
                    break;
                }
            }
        }
        let skip = if self.eat_word("SKIP") { Some(self.expression()?) } else { None };
        let limit = if self.eat_word("LIMIT") { Some(self.expression()?) } else { None };
        let filter = if with { self.filter()? } else { None };
        let span = self.since(span);
        Ok(Projection { distinct, star, items, order, skip, limit, filter, span })
    }

    /// A name after `AS`, where no keyword can stand.
    fn alias(&mut self) -> Result<Name> {
        self.any_name("a variable")
    }

    fn merge(&mut self, span: Span) -> Result<Clause> {
        self.advance();
        let pattern = self.path_pattern()?;
        let (mut on_create, mut on_match) = (Vec::new(), Vec::new());
        while self.eat_word("ON") {
            if self.eat_word("CREATE") {
                self.expect_word("SET")?;
                on_create.extend(self.set_items()?);
            } else {
                self.expect_word("MATCH")?;
                self.expect_word("SET")?;
                on_match.extend(self.set_items()?);
            }
        }
        Ok(Clause::Merge { pattern, on_create, on_match, span })
    }

    fn set_items(&mut self) -> Result<Vec<SetItem>> {
        let mut items = Vec::new();
        loop {
            items.push(self.set_item()?);
            if !self.eat(",") {
                return Ok(items);
            }
        }
    }

    fn set_item(&mut self) -> Result<SetItem> {
        if self.is_variable() {
            let after = self.ahead(1).clone();
            match after {
                Token::Symbol(":") => {
                    let variable = self.variable()?;
                    return Ok(SetItem::Labels { variable, labels: self.labels()? });
                }
                Token::Symbol("=" | "+=") => {
                    let variable = self.variable()?;
                    self.advance();
                    let merge = after == Token::Symbol("+=");
                    return Ok(SetItem::All { variable, value: self.expression()?, merge });
                }
                _ => {}
            }
        }
        let (target, key) = self.property_target()?;
        self.expect("=")?;
        Ok(SetItem::Property { target, key, value: self.expression()? })
    }

    /// `n.key`, where `n` is any atom.
    fn property_target(&mut self) -> Result<(Expr, std::sync::Arc<str>)> {
        let span = self.span();
        let expr = self.postfix()?;
        match *expr.kind {
            ExprKind::Property(target, key) => Ok((target, key)),
            _ => self.error(span, Detail::UnexpectedSyntax, "expected a property"),
        }
    }

    fn remove(&mut self, span: Span) -> Result<Clause> {
        self.advance();
        let mut items = Vec::new();
        loop {
            if self.is_variable() && *self.ahead(1) == Token::Symbol(":") {
                let variable = self.variable()?;
                items.push(RemoveItem::Labels { variable, labels: self.labels()? });
            } else {
                let (target, key) = self.property_target()?;
                items.push(RemoveItem::Property { target, key });
            }
            if !self.eat(",") {
                return Ok(Clause::Remove { items, span });
            }
        }
    }

    fn delete(&mut self, span: Span) -> Result<Clause> {
        let detach = self.eat_word("DETACH");
        self.expect_word("DELETE")?;
        let mut targets = vec![self.expression()?];
        while self.eat(",") {
            targets.push(self.expression()?);
        }
        Ok(Clause::Delete { detach, targets, span })
    }
}
