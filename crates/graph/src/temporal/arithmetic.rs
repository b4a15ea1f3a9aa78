//! Adding durations, and calculating with them.

use super::calendar::{DAY, SECOND, plus_months};
use super::duration::{Amount, Parts, duration, too_long};
use super::{Temporal, out_of_range};

impl Temporal {
    /// Adds a duration, or subtracts it; `None` if these types cannot be combined.
    pub(crate) fn plus(&self, other: &Self, negative: bool) -> Option<Result<Self, String>> {
        match (self, other) {
            (_, Temporal::Duration { months, days, seconds, nanos }) => {
                let sign = if negative { -1 } else { 1 };
                let time = i128::from(*seconds) * i128::from(SECOND) + i128::from(*nanos);
                let signed =
                    |number: &i64| if negative { number.checked_neg() } else { Some(*number) };
                Some(match (signed(months), signed(days)) {
                    (Some(months), Some(days)) => self.moved(months, days, sign * time),
                    _ => Err(too_long()),
                })
            }
            (Temporal::Duration { .. }, _) if !negative => other.plus(self, false),
            _ => None,
        }
    }

    /// Adds months and days, then nanoseconds.
    fn moved(&self, months: i64, days: i64, time: i128) -> Result<Self, String> {
        let moved = |day: i64| {
            plus_months(day, months).and_then(|day| day.checked_add(days)).ok_or_else(out_of_range)
        };
        let of_day = |nanos: i64| (i128::from(nanos) + time).rem_euclid(i128::from(DAY)) as i64;
        match self {
            Temporal::Date(day) => {
                // Only whole days of the time count.
                let days = i64::try_from(time / i128::from(DAY)).map_err(|_| out_of_range())?;
                let day = moved(*day)?.checked_add(days).ok_or_else(out_of_range)?;
                super::valid(day).map(Temporal::Date)
            }
            Temporal::LocalTime(nanos) => Ok(Temporal::LocalTime(of_day(*nanos))),
            Temporal::Time { nanos, offset } => {
                Ok(Temporal::Time { nanos: of_day(*nanos), offset: *offset })
            }
            Temporal::LocalDateTime { .. } => {
                let (Some(day), Some(nanos)) = (self.day(), self.time()) else {
                    return Err(out_of_range());
                };
                let all = i128::from(moved(day)?) * i128::from(DAY) + i128::from(nanos) + time;
                let day = i64::try_from(all.div_euclid(i128::from(DAY)));
                let nanos = all.rem_euclid(i128::from(DAY)) as i64;
                Temporal::local((day.map_err(|_| out_of_range())?, nanos))
            }
            Temporal::DateTime { .. } => self.moved_instant(months, days, time),
            Temporal::Duration { months: m, days: d, seconds, nanos } => {
                let months = m.checked_add(months).ok_or_else(too_long)?;
                let days = d.checked_add(days).ok_or_else(too_long)?;
                let own = i128::from(*seconds) * i128::from(SECOND) + i128::from(*nanos);
                duration(months, days, own + time)
            }
        }
    }

    /// Months and days change what clocks show; the time passes after that.
    pub(super) fn moved_instant(&self, months: i64, days: i64, time: i128) -> Result<Self, String> {
        let (Temporal::DateTime { seconds, nanos, .. }, Some(zone)) = (self, self.zone()?) else {
            return Err(out_of_range());
        };
        let (mut seconds, mut nanos) = (*seconds, *nanos);
        if (months, days) != (0, 0)
            && let (Some(day), Some(of_day)) = (self.day(), self.time())
        {
            let day = plus_months(day, months).and_then(|day| day.checked_add(days));
            let day = day.ok_or_else(out_of_range)?;
            if let Temporal::DateTime { seconds: moved, nanos: same, .. } =
                Temporal::zoned((day, of_day), &zone)?
            {
                (seconds, nanos) = (moved, same);
            }
        }
        let second = i128::from(SECOND);
        let all = i128::from(seconds) * second + i128::from(nanos) + time;
        let seconds = i64::try_from(all.div_euclid(second)).map_err(|_| out_of_range())?;
        Temporal::instant(seconds, all.rem_euclid(second) as u32, &zone)
    }

    /// Multiplies a duration; `None` for other types.
    pub(crate) fn times(&self, by: Amount) -> Option<Result<Self, String>> {
        let Temporal::Duration { months, days, seconds, nanos } = self else { return None };
        let by = match by {
            Amount::Integer(by) => {
                let time = i128::from(*seconds) * i128::from(SECOND) + i128::from(*nanos);
                let all = (months.checked_mul(by), days.checked_mul(by));
                let time = time.checked_mul(i128::from(by));
                return Some(match (all, time) {
                    ((Some(months), Some(days)), Some(time)) => duration(months, days, time),
                    _ => Err(too_long()),
                });
            }
            Amount::Float(by) => by,
        };
        Some(scaled([*months, *days, *seconds, i64::from(*nanos)], |part| part * by))
    }

    /// Divides a duration; `None` for other types.
    pub(crate) fn divided(&self, by: Amount) -> Option<Result<Self, String>> {
        let Temporal::Duration { months, days, seconds, nanos } = self else { return None };
        let by = match by {
            Amount::Integer(by) => by as f64,
            Amount::Float(by) => by,
        };
        if by == 0.0 {
            return Some(Err("a duration cannot be divided by zero".to_owned()));
        }
        Some(scaled([*months, *days, *seconds, i64::from(*nanos)], |part| part / by))
    }
}

fn scaled(parts: [i64; 4], scale: impl Fn(f64) -> f64) -> Result<Temporal, String> {
    let mut sum = Parts::default();
    for (name, part) in ["months", "days", "seconds", "nanoseconds"].into_iter().zip(parts) {
        let part = scale(part as f64);
        let part = if part.is_finite() { Amount::Float(part) } else { return Err(too_long()) };
        sum.add(name, part).unwrap_or_else(|| Err(too_long()))?;
    }
    sum.finish()
}
