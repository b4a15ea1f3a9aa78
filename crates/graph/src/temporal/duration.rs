//! Durations from parts with fractions.

use super::Temporal;
use super::calendar::{DAY, SECOND};

/// The average length of a month in seconds: a twelfth of 365.2425 days.
pub(super) const MONTH_SECONDS: i64 = 2_629_746;

/// Sums up the parts of a duration. The fraction of a month becomes days, that of a day a time.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Parts {
    months: (i64, f64),
    days: (i64, f64),
    nanos: (i128, f64),
}

/// An integer or a float.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Amount {
    Integer(i64),
    Float(f64),
}

impl Amount {
    /// The integral part of this many units, and the rest.
    fn times(self, unit: i64) -> Option<(i64, f64)> {
        match self {
            Amount::Integer(number) => Some((number.checked_mul(unit)?, 0.0)),
            Amount::Float(number) => {
                let number = number * unit as f64;
                // Integers beyond this are not exact as floats.
                (number.abs() < 9e15).then_some((number.trunc() as i64, number.fract()))
            }
        }
    }
}

impl Parts {
    /// Adds to the months, days or seconds. `name` is as in `duration({…})`.
    pub(super) fn add(&mut self, name: &str, amount: Amount) -> Option<Result<(), String>> {
        let added = match name {
            "years" => plus(&mut self.months, amount.times(12)),
            "quarters" => plus(&mut self.months, amount.times(3)),
            "months" => plus(&mut self.months, amount.times(1)),
            "weeks" => plus(&mut self.days, amount.times(7)),
            "days" => plus(&mut self.days, amount.times(1)),
            "hours" => self.plus_nanos(amount, 3600 * SECOND),
            "minutes" => self.plus_nanos(amount, 60 * SECOND),
            "seconds" => self.plus_nanos(amount, SECOND),
            "milliseconds" => self.plus_nanos(amount, 1_000_000),
            "microseconds" => self.plus_nanos(amount, 1_000),
            "nanoseconds" => self.plus_nanos(amount, 1),
            _ => return None,
        };
        Some(added.ok_or_else(too_long))
    }

    fn plus_nanos(&mut self, amount: Amount, unit: i64) -> Option<()> {
        match amount {
            Amount::Integer(number) => self.nanos.0 += i128::from(number) * i128::from(unit),
            Amount::Float(number) => {
                let number = number * unit as f64;
                if number.abs() >= 1e28 {
                    return None;
                }
                self.nanos.0 += number.trunc() as i128;
                self.nanos.1 += number.fract();
            }
        }
        Some(())
    }

    pub(super) fn finish(self) -> Result<Temporal, String> {
        let (mut days, mut fraction) = self.days;
        // The fraction of months, in days.
        fraction += self.months.1 * (MONTH_SECONDS as f64 / 86_400.0);
        days = days.checked_add(fraction.trunc() as i64).ok_or_else(too_long)?;
        let nanos = self.nanos.1 + fraction.fract() * DAY as f64;
        duration(self.months.0, days, self.nanos.0 + settled(nanos))
    }
}

/// Truncates, except where only the rounding of floats keeps a number from being an integer.
fn settled(nanos: f64) -> i128 {
    let near = nanos.round();
    if (nanos - near).abs() < 0.05 { near as i128 } else { nanos.trunc() as i128 }
}

fn plus(sum: &mut (i64, f64), amount: Option<(i64, f64)>) -> Option<()> {
    let (whole, fraction) = amount?;
    // Carry what the fractions have in common.
    let fraction = sum.1 + fraction;
    *sum = (sum.0.checked_add(whole)?.checked_add(fraction.trunc() as i64)?, fraction.fract());
    Some(())
}

/// A duration with a time in nanoseconds; fails if that does not fit.
pub(super) fn duration(months: i64, days: i64, nanos: i128) -> Result<Temporal, String> {
    let second = i128::from(SECOND);
    let seconds = i64::try_from(nanos.div_euclid(second)).map_err(|_| too_long())?;
    Ok(Temporal::Duration { months, days, seconds, nanos: nanos.rem_euclid(second) as u32 })
}

pub(super) fn too_long() -> String {
    "the duration is too long".to_owned()
}

/// A duration from the entries of a map.
pub(crate) fn duration_of<'a>(
    entries: impl Iterator<Item = (&'a str, Amount)>,
) -> Result<Temporal, String> {
    let mut parts = Parts::default();
    for (name, amount) in entries {
        match parts.add(name, amount) {
            Some(added) => added?,
            None => return Err(format!("a duration has no {name}")),
        }
    }
    parts.finish()
}
