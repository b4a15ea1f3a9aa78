//! `date.truncate()` and its kin.

use super::build::Fields;
use super::calendar::{DAY, SECOND, date_of, day_of, first_monday, week_of, weekday};
use super::{Temporal, TemporalKind, Zone, select};
use crate::value::{Map, Value};

/// The units from the largest to the smallest; the first ones are longer than a day.
const UNITS: [&str; 14] = [
    "millennium",
    "century",
    "decade",
    "year",
    "weekyear",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
];
const DAY_UNIT: usize = 8;

/// Truncates a value to a unit, converts it to a type, and sets parts that are smaller.
pub(crate) fn truncate(
    kind: TemporalKind,
    unit: &str,
    from: &Temporal,
    map: &Map,
) -> Result<Temporal, String> {
    let unit = unit.to_ascii_lowercase();
    let Some(at) = UNITS.iter().position(|known| *known == unit) else {
        return Err(format!("unknown unit {unit:?}"));
    };
    let (has_day, has_time) = match kind {
        TemporalKind::Date => (true, false),
        TemporalKind::Time | TemporalKind::LocalTime => (false, true),
        _ => (true, true),
    };
    if at < DAY_UNIT && !has_day || at > DAY_UNIT && !has_time {
        return Err(format!("{} cannot be truncated to a {unit}", kind.name()));
    }
    let fields = Fields(map);
    fields.check(kind, false)?;
    let day = match from.day() {
        Some(day) => Some(fields.day(Some(truncated_day(&unit, day)))?),
        None if has_day => return Err(format!("{} has no date", from.kind().name())),
        None => None,
    };
    let time = if at <= DAY_UNIT { Some(0) } else { from.time() };
    let time = match time {
        Some(time) if has_time => Some(smaller(&fields, &unit, truncated_time(&unit, time))?),
        None if has_time => return Err(format!("{} has no time", from.kind().name())),
        _ => None,
    };
    let zone = match fields.zone()? {
        Some(zone) => zone,
        None => from.zone()?.unwrap_or(Zone::UTC),
    };
    match (kind, day, time) {
        (TemporalKind::Date, Some(day), _) => Ok(Temporal::Date(day)),
        (TemporalKind::LocalDateTime, Some(day), Some(time)) => Temporal::local((day, time)),
        (TemporalKind::DateTime, Some(day), Some(time)) => Temporal::zoned((day, time), &zone),
        (TemporalKind::LocalTime, _, Some(time)) => Ok(Temporal::LocalTime(time)),
        (TemporalKind::Time, _, Some(nanos)) => {
            let offset = match (fields.zone()?, from) {
                (Some(zone), _) => zone.offset_at_local(day.unwrap_or(0) * 86_400 + nanos / SECOND),
                (None, Temporal::Time { offset, .. } | Temporal::DateTime { offset, .. }) => {
                    *offset
                }
                (None, _) => 0,
            };
            Ok(Temporal::Time { nanos, offset })
        }
        _ => select(kind, from),
    }
}

fn truncated_day(unit: &str, day: i64) -> i64 {
    let (year, month, _) = date_of(day);
    let of_years = |years: i64| day_of(year.div_euclid(years) * years, 1, 1);
    match unit {
        "millennium" => of_years(1000),
        "century" => of_years(100),
        "decade" => of_years(10),
        "year" => of_years(1),
        "weekyear" => first_monday(week_of(day).0),
        "quarter" => day_of(year, (month - 1) / 3 * 3 + 1, 1),
        "month" => day_of(year, month, 1),
        "week" => day - (weekday(day) - 1),
        _ => day,
    }
}

fn truncated_time(unit: &str, nanos: i64) -> i64 {
    let unit = match unit {
        "hour" => 3600 * SECOND,
        "minute" => 60 * SECOND,
        "second" => SECOND,
        "millisecond" => 1_000_000,
        "microsecond" => 1_000,
        _ => DAY,
    };
    nanos / unit * unit
}

/// Sets the smaller parts. Below a second, they are added to what truncation left.
fn smaller(fields: &Fields<'_>, unit: &str, time: i64) -> Result<i64, String> {
    let left = match unit {
        "millisecond" | "microsecond" => time % SECOND,
        _ => 0,
    };
    let given = ["millisecond", "microsecond", "nanosecond"]
        .iter()
        .any(|name| matches!(fields.0.get(name), Some(Value::Integer(_))));
    let set = fields.time(Some(time))?;
    if left == 0 || !given {
        return Ok(set);
    }
    let added = set % SECOND;
    let room = if unit == "millisecond" { 1_000_000 } else { 1_000 };
    if added >= room {
        return Err(format!("the parts must be smaller than a {unit}"));
    }
    Ok(set + left)
}
