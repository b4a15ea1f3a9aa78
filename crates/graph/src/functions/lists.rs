use crate::error::{Class, Detail, Error, Result};
use crate::run::Run;
use crate::value::Value;

use super::Function;

pub(super) fn call(run: &Run<'_>, function: Function, arguments: &[Value]) -> Result<Value> {
    if function == Function::Range {
        return range(run, arguments);
    }
    match (function, &arguments[0]) {
        (_, Value::Null) => Ok(Value::Null),
        (Function::Size, Value::List(list)) => Ok(Value::Integer(list.len() as i64)),
        (Function::Size, Value::Text(text)) => {
            run.budget.steps(text.len() / 64)?;
            Ok(Value::Integer(text.chars().count() as i64))
        }
        (Function::IsEmpty, Value::List(list)) => Ok(Value::Boolean(list.is_empty())),
        (Function::IsEmpty, Value::Text(text)) => Ok(Value::Boolean(text.is_empty())),
        (Function::IsEmpty, Value::Map(map)) => Ok(Value::Boolean(map.is_empty())),
        (Function::Reverse, Value::Text(text)) => {
            run.budget.text(text.len())?;
            Ok(Value::text(text.chars().rev().collect::<String>()))
        }
        (Function::Reverse, Value::List(list)) => {
            run.budget.list(list.len())?;
            Ok(Value::list(list.iter().rev().cloned().collect()))
        }
        (Function::Head, Value::List(list)) => Ok(list.first().cloned().unwrap_or_default()),
        (Function::Last, Value::List(list)) => Ok(list.last().cloned().unwrap_or_default()),
        (Function::Tail, Value::List(list)) => {
            run.budget.list(list.len())?;
            Ok(Value::list(list.iter().skip(1).cloned().collect()))
        }
        (_, other) => {
            Err(Error::type_mismatch(format!("expected a list, found {}", other.type_name())))
        }
    }
}

fn range(run: &Run<'_>, arguments: &[Value]) -> Result<Value> {
    let number = |value: &Value| match value {
        Value::Integer(number) => Ok(*number),
        other => {
            let message = format!("range() takes integers, not {}", other.type_name());
            Err(Error::run(Class::ArgumentError, Detail::InvalidArgumentType, message))
        }
    };
    let (start, end) = (number(&arguments[0])?, number(&arguments[1])?);
    let step = arguments.get(2).map_or(Ok(1), number)?;
    if step == 0 {
        let message = "the step of range() cannot be 0";
        return Err(Error::run(Class::ArgumentError, Detail::NumberOutOfRange, message));
    }
    let span = (i128::from(end) - i128::from(start)) / i128::from(step);
    if span < 0 || (end < start) != (step < 0) && end != start {
        return Ok(Value::list(Vec::new()));
    }
    // Checked before it is created: the list may exceed any memory.
    run.budget.list(usize::try_from(span + 1).unwrap_or(usize::MAX))?;
    let mut values = Vec::with_capacity((span + 1) as usize);
    for at in 0..=span {
        run.budget.step()?;
        values.push(Value::Integer((i128::from(start) + at * i128::from(step)) as i64));
    }
    Ok(Value::list(values))
}
