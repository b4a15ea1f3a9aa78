//! Unary and binary operators.

use crate::ast::BinaryOp;
use crate::error::{Class, Detail, Error, Result};
use crate::temporal::{Amount, Temporal};
use crate::value::{Value, equals, plain_text};

use super::{Run, regex};

pub(super) fn binary(run: &Run<'_>, operator: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
    match operator {
        BinaryOp::In => is_in(run, a, b),
        BinaryOp::StartsWith | BinaryOp::EndsWith | BinaryOp::Contains => {
            text_predicate(run, operator, a, b)
        }
        BinaryOp::Matches => matches(run, a, b),
        BinaryOp::Concatenate => match (a, b) {
            (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
            (Value::Text(_), Value::Text(_)) | (Value::List(_), Value::List(_)) => add(run, a, b),
            _ => Err(cannot_add(a, b)),
        },
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Modulo
        | BinaryOp::Power => calculate(run, operator, a, b),
    }
}

fn calculate(run: &Run<'_>, operator: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Integer(a), Value::Integer(b)) => integers(operator, *a, *b),
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => {
            Ok(Value::Float(floats(operator, as_float(a), as_float(b))))
        }
        (Value::Temporal(x), y) if !is_joined(y) => {
            temporal(operator, x, y).unwrap_or_else(|| cannot(a, b))
        }
        (x, Value::Temporal(y)) if operator == BinaryOp::Multiply => {
            temporal(operator, y, x).unwrap_or_else(|| cannot(a, b))
        }
        _ if operator == BinaryOp::Add => add(run, a, b),
        _ => cannot(a, b),
    }
}

fn cannot(a: &Value, b: &Value) -> Result<Value> {
    let message = format!("cannot calculate with {} and {}", a.type_name(), b.type_name());
    Err(Error::type_mismatch(message))
}

/// Whether `+` joins a value to a text or a list.
fn is_joined(value: &Value) -> bool {
    matches!(value, Value::Text(_) | Value::List(_))
}

/// Calculates with a temporal value; `None` if the types do not fit.
fn temporal(operator: BinaryOp, a: &Temporal, b: &Value) -> Option<Result<Value>> {
    let amount = match b {
        Value::Integer(number) => Some(Amount::Integer(*number)),
        Value::Float(number) => Some(Amount::Float(*number)),
        _ => None,
    };
    let result = match (operator, b, amount) {
        (BinaryOp::Add, Value::Temporal(b), _) => a.plus(b, false)?,
        (BinaryOp::Subtract, Value::Temporal(b), _) => a.plus(b, true)?,
        (BinaryOp::Multiply, _, Some(by)) => a.times(by)?,
        (BinaryOp::Divide, _, Some(by)) => a.divided(by)?,
        _ => return None,
    };
    Some(
        result.map(Value::from).map_err(|message| {
            Error::run(Class::ArithmeticError, Detail::NumberOutOfRange, message)
        }),
    )
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}

fn integers(operator: BinaryOp, a: i64, b: i64) -> Result<Value> {
    let result = match operator {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Subtract => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
        BinaryOp::Divide | BinaryOp::Modulo if b == 0 => {
            let message = "integer division by zero";
            return Err(Error::run(Class::ArithmeticError, Detail::DivisionByZero, message));
        }
        BinaryOp::Divide => a.checked_div(b),
        BinaryOp::Modulo => Some(a.wrapping_rem(b)),
        _ => return Ok(Value::Float((a as f64).powf(b as f64))),
    };
    result.map(Value::Integer).ok_or_else(overflow)
}

fn overflow() -> Error {
    let message = "the result is too large for an integer";
    Error::run(Class::ArithmeticError, Detail::IntegerOverflow, message)
}

fn floats(operator: BinaryOp, a: f64, b: f64) -> f64 {
    match operator {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Modulo => a % b,
        _ => a.powf(b),
    }
}

pub(super) fn negate(value: &Value) -> Result<Value> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Integer(number) => number.checked_neg().map(Value::Integer).ok_or_else(overflow),
        Value::Float(number) => Ok(Value::Float(-number)),
        other => Err(Error::type_mismatch(format!("cannot negate {}", other.type_name()))),
    }
}

pub(super) fn keep_sign(value: Value) -> Result<Value> {
    match value {
        Value::Null | Value::Integer(_) | Value::Float(_) => Ok(value),
        other => Err(Error::type_mismatch(format!("cannot negate {}", other.type_name()))),
    }
}

/// `+` for anything but two numbers: concatenates texts and lists.
fn add(run: &Run<'_>, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::List(a), Value::List(b)) => joined(run, a, b),
        (Value::List(a), b) => joined(run, a, std::slice::from_ref(b)),
        (a, Value::List(b)) => joined(run, std::slice::from_ref(a), b),
        (Value::Text(_), _) | (_, Value::Text(_)) => match (plain_text(a), plain_text(b)) {
            (Some(a), Some(b)) => {
                run.budget.text(a.len() + b.len())?;
                Ok(Value::text([&*a, &*b].concat()))
            }
            _ => Err(cannot_add(a, b)),
        },
        _ => Err(cannot_add(a, b)),
    }
}

fn joined(run: &Run<'_>, a: &[Value], b: &[Value]) -> Result<Value> {
    run.budget.list(a.len() + b.len())?;
    run.budget.check_value(Value::list([a, b].concat()))
}

fn cannot_add(a: &Value, b: &Value) -> Error {
    Error::type_mismatch(format!("cannot add {} and {}", a.type_name(), b.type_name()))
}

fn is_in(run: &Run<'_>, a: &Value, b: &Value) -> Result<Value> {
    let list = match b {
        Value::List(list) => list,
        Value::Null => return Ok(Value::Null),
        other => {
            return Err(Error::type_mismatch(format!(
                "IN needs a list, not {}",
                other.type_name()
            )));
        }
    };
    let mut result = Some(false);
    let weight = a.weight();
    for value in list.iter() {
        run.budget.steps(1 + weight.min(value.weight()))?;
        match equals(a, value) {
            Some(true) => return Ok(Value::Boolean(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result.into())
}

fn text_predicate(run: &Run<'_>, operator: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
    let (Value::Text(a), Value::Text(b)) = (a, b) else { return Ok(Value::Null) };
    run.budget.steps(a.len() / 64)?;
    Ok(Value::Boolean(match operator {
        BinaryOp::StartsWith => a.starts_with(&**b),
        BinaryOp::EndsWith => a.ends_with(&**b),
        _ => a.contains(&**b),
    }))
}

fn matches(run: &Run<'_>, a: &Value, b: &Value) -> Result<Value> {
    let (Value::Text(text), Value::Text(pattern)) = (a, b) else { return Ok(Value::Null) };
    Ok(Value::Boolean(regex::matches(run, text, pattern)?))
}
