use crate::ast::{
    BinaryOp, Clause, CompareOp, Expr, ExprKind, Logic, MapPart, Quantifier, SingleQuery, Span,
    SubqueryKind, UnionQuery,
};
use crate::error::{Detail, Result};
use crate::value::Value;

use super::labels::Labels;
use super::lexer::Token;
use super::{MAX_HEIGHT, Parser};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.deeper(|parser| parser.logic(0))
    }

    /// Builds an expression from parts of these heights.
    fn make(&self, start: Span, kind: ExprKind, heights: &[u16]) -> Result<Expr> {
        let height = heights.iter().max().copied().unwrap_or(0) + 1;
        let span = self.since(start);
        if height > MAX_HEIGHT {
            return self.too_deep(span);
        }
        Ok(Expr { kind: Box::new(kind), span, height })
    }

    /// Binary logic by increasing precedence: `OR`, `XOR`, `AND`, then `NOT`.
    fn logic(&mut self, level: usize) -> Result<Expr> {
        const LEVELS: [(&str, Logic); 3] =
            [("OR", Logic::Or), ("XOR", Logic::Xor), ("AND", Logic::And)];
        let Some((word, operator)) = LEVELS.get(level) else { return self.negation() };
        let start = self.span();
        let first = self.logic(level + 1)?;
        if !self.is_word(word) {
            return Ok(first);
        }
        let mut height = first.height;
        let mut terms = vec![first];
        while self.eat_word(word) {
            let term = self.logic(level + 1)?;
            height = height.max(term.height);
            terms.push(term);
        }
        self.make(start, ExprKind::Logic(*operator, terms), &[height])
    }

    fn negation(&mut self) -> Result<Expr> {
        let start = self.span();
        if self.eat_word("NOT") {
            let inner = self.deeper(Self::negation)?;
            let height = inner.height;
            return self.make(start, ExprKind::Not(inner), &[height]);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr> {
        let start = self.span();
        let first = self.predicate()?;
        let mut height = first.height;
        let mut rest = Vec::new();
        while let Some(operator) = self.compare_operator() {
            self.advance();
            let next = self.predicate()?;
            height = height.max(next.height);
            rest.push((operator, next));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.make(start, ExprKind::Comparison(first, rest), &[height])
    }

    fn compare_operator(&self) -> Option<CompareOp> {
        match self.token() {
            Token::Symbol("=") => Some(CompareOp::Equal),
            Token::Symbol("<>") => Some(CompareOp::NotEqual),
            Token::Symbol("<") => Some(CompareOp::Less),
            Token::Symbol("<=") => Some(CompareOp::LessOrEqual),
            Token::Symbol(">") => Some(CompareOp::Greater),
            Token::Symbol(">=") => Some(CompareOp::GreaterOrEqual),
            _ => None,
        }
    }

    /// `IN`, `STARTS WITH`, `IS NULL` and similar.
    fn predicate(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut left = self.sum()?;
        loop {
            let operator = if self.eat_word("IN") {
                BinaryOp::In
            } else if self.is_word("STARTS") && self.is_word_at(1, "WITH") {
                self.advance();
                self.advance();
                BinaryOp::StartsWith
            } else if self.is_word("ENDS") && self.is_word_at(1, "WITH") {
                self.advance();
                self.advance();
                BinaryOp::EndsWith
            } else if self.eat_word("CONTAINS") {
                BinaryOp::Contains
            } else if self.eat("=~") {
                BinaryOp::Matches
            } else if self.eat_word("IS") {
                let negated = self.eat_word("NOT");
                self.expect_word("NULL")?;
                let height = left.height;
                left = self.make(start, ExprKind::IsNull(left, negated), &[height])?;
                continue;
            } else {
                return Ok(left);
            };
            let right = self.sum()?;
            left = self.binary(start, operator, left, right)?;
        }
    }

    fn binary(&self, start: Span, operator: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
        let heights = [left.height, right.height];
        self.make(start, ExprKind::Binary(operator, left, right), &heights)
    }

    fn sum(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut left = self.product()?;
        loop {
            let operator = match self.token() {
                Token::Symbol("+") => BinaryOp::Add,
                Token::Symbol("-") => BinaryOp::Subtract,
                Token::Symbol("||") => BinaryOp::Concatenate,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.product()?;
            left = self.binary(start, operator, left, right)?;
        }
    }

    fn product(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut left = self.power()?;
        loop {
            let operator = match self.token() {
                Token::Symbol("*") => BinaryOp::Multiply,
                Token::Symbol("/") => BinaryOp::Divide,
                Token::Symbol("%") => BinaryOp::Modulo,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.power()?;
            left = self.binary(start, operator, left, right)?;
        }
    }

    fn power(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut left = self.sign()?;
        while self.eat("^") {
            let right = self.sign()?;
            left = self.binary(start, BinaryOp::Power, left, right)?;
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr> {
        let start = self.span();
        if self.eat("-") {
            if let Token::Integer(number) = *self.token() {
                // The smallest integer has no positive counterpart.
                let then = self.ahead(1);
                if number == i64::MIN.unsigned_abs() && *then != Token::Symbol(".") {
                    self.advance();
                    let literal = ExprKind::Literal(Value::Integer(i64::MIN));
                    return self.make(start, literal, &[]);
                }
            }
            let inner = self.deeper(Self::sign)?;
            let height = inner.height;
            return self.make(start, ExprKind::Minus(inner), &[height]);
        }
        if self.eat("+") {
            let inner = self.deeper(Self::sign)?;
            let height = inner.height;
            return self.make(start, ExprKind::Plus(inner), &[height]);
        }
        self.postfix()
    }

    /// An atom with any suffixes: properties, elements, labels.
    pub(super) fn postfix(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut expr = self.atom()?;
        loop {
            let height = expr.height;
            if self.eat(".") {
                let key = self.key()?;
                expr = self.make(start, ExprKind::Property(expr, key), &[height])?;
            } else if self.eat("[") {
                expr = self.element(start, expr)?;
            } else if self.is(":") && self.is_label_ahead() {
                let kind = match self.label_expression(!self.bar_ends)? {
                    Labels::All(labels) => ExprKind::HasLabels(expr, labels),
                    Labels::Other(other) => ExprKind::IsLabelled(expr, other),
                };
                expr = self.make(start, kind, &[height])?;
            } else {
                return Ok(expr);
            }
        }
    }

    /// Whether a label expression follows a colon.
    fn is_label_ahead(&self) -> bool {
        match self.ahead(1) {
            Token::Word { .. } => true,
            Token::Symbol(symbol) => ["!", "%", "(", "$"].contains(symbol),
            _ => false,
        }
    }

    /// Parses an expression that `|` ends, so that labels in it are not a choice.
    pub(super) fn until_bar(&mut self) -> Result<Expr> {
        let before = std::mem::replace(&mut self.bar_ends, true);
        let expr = self.expression();
        self.bar_ends = before;
        expr
    }

    fn element(&mut self, start: Span, of: Expr) -> Result<Expr> {
        let from = if self.is("..") { None } else { Some(self.expression()?) };
        if !self.eat("..") {
            self.expect("]")?;
            let Some(index) = from else { return self.unexpected("an index") };
            let heights = [of.height, index.height];
            return self.make(start, ExprKind::Index(of, index), &heights);
        }
        let to = if self.is("]") { None } else { Some(self.expression()?) };
        self.expect("]")?;
        let height = |expr: &Option<Expr>| expr.as_ref().map_or(0, |expr| expr.height);
        let heights = [of.height, height(&from), height(&to)];
        self.make(start, ExprKind::Slice(of, from, to), &heights)
    }

    fn atom(&mut self) -> Result<Expr> {
        let start = self.span();
        let literal = |value: Value| ExprKind::Literal(value);
        let kind = match self.token().clone() {
            Token::Integer(number) => match i64::try_from(number) {
                Ok(number) => literal(Value::Integer(number)),
                Err(_) => {
                    let message = format!("{number} is too large for an integer");
                    return self.error(start, Detail::IntegerOverflow, message);
                }
            },
            Token::InvalidNumber(detail, message) => return self.error(start, detail, message),
            Token::Float(number) => literal(Value::Float(number)),
            Token::Text(text) => literal(Value::text(text)),
            Token::Parameter(name) => ExprKind::Parameter(name),
            Token::Symbol("(") if self.is_pattern() => return self.pattern_expression(),
            Token::Symbol("(") => {
                self.advance();
                let before = std::mem::replace(&mut self.bar_ends, false);
                let inner = self.expression();
                self.bar_ends = before;
                let mut inner = inner?;
                self.expect(")")?;
                inner.span = self.since(start);
                return Ok(inner);
            }
            Token::Symbol("[") => return self.list(),
            Token::Symbol("{") => return self.map(),
            Token::Word { quoted: false, .. } if self.shortest().is_some() => {
                return self.pattern_expression();
            }
            Token::Word { text, quoted: false } => {
                if let Some(expr) = self.keyword(start, &text)? {
                    return Ok(expr);
                }
                return self.name();
            }
            Token::Word { quoted: true, .. } => return self.name(),
            _ => return self.unexpected("an expression"),
        };
        self.advance();
        self.make(start, kind, &[])
    }

    fn pattern_expression(&mut self) -> Result<Expr> {
        let start = self.span();
        let pattern = self.path_pattern()?;
        self.make(start, ExprKind::Pattern(pattern), &[1])
    }

    /// Expressions that begin with a keyword.
    fn keyword(&mut self, start: Span, word: &str) -> Result<Option<Expr>> {
        let literal = match word.to_ascii_lowercase().as_str() {
            "null" => Value::Null,
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "case" => return self.case(start).map(Some),
            "exists" if *self.ahead(1) == Token::Symbol("{") => {
                return self.subquery(start, SubqueryKind::Exists).map(Some);
            }
            "count" if self.is_subquery() => {
                return self.subquery(start, SubqueryKind::Count).map(Some);
            }
            "collect" if self.is_subquery() => {
                return self.subquery(start, SubqueryKind::Collect).map(Some);
            }
            "all" if self.is_quantifier() => {
                return self.quantifier(start, Quantifier::All).map(Some);
            }
            "any" if self.is_quantifier() => {
                return self.quantifier(start, Quantifier::Any).map(Some);
            }
            "none" if self.is_quantifier() => {
                return self.quantifier(start, Quantifier::None).map(Some);
            }
            "single" if self.is_quantifier() => {
                return self.quantifier(start, Quantifier::Single).map(Some);
            }
            "reduce" if *self.ahead(1) == Token::Symbol("(") => {
                return self.reduce(start).map(Some);
            }
            _ => return Ok(None),
        };
        self.advance();
        self.make(start, ExprKind::Literal(literal), &[]).map(Some)
    }

    /// A variable, a map projection or a call.
    fn name(&mut self) -> Result<Expr> {
        let start = self.span();
        if self.is_variable() && *self.ahead(1) == Token::Symbol("{") {
            return self.map_projection(start);
        }
        if let Some(length) = self.call_ahead() {
            return self.call(start, length);
        }
        let name = self.variable()?;
        self.make(start, ExprKind::Variable(name.text), &[])
    }

    /// The number of tokens in a function's name, such as `a.b.c`, if a call begins here.
    fn call_ahead(&self) -> Option<usize> {
        let mut length = 1;
        loop {
            match (self.ahead(length), self.ahead(length + 1)) {
                (Token::Symbol("("), _) => return Some(length),
                (Token::Symbol("."), Token::Word { .. }) => length += 2,
                _ => return None,
            }
        }
    }

    fn call(&mut self, start: Span, length: usize) -> Result<Expr> {
        let mut name = String::new();
        for _ in 0..length {
            match self.token() {
                Token::Word { text, .. } => name.push_str(text),
                _ => name.push('.'),
            }
            self.advance();
        }
        self.expect("(")?;
        if name.eq_ignore_ascii_case("count") && self.eat("*") {
            self.expect(")")?;
            return self.make(start, ExprKind::CountStar, &[]);
        }
        let distinct = self.eat_word("DISTINCT");
        let mut arguments = Vec::new();
        let mut height = 0;
        if !self.is(")") {
            loop {
                let argument = self.expression()?;
                height = height.max(argument.height);
                arguments.push(argument);
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect(")")?;
        let kind = ExprKind::Call { name: name.into(), distinct, arguments };
        self.make(start, kind, &[height])
    }

    fn map_projection(&mut self, start: Span) -> Result<Expr> {
        let variable = self.variable()?;
        self.expect("{")?;
        let mut parts = Vec::new();
        let mut height = 0;
        while !self.is("}") {
            parts.push(if self.eat(".") {
                if self.eat("*") { MapPart::All } else { MapPart::Property(self.key()?) }
            } else if *self.ahead(1) == Token::Symbol(":") {
                let key = self.map_key()?;
                self.advance();
                let value = self.expression()?;
                height = height.max(value.height);
                MapPart::Entry(key, value)
            } else {
                MapPart::Variable(self.variable()?)
            });
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        self.make(start, ExprKind::MapProjection(variable, parts), &[height])
    }

    pub(super) fn map(&mut self) -> Result<Expr> {
        let start = self.span();
        self.expect("{")?;
        let mut entries = Vec::new();
        let mut height = 0;
        while !self.is("}") {
            let key = self.map_key()?;
            self.expect(":")?;
            let value = self.expression()?;
            height = height.max(value.height);
            entries.push((key, value));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        self.make(start, ExprKind::Map(entries), &[height])
    }

    /// A list, or a comprehension over a list or a pattern.
    fn list(&mut self) -> Result<Expr> {
        let start = self.span();
        self.expect("[")?;
        if self.is_variable() && self.is_word_at(1, "IN") {
            return self.list_comprehension(start);
        }
        let named = self.is_variable() && *self.ahead(1) == Token::Symbol("=");
        if (named && *self.ahead(2) == Token::Symbol("("))
            || (self.is("(") && self.is_pattern_comprehension())
        {
            return self.pattern_comprehension(start);
        }
        let mut items = Vec::new();
        let mut height = 0;
        while !self.is("]") {
            let item = self.expression()?;
            height = height.max(item.height);
            items.push(item);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        self.make(start, ExprKind::List(items), &[height])
    }

    /// Tells `[(a)-->(b) WHERE … | …]` from `[(a)-->(b), …]`.
    fn is_pattern_comprehension(&self) -> bool {
        if !self.is_pattern() {
            return false;
        }
        // Skips from bracket to bracket until the pattern ends.
        let mut at = self.at;
        loop {
            match &self.tokens[at].0 {
                Token::Symbol("(" | "[") => {
                    if self.matching_brackets[at] == u32::MAX {
                        return false;
                    }
                    at = self.matching_brackets[at] as usize + 1;
                }
                Token::Symbol("-" | "<" | ">") => at += 1,
                Token::Symbol("|") => return true,
                Token::Word { text, quoted: false } => return text.eq_ignore_ascii_case("where"),
                _ => return false,
            }
        }
    }

    fn list_comprehension(&mut self, start: Span) -> Result<Expr> {
        let variable = self.variable()?;
        self.expect_word("IN")?;
        let list = self.until_bar()?;
        let filter = if self.eat_word("WHERE") { Some(self.until_bar()?) } else { None };
        let map = if self.eat("|") { Some(self.expression()?) } else { None };
        self.expect("]")?;
        let height = |expr: &Option<Expr>| expr.as_ref().map_or(0, |expr| expr.height);
        let heights = [list.height, height(&filter), height(&map)];
        let kind = ExprKind::ListComprehension { variable, list, filter, map };
        self.make(start, kind, &heights)
    }

    fn pattern_comprehension(&mut self, start: Span) -> Result<Expr> {
        let pattern = self.path_pattern()?;
        let filter = if self.eat_word("WHERE") { Some(self.until_bar()?) } else { None };
        self.expect("|")?;
        let map = self.expression()?;
        self.expect("]")?;
        let heights = [map.height, filter.as_ref().map_or(0, |filter| filter.height)];
        self.make(start, ExprKind::PatternComprehension { pattern, filter, map }, &heights)
    }

    fn case(&mut self, start: Span) -> Result<Expr> {
        self.advance();
        let subject = if self.is_word("WHEN") { None } else { Some(self.expression()?) };
        let mut height = subject.as_ref().map_or(0, |subject| subject.height);
        let mut branches = Vec::new();
        while self.eat_word("WHEN") {
            let when = self.expression()?;
            self.expect_word("THEN")?;
            let then = self.expression()?;
            height = height.max(when.height).max(then.height);
            branches.push((when, then));
        }
        if branches.is_empty() {
            return self.unexpected("WHEN");
        }
        let default = if self.eat_word("ELSE") { Some(self.expression()?) } else { None };
        self.expect_word("END")?;
        height = height.max(default.as_ref().map_or(0, |default| default.height));
        self.make(start, ExprKind::Case { subject, branches, default }, &[height])
    }

    /// Tells `count { … }` from a map projection of a variable named so.
    fn is_subquery(&self) -> bool {
        const FIRST: [&str; 6] = ["MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"];
        *self.ahead(1) == Token::Symbol("{")
            && (*self.ahead(2) == Token::Symbol("(")
                || *self.ahead(3) == Token::Symbol("=")
                || FIRST.iter().any(|word| self.is_word_at(2, word))
                    && *self.ahead(3) != Token::Symbol(":"))
    }

    /// `EXISTS { (a)-->(b) WHERE … }` or `EXISTS { MATCH … RETURN … }`, and its kin.
    fn subquery(&mut self, start: Span, kind: SubqueryKind) -> Result<Expr> {
        self.advance();
        self.expect("{")?;
        let query = if self.is("(") || *self.ahead(1) == Token::Symbol("=") {
            let span = self.span();
            let patterns = self.patterns()?;
            let filter = self.filter()?;
            let clause = Clause::Match { optional: false, patterns, filter, span };
            UnionQuery { parts: vec![SingleQuery { clauses: vec![clause] }], unions: Vec::new() }
        } else {
            self.deeper(Self::union_query)?
        };
        self.expect("}")?;
        self.make(start, ExprKind::Subquery(kind, query), &[1])
    }

    fn is_quantifier(&self) -> bool {
        *self.ahead(1) == Token::Symbol("(")
            && matches!(self.ahead(2), Token::Word { .. })
            && self.is_word_at(3, "IN")
    }

    fn quantifier(&mut self, start: Span, kind: Quantifier) -> Result<Expr> {
        self.advance();
        self.expect("(")?;
        let variable = self.variable()?;
        self.expect_word("IN")?;
        let list = self.expression()?;
        self.expect_word("WHERE")?;
        let filter = self.expression()?;
        self.expect(")")?;
        let heights = [list.height, filter.height];
        self.make(start, ExprKind::Quantifier { kind, variable, list, filter }, &heights)
    }

    fn reduce(&mut self, start: Span) -> Result<Expr> {
        self.advance();
        self.expect("(")?;
        let accumulator = self.variable()?;
        self.expect("=")?;
        let initial = self.expression()?;
        self.expect(",")?;
        let variable = self.variable()?;
        self.expect_word("IN")?;
        let list = self.until_bar()?;
        self.expect("|")?;
        let body = self.expression()?;
        self.expect(")")?;
        let heights = [initial.height, list.height, body.height];
        let kind = ExprKind::Reduce { accumulator, initial, variable, list, body };
        self.make(start, kind, &heights)
    }
}
