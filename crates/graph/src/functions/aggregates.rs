//! Aggregate functions.

use std::cmp::Ordering;

use isolith_types::FastSet;

use crate::error::{Class, Detail, Error, Result};
use crate::ir::Aggregate;
use crate::run::{Run, sorted};
use crate::value::{GroupKey, Value, order};

use super::AggregateKind;

/// The state of an aggregate over the values seen so far.
pub(crate) enum Accumulator {
    Count(i64),
    Sum(Sum),
    Average(Sum, i64),
    /// The best value so far, and how a better one compares with it.
    Best(Value, Ordering),
    /// All values, and the bytes counted for them.
    Collect(Vec<Value>, usize),
    Deviation(Vec<f64>, bool),
    Percentile {
        values: Vec<Value>,
        fraction: f64,
        between: bool,
    },
    /// The distinct values, and the aggregate over them.
    Distinct(Box<(FastSet<GroupKey>, Accumulator)>),
}

/// A sum, which is an integer as long as all terms are.
pub(crate) enum Sum {
    Integer(i64),
    Float(f64),
}

impl Accumulator {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        use AggregateKind::*;
        let plain = match aggregate.kind {
            CountRows | Count => Accumulator::Count(0),
            Sum => Accumulator::Sum(self::Sum::Integer(0)),
            Avg => Accumulator::Average(self::Sum::Float(0.0), 0),
            Min => Accumulator::Best(Value::Null, Ordering::Less),
            Max => Accumulator::Best(Value::Null, Ordering::Greater),
            Collect => Accumulator::Collect(Vec::new(), 0),
            Deviation => Accumulator::Deviation(Vec::new(), false),
            DeviationOfAll => Accumulator::Deviation(Vec::new(), true),
            PercentileContinuous | PercentileDiscrete => Accumulator::Percentile {
                values: Vec::new(),
                fraction: 0.0,
                between: aggregate.kind == PercentileContinuous,
            },
        };
        if aggregate.distinct {
            Accumulator::Distinct(Box::new((FastSet::default(), plain)))
        } else {
            plain
        }
    }

    /// Adds a value that represents this many rows. The bytes it retains are added to `kept`, to
    /// be released with the accumulator.
    pub(crate) fn add(
        &mut self,
        run: &Run<'_>,
        value: Value,
        second: Value,
        weight: i64,
        kept: &mut usize,
    ) -> Result<()> {
        let mut keep = |bytes: usize| {
            *kept += bytes;
            run.budget.keep(bytes)
        };
        if let Accumulator::Percentile { fraction, .. } = self {
            *fraction = percentile(&second)?;
        }
        if value.is_null() {
            return Ok(());
        }
        match self {
            Accumulator::Count(count) => *count += weight,
            Accumulator::Sum(sum) => sum.add(&value)?,
            Accumulator::Average(sum, count) => {
                *count += 1;
                sum.add(&value)?;
            }
            Accumulator::Best(best, better) => {
                run.budget.steps(value.weight().min(best.weight()))?;
                if best.is_null() || order(&value, best) == *better {
                    *best = value;
                }
            }
            Accumulator::Collect(values, bytes) => {
                let held = value.held();
                keep(held)?;
                *bytes += held;
                values.push(value);
            }
            Accumulator::Deviation(values, _) => {
                keep(8)?;
                values.push(number(&value)?);
            }
            Accumulator::Percentile { values, .. } => {
                number(&value)?;
                keep(value.held())?;
                values.push(value);
            }
            Accumulator::Distinct(inner) => {
                let (seen, accumulator) = &mut **inner;
                let key = GroupKey::One(value.clone());
                run.budget.steps(key.weight())?;
                let held = key.held();
                if seen.insert(key) {
                    keep(held)?;
                    accumulator.add(run, value, second, weight, kept)?;
                }
            }
        }
        Ok(())
    }

    /// The value of the aggregate. The bytes of a collected list then count themselves.
    pub(crate) fn finish(&mut self, run: &Run<'_>, kept: &mut usize) -> Result<Value> {
        Ok(match self {
            Accumulator::Count(count) => Value::Integer(*count),
            Accumulator::Sum(Sum::Integer(sum)) => Value::Integer(*sum),
            Accumulator::Sum(Sum::Float(sum)) => Value::Float(*sum),
            Accumulator::Average(_, 0) => Value::Null,
            Accumulator::Average(sum, count) => Value::Float(sum.as_float() / *count as f64),
            Accumulator::Best(best, _) => std::mem::take(best),
            Accumulator::Collect(values, bytes) => {
                let bytes = std::mem::take(bytes);
                *kept = kept.saturating_sub(bytes);
                run.budget.release(bytes);
                run.budget.steps(values.len())?;
                run.budget.check_value(Value::list(std::mem::take(values)))?
            }
            Accumulator::Deviation(values, all) => {
                run.budget.steps(values.len())?;
                Value::Float(deviation(values, *all))
            }
            Accumulator::Percentile { values, fraction, between } => {
                let sorted = sorted(run, std::mem::take(values), order, Value::weight)?;
                percentile_of(&sorted, *fraction, *between)?
            }
            Accumulator::Distinct(inner) => inner.1.finish(run, kept)?,
        })
    }
}

impl Sum {
    fn add(&mut self, value: &Value) -> Result<()> {
        match (&mut *self, value) {
            (Sum::Integer(sum), Value::Integer(number)) => {
                *sum = sum.checked_add(*number).ok_or_else(|| {
                    let message = "the sum is too large for an integer";
                    Error::run(Class::ArithmeticError, Detail::IntegerOverflow, message)
                })?;
            }
            _ => *self = Sum::Float(self.as_float() + number(value)?),
        }
        Ok(())
    }

    fn as_float(&self) -> f64 {
        match self {
            Sum::Integer(sum) => *sum as f64,
            Sum::Float(sum) => *sum,
        }
    }
}

fn deviation(numbers: &[f64], all: bool) -> f64 {
    let count = numbers.len() as f64;
    let divisor = if all { count } else { count - 1.0 };
    if divisor < 1.0 {
        return 0.0;
    }
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (squares / divisor).sqrt()
}

/// The value at a fraction of sorted values, interpolated if `between`.
fn percentile_of(values: &[Value], fraction: f64, between: bool) -> Result<Value> {
    let Some(last) = values.len().checked_sub(1) else { return Ok(Value::Null) };
    if !between {
        let rank = (fraction * values.len() as f64).ceil() as usize;
        return Ok(values[rank.saturating_sub(1).min(last)].clone());
    }
    let fraction = fraction * last as f64;
    let (low, high) = (fraction.floor() as usize, fraction.ceil() as usize);
    let (a, b) = (number(&values[low])?, number(&values[high])?);
    Ok(Value::Float(a + (b - a) * (fraction - fraction.floor())))
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

fn percentile(value: &Value) -> Result<f64> {
    let number = number(value)?;
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    let message = format!("a percentile must be between 0 and 1, not {number}");
    Err(Error::run(Class::ArgumentError, Detail::NumberOutOfRange, message))
}
