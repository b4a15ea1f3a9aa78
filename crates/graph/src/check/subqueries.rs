//! Subqueries: in expressions, in `CALL`, and the bodies of `FOREACH`.

use crate::ast::{
    Clause, Expr, ExprKind, Imports, Name, Projection, SingleQuery, Span, SubqueryKind, UnionQuery,
};
use crate::error::{Detail, Result};
use crate::ir::{Call, Ex, QueryStep, Slot, Subquery};

use super::{Checker, Place, Scope, Type};

/// The maximum nesting of subqueries.
const MAX_DEPTH: usize = 20;

/// A checked union: its parts, and the names and types of its columns.
pub(super) struct Union {
    pub(super) subquery: Subquery,
    pub(super) columns: Vec<String>,
    kinds: Vec<Type>,
}

impl Checker<'_> {
    /// Checks queries joined by `UNION`. Each begins with the given scope.
    pub(super) fn union(&mut self, query: &UnionQuery, place: Place) -> Result<Union> {
        let scope = self.scope.clone();
        let (mut parts, mut outputs) = (Vec::new(), Vec::new());
        let (mut columns, mut kinds): (Option<Vec<String>>, Vec<Type>) = (None, Vec::new());
        for (at, part) in query.parts.iter().enumerate() {
            self.scope = scope.clone();
            let (steps, names, slots) = self.part(part, place)?;
            if at > 0 {
                let (all, span) = query.unions[at - 1];
                if all != query.unions[0].0 {
                    let message = "UNION and UNION ALL cannot be mixed";
                    return self.error(span, Detail::InvalidClauseComposition, message);
                }
                if columns.as_ref().is_some_and(|columns| *columns != names) {
                    let message =
                        "both sides of UNION must have the same columns in the same order";
                    return self.error(span, Detail::DifferentColumnsInUnion, message);
                }
            }
            let types = slots.iter().map(|slot| self.kind_of(*slot));
            kinds = match at {
                0 => types.collect(),
                _ => kinds.into_iter().zip(types).map(|(a, b)| a.or(b)).collect(),
            };
            columns = Some(names);
            parts.push(steps);
            outputs.push(slots);
        }
        self.scope = scope;
        let union_all = query.unions.first().is_none_or(|(all, _)| *all);
        let subquery = Subquery { parts, union_all, outputs };
        Ok(Union { subquery, columns: columns.unwrap_or_default(), kinds })
    }

    fn kind_of(&self, slot: Slot) -> Type {
        let known = self.scope.variables.iter().rev().find(|variable| variable.slot == slot);
        known.map_or(Type::Any, |variable| variable.kind.clone())
    }

    /// Checks something nested, where aggregates have nothing to do with those around it.
    fn nested<T>(&mut self, span: Span, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= MAX_DEPTH {
            return self.error(span, Detail::UnexpectedSyntax, "subqueries are nested too deeply");
        }
        let outer = self.scope.clone();
        let aggregates = std::mem::replace(&mut self.no_aggregates, true);
        let within = std::mem::replace(&mut self.in_aggregate, false);
        let grouping = self.grouping.take();
        self.nesting += 1;
        let result = inner(self)?;
        self.nesting -= 1;
        (self.no_aggregates, self.in_aggregate, self.grouping) = (aggregates, within, grouping);
        self.scope = outer;
        Ok(result)
    }

    /// Checks a subquery in an expression, which sees the variables around it everywhere.
    pub(super) fn subquery(
        &mut self,
        kind: SubqueryKind,
        query: &UnionQuery,
        span: Span,
    ) -> Result<(Ex, Type)> {
        let around = self.scope.clone();
        let before = std::mem::replace(&mut self.around, around);
        let union = self.nested(span, |checker| checker.union(query, Place::Expression(kind)));
        self.around = before;
        let union = union?;
        let result = match kind {
            SubqueryKind::Exists => Type::Boolean,
            SubqueryKind::Count => Type::Integer,
            SubqueryKind::Collect => {
                let [element] = union.kinds.as_slice() else {
                    let message = "COLLECT needs a query that returns one column";
                    return self.error(span, Detail::InvalidClauseComposition, message);
                };
                Type::List(Box::new(element.clone()))
            }
        };
        Ok((Ex::Subquery(kind, Box::new(union.subquery)), result))
    }

    /// Checks a `CALL`; its columns become variables.
    pub(super) fn call_clause(
        &mut self,
        query: &UnionQuery,
        imports: &Imports,
        optional: bool,
        span: Span,
    ) -> Result<QueryStep> {
        let seen = match imports {
            Imports::All => self.scope.clone(),
            Imports::Names(names) => self.imported(names)?,
            Imports::With => Scope::default(),
        };
        let outer = self.scope.clone();
        let none = std::mem::take(&mut self.around);
        let union = self.nested(span, |checker| match imports {
            Imports::With => checker.union_with_imports(query),
            Imports::All | Imports::Names(_) => {
                checker.scope = seen;
                checker.union(query, Place::Call)
            }
        });
        self.around = none;
        let union = union?;
        self.scope = outer;
        let mut columns = Vec::new();
        for (name, kind) in union.columns.iter().zip(&union.kinds) {
            let name: std::sync::Arc<str> = name.as_str().into();
            if self.scope.find(&name).is_some() {
                return self.already_bound(&Name { text: name, span });
            }
            columns.push(self.declare(&name, kind.clone()));
        }
        let writes = query.writes();
        self.writes |= writes;
        Ok(QueryStep::Call(Box::new(Call { subquery: union.subquery, columns, optional, writes })))
    }

    fn imported(&self, names: &[Name]) -> Result<Scope> {
        let mut scope = Scope::default();
        for name in names {
            scope.variables.push(self.resolve(&name.text, name.span)?.clone());
        }
        Ok(scope)
    }

    /// Parts that begin with `WITH a, b` see these variables; the others see none.
    fn union_with_imports(&mut self, query: &UnionQuery) -> Result<Union> {
        let mut query = query.clone();
        let mut union: Option<Union> = None;
        let outer = self.scope.clone();
        let unions = std::mem::take(&mut query.unions);
        for (at, part) in query.parts.into_iter().enumerate() {
            self.scope = outer.clone();
            let (names, rest) = importing(part);
            let seen = match &names {
                Some(names) => self.imported(names)?,
                None if rest.clauses.first().is_some_and(is_import_of_all) => outer.clone(),
                None => Scope::default(),
            };
            self.scope = seen;
            let single = UnionQuery { parts: vec![rest], unions: Vec::new() };
            let next = self.union(&single, Place::Call)?;
            union = Some(match union {
                None => next,
                Some(so_far) => self.joined(so_far, next, &unions, at)?,
            });
        }
        match union {
            Some(mut union) => {
                union.subquery.union_all = unions.first().is_none_or(|(all, _)| *all);
                Ok(union)
            }
            None => self.error(Span::default(), Detail::UnexpectedSyntax, "expected a clause"),
        }
    }

    fn joined(
        &self,
        mut all: Union,
        next: Union,
        unions: &[(bool, Span)],
        at: usize,
    ) -> Result<Union> {
        let (is_all, span) = unions[at - 1];
        if is_all != unions[0].0 {
            let message = "UNION and UNION ALL cannot be mixed";
            return self.error(span, Detail::InvalidClauseComposition, message);
        }
        if all.columns != next.columns {
            let message = "both sides of UNION must have the same columns in the same order";
            return self.error(span, Detail::DifferentColumnsInUnion, message);
        }
        all.subquery.parts.extend(next.subquery.parts);
        all.subquery.outputs.extend(next.subquery.outputs);
        all.kinds = all.kinds.into_iter().zip(next.kinds).map(|(a, b)| a.or(b)).collect();
        Ok(all)
    }

    /// Checks a `FOREACH`.
    pub(super) fn foreach(
        &mut self,
        variable: &Name,
        list: &Expr,
        body: &SingleQuery,
        span: Span,
    ) -> Result<QueryStep> {
        let (ex, kind) = self.expression(list)?;
        if !kind.may_be(&Type::AnyList) {
            let message = format!("FOREACH needs a list, not {}", kind.name());
            return self.error(list.span, Detail::InvalidArgumentType, message);
        }
        self.nested(span, |checker| {
            let slot = checker.declare(&variable.text, kind.element());
            let mut steps = Vec::new();
            for clause in &body.clauses {
                checker.clause(clause, &mut steps)?;
            }
            Ok(QueryStep::Foreach { list: ex, slot, body: steps })
        })
    }
}

/// Splits `WITH a, b` off the beginning of a subquery. Any other `WITH` stays.
fn importing(mut query: SingleQuery) -> (Option<Vec<Name>>, SingleQuery) {
    let Some(Clause::With(projection)) = query.clauses.first() else { return (None, query) };
    match plain_names(projection) {
        Some(names) => {
            query.clauses.remove(0);
            (Some(names), query)
        }
        None => (None, query),
    }
}

fn plain_names(projection: &Projection) -> Option<Vec<Name>> {
    let Projection { distinct, star, items, order, skip, limit, filter, .. } = projection;
    let is_plain = !*distinct
        && !*star
        && order.is_empty()
        && skip.is_none()
        && limit.is_none()
        && filter.is_none();
    let name = |expr: &Expr| match &*expr.kind {
        ExprKind::Variable(text) => Some(Name { text: text.clone(), span: expr.span }),
        _ => None,
    };
    let names = items.iter().map(|item| match item.alias {
        None => name(&item.expr),
        Some(_) => None,
    });
    if is_plain { names.collect() } else { None }
}

/// Whether a `WITH` at the beginning imports variables, but not only that.
fn is_import_of_all(clause: &Clause) -> bool {
    matches!(clause, Clause::With(_))
}
