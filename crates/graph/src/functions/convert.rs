use crate::error::{Class, Detail, Error, Result};
use crate::run::Run;
use crate::value::{Value, plain_text};

use super::Function;

/// Conversions: an unparsable text becomes null, an unsupported type is an error.
pub(super) fn call(function: Function, value: &Value) -> Result<Value> {
    let wrong = |name: &str| {
        let message = format!("{name}() does not accept {}", value.type_name());
        Err(Error::run(Class::TypeError, Detail::InvalidArgumentValue, message))
    };
    if value.is_null() {
        return Ok(Value::Null);
    }
    match (function, value) {
        (Function::ToString, Value::Text(_)) => Ok(value.clone()),
        (Function::ToString, value) => match plain_text(value) {
            Some(text) => Ok(Value::text(text.into_owned())),
            None => wrong("toString"),
        },
        (Function::ToBoolean, Value::Boolean(_)) => Ok(value.clone()),
        (Function::ToBoolean, Value::Text(text)) => {
            Ok(match text.trim().to_ascii_lowercase().as_str() {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                _ => Value::Null,
            })
        }
        (Function::ToBoolean, _) => wrong("toBoolean"),
        (Function::ToInteger, Value::Integer(_)) => Ok(value.clone()),
        (Function::ToInteger, Value::Float(number)) => Ok(truncated(*number)),
        (Function::ToInteger, Value::Boolean(truth)) => Ok(Value::Integer(i64::from(*truth))),
        (Function::ToInteger, Value::Text(text)) => {
            let text = text.trim();
            Ok(match text.parse::<i64>() {
                Ok(number) => Value::Integer(number),
                Err(_) => parsed(text).map_or(Value::Null, truncated),
            })
        }
        (Function::ToInteger, _) => wrong("toInteger"),
        (_, Value::Integer(number)) => Ok(Value::Float(*number as f64)),
        (_, Value::Float(_)) => Ok(value.clone()),
        (_, Value::Text(text)) => Ok(parsed(text.trim()).map_or(Value::Null, Value::Float)),
        _ => wrong("toFloat"),
    }
}

/// Converts every element of a list; what cannot be converted becomes null.
pub(super) fn all(run: &Run<'_>, function: Function, value: &Value) -> Result<Value> {
    let list = match value {
        Value::Null => return Ok(Value::Null),
        Value::List(list) => list,
        other => {
            let message = format!("expected a list, found {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    };
    run.budget.list(list.len())?;
    let items = list.iter().map(|item| call(function, item).unwrap_or_default());
    run.budget.check_value(Value::list(items.collect()))
}

/// Parses digits; words such as `inf` are not numbers.
fn parsed(text: &str) -> Option<f64> {
    let digits =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if digits { text.parse().ok().filter(|number: &f64| number.is_finite()) } else { None }
}

fn truncated(number: f64) -> Value {
    let whole = number.trunc();
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        Value::Integer(whole as i64)
    } else {
        Value::Null
    }
}
