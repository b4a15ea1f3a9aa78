use crate::ast::{
    BinaryOp, Expr, ExprKind, LabelExpr, Logic, MapPart, Name, Quantifier, Span, SubqueryKind,
};
use crate::error::{Class, Detail, Error, Result};
use crate::ir::{
    Case, Ex, ListComprehension, MapEntry, Match, PatternComprehension, Reduce, Slot, Subquery,
};
use crate::value::Value;

use super::{Checker, Type};

impl Checker<'_> {
    /// Checks an expression whose value is used.
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        if let Some(found) = self.grouped(expr)? {
            return Ok(found);
        }
        match &*expr.kind {
            ExprKind::Literal(value) => Ok((Ex::Value(value.clone()), literal_type(value))),
            ExprKind::Parameter(name) => {
                let known = self.parameters.iter().position(|known| known == name);
                let at = known.unwrap_or_else(|| {
                    self.parameters.push(name.clone());
                    self.parameters.len() - 1
                });
                Ok((Ex::Parameter(at), Type::Any))
            }
            ExprKind::Variable(name) => {
                let variable = self.resolve(name, expr.span)?;
                Ok((Ex::Slot(variable.slot), variable.kind.clone()))
            }
            ExprKind::Property(..) | ExprKind::Index(..) | ExprKind::Slice(..) => self.access(expr),
            ExprKind::HasLabels(of, labels) => self.has_labels(of, labels),
            ExprKind::IsLabelled(of, labels) => self.is_labelled(of, labels),
            ExprKind::List(items) => self.list(items),
            ExprKind::Map(entries) => {
                let mut result = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    result.push((key.clone(), self.expression(value)?.0));
                }
                Ok((Ex::Map(result), Type::Map))
            }
            ExprKind::MapProjection(variable, parts) => self.map_projection(variable, parts),
            ExprKind::Not(_) | ExprKind::Logic(..) => Ok((self.predicate(expr)?, Type::Boolean)),
            ExprKind::Minus(inner) => self.sign(inner, true),
            ExprKind::Plus(inner) => self.sign(inner, false),
            ExprKind::IsNull(inner, negated) => {
                let (inner, _) = self.expression(inner)?;
                Ok((Ex::IsNull(Box::new(inner), *negated), Type::Boolean))
            }
            ExprKind::Binary(operator, left, right) => {
                self.binary(*operator, left, right, expr.span)
            }
            ExprKind::Comparison(..) => self.comparison(expr),
            ExprKind::Case { .. } => self.case(expr),
            ExprKind::Call { name, distinct, arguments } => {
                self.call(expr, name, *distinct, arguments)
            }
            ExprKind::CountStar => self.count_rows(expr.span),
            ExprKind::ListComprehension { .. } | ExprKind::Quantifier { .. } => {
                self.list_comprehension(expr)
            }
            ExprKind::Reduce { .. } => self.reduce(expr),
            ExprKind::PatternComprehension { .. }
            | ExprKind::Pattern(_)
            | ExprKind::Subquery(..)
                if self.beside_aggregates() =>
            {
                self.unsupported(expr.span, "a pattern and an aggregate in the same expression")
            }
            ExprKind::PatternComprehension { .. } => self.pattern_comprehension(expr),
            ExprKind::Pattern(pattern) if pattern.shortest.is_some() => self.shortest_path(pattern),
            ExprKind::Pattern(_) => {
                let message = "a pattern can only be asked whether it is there; to look into it, \
                               use MATCH or [pattern | expression]";
                self.error(expr.span, Detail::UnexpectedSyntax, message)
            }
            ExprKind::Subquery(kind, query) => self.subquery(*kind, query, expr.span),
        }
    }

    /// Checks a boolean expression, in which patterns are allowed.
    pub(super) fn predicate(&mut self, expr: &Expr) -> Result<Ex> {
        match &*expr.kind {
            ExprKind::Not(inner) => Ok(Ex::Not(Box::new(self.predicate(inner)?))),
            ExprKind::Logic(operator, terms) => {
                let terms = terms.iter().map(|term| self.predicate(term)).collect::<Result<_>>()?;
                Ok(Ex::Logic(*operator, terms))
            }
            ExprKind::Pattern(pattern) if pattern.shortest.is_none() => {
                let pattern = self.closed_pattern(pattern)?;
                Ok(Ex::Subquery(SubqueryKind::Exists, Box::new(Subquery::of_pattern(pattern))))
            }
            _ => {
                let (ex, kind) = self.expression(expr)?;
                if !kind.may_be(&Type::Boolean) {
                    let message = format!("expected a boolean, found {}", kind.name());
                    return self.error(expr.span, Detail::InvalidArgumentType, message);
                }
                Ok(ex)
            }
        }
    }

    /// Splits a filter into the conditions that must all hold. It contains no aggregates.
    pub(super) fn filters(&mut self, filter: &Expr) -> Result<Vec<Ex>> {
        match &*filter.kind {
            ExprKind::Logic(Logic::And, terms) => {
                let mut filters = Vec::new();
                for term in terms {
                    filters.extend(self.filters(term)?);
                }
                Ok(filters)
            }
            _ => Ok(vec![self.predicate(filter)?]),
        }
    }

    fn access(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        match &*expr.kind {
            ExprKind::Property(of, key) => {
                let (of_ex, kind) = self.expression(of)?;
                if !kind.may_be_any(&[Type::Map, Type::Node, Type::Relationship]) {
                    let message = format!("{} has no properties", kind.name());
                    if kind == Type::Path {
                        return self.error(expr.span, Detail::InvalidArgumentType, message);
                    }
                    return self.type_error(expr.span, message);
                }
                let key = self.symbol(key);
                Ok((Ex::Property(Box::new(of_ex), key), Type::Any))
            }
            ExprKind::Index(of, index) => {
                let (of_ex, kind) = self.expression(of)?;
                let (index_ex, index_kind) = self.expression(index)?;
                let takers = [Type::AnyList, Type::Map, Type::Node, Type::Relationship];
                if !kind.may_be_any(&takers) {
                    let message = format!("{} has no elements", kind.name());
                    return self.type_error(expr.span, message);
                }
                if matches!(kind, Type::AnyList | Type::List(_))
                    && !index_kind.may_be(&Type::Integer)
                {
                    let message = format!("cannot index a list with {}", index_kind.name());
                    return self.type_error(expr.span, message);
                }
                Ok((Ex::Index(Box::new((of_ex, index_ex))), kind.element()))
            }
            ExprKind::Slice(of, from, to) => {
                let (of, kind) = self.expression(of)?;
                let mut bound = |expr: &Option<Expr>| -> Result<Option<Ex>> {
                    expr.as_ref().map(|expr| Ok(self.expression(expr)?.0)).transpose()
                };
                let (from, to) = (bound(from)?, bound(to)?);
                let kind = Type::List(Box::new(kind.element()));
                Ok((Ex::Slice(Box::new((of, from, to))), kind))
            }
            _ => self.expression(expr),
        }
    }

    /// A type error found before the query runs.
    fn type_error<T>(&self, span: Span, message: String) -> Result<T> {
        let mut error = crate::parse::problem(
            self.text,
            span.start as usize,
            Detail::InvalidArgumentType,
            message,
        );
        if let Error::Query(problem) = &mut error {
            problem.class = Class::TypeError;
        }
        Err(error)
    }

    fn has_labels(&mut self, of: &Expr, labels: &[Name]) -> Result<(Ex, Type)> {
        let (ex, kind) = self.expression(of)?;
        if !kind.may_be_any(&[Type::Node, Type::Relationship]) {
            let message = format!("{} has no labels", kind.name());
            return self.error(of.span, Detail::InvalidArgumentType, message);
        }
        Ok((Ex::HasLabels(Box::new(ex), self.symbols(labels)), Type::Boolean))
    }

    fn is_labelled(&mut self, of: &Expr, labels: &LabelExpr) -> Result<(Ex, Type)> {
        let (ex, kind) = self.expression(of)?;
        if !kind.may_be_any(&[Type::Node, Type::Relationship]) {
            let message = format!("{} has no labels", kind.name());
            return self.error(of.span, Detail::InvalidArgumentType, message);
        }
        // Evaluated once, however often the condition asks.
        let slot = self.slot();
        let filter = Some(self.label_condition(slot, labels));
        let list = Ex::List(vec![ex]);
        let it = Box::new(ListComprehension { slot, list, filter, map: None });
        Ok((Ex::Quantifier(Quantifier::All, it), Type::Boolean))
    }

    /// Whether the node or relationship in a slot satisfies a label expression.
    pub(super) fn label_condition(&mut self, slot: Slot, labels: &LabelExpr) -> Ex {
        let of = || Box::new(Ex::Slot(slot));
        match labels {
            LabelExpr::Name(name) => Ex::HasLabels(of(), vec![self.symbol(&name.text)]),
            LabelExpr::Wildcard => Ex::IsLabelled(of()),
            LabelExpr::Not(inner) => Ex::Not(Box::new(self.label_condition(slot, inner))),
            LabelExpr::All(terms) => self.label_conditions(slot, Logic::And, terms),
            LabelExpr::Any(terms) => self.label_conditions(slot, Logic::Or, terms),
        }
    }

    fn label_conditions(&mut self, slot: Slot, logic: Logic, terms: &[LabelExpr]) -> Ex {
        Ex::Logic(logic, terms.iter().map(|term| self.label_condition(slot, term)).collect())
    }

    fn list(&mut self, items: &[Expr]) -> Result<(Ex, Type)> {
        let mut kind: Option<Type> = None;
        let mut result = Vec::with_capacity(items.len());
        for item in items {
            let (ex, this) = self.expression(item)?;
            if !matches!(ex, Ex::Value(Value::Null)) {
                kind = Some(match kind {
                    Some(kind) => kind.or(this),
                    None => this,
                });
            }
            result.push(ex);
        }
        Ok((Ex::List(result), Type::List(Box::new(kind.unwrap_or(Type::Any)))))
    }

    fn map_projection(&mut self, variable: &Name, parts: &[MapPart]) -> Result<(Ex, Type)> {
        let kind = Box::new(ExprKind::Variable(variable.text.clone()));
        let (base, kind) = self.expression(&Expr { kind, span: variable.span, height: 1 })?;
        if !kind.may_be_any(&[Type::Node, Type::Relationship, Type::Map]) {
            let message = format!("{} is {}, which has no properties", variable.text, kind.name());
            return self.error(variable.span, Detail::InvalidArgumentType, message);
        }
        let Ex::Slot(slot) = base else {
            return self.error(variable.span, Detail::UnexpectedSyntax, "expected a variable");
        };
        let mut entries = Vec::new();
        for part in parts {
            entries.push(match part {
                MapPart::All => MapEntry::All,
                MapPart::Property(key) => MapEntry::Property(self.symbol(key)),
                MapPart::Entry(key, value) => {
                    MapEntry::Entry(key.clone(), self.expression(value)?.0)
                }
                MapPart::Variable(name) => {
                    let kind = Box::new(ExprKind::Variable(name.text.clone()));
                    let (value, _) = self.expression(&Expr { kind, span: name.span, height: 1 })?;
                    MapEntry::Entry(name.text.clone(), value)
                }
            });
        }
        Ok((Ex::MapProjection(slot, entries), Type::Map))
    }

    fn sign(&mut self, inner: &Expr, minus: bool) -> Result<(Ex, Type)> {
        let (ex, kind) = self.expression(inner)?;
        if !kind.may_be(&Type::Number) {
            let message = format!("cannot negate {}", kind.name());
            return self.error(inner.span, Detail::InvalidArgumentType, message);
        }
        // A negative literal is a literal as well.
        let ex = match ex {
            Ex::Value(Value::Integer(number)) if minus && number != i64::MIN => {
                Ex::Value(Value::Integer(-number))
            }
            // openCypher has no negative zero.
            Ex::Value(Value::Float(number)) if minus => Ex::Value(Value::Float(0.0 - number)),
            ex if minus => Ex::Minus(Box::new(ex)),
            ex => Ex::Plus(Box::new(ex)),
        };
        Ok((ex, kind))
    }

    fn binary(
        &mut self,
        operator: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Result<(Ex, Type)> {
        let (a, a_kind) = self.expression(left)?;
        let (b, b_kind) = self.expression(right)?;
        let numbers = a_kind.may_be(&Type::Number) && b_kind.may_be(&Type::Number);
        let (fits, kind) = match operator {
            BinaryOp::Add => {
                let lists = |kind: &Type| matches!(kind, Type::List(_) | Type::AnyList);
                let plain = |kind: &Type| {
                    kind.may_be_any(&[Type::Number, Type::Text, Type::AnyList])
                        || matches!(kind, Type::Boolean)
                };
                if lists(&a_kind) || lists(&b_kind) {
                    (true, Type::AnyList)
                } else if a_kind.is_number() && b_kind.is_number() {
                    (true, arithmetic(&a_kind, &b_kind))
                } else {
                    (plain(&a_kind) && plain(&b_kind), Type::Any)
                }
            }
            BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo => {
                (numbers, arithmetic(&a_kind, &b_kind))
            }
            BinaryOp::Power => (numbers, Type::Float),
            BinaryOp::Concatenate => {
                let joins = [Type::Text, Type::AnyList];
                (a_kind.may_be_any(&joins) && b_kind.may_be_any(&joins), Type::Any)
            }
            BinaryOp::In => (b_kind.may_be(&Type::AnyList), Type::Boolean),
            BinaryOp::StartsWith | BinaryOp::EndsWith | BinaryOp::Contains | BinaryOp::Matches => {
                (true, Type::Boolean)
            }
        };
        if !fits {
            let message = format!("cannot combine {} and {} here", a_kind.name(), b_kind.name());
            return self.error(span, Detail::InvalidArgumentType, message);
        }
        Ok((Ex::Binary(operator, Box::new((a, b))), kind))
    }

    fn comparison(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        let ExprKind::Comparison(first, rest) = &*expr.kind else { return self.expression(expr) };
        let mut terms = Vec::new();
        let mut left = first;
        for (operator, right) in rest {
            let (a, _) = self.expression(left)?;
            let (b, _) = self.expression(right)?;
            terms.push(Ex::Compare(*operator, Box::new((a, b))));
            left = right;
        }
        let ex = match terms.len() {
            1 => terms.remove(0),
            _ => Ex::Logic(Logic::And, terms),
        };
        Ok((ex, Type::Boolean))
    }

    fn case(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        let ExprKind::Case { subject, branches, default } = &*expr.kind else {
            return self.expression(expr);
        };
        let subject_ex = match subject {
            Some(subject) => Some(self.expression(subject)?.0),
            None => None,
        };
        let mut result = Vec::new();
        let mut kind: Option<Type> = None;
        for (when, then) in branches {
            let when =
                if subject.is_some() { self.expression(when)?.0 } else { self.predicate(when)? };
            let (then, this) = self.expression(then)?;
            kind = Some(kind.map_or(this.clone(), |kind| kind.or(this)));
            result.push((when, then));
        }
        let default = match default {
            Some(default) => {
                let (default, this) = self.expression(default)?;
                kind = kind.map(|kind| kind.or(this));
                Some(default)
            }
            None => None,
        };
        let case = Case { subject: subject_ex, branches: result, default };
        Ok((Ex::Case(Box::new(case)), kind.unwrap_or(Type::Any)))
    }

    fn list_comprehension(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        let (variable, list, filter, map, quantifier) = match &*expr.kind {
            ExprKind::ListComprehension { variable, list, filter, map } => {
                (variable, list, filter.as_ref(), map.as_ref(), None)
            }
            ExprKind::Quantifier { kind, variable, list, filter } => {
                (variable, list, Some(filter), None, Some(*kind))
            }
            _ => return self.expression(expr),
        };
        let (list_ex, kind) = self.expression(list)?;
        if !kind.may_be(&Type::AnyList) {
            let message = format!("expected a list, found {}", kind.name());
            return self.error(list.span, Detail::InvalidArgumentType, message);
        }
        let element = kind.element();
        let aggregates = std::mem::replace(&mut self.no_aggregates, true);
        let slot = self.declare(&variable.text, element.clone());
        let filter = filter.map(|filter| self.predicate(filter)).transpose()?;
        let map = map.map(|map| self.expression(map)).transpose()?;
        self.scope.variables.pop();
        self.no_aggregates = aggregates;
        let (map, kind) = match map {
            Some((map, kind)) => (Some(map), kind),
            None => (None, element),
        };
        let it = Box::new(ListComprehension { slot, list: list_ex, filter, map });
        Ok(match quantifier {
            Some(quantifier) => (Ex::Quantifier(quantifier, it), Type::Boolean),
            None => (Ex::ListComprehension(it), Type::List(Box::new(kind))),
        })
    }

    fn reduce(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        let ExprKind::Reduce { accumulator, initial, variable, list, body } = &*expr.kind else {
            return self.expression(expr);
        };
        let (initial, _) = self.expression(initial)?;
        let (list, kind) = self.expression(list)?;
        let aggregates = std::mem::replace(&mut self.no_aggregates, true);
        let accumulator = self.declare(&accumulator.text, Type::Any);
        let slot = self.declare(&variable.text, kind.element());
        let body = self.expression(body)?.0;
        self.scope.variables.truncate(self.scope.variables.len() - 2);
        self.no_aggregates = aggregates;
        Ok((Ex::Reduce(Box::new(Reduce { accumulator, initial, slot, list, body })), Type::Any))
    }

    fn pattern_comprehension(&mut self, expr: &Expr) -> Result<(Ex, Type)> {
        let ExprKind::PatternComprehension { pattern, filter, map } = &*expr.kind else {
            return self.expression(expr);
        };
        let before = self.scope.variables.len();
        let aggregates = std::mem::replace(&mut self.no_aggregates, true);
        let pattern = self.match_pattern(std::slice::from_ref(pattern))?;
        let filters = match filter {
            Some(filter) => self.filters(filter)?,
            None => Vec::new(),
        };
        let (map, kind) = self.expression(map)?;
        self.no_aggregates = aggregates;
        self.scope.variables.truncate(before);
        let pattern = Match { optional: false, pattern, filters };
        let it = Box::new(PatternComprehension { pattern, map });
        Ok((Ex::PatternComprehension(it), Type::List(Box::new(kind))))
    }

    /// `shortestPath((a)-[*]-(b))` as a value: a path or null, or a list of paths.
    fn shortest_path(&mut self, pattern: &crate::ast::PathPattern) -> Result<(Ex, Type)> {
        let mut pattern = pattern.clone();
        let all = pattern.shortest == Some(crate::ast::Shortest::All);
        let name: std::sync::Arc<str> = " path".into();
        pattern.variable = Some(Name { text: name.clone(), span: pattern.span });
        let before = self.scope.variables.len();
        for node in pattern.nodes() {
            if let Some(variable) = &node.variable {
                self.resolve(&variable.text, variable.span)?;
            }
        }
        let ir = self.match_pattern(std::slice::from_ref(&pattern))?;
        let slot = self.resolve(&name, pattern.span)?.slot;
        self.scope.variables.truncate(before);
        let pattern = Match { optional: false, pattern: ir, filters: Vec::new() };
        let it = Box::new(PatternComprehension { pattern, map: Ex::Slot(slot) });
        if all {
            return Ok((Ex::PatternComprehension(it), Type::List(Box::new(Type::Path))));
        }
        Ok((Ex::ShortestPath(it), Type::Path))
    }
}

fn arithmetic(a: &Type, b: &Type) -> Type {
    match (a, b) {
        (Type::Integer, Type::Integer) => Type::Integer,
        (Type::Float, b) if b.is_number() => Type::Float,
        (a, Type::Float) if a.is_number() => Type::Float,
        _ => Type::Any,
    }
}

fn literal_type(value: &Value) -> Type {
    match value {
        Value::Boolean(_) => Type::Boolean,
        Value::Integer(_) => Type::Integer,
        Value::Float(_) => Type::Float,
        Value::Text(_) => Type::Text,
        _ => Type::Any,
    }
}
