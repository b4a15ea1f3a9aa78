//! `WITH` and `RETURN`: grouping keys, expressions over groups, and which variables each part
//! can see.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Projection};
use crate::error::{Detail, Result};
use crate::functions::find_aggregate;
use crate::ir::{Aggregate, Ex, Project, Slot};
use crate::value::Value;

use super::{Checker, Scope, Type, Variable};

/// What an expression over groups may refer to.
pub(super) struct Grouping {
    /// The grouping keys, or the expressions of the columns.
    keys: Vec<(Expr, Slot, Type)>,
    pub(super) aggregates: Vec<Aggregate>,
    /// The variables of the rows.
    rows: Scope,
    /// The scope of the arguments of aggregates.
    pub(super) arguments: Scope,
    /// Whether any key may be referred to, or only names, properties and aggregates.
    any_key: bool,
}

/// A named item of the projection.
struct Column<'e> {
    name: Arc<str>,
    expr: &'e Expr,
    aggregated: bool,
    slot: Slot,
    kind: Type,
}

impl Checker<'_> {
    /// Checks a projection; its columns become the new scope.
    pub(super) fn project(
        &mut self,
        projection: &Projection,
        last: bool,
    ) -> Result<(Project, Vec<String>)> {
        let stars = self.star(projection, last)?;
        let mut columns = self.columns(projection, &stars);
        let grouped = columns.iter().any(|column| column.aggregated);
        let rows = self.scope.clone();

        let mut pre = Vec::new();
        for column in columns.iter_mut().filter(|column| !column.aggregated) {
            let (ex, kind) = self.expression(column.expr)?;
            // A variable that is passed on unchanged keeps its slot.
            column.slot = match ex {
                Ex::Slot(slot) => slot,
                _ => self.slot(),
            };
            column.kind = kind;
            pre.push((ex, column.slot));
        }
        let mut aggregates = Vec::new();
        let mut post = Vec::new();
        if grouped {
            self.begin_grouping(&columns, &rows, false);
            for column in columns.iter_mut().filter(|column| column.aggregated) {
                let (ex, kind) = self.expression(column.expr)?;
                column.slot = self.slot();
                column.kind = kind;
                post.push((ex, column.slot));
            }
            aggregates = self.end_grouping();
        }

        for column in &columns {
            self.variables[column.slot].get_or_insert(column.name.clone());
        }
        let after = scope_of(&columns);
        let order = self.order(projection, &columns, &rows, &after, grouped, &mut aggregates)?;
        self.check_names(projection, &columns, last)?;
        let filter = self.projected_filter(projection, &columns, &rows, &after, grouped)?;
        self.scope = Scope::default();
        let skip = self.bound(&projection.skip, "SKIP")?;
        let limit = self.bound(&projection.limit, "LIMIT")?;
        self.scope = after;

        let slots: Vec<Slot> = columns.iter().map(|column| column.slot).collect();
        let keep = kept(&slots, &filter, &rows);
        let names = columns.iter().map(|column| column.name.to_string()).collect();
        let project = Project {
            pre,
            aggregates: grouped.then_some(aggregates),
            post,
            distinct: projection.distinct,
            order,
            skip,
            limit,
            filter,
            columns: slots,
            keep,
        };
        Ok((project, names))
    }

    /// Expands `*` to the variables in scope.
    fn star(&self, projection: &Projection, last: bool) -> Result<Vec<Expr>> {
        if !projection.star {
            return Ok(Vec::new());
        }
        let mut names: Vec<Arc<str>> =
            self.scope.variables.iter().map(|variable| variable.name.clone()).collect();
        names.sort();
        if last && names.is_empty() && projection.items.is_empty() {
            let message = "there are no variables for * to expand to";
            return self.error(projection.span, Detail::NoVariablesInScope, message);
        }
        let expr = |name| Expr {
            kind: Box::new(ExprKind::Variable(name)),
            span: projection.span,
            height: 1,
        };
        Ok(names.into_iter().map(expr).collect())
    }

    fn columns<'e>(&self, projection: &'e Projection, stars: &'e [Expr]) -> Vec<Column<'e>> {
        let column = |name, expr| Column {
            name,
            expr,
            aggregated: has_aggregate(expr),
            slot: 0,
            kind: Type::Any,
        };
        let starred = stars.iter().map(|expr| match &*expr.kind {
            ExprKind::Variable(name) => column(name.clone(), expr),
            _ => column("".into(), expr),
        });
        let named = projection.items.iter().map(|item| {
            let name = match (&item.alias, &*item.expr.kind) {
                (Some(alias), _) => alias.text.clone(),
                (None, ExprKind::Variable(name)) => name.clone(),
                (None, _) => self.source(item.expr.span).into(),
            };
            column(name, &item.expr)
        });
        starred.chain(named).collect()
    }

    fn check_names(
        &self,
        projection: &Projection,
        columns: &[Column<'_>],
        last: bool,
    ) -> Result<()> {
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].iter().any(|other| other.name == column.name) {
                let message = format!("two columns are named {}", column.name);
                return self.error(column.expr.span, Detail::ColumnNameConflict, message);
            }
        }
        if last {
            return Ok(());
        }
        for item in &projection.items {
            if item.alias.is_none() && !matches!(&*item.expr.kind, ExprKind::Variable(_)) {
                let message = "expressions in WITH need an alias: add AS and a name";
                return self.error(item.expr.span, Detail::NoExpressionAlias, message);
            }
        }
        Ok(())
    }

    fn begin_grouping(&mut self, columns: &[Column<'_>], rows: &Scope, any_key: bool) {
        let keys = columns
            .iter()
            .filter(|column| any_key || !column.aggregated)
            .map(|column| (column.expr.clone(), column.slot, column.kind.clone()))
            .collect();
        let (rows, arguments) = (rows.clone(), rows.clone());
        self.grouping = Some(Grouping { keys, aggregates: Vec::new(), rows, arguments, any_key });
        self.no_aggregates = false;
    }

    fn end_grouping(&mut self) -> Vec<Aggregate> {
        self.no_aggregates = true;
        self.grouping.take().map(|grouping| grouping.aggregates).unwrap_or_default()
    }

    /// Whether the current expression is evaluated per group, when single rows no longer exist.
    pub(super) fn beside_aggregates(&self) -> bool {
        !self.in_aggregate && self.grouping.as_ref().is_some_and(|grouping| !grouping.any_key)
    }

    /// Resolves an expression over groups to a grouping key. Fails if it refers to a variable that
    /// is neither grouped nor aggregated.
    pub(super) fn grouped(&mut self, expr: &Expr) -> Result<Option<(Ex, Type)>> {
        if self.in_aggregate {
            return Ok(None);
        }
        let Some(grouping) = &self.grouping else { return Ok(None) };
        let simple = is_name_or_property(expr) || is_aggregate(expr);
        if (simple || grouping.any_key)
            && let Some((_, slot, kind)) = grouping.keys.iter().find(|(key, _, _)| key == expr)
        {
            return Ok(Some((Ex::Slot(*slot), kind.clone())));
        }
        let ExprKind::Variable(name) = &*expr.kind else { return Ok(None) };
        // Local and projected variables come after those of the rows.
        let known = self.scope.find(name);
        let before = grouping.rows.find(name);
        match (known, before) {
            (Some(known), Some(before)) if known.slot == before.slot => {}
            (Some(_), _) | (None, None) => return Ok(None),
            (None, Some(_)) => {
                let used = grouping.keys.iter().any(|(key, _, _)| mentions(key, name));
                if !used || grouping.any_key {
                    return Ok(None);
                }
            }
        }
        if grouping.any_key && known.is_some() {
            return Ok(None);
        }
        let message = format!("{name} is neither aggregated nor one of the other columns");
        self.error(expr.span, Detail::AmbiguousAggregationExpression, message)
    }

    fn order(
        &mut self,
        projection: &Projection,
        columns: &[Column<'_>],
        rows: &Scope,
        after: &Scope,
        grouped: bool,
        aggregates: &mut Vec<Aggregate>,
    ) -> Result<Vec<(Ex, bool)>> {
        let mut order = Vec::new();
        if projection.order.is_empty() {
            return Ok(order);
        }
        if grouped || projection.distinct {
            self.scope = after.clone();
            // Aggregates that are not columns see only the grouping keys.
            let keys = columns.iter().zip(&after.variables).filter(|(it, _)| !it.aggregated);
            let keys = Scope { variables: keys.map(|(_, variable)| variable.clone()).collect() };
            self.begin_grouping(columns, rows, true);
            if let Some(grouping) = &mut self.grouping {
                grouping.arguments = keys;
            }
            self.no_aggregates = !grouped;
            for (key, descending) in &projection.order {
                // A sort key computed from aggregates may only refer to simple expressions.
                let whole = columns.iter().any(|column| column.expr == key);
                if let Some(grouping) = &mut self.grouping {
                    grouping.any_key = whole || !has_aggregate(key);
                }
                order.push((self.expression(key)?.0, *descending));
            }
            aggregates.extend(self.end_grouping());
            return Ok(order);
        }
        self.scope = rows.clone();
        self.scope.variables.extend(after.variables.iter().cloned());
        for (key, descending) in &projection.order {
            order.push((self.expression(key)?.0, *descending));
        }
        Ok(order)
    }

    fn projected_filter(
        &mut self,
        projection: &Projection,
        columns: &[Column<'_>],
        rows: &Scope,
        after: &Scope,
        grouped: bool,
    ) -> Result<Option<Ex>> {
        let Some(filter) = &projection.filter else { return Ok(None) };
        if grouped || projection.distinct {
            self.scope = after.clone();
            self.begin_grouping(columns, rows, true);
            self.no_aggregates = true;
            let filter = self.predicate(filter)?;
            self.end_grouping();
            return Ok(Some(filter));
        }
        self.scope = rows.clone();
        self.scope.variables.extend(after.variables.iter().cloned());
        self.predicate(filter).map(Some)
    }

    /// Checks the operand of `SKIP` or `LIMIT`, which cannot depend on rows.
    fn bound(&mut self, expr: &Option<Expr>, clause: &str) -> Result<Option<Ex>> {
        let Some(expr) = expr else { return Ok(None) };
        if mentions_any(expr) {
            let message = format!("{clause} needs a number that does not depend on the row");
            return self.error(expr.span, Detail::NonConstantExpression, message);
        }
        let (ex, kind) = self.expression(expr)?;
        if !kind.may_be(&Type::Integer) {
            let message = format!("{clause} needs an integer, not {}", kind.name());
            return self.error(expr.span, Detail::InvalidArgumentType, message);
        }
        if matches!(ex, Ex::Value(Value::Integer(number)) if number < 0) {
            let message = format!("{clause} cannot be negative");
            return self.error(expr.span, Detail::NegativeIntegerArgument, message);
        }
        Ok(Some(ex))
    }
}

/// The columns as variables of the following clauses.
fn scope_of(columns: &[Column<'_>]) -> Scope {
    let variables = columns.iter().map(|column| Variable {
        name: column.name.clone(),
        slot: column.slot,
        kind: column.kind.clone(),
    });
    Scope { variables: variables.collect() }
}

/// The slots that outlive a projection: its columns and those its filter uses.
fn kept(columns: &[Slot], filter: &Option<Ex>, rows: &Scope) -> Vec<Slot> {
    let mut keep = columns.to_vec();
    if let Some(filter) = filter {
        let slots = rows.variables.iter().map(|variable| variable.slot);
        keep.extend(slots.filter(|&wanted| filter.uses(&|slot| slot == wanted)));
    }
    keep.sort_unstable();
    keep.dedup();
    keep
}

fn is_name_or_property(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Property(of, _) => is_name_or_property(of),
        _ => false,
    }
}

fn is_aggregate(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::CountStar => true,
        ExprKind::Call { name, .. } => find_aggregate(name).is_some(),
        _ => false,
    }
}

fn has_aggregate(expr: &Expr) -> bool {
    any_part(expr, &is_aggregate)
}

fn mentions(expr: &Expr, name: &str) -> bool {
    any_part(expr, &|part| matches!(&*part.kind, ExprKind::Variable(it) if **it == *name))
}

fn mentions_any(expr: &Expr) -> bool {
    any_part(expr, &|part| matches!(&*part.kind, ExprKind::Variable(_)))
}

/// Whether `holds` is true for the expression or any part of it, subqueries excluded.
fn any_part(expr: &Expr, holds: &dyn Fn(&Expr) -> bool) -> bool {
    if holds(expr) {
        return true;
    }
    let any = |parts: &[&Expr]| parts.iter().any(|part| any_part(part, holds));
    let some = |part: &Option<Expr>| part.as_ref().is_some_and(|part| any_part(part, holds));
    match &*expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Variable(_)
        | ExprKind::CountStar
        | ExprKind::Pattern(_)
        | ExprKind::Subquery(..) => false,
        ExprKind::Property(of, _)
        | ExprKind::HasLabels(of, _)
        | ExprKind::IsLabelled(of, _)
        | ExprKind::Not(of)
        | ExprKind::Minus(of)
        | ExprKind::Plus(of)
        | ExprKind::IsNull(of, _) => any(&[of]),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => any(&[a, b]),
        ExprKind::Slice(of, from, to) => any(&[of]) || some(from) || some(to),
        ExprKind::List(items)
        | ExprKind::Logic(_, items)
        | ExprKind::Call { arguments: items, .. } => items.iter().any(|item| any_part(item, holds)),
        ExprKind::Map(entries) => entries.iter().any(|(_, value)| any_part(value, holds)),
        ExprKind::MapProjection(_, parts) => parts.iter().any(|part| match part {
            crate::ast::MapPart::Entry(_, value) => any_part(value, holds),
            _ => false,
        }),
        ExprKind::Comparison(first, rest) => {
            any(&[first]) || rest.iter().any(|(_, part)| any_part(part, holds))
        }
        ExprKind::Case { subject, branches, default } => {
            some(subject) || some(default) || branches.iter().any(|(when, then)| any(&[when, then]))
        }
        ExprKind::ListComprehension { list, filter, map, .. } => {
            any(&[list]) || some(filter) || some(map)
        }
        ExprKind::PatternComprehension { filter, map, .. } => some(filter) || any(&[map]),
        ExprKind::Quantifier { list, filter, .. } => any(&[list, filter]),
        ExprKind::Reduce { initial, list, body, .. } => any(&[initial, list, body]),
    }
}
