use crate::error::{Class, Detail, Error, Result};
use crate::run::Run;
use crate::value::{Text, Value};

use super::Function;

pub(super) fn call(run: &Run<'_>, function: Function, arguments: &[Value]) -> Result<Value> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let subject = text(&arguments[0])?;
    // A letter may be longer in the other case.
    run.budget.text(subject.len())?;
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
            run.budget.text(subject.len().saturating_add(count.saturating_mul(to.len())))?;
            subject.replace(&**from, to)
        }
        Function::Split => {
            let by = text(&arguments[1])?;
            return split(run, subject, by);
        }
        _ => {
            let from = length(&arguments[1])?;
            let most = arguments.get(2).map_or(Ok(usize::MAX), length)?;
            subject.chars().skip(from).take(most).collect()
        }
    };
    Ok(Value::text(result))
}

fn split(run: &Run<'_>, subject: &str, by: &str) -> Result<Value> {
    // Checked before they are created: small texts take more memory than their characters.
    let count =
        if by.is_empty() { subject.chars().count() } else { subject.matches(by).count() + 1 };
    let each = Value::text("").held();
    run.budget.afford(count.saturating_mul(each).saturating_add(subject.len()))?;
    let mut parts = Vec::with_capacity(count);
    let mut push = |part: &str| {
        parts.push(Value::text(part));
        run.budget.step()
    };
    if by.is_empty() {
        let mut letter = [0; 4];
        subject.chars().try_for_each(|it| push(it.encode_utf8(&mut letter)))?;
    } else {
        subject.split(by).try_for_each(push)?;
    }
    run.budget.check_value(Value::list(parts))
}

fn text(value: &Value) -> Result<&Text> {
    match value {
        Value::Text(text) => Ok(text),
        other => {
            Err(Error::type_mismatch(format!("expected a string, found {}", other.type_name())))
        }
    }
}

fn length(value: &Value) -> Result<usize> {
    match value {
        Value::Integer(number) => usize::try_from(*number).map_err(|_| {
            let message = format!("a length cannot be negative: {number}");
            Error::run(Class::ArgumentError, Detail::NumberOutOfRange, message)
        }),
        other => {
            Err(Error::type_mismatch(format!("expected an integer, found {}", other.type_name())))
        }
    }
}
