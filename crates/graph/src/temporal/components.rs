//! The parts of temporal values that queries can read, such as `date().year`.

use super::calendar::{SECOND, date_of, day_of, week_of, weekday};
use super::text::offset_text;
use super::{Temporal, TemporalKind};
use crate::value::Value;

impl Temporal {
    /// A part by its name; `None` if this type does not have it.
    pub(crate) fn component(&self, name: &str) -> Option<Value> {
        if let Temporal::Duration { months, days, seconds, nanos } = self {
            return duration(name, *months, *days, *seconds, i64::from(*nanos)).map(Value::Integer);
        }
        let of_day = self.day().and_then(|day| date(name, day));
        let of_time = || self.time().and_then(|nanos| time(name, nanos));
        if let Some(number) = of_day.or_else(of_time) {
            return Some(Value::Integer(number));
        }
        self.of_zone(name)
    }

    fn of_zone(&self, name: &str) -> Option<Value> {
        let (offset, zone) = match self {
            Temporal::Time { offset, .. } => (*offset, None),
            Temporal::DateTime { offset, zone, .. } => (*offset, zone.as_deref()),
            _ => return None,
        };
        Some(match name {
            "timezone" => Value::text(zone.map_or_else(|| offset_text(offset), str::to_owned)),
            "offset" => Value::text(offset_text(offset)),
            "offsetMinutes" => Value::Integer(i64::from(offset / 60)),
            "offsetSeconds" => Value::Integer(i64::from(offset)),
            _ => match (name, self) {
                ("epochSeconds", Temporal::DateTime { seconds, .. }) => Value::Integer(*seconds),
                ("epochMillis", Temporal::DateTime { seconds, nanos, .. }) => {
                    Value::Integer(seconds * 1_000 + i64::from(nanos / 1_000_000))
                }
                _ => return None,
            },
        })
    }

    /// The milliseconds since 1970-01-01T00:00Z of an instant.
    pub(crate) fn epoch_millis(&self) -> Value {
        self.component("epochMillis").unwrap_or_default()
    }

    pub(crate) fn is_duration(&self) -> bool {
        self.kind() == TemporalKind::Duration
    }
}

fn date(name: &str, day: i64) -> Option<i64> {
    let (year, month, of_month) = date_of(day);
    let quarter = (month - 1) / 3 + 1;
    Some(match name {
        "year" => year,
        "quarter" => quarter,
        "month" => month,
        "day" => of_month,
        "week" => week_of(day).1,
        "weekYear" => week_of(day).0,
        "dayOfWeek" | "weekDay" => weekday(day),
        "ordinalDay" => day - day_of(year, 1, 1) + 1,
        "dayOfQuarter" => day - day_of(year, quarter * 3 - 2, 1) + 1,
        _ => return None,
    })
}

fn time(name: &str, nanos: i64) -> Option<i64> {
    let seconds = nanos / SECOND;
    Some(match name {
        "hour" => seconds / 3600,
        "minute" => seconds / 60 % 60,
        "second" => seconds % 60,
        "millisecond" => nanos % SECOND / 1_000_000,
        "microsecond" => nanos % SECOND / 1_000,
        "nanosecond" => nanos % SECOND,
        _ => return None,
    })
}

/// A part of a duration; those in smaller units saturate.
fn duration(name: &str, months: i64, days: i64, seconds: i64, nanos: i64) -> Option<i64> {
    let whole = |per_second: i64| {
        seconds.saturating_mul(per_second).saturating_add(nanos / (SECOND / per_second))
    };
    Some(match name {
        "years" => months / 12,
        "quarters" => months / 3,
        "months" => months,
        "weeks" => days / 7,
        "days" => days,
        "hours" => seconds / 3600,
        "minutes" => seconds / 60,
        "seconds" => seconds,
        "milliseconds" => whole(1_000),
        "microseconds" => whole(1_000_000),
        "nanoseconds" => whole(SECOND),
        "quartersOfYear" => months / 3 % 4,
        "monthsOfQuarter" => months % 3,
        "monthsOfYear" => months % 12,
        "daysOfWeek" => days % 7,
        "minutesOfHour" => seconds / 60 % 60,
        "secondsOfMinute" => seconds % 60,
        "millisecondsOfSecond" => nanos / 1_000_000,
        "microsecondsOfSecond" => nanos / 1_000,
        "nanosecondsOfSecond" => nanos,
        _ => return None,
    })
}
