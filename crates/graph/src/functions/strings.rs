use std::sync::Arc;

use crate::error::{Class, Detail, Error, Result};
use crate::run::{Run, bounded};
use crate::value::Value;

use super::Function;

pub(super) fn call(run: &Run<'_>, function: Function, arguments: &[Value]) -> Result<Value> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let subject = text(&arguments[0])?;
    run.budget.steps(subject.len() / 64)?;
    let result: String = match function {
        Function::Left => subject.chars().take(length(&arguments[1])?).collect(),
        Function::Right => {
            let count = subject.chars().count();
            subject.chars().skip(count.saturating_sub(length(&arguments[1])?)).collect()
        }
        Function::LTrim => subject.trim_start().to_owned(),
        Function::RTrim => subject.trim_end().to_owned(),
        Function::Trim => subject.trim().to_owned(),
        Function::ToLower => subject.to_lowercase(),
        Function::ToUpper => subject.to_uppercase(),
        Function::Replace => {
            let (from, to) = (text(&arguments[1])?, text(&arguments[2])?);
            let count = subject.matches(&**from).count();
            let size = subject.len().saturating_add(count.saturating_mul(to.len()));
            run.budget.keep(size)?;
            run.budget.release(size);
            subject.replace(&**from, to)
        }
        Function::Split => {
            let by = text(&arguments[1])?;
            let parts: Vec<Value> = if by.is_empty() {
                subject.chars().map(|letter| Value::text(letter.to_string())).collect()
            } else {
                subject.split(&**by).map(Value::from).collect()
            };
            return bounded(run, parts);
        }
        _ => {
            let from = length(&arguments[1])?;
            let most = arguments.get(2).map_or(Ok(usize::MAX), length)?;
            subject.chars().skip(from).take(most).collect()
        }
    };
    Ok(Value::text(result))
}

fn text(value: &Value) -> Result<&Arc<str>> {
    match value {
        Value::Text(text) => Ok(text),
        other => {
            Err(Error::type_mismatch(format!("a string is needed, not {}", other.type_name())))
        }
    }
}

fn length(value: &Value) -> Result<usize> {
    match value {
        Value::Integer(number) => usize::try_from(*number).map_err(|_| {
            let message = format!("a length is a number from 0, not {number}");
            Error::run(Class::ArgumentError, Detail::NumberOutOfRange, message)
        }),
        other => {
            Err(Error::type_mismatch(format!("an integer is needed, not {}", other.type_name())))
        }
    }
}
