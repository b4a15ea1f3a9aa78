//! Values from the entries of a map, such as `date({year: 2020, week: 3})`, and from each other.

use super::calendar::{self, DAY, SECOND, date_of, day_of, week_of, weekday};
use super::parse::checked_day;
use super::{Local, Temporal, TemporalKind, Zone, parse_zone, valid};
use crate::value::{Map, Value};

/// The entries that count within a day, their units, and their limits.
const DAY_FIELDS: [&str; 8] =
    ["year", "month", "day", "week", "dayOfWeek", "quarter", "dayOfQuarter", "ordinalDay"];
const TIME_FIELDS: [&str; 6] =
    ["hour", "minute", "second", "millisecond", "microsecond", "nanosecond"];

/// Reads the entries of a map.
pub(super) struct Fields<'a>(pub(super) &'a Map);

impl Fields<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    /// An integer in a range, if it is given.
    fn number(&self, name: &str, range: (i64, i64)) -> Result<Option<i64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Integer(number)) if (range.0..=range.1).contains(number) => {
                Ok(Some(*number))
            }
            Some(Value::Integer(number)) => {
                Err(format!("{name} must be from {} to {}, not {number}", range.0, range.1))
            }
            Some(other) => Err(format!("{name} must be an integer, not {}", other.type_name())),
        }
    }

    fn temporal(&self, name: &str) -> Result<Option<&Temporal>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Temporal(it)) => Ok(Some(it)),
            Some(other) => {
                Err(format!("{name} must be a temporal value, not {}", other.type_name()))
            }
        }
    }

    pub(super) fn zone(&self) -> Result<Option<Zone>, String> {
        match self.0.get("timezone") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(name)) => parse_zone(name).map(Some),
            Some(other) => Err(format!("timezone must be a string, not {}", other.type_name())),
        }
    }

    /// Refuses entries that mean nothing for a type.
    pub(super) fn check(&self, kind: TemporalKind, base: bool) -> Result<(), String> {
        use TemporalKind::*;
        let has_day = matches!(kind, Date | LocalDateTime | DateTime);
        let has_time = kind != Date;
        for name in self.0.keys() {
            let known = DAY_FIELDS.contains(&&**name) && has_day
                || TIME_FIELDS.contains(&&**name) && has_time
                || &**name == "timezone" && (matches!(kind, Time | DateTime) || base)
                || base && (&**name == "date" && has_day || &**name == "time" && has_time)
                || base && &**name == "datetime"
                || base && kind == DateTime && matches!(&**name, "epochSeconds" | "epochMillis");
            if !known {
                return Err(format!("{} has no {name}", kind.name()));
            }
        }
        Ok(())
    }

    /// The day that the entries give, starting from another.
    pub(super) fn day(&self, base: Option<i64>) -> Result<i64, String> {
        let day = if self.has("week") || self.has("dayOfWeek") {
            self.day_of_week(base)
        } else if self.has("ordinalDay") {
            let year = self.year(base.map(|day| date_of(day).0))?;
            let day = self.number("ordinalDay", (1, calendar::year_length(year)))?.unwrap_or(1);
            Ok(day_of(year, 1, 1) + day - 1)
        } else if self.has("quarter") || self.has("dayOfQuarter") {
            self.day_of_quarter(base)
        } else {
            self.day_of_month(base)
        };
        valid(day?)
    }

    fn year(&self, base: Option<i64>) -> Result<i64, String> {
        let years = (*calendar::YEARS.start(), *calendar::YEARS.end());
        match self.number("year", years)?.or(base) {
            Some(year) => Ok(year),
            None => Err("year must be specified".to_owned()),
        }
    }

    fn day_of_week(&self, base: Option<i64>) -> Result<i64, String> {
        let year = self.year(base.map(|day| week_of(day).0))?;
        let of_week = self.number("dayOfWeek", (1, 7))?;
        if base.is_none() && !self.has("week") {
            return Err("week must be specified".to_owned());
        }
        let week = match self.number("week", (1, calendar::weeks_of(year)))? {
            Some(week) => week,
            None => base.map_or(1, |day| week_of(day).1).min(calendar::weeks_of(year)),
        };
        let of_week = of_week.unwrap_or_else(|| base.map_or(1, weekday));
        Ok(calendar::first_monday(year) + (week - 1) * 7 + of_week - 1)
    }

    fn day_of_quarter(&self, base: Option<i64>) -> Result<i64, String> {
        let (year, month, of_month) = match base {
            Some(day) => date_of(day),
            None => (self.year(None)?, 1, 1),
        };
        let year = self.year(Some(year))?;
        if base.is_none() && !self.has("quarter") {
            return Err("quarter must be specified".to_owned());
        }
        let quarter = self.number("quarter", (1, 4))?.unwrap_or((month - 1) / 3 + 1);
        let days = calendar::quarter_length(year, quarter);
        if let Some(day) = self.number("dayOfQuarter", (1, days))? {
            return Ok(day_of(year, 3 * quarter - 2, 1) + day - 1);
        }
        // The same month of another quarter.
        let month = 3 * quarter - 2 + (month - 1) % 3;
        Ok(day_of(year, month, of_month.min(calendar::month_length(year, month))))
    }

    fn day_of_month(&self, base: Option<i64>) -> Result<i64, String> {
        let base = base.map(date_of);
        let year = self.year(base.map(|date| date.0))?;
        let month = self.number("month", (1, 12))?;
        if base.is_none() && month.is_none() && self.has("day") {
            return Err("month must be specified".to_owned());
        }
        let month = month.unwrap_or_else(|| base.map_or(1, |date| date.1));
        let length = calendar::month_length(year, month);
        let day = match self.number("day", (1, 31))? {
            Some(day) => day,
            None => base.map_or(1, |date| date.2).min(length),
        };
        checked_day(year, month, day)
            .ok_or_else(|| format!("{year:04}-{month:02} does not have a day {day}"))
    }

    /// The time of day that the entries give, starting from another.
    pub(super) fn time(&self, base: Option<i64>) -> Result<i64, String> {
        let mut missing = None;
        let mut part = |name: &'static str, most: i64, own: fn(i64) -> i64| {
            let given = self.number(name, (0, most))?;
            match (given, missing, base) {
                (Some(_), Some(before), None) => Err(format!("{before} must be specified")),
                (Some(number), _, _) => Ok(number),
                (None, _, _) => {
                    missing = missing.or(Some(name));
                    Ok(base.map_or(0, own))
                }
            }
        };
        let hour = part("hour", 23, |nanos| nanos / SECOND / 3600)?;
        let minute = part("minute", 59, |nanos| nanos / SECOND / 60 % 60)?;
        let second = part("second", 59, |nanos| nanos / SECOND % 60)?;
        let fraction = self.fraction(base.map_or(0, |nanos| nanos % SECOND))?;
        if base.is_none() && fraction > 0 && missing.is_some() {
            return Err("second must be specified".to_owned());
        }
        Ok((hour * 3600 + minute * 60 + second) * SECOND + fraction)
    }

    /// The nanoseconds of a second. A smaller unit counts within the next larger one given.
    fn fraction(&self, base: i64) -> Result<i64, String> {
        let millis = self.number("millisecond", (0, 999))?;
        let micros =
            self.number("microsecond", (0, if millis.is_some() { 999 } else { 999_999 }))?;
        let most = match (millis, micros) {
            (_, Some(_)) => 999,
            (Some(_), None) => 999_999,
            (None, None) => 999_999_999,
        };
        let nanos = self.number("nanosecond", (0, most))?;
        if millis.is_none() && micros.is_none() && nanos.is_none() {
            return Ok(base);
        }
        let micros = micros.unwrap_or(0);
        Ok(millis.unwrap_or(0) * 1_000_000 + micros * 1_000 + nanos.unwrap_or(0))
    }
}

/// Makes a value from the entries of a map.
pub(crate) fn build(kind: TemporalKind, map: &Map, now: &Temporal) -> Result<Temporal, String> {
    let fields = Fields(map);
    fields.check(kind, true)?;
    let zone = fields.zone()?;
    if let (Some(zone), true) = (&zone, map.keys().all(|name| &**name == "timezone")) {
        return in_zone(kind, now, zone);
    }
    if kind == TemporalKind::DateTime && (fields.has("epochSeconds") || fields.has("epochMillis")) {
        return of_epoch(&fields, zone);
    }
    let both = fields.temporal("datetime")?;
    let day_from = both.or(fields.temporal("date")?);
    let time_from = both.or(fields.temporal("time")?);
    let (mut base_day, mut base_time) = (None, None);
    if let Some(from) = day_from {
        base_day = Some(from.day().ok_or_else(|| lacks(from, "date"))?);
    }
    if let Some(from) = time_from {
        base_time = Some(from.time().ok_or_else(|| lacks(from, "time"))?);
    }
    let own_zone = match time_from {
        Some(from) => from.zone()?,
        None => None,
    };
    let day = || fields.day(base_day);
    let time = || fields.time(base_time);
    match kind {
        TemporalKind::Date => day().map(Temporal::Date),
        TemporalKind::LocalTime => time().map(Temporal::LocalTime),
        TemporalKind::LocalDateTime => Temporal::local((day()?, time()?)),
        TemporalKind::Time => {
            let own = time_from.map_or(0, offset_of);
            let made = Temporal::Time { nanos: time()?, offset: own };
            match zone {
                Some(zone) if own_zone.is_some() => moved_time(&made, &zone, now),
                Some(zone) => Ok(Temporal::Time { nanos: time()?, offset: offset_now(&zone, now) }),
                None => Ok(made),
            }
        }
        TemporalKind::DateTime => {
            let local = (day()?, time()?);
            match (own_zone, zone) {
                (Some(own), None) => Temporal::zoned(local, &own),
                (Some(own), Some(zone)) => shown_in(&Temporal::zoned(local, &own)?, &zone),
                (None, zone) => Temporal::zoned(local, &zone.unwrap_or(Zone::UTC)),
            }
        }
        TemporalKind::Duration => Err("a duration has other parts".to_owned()),
    }
}

fn lacks(it: &Temporal, what: &str) -> String {
    format!("{} has no {what}", it.kind().name())
}

/// The offset of a time or an instant; 0 for other types.
fn offset_of(it: &Temporal) -> i32 {
    match it {
        Temporal::Time { offset, .. } | Temporal::DateTime { offset, .. } => *offset,
        _ => 0,
    }
}

fn offset_now(zone: &Zone, now: &Temporal) -> i32 {
    match now {
        Temporal::DateTime { seconds, .. } => zone.offset_at(*seconds),
        _ => 0,
    }
}

fn moved_time(it: &Temporal, zone: &Zone, now: &Temporal) -> Result<Temporal, String> {
    let nanos = it.time().unwrap_or(0);
    let offset = offset_now(zone, now);
    let moved = nanos + i64::from(offset - offset_of(it)) * SECOND;
    Ok(Temporal::Time { nanos: moved.rem_euclid(DAY), offset })
}

/// The same instant in another time zone.
fn shown_in(it: &Temporal, zone: &Zone) -> Result<Temporal, String> {
    match it {
        Temporal::DateTime { seconds, nanos, .. } => Temporal::instant(*seconds, *nanos, zone),
        other => Ok(other.clone()),
    }
}

/// What clocks show now in a time zone.
pub(crate) fn in_zone(kind: TemporalKind, now: &Temporal, zone: &Zone) -> Result<Temporal, String> {
    select(kind, &shown_in(now, zone)?)
}

fn of_epoch(fields: &Fields<'_>, zone: Option<Zone>) -> Result<Temporal, String> {
    let any = (i64::MIN, i64::MAX);
    let seconds = fields.number("epochSeconds", any)?;
    let millis = fields.number("epochMillis", any)?;
    if seconds.is_some() && millis.is_some() {
        return Err("epochSeconds and epochMillis cannot be combined".to_owned());
    }
    let millis = millis.unwrap_or(0);
    let seconds = seconds.unwrap_or(millis.div_euclid(1_000));
    let nanos = fields.fraction(millis.rem_euclid(1_000) * 1_000_000)?;
    Temporal::instant(seconds, nanos as u32, &zone.unwrap_or(Zone::UTC))
}

/// An instant from the seconds since 1970 and nanoseconds, which may be any number.
pub(crate) fn from_epoch(seconds: i64, nanos: i64) -> Result<Temporal, String> {
    let seconds = seconds.checked_add(nanos.div_euclid(SECOND)).ok_or_else(super::out_of_range)?;
    Temporal::instant(seconds, nanos.rem_euclid(SECOND) as u32, &Zone::UTC)
}

/// Converts a value to another type, taking the parts that it has. What has no time is midnight.
pub(crate) fn select(kind: TemporalKind, from: &Temporal) -> Result<Temporal, String> {
    if kind == from.kind() {
        return Ok(from.clone());
    }
    let day = || from.day().ok_or_else(|| lacks(from, "date"));
    let time = || from.time().ok_or_else(|| lacks(from, "time"));
    let local = || -> Result<Local, String> { Ok((day()?, from.time().unwrap_or(0))) };
    match kind {
        TemporalKind::Date => day().map(Temporal::Date),
        TemporalKind::LocalTime => time().map(Temporal::LocalTime),
        TemporalKind::Time => Ok(Temporal::Time { nanos: time()?, offset: offset_of(from) }),
        TemporalKind::LocalDateTime => Temporal::local(local()?),
        TemporalKind::DateTime => Temporal::zoned(local()?, &Zone::UTC),
        TemporalKind::Duration => Err(lacks(from, "duration")),
    }
}
