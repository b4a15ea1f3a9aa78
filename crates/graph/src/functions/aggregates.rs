//! Functions over the values of many rows.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::error::{Class, Detail, Error, Result};
use crate::ir::Aggregate;
use crate::run::Run;
use crate::value::{GroupKey, Value, order};

use super::AggregateKind;

/// What is kept of the values seen so far.
pub(crate) struct Accumulator {
    kind: AggregateKind,
    seen: Option<HashSet<GroupKey>>,
    count: i64,
    /// The sum while all values were integers.
    integers: i64,
    floats: f64,
    all_integers: bool,
    best: Value,
    values: Vec<Value>,
    percentile: f64,
}

impl Accumulator {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        Accumulator {
            kind: aggregate.kind,
            seen: aggregate.distinct.then(HashSet::new),
            count: 0,
            integers: 0,
            floats: 0.0,
            all_integers: true,
            best: Value::Null,
            values: Vec::new(),
            percentile: 0.0,
        }
    }

    /// Takes a value that stands for so many rows.
    pub(crate) fn add(
        &mut self,
        run: &Run<'_>,
        value: Value,
        second: Value,
        weight: i64,
    ) -> Result<()> {
        use AggregateKind::*;
        if matches!(self.kind, PercentileContinuous | PercentileDiscrete) {
            self.percentile = percentile(&second)?;
        }
        if value.is_null() {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            let size = value.size() + 32;
            if !seen.insert(GroupKey(vec![value.clone()])) {
                return Ok(());
            }
            run.budget.keep(size)?;
        }
        match self.kind {
            CountRows | Count => self.count += weight,
            Sum => self.sum(&value)?,
            Avg => {
                self.count += 1;
                self.sum(&value)?;
            }
            Min | Max => {
                let wanted = if self.kind == Min { Ordering::Less } else { Ordering::Greater };
                if self.best.is_null() || order(&value, &self.best) == wanted {
                    self.best = value;
                }
            }
            Collect => {
                run.budget.keep(value.size())?;
                self.values.push(value);
            }
            Deviation | DeviationOfAll | PercentileContinuous | PercentileDiscrete => {
                number(&value)?;
                run.budget.keep(value.size())?;
                self.values.push(value);
            }
        }
        Ok(())
    }

    fn sum(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Integer(number) if self.all_integers && self.kind == AggregateKind::Sum => {
                self.integers = self.integers.checked_add(*number).ok_or_else(|| {
                    let message = "the sum is too large for an integer";
                    Error::run(Class::ArithmeticError, Detail::IntegerOverflow, message)
                })?;
                return Ok(());
            }
            _ => {}
        }
        if self.all_integers {
            self.floats = self.integers as f64;
            self.all_integers = false;
        }
        self.floats += number(value)?;
        Ok(())
    }

    /// The value of the aggregate.
    pub(crate) fn finish(self, run: &Run<'_>) -> Result<Value> {
        use AggregateKind::*;
        Ok(match self.kind {
            CountRows | Count => Value::Integer(self.count),
            Sum if self.all_integers => Value::Integer(self.integers),
            Sum => Value::Float(self.floats),
            Avg if self.count == 0 => Value::Null,
            Avg => Value::Float(self.floats / self.count as f64),
            Min | Max => self.best,
            Collect => Value::list(self.values),
            Deviation | DeviationOfAll => self.deviation(run)?,
            PercentileContinuous | PercentileDiscrete => self.percentile_value(run)?,
        })
    }

    fn deviation(&self, run: &Run<'_>) -> Result<Value> {
        run.budget.steps(self.values.len())?;
        let numbers = self.values.iter().map(number).collect::<Result<Vec<f64>>>()?;
        let count = numbers.len() as f64;
        let divisor = if self.kind == AggregateKind::Deviation { count - 1.0 } else { count };
        if divisor < 1.0 {
            return Ok(Value::Float(0.0));
        }
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        Ok(Value::Float((squares / divisor).sqrt()))
    }

    fn percentile_value(mut self, run: &Run<'_>) -> Result<Value> {
        run.budget.steps(self.values.len())?;
        if self.values.is_empty() {
            return Ok(Value::Null);
        }
        self.values.sort_by(order);
        let last = self.values.len() - 1;
        if self.kind == AggregateKind::PercentileDiscrete {
            let rank = (self.percentile * self.values.len() as f64).ceil() as usize;
            return Ok(self.values[rank.saturating_sub(1).min(last)].clone());
        }
        let place = self.percentile * last as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        let (a, b) = (number(&self.values[low])?, number(&self.values[high])?);
        Ok(Value::Float(a + (b - a) * (place - place.floor())))
    }
}

fn number(value: &Value) -> Result<f64> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        other => {
            Err(Error::type_mismatch(format!("a number is needed, not {}", other.type_name())))
        }
    }
}

fn percentile(value: &Value) -> Result<f64> {
    let number = number(value)?;
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    let message = format!("a percentile is from 0 to 1, not {number}");
    Err(Error::run(Class::ArgumentError, Detail::NumberOutOfRange, message))
}
