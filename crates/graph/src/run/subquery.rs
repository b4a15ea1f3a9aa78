//! Runs subqueries.

use isolith_types::FastSet;

use crate::ast::SubqueryKind;
use crate::error::Result;
use crate::ir::{Call, Match, ProcedureCall, QueryStep, Slot, Subquery};
use crate::value::{GroupKey, Value};

use super::exec::exec;
use super::pipeline::{self, Sink};
use super::project::is_true;
use super::{Flow, Row, Run, eval};

/// Passes every row of a subquery to `out`, with the slots of its columns.
pub(super) fn each_row<'r>(
    run: &Run<'r>,
    subquery: &'r Subquery,
    row: &mut Row,
    out: &mut dyn FnMut(&mut Row, &'r [Slot]) -> Result<Flow>,
) -> Result<Flow> {
    let mut seen: Option<FastSet<GroupKey>> = (!subquery.union_all).then(FastSet::default);
    let mut held = run.budget.hold();
    for (steps, columns) in subquery.parts.iter().zip(&subquery.outputs) {
        let mut row = row.clone();
        let mut stopped = false;
        pipeline::run(run, steps, &mut row, &mut |row| {
            if let Some(seen) = &mut seen {
                let key = GroupKey::of(columns.iter().map(|&slot| &row[slot]));
                run.budget.steps(key.weight())?;
                let size = key.held();
                if !seen.insert(key) {
                    return Ok(Flow::Continue);
                }
                held.keep(size)?;
            }
            let flow = out(row, columns)?;
            stopped |= flow == Flow::Stop;
            Ok(flow)
        })?;
        if stopped {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The value of a subquery in an expression.
pub(super) fn value<'r>(
    run: &Run<'r>,
    row: &mut Row,
    kind: SubqueryKind,
    subquery: &'r Subquery,
) -> Result<Value> {
    let mut count = 0;
    let mut values = Vec::new();
    let mut held = run.budget.hold();
    let mut take = |row: &mut Row, columns: &[Slot]| {
        run.budget.step()?;
        count += 1;
        match (kind, columns) {
            (SubqueryKind::Exists, _) => return Ok(Flow::Stop),
            (SubqueryKind::Collect, [column]) => {
                // Unlike `collect()`, it keeps nulls.
                held.keep(row[*column].held())?;
                values.push(row[*column].clone());
            }
            (SubqueryKind::Collect | SubqueryKind::Count, _) => {}
        }
        Ok(Flow::Continue)
    };
    match subquery.parts.as_slice() {
        // The most common case needs no stages, and its plan is kept.
        [steps] if is_pattern(steps) => {
            if let [QueryStep::Match(pattern)] = steps.as_slice() {
                let ops = run.plan(pattern)?;
                exec(run, &ops, row, &mut |row| take(row, &[]))?;
            }
        }
        _ => {
            each_row(run, subquery, row, &mut take)?;
        }
    }
    drop(held);
    match kind {
        SubqueryKind::Exists => Ok(Value::Boolean(count > 0)),
        SubqueryKind::Count => Ok(Value::Integer(count)),
        SubqueryKind::Collect => run.budget.check_value(Value::list(values)),
    }
}

fn is_pattern(steps: &[QueryStep]) -> bool {
    matches!(steps, [QueryStep::Match(Match { optional: false, .. })])
}

/// Runs a `CALL` for a row.
pub(super) fn call<'r>(
    run: &Run<'r>,
    call: &'r Call,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let mut found = false;
    let mut outer = row.clone();
    let returns = !call.columns.is_empty();
    let flow = each_row(run, &call.subquery, row, &mut |inner, columns| {
        run.budget.step()?;
        if !returns {
            return Ok(Flow::Continue);
        }
        found = true;
        for (to, from) in call.columns.iter().zip(columns) {
            outer[*to] = inner[*from].clone();
        }
        next(&mut outer)
    })?;
    if flow == Flow::Stop {
        return Ok(Flow::Stop);
    }
    if !returns {
        return next(row);
    }
    if !found && call.optional {
        for slot in &call.columns {
            row[*slot] = Value::Null;
        }
        return next(row);
    }
    Ok(Flow::Continue)
}

/// Calls a procedure for a row.
pub(super) fn procedure<'r>(
    run: &Run<'r>,
    call: &'r ProcedureCall,
    row: &mut Row,
    next: &mut Sink<'_>,
) -> Result<Flow> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(eval(run, row, argument)?);
    }
    if call.procedure.outputs().is_empty() {
        return next(row);
    }
    'rows: for values in call.procedure.rows(run.graph, run.budget, &arguments)? {
        run.budget.step()?;
        for (at, slot) in &call.outputs {
            row[*slot] = values.get(*at).cloned().unwrap_or_default();
        }
        for filter in &call.filters {
            if !is_true(&eval(run, row, filter)?)? {
                continue 'rows;
            }
        }
        if next(row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
