//! Evaluates expressions for a row.

use std::sync::Arc;

use crate::ast::{CompareOp, Logic, Quantifier};
use crate::error::{Class, Detail, Error, Result};
use crate::functions;
use crate::graph::Entity;
use crate::ir::{
    Case, Ex, ListComprehension, MapEntry, PatternComprehension, Reduce, Slot, Symbol,
};
use crate::value::{List, Value, compare, equals};

use super::arithmetic::{self, binary};
use super::exec::{exec, has_labels};
use super::project::is_true;
use super::{Flow, Row, Run, subquery};

/// Evaluates an expression. Variables of comprehensions use slots of the row.
pub(crate) fn eval<'r>(run: &Run<'r>, row: &mut Row, ex: &'r Ex) -> Result<Value> {
    match ex {
        Ex::Value(value) => Ok(value.clone()),
        Ex::Parameter(at) => Ok(run.parameters[*at].clone()),
        Ex::Slot(slot) => Ok(row[*slot].clone()),
        Ex::Property(of, key) => {
            let of = eval(run, row, of)?;
            property(run, &of, *key)
        }
        Ex::Compare(operator, pair) => {
            let a = eval(run, row, &pair.0)?;
            let b = eval(run, row, &pair.1)?;
            run.budget.steps(a.weight().min(b.weight()))?;
            Ok(compared(*operator, &a, &b).into())
        }
        Ex::Binary(operator, pair) => {
            let a = eval(run, row, &pair.0)?;
            let b = eval(run, row, &pair.1)?;
            binary(run, *operator, &a, &b)
        }
        Ex::Logic(operator, terms) => logic(run, row, *operator, terms),
        Ex::Not(inner) => {
            let value = eval(run, row, inner)?;
            Ok(truth(&value)?.map(|value| !value).into())
        }
        Ex::IsNull(inner, negated) => {
            let value = eval(run, row, inner)?;
            Ok(Value::Boolean(value.is_null() != *negated))
        }
        Ex::Call(function, arguments) => call(run, row, *function, arguments),
        Ex::Minus(inner) => arithmetic::negate(&eval(run, row, inner)?),
        Ex::Plus(inner) => arithmetic::keep_sign(eval(run, row, inner)?),
        Ex::List(items) => list(run, row, items),
        Ex::Map(entries) => map(run, row, entries),
        Ex::MapProjection(slot, entries) => map_projection(run, row, *slot, entries),
        Ex::Index(pair) => {
            let of = eval(run, row, &pair.0)?;
            let index = eval(run, row, &pair.1)?;
            element(run, &of, &index)
        }
        Ex::Slice(parts) => slice(run, row, &parts.0, &parts.1, &parts.2),
        Ex::HasLabels(of, labels) => {
            let of = eval(run, row, of)?;
            labelled(run, &of, labels)
        }
        Ex::IsLabelled(of) => {
            let of = eval(run, row, of)?;
            is_labelled(run, &of)
        }
        Ex::Case(it) => case(run, row, it),
        Ex::ListComprehension(it) => list_comprehension(run, row, it),
        Ex::Quantifier(kind, it) => quantifier(run, row, *kind, it),
        Ex::Reduce(it) => reduce(run, row, it),
        Ex::PatternComprehension(it) => pattern_comprehension(run, row, it, usize::MAX),
        Ex::ShortestPath(it) => shortest_path(run, row, it),
        Ex::Subquery(kind, it) => subquery::value(run, row, *kind, it),
    }
}

/// True, false or unknown (null); fails for anything else.
pub(super) fn truth(value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Boolean(value) => Ok(Some(*value)),
        Value::Null => Ok(None),
        other => {
            Err(Error::type_mismatch(format!("expected a boolean, found {}", other.type_name())))
        }
    }
}

fn compared(operator: CompareOp, a: &Value, b: &Value) -> Option<bool> {
    use std::cmp::Ordering;
    let ordered = |holds: fn(Ordering) -> bool| Some(compare(a, b)?.is_some_and(holds));
    match operator {
        CompareOp::Equal => equals(a, b),
        CompareOp::NotEqual => equals(a, b).map(|equal| !equal),
        CompareOp::Less => ordered(Ordering::is_lt),
        CompareOp::LessOrEqual => ordered(Ordering::is_le),
        CompareOp::Greater => ordered(Ordering::is_gt),
        CompareOp::GreaterOrEqual => ordered(Ordering::is_ge),
    }
}

fn logic<'r>(run: &Run<'r>, row: &mut Row, operator: Logic, terms: &'r [Ex]) -> Result<Value> {
    let mut result = Some(operator == Logic::And);
    for term in terms {
        let value = eval(run, row, term)?;
        let value = truth(&value)?;
        result = match (operator, result, value) {
            // Short-circuit.
            (Logic::And, _, Some(false)) => return Ok(Value::Boolean(false)),
            (Logic::Or, _, Some(true)) => return Ok(Value::Boolean(true)),
            (_, None, _) | (_, _, None) => None,
            (Logic::Xor, Some(a), Some(b)) => Some(a != b),
            (_, result, _) => result,
        };
    }
    Ok(result.into())
}

fn call<'r>(
    run: &Run<'r>,
    row: &mut Row,
    function: functions::Function,
    arguments: &'r [Ex],
) -> Result<Value> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = eval(run, row, argument)?;
        if function == functions::Function::Coalesce && !value.is_null() {
            return Ok(value);
        }
        values.push(value);
    }
    functions::call(run, function, &values)
}

pub(super) fn property(run: &Run<'_>, of: &Value, key: Symbol) -> Result<Value> {
    match of {
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            match run.key(key)? {
                Some(key) => Ok(run.graph.node_property(*node, key)?),
                None => Ok(Value::Null),
            }
        }
        Value::Relationship(edge) => {
            run.alive(Entity::Edge(*edge))?;
            match run.key(key)? {
                Some(key) => Ok(run.graph.edge_property(*edge, key)?),
                None => Ok(Value::Null),
            }
        }
        Value::Map(map) => Ok(map.get(run.name(key)).cloned().unwrap_or_default()),
        Value::Temporal(it) => it.component(run.name(key)).ok_or_else(|| {
            let message = format!("{} has no {}", of.type_name(), run.name(key));
            Error::run(Class::ArgumentError, Detail::InvalidArgumentValue, message)
        }),
        Value::Null => Ok(Value::Null),
        other => Err(Error::type_mismatch(format!("{} has no properties", other.type_name()))),
    }
}

fn element(run: &Run<'_>, of: &Value, index: &Value) -> Result<Value> {
    match (of, index) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::List(list), Value::Integer(index)) => {
            let at = if *index < 0 { *index + list.len() as i64 } else { *index };
            Ok(usize::try_from(at).ok().and_then(|at| list.get(at)).cloned().unwrap_or_default())
        }
        (Value::List(_), other) => {
            let message = format!("cannot index a list with {}", other.type_name());
            Err(Error::run(Class::TypeError, Detail::ListElementAccessByNonInteger, message))
        }
        (Value::Map(map), Value::Text(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Node(_) | Value::Relationship(_), Value::Text(key)) => {
            let all = functions::properties(run, of)?;
            Ok(all.get(key).cloned().unwrap_or_default())
        }
        (Value::Map(_) | Value::Node(_) | Value::Relationship(_), other) => {
            let message =
                format!("the name of a property must be a string, not {}", other.type_name());
            Err(Error::run(Class::TypeError, Detail::MapElementAccessByNonString, message))
        }
        (other, _) => Err(Error::type_mismatch(format!("{} has no elements", other.type_name()))),
    }
}

fn slice<'r>(
    run: &Run<'r>,
    row: &mut Row,
    of: &'r Ex,
    from: &'r Option<Ex>,
    to: &'r Option<Ex>,
) -> Result<Value> {
    let list = match eval(run, row, of)? {
        Value::List(list) => list,
        Value::Null => return Ok(Value::Null),
        other => {
            return Err(Error::type_mismatch(format!("cannot slice {}", other.type_name())));
        }
    };
    let length = list.len() as i64;
    let mut bound = |ex: &'r Option<Ex>, default: i64| -> Result<Option<i64>> {
        let Some(ex) = ex else { return Ok(Some(default)) };
        match eval(run, row, ex)? {
            Value::Null => Ok(None),
            Value::Integer(at) if at < 0 => Ok(Some(at.saturating_add(length).max(0))),
            Value::Integer(at) => Ok(Some(at.min(length))),
            other => {
                let message = format!("a list index must be an integer, not {}", other.type_name());
                Err(Error::type_mismatch(message))
            }
        }
    };
    let (Some(from), Some(to)) = (bound(from, 0)?, bound(to, length)?) else {
        return Ok(Value::Null);
    };
    if from >= to {
        return Ok(Value::list(Vec::new()));
    }
    run.budget.list((to - from) as usize)?;
    Ok(Value::list(list[from as usize..to as usize].to_vec()))
}

fn list<'r>(run: &Run<'r>, row: &mut Row, items: &'r [Ex]) -> Result<Value> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(eval(run, row, item)?);
    }
    run.budget.check_value(Value::list(values))
}

fn map<'r>(run: &Run<'r>, row: &mut Row, entries: &'r [(Arc<str>, Ex)]) -> Result<Value> {
    let mut map = Vec::with_capacity(entries.len());
    for (key, ex) in entries {
        map.push((key.clone(), eval(run, row, ex)?));
    }
    run.budget.check_value(Value::map(map))
}

fn map_projection<'r>(
    run: &Run<'r>,
    row: &mut Row,
    slot: Slot,
    entries: &'r [MapEntry],
) -> Result<Value> {
    let of = row[slot].clone();
    if of.is_null() {
        return Ok(Value::Null);
    }
    let mut map = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            MapEntry::All => map.extend_from_slice(functions::properties(run, &of)?.entries()),
            MapEntry::Property(key) => {
                map.push((run.name(*key).clone(), property(run, &of, *key)?));
            }
            MapEntry::Entry(key, ex) => map.push((key.clone(), eval(run, row, ex)?)),
        }
    }
    run.budget.check_value(Value::map(map))
}

fn labelled(run: &Run<'_>, of: &Value, labels: &[Symbol]) -> Result<Value> {
    match of {
        Value::Null => Ok(Value::Null),
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            Ok(Value::Boolean(has_labels(run, of, labels)?))
        }
        Value::Relationship(edge) => {
            let kind = run.graph.type_name(run.edge(*edge)?.kind)?;
            Ok(Value::Boolean(labels.iter().all(|label| *run.name(*label) == kind)))
        }
        other => Err(Error::type_mismatch(format!("{} has no labels", other.type_name()))),
    }
}

fn is_labelled(run: &Run<'_>, of: &Value) -> Result<Value> {
    match of {
        Value::Null => Ok(Value::Null),
        Value::Node(node) => {
            run.alive(Entity::Node(*node))?;
            let mut labels = Vec::new();
            run.graph.node_labels(*node, &mut labels)?;
            Ok(Value::Boolean(!labels.is_empty()))
        }
        Value::Relationship(_) => Ok(Value::Boolean(true)),
        other => Err(Error::type_mismatch(format!("{} has no labels", other.type_name()))),
    }
}

fn case<'r>(run: &Run<'r>, row: &mut Row, case: &'r Case) -> Result<Value> {
    let subject = match &case.subject {
        Some(subject) => Some(eval(run, row, subject)?),
        None => None,
    };
    for (when, then) in &case.branches {
        let value = eval(run, row, when)?;
        let taken = match &subject {
            Some(subject) => {
                run.budget.steps(subject.weight().min(value.weight()))?;
                equals(subject, &value) == Some(true)
            }
            None => truth(&value)? == Some(true),
        };
        if taken {
            return eval(run, row, then);
        }
    }
    match &case.default {
        Some(default) => eval(run, row, default),
        None => Ok(Value::Null),
    }
}

/// The list that a comprehension iterates over; `None` for null.
fn elements<'r>(run: &Run<'r>, row: &mut Row, ex: &'r Ex) -> Result<Option<List>> {
    match eval(run, row, ex)? {
        Value::List(list) => Ok(Some(list)),
        Value::Null => Ok(None),
        other => Err(Error::type_mismatch(format!("expected a list, found {}", other.type_name()))),
    }
}

fn list_comprehension<'r>(
    run: &Run<'r>,
    row: &mut Row,
    it: &'r ListComprehension,
) -> Result<Value> {
    let Some(list) = elements(run, row, &it.list)? else { return Ok(Value::Null) };
    let mut result = Vec::new();
    let mut held = run.budget.hold();
    for value in list.iter() {
        run.budget.step()?;
        row[it.slot] = value.clone();
        if let Some(filter) = &it.filter
            && !is_true(&eval(run, row, filter)?)?
        {
            continue;
        }
        let value = match &it.map {
            Some(map) => eval(run, row, map)?,
            None => value.clone(),
        };
        held.keep(value.held())?;
        result.push(value);
    }
    drop(held);
    run.budget.check_value(Value::list(result))
}

fn quantifier<'r>(
    run: &Run<'r>,
    row: &mut Row,
    kind: Quantifier,
    it: &'r ListComprehension,
) -> Result<Value> {
    let Some(list) = elements(run, row, &it.list)? else { return Ok(Value::Null) };
    let Some(filter) = &it.filter else { return Ok(Value::Null) };
    let (mut trues, mut falses, mut unknown) = (0_usize, 0_usize, 0_usize);
    for value in list.iter() {
        run.budget.step()?;
        row[it.slot] = value.clone();
        let value = eval(run, row, filter)?;
        match truth(&value)? {
            Some(true) => trues += 1,
            Some(false) => falses += 1,
            None => unknown += 1,
        }
    }
    let unless_unknown = |value: bool| (unknown == 0).then_some(value);
    Ok(match kind {
        Quantifier::All if falses > 0 => Some(false),
        Quantifier::All => unless_unknown(true),
        Quantifier::Any if trues > 0 => Some(true),
        Quantifier::Any => unless_unknown(false),
        Quantifier::None if trues > 0 => Some(false),
        Quantifier::None => unless_unknown(true),
        Quantifier::Single if trues > 1 => Some(false),
        Quantifier::Single => unless_unknown(trues == 1),
    }
    .into())
}

fn reduce<'r>(run: &Run<'r>, row: &mut Row, it: &'r Reduce) -> Result<Value> {
    let mut result = eval(run, row, &it.initial)?;
    let Some(list) = elements(run, row, &it.list)? else { return Ok(Value::Null) };
    for value in list.iter() {
        run.budget.step()?;
        row[it.accumulator] = result;
        row[it.slot] = value.clone();
        result = eval(run, row, &it.body)?;
    }
    Ok(result)
}

fn pattern_comprehension<'r>(
    run: &Run<'r>,
    row: &mut Row,
    it: &'r PatternComprehension,
    limit: usize,
) -> Result<Value> {
    let ops = run.plan(&it.pattern)?;
    let mut values = Vec::new();
    let mut held = run.budget.hold();
    exec(run, &ops, row, &mut |row| {
        let value = eval(run, row, &it.map)?;
        held.keep(value.held())?;
        values.push(value);
        Ok(if values.len() >= limit { Flow::Stop } else { Flow::Continue })
    })?;
    drop(held);
    run.budget.check_value(Value::list(values))
}

fn shortest_path<'r>(run: &Run<'r>, row: &mut Row, it: &'r PatternComprehension) -> Result<Value> {
    match pattern_comprehension(run, row, it, 1)? {
        Value::List(list) => Ok(list.first().cloned().unwrap_or_default()),
        other => Ok(other),
    }
}
