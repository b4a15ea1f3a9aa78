use crate::error::{Error, Result};
use crate::run::Run;
use crate::value::Value;

use super::Function;

pub(super) fn call(run: &Run<'_>, function: Function, arguments: &[Value]) -> Result<Value> {
    match function {
        Function::Pi => return Ok(Value::Float(std::f64::consts::PI)),
        Function::E => return Ok(Value::Float(std::f64::consts::E)),
        Function::Rand => return Ok(Value::Float(run.random())),
        _ => {}
    }
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    if let (Function::Abs, Value::Integer(number)) = (function, &arguments[0]) {
        let message = "the result is too large for an integer";
        return number.checked_abs().map(Value::Integer).ok_or_else(|| {
            Error::run(
                crate::error::Class::ArithmeticError,
                crate::error::Detail::IntegerOverflow,
                message,
            )
        });
    }
    let number = number(&arguments[0])?;
    let float = match function {
        Function::Abs => number.abs(),
        Function::Acos => number.acos(),
        Function::Asin => number.asin(),
        Function::Atan => number.atan(),
        Function::Atan2 => number.atan2(self::number(&arguments[1])?),
        Function::Ceil => number.ceil(),
        Function::Cos => number.cos(),
        Function::Cot => 1.0 / number.tan(),
        Function::Degrees => number.to_degrees(),
        Function::Exp => number.exp(),
        Function::Floor => number.floor(),
        Function::IsNan => return Ok(Value::Boolean(number.is_nan())),
        Function::Log => number.ln(),
        Function::Log10 => number.log10(),
        Function::Radians => number.to_radians(),
        Function::Round => round(number, arguments.get(1))?,
        Function::Sign => {
            let sign = if number > 0.0 { 1 } else { -i64::from(number < 0.0) };
            return Ok(Value::Integer(sign));
        }
        Function::Sin => number.sin(),
        Function::Sqrt => number.sqrt(),
        _ => number.tan(),
    };
    Ok(Value::Float(float))
}

fn number(value: &Value) -> Result<f64> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        other => {
            Err(Error::type_mismatch(format!("expected a number, found {}", other.type_name())))
        }
    }
}

/// Rounds halves up without digits and away from zero with digits, as other implementations do.
fn round(number: f64, digits: Option<&Value>) -> Result<f64> {
    let Some(digits) = digits else { return Ok((number + 0.5).floor()) };
    match digits {
        Value::Integer(digits @ 0..=15) => {
            let scale = 10_f64.powi(*digits as i32);
            let scaled = (number * scale).round() / scale;
            Ok(if scaled.is_finite() { scaled } else { number })
        }
        _ => Err(Error::type_mismatch("round() takes 0 to 15 digits")),
    }
}
