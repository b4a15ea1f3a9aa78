//! Dates, times and durations.
//!
//! Calendar and arithmetic are our own, since years have up to nine digits; time zones are those
//! of `jiff`'s bundled database.

mod arithmetic;
mod between;
mod build;
mod calendar;
mod components;
mod duration;
mod parse;
mod text;
mod truncate;
mod zone;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub(crate) use between::{Unit, between};
pub(crate) use build::{build, from_epoch, in_zone, select};
pub(crate) use duration::{Amount, duration_of};
pub(crate) use parse::{parse, parse_zone};
pub(crate) use truncate::truncate;
pub(crate) use zone::Zone;

use calendar::{DAY, SECOND};

/// A date, a time, or a duration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Temporal {
    /// A day, counted from 1970-01-01.
    Date(i64),
    /// A time of day in nanoseconds.
    LocalTime(i64),
    /// A time of day with an offset from UTC.
    Time {
        /// The local time of day in nanoseconds.
        nanos: i64,
        /// The offset in seconds.
        offset: i32,
    },
    /// A day with a time.
    LocalDateTime {
        /// The seconds since 1970-01-01T00:00.
        seconds: i64,
        /// The nanoseconds since then.
        nanos: u32,
    },
    /// An instant in a time zone.
    DateTime {
        /// The seconds since 1970-01-01T00:00Z.
        seconds: i64,
        /// The nanoseconds since then.
        nanos: u32,
        /// The offset of local time in seconds.
        offset: i32,
        /// The name of the time zone, unless it is just the offset.
        zone: Option<Box<str>>,
    },
    /// An amount of time. Months and days have no fixed length, so they are counted apart.
    Duration {
        /// Months.
        months: i64,
        /// Days.
        days: i64,
        /// Seconds.
        seconds: i64,
        /// Nanoseconds to add to them, less than a second.
        nanos: u32,
    },
}

/// The types of [`Temporal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemporalKind {
    /// A day.
    Date,
    /// A time of day.
    LocalTime,
    /// A time of day with an offset.
    Time,
    /// A day with a time.
    LocalDateTime,
    /// An instant in a time zone.
    DateTime,
    /// An amount of time.
    Duration,
}

impl TemporalKind {
    /// The type that a function of this name makes.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => TemporalKind::Date,
            "localtime" => TemporalKind::LocalTime,
            "time" => TemporalKind::Time,
            "localdatetime" => TemporalKind::LocalDateTime,
            "datetime" => TemporalKind::DateTime,
            "duration" => TemporalKind::Duration,
            _ => return None,
        })
    }

    /// The name of the type with its article, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TemporalKind::Date => "a date",
            TemporalKind::LocalTime => "a local time",
            TemporalKind::Time => "a time",
            TemporalKind::LocalDateTime => "a local date and time",
            TemporalKind::DateTime => "a date and time",
            TemporalKind::Duration => "a duration",
        }
    }
}

/// A day and a time of day in nanoseconds.
type Local = (i64, i64);

impl Temporal {
    /// Parses the text form of a type, as `date('2020-01-31')` does; `None` if it is malformed.
    #[must_use]
    pub fn parsed(kind: TemporalKind, text: &str) -> Option<Self> {
        parse(kind, text).ok()
    }

    pub(crate) fn kind(&self) -> TemporalKind {
        match self {
            Temporal::Date(_) => TemporalKind::Date,
            Temporal::LocalTime(_) => TemporalKind::LocalTime,
            Temporal::Time { .. } => TemporalKind::Time,
            Temporal::LocalDateTime { .. } => TemporalKind::LocalDateTime,
            Temporal::DateTime { .. } => TemporalKind::DateTime,
            Temporal::Duration { .. } => TemporalKind::Duration,
        }
    }

    /// Whether all parts are in range. Values made by this crate are; others may be damaged.
    pub fn is_valid(&self) -> bool {
        let is_time = |nanos: &i64| (0..DAY).contains(nanos);
        let is_nanos = |nanos: &u32| i64::from(*nanos) < SECOND;
        let is_offset = |offset: &i32| offset.abs() <= zone::MAX_OFFSET;
        match self {
            Temporal::Date(day) => calendar::is_valid(*day),
            Temporal::LocalTime(nanos) => is_time(nanos),
            Temporal::Time { nanos, offset } => is_time(nanos) && is_offset(offset),
            Temporal::LocalDateTime { seconds, nanos } => {
                is_nanos(nanos) && calendar::is_valid(seconds.div_euclid(86_400))
            }
            Temporal::DateTime { seconds, nanos, offset, zone } => {
                let is_name = |name: &str| {
                    (1..=zone::MAX_NAME).contains(&name.len())
                        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b']')
                };
                let local = seconds.saturating_add(i64::from(*offset));
                is_nanos(nanos)
                    && is_offset(offset)
                    && calendar::is_valid(local.div_euclid(86_400))
                    && zone.as_deref().is_none_or(is_name)
            }
            Temporal::Duration { nanos, .. } => is_nanos(nanos),
        }
    }

    /// A local date and time; fails if it is out of range.
    fn local((day, nanos): Local) -> Result<Self, String> {
        let day = valid(day)?;
        let seconds = day * 86_400 + nanos / SECOND;
        Ok(Temporal::LocalDateTime { seconds, nanos: (nanos % SECOND) as u32 })
    }

    /// The instant at which clocks in a time zone show this.
    fn zoned((day, nanos): Local, zone: &Zone) -> Result<Self, String> {
        let local = valid(day)? * 86_400 + nanos / SECOND;
        let offset = zone.offset_at_local(local);
        Temporal::instant(local - i64::from(offset), (nanos % SECOND) as u32, zone)
    }

    /// An instant as shown in a time zone; fails if it is out of range.
    fn instant(seconds: i64, nanos: u32, zone: &Zone) -> Result<Self, String> {
        let offset = zone.offset_at(seconds);
        valid(seconds.saturating_add(i64::from(offset)).div_euclid(86_400))?;
        Ok(Temporal::DateTime { seconds, nanos, offset, zone: zone.name() })
    }

    /// The current instant in UTC. Clocks before 1970 show 1970.
    pub(crate) fn now() -> Self {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let (seconds, nanos) = (now.as_secs().cast_signed(), now.subsec_nanos());
        Temporal::DateTime { seconds, nanos, offset: 0, zone: None }
    }

    /// The local day, if there is one.
    fn day(&self) -> Option<i64> {
        match self {
            Temporal::Date(day) => Some(*day),
            Temporal::LocalDateTime { seconds, .. } => Some(seconds.div_euclid(86_400)),
            Temporal::DateTime { seconds, offset, .. } => {
                Some((seconds + i64::from(*offset)).div_euclid(86_400))
            }
            _ => None,
        }
    }

    /// The local time of day in nanoseconds, if there is one.
    fn time(&self) -> Option<i64> {
        let of_day =
            |seconds: i64, nanos: u32| seconds.rem_euclid(86_400) * SECOND + i64::from(nanos);
        match self {
            Temporal::LocalTime(nanos) | Temporal::Time { nanos, .. } => Some(*nanos),
            Temporal::LocalDateTime { seconds, nanos } => Some(of_day(*seconds, *nanos)),
            Temporal::DateTime { seconds, nanos, offset, .. } => {
                Some(of_day(seconds + i64::from(*offset), *nanos))
            }
            _ => None,
        }
    }

    /// The time zone, if there is one. Fails if its name is not in the database.
    fn zone(&self) -> Result<Option<Zone>, String> {
        Ok(match self {
            Temporal::Time { offset, .. } | Temporal::DateTime { offset, zone: None, .. } => {
                Some(Zone::Offset(*offset))
            }
            Temporal::DateTime { zone: Some(name), .. } => Some(Zone::named(name)?),
            _ => None,
        })
    }

    /// Compares for `<` and similar: `None` for different types and for durations.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        use Temporal::*;
        match (self, other) {
            (Duration { .. }, Duration { .. }) => None,
            _ if self.kind() == other.kind() => Some(self.order(other)),
            _ => None,
        }
    }

    /// A total order. Equal values are identical.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        use Temporal::*;
        match (self, other) {
            (Date(a), Date(b)) | (LocalTime(a), LocalTime(b)) => a.cmp(b),
            (Time { nanos: a, offset: x }, Time { nanos: b, offset: y }) => {
                let utc = |nanos: i64, offset: i32| nanos - i64::from(offset) * SECOND;
                utc(*a, *x).cmp(&utc(*b, *y)).then(x.cmp(y))
            }
            (LocalDateTime { seconds: a, nanos: x }, LocalDateTime { seconds: b, nanos: y }) => {
                (a, x).cmp(&(b, y))
            }
            (
                DateTime { seconds: a, nanos: x, offset: p, zone: v },
                DateTime { seconds: b, nanos: y, offset: q, zone: w },
            ) => (a, x, p, v).cmp(&(b, y, q, w)),
            (
                Duration { months: a, days: c, seconds: e, nanos: x },
                Duration { months: b, days: d, seconds: f, nanos: y },
            ) => {
                // By the average length, then by the parts.
                let length = |months: &i64, days: &i64, seconds: &i64| {
                    i128::from(*months) * i128::from(duration::MONTH_SECONDS)
                        + i128::from(*days) * 86_400
                        + i128::from(*seconds)
                };
                (length(a, c, e), x, a, c).cmp(&(length(b, d, f), y, b, d))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The place of the type in the order of all types.
    pub(crate) fn rank(&self) -> u8 {
        match self.kind() {
            TemporalKind::DateTime => 0,
            TemporalKind::LocalDateTime => 1,
            TemporalKind::Date => 2,
            TemporalKind::Time => 3,
            TemporalKind::LocalTime => 4,
            TemporalKind::Duration => 5,
        }
    }
}

/// Fails if no value can have this day.
fn valid(day: i64) -> Result<i64, String> {
    if calendar::is_valid(day) { Ok(day) } else { Err(out_of_range()) }
}

fn out_of_range() -> String {
    "the result is outside of the years -999999999 to 999999999".to_owned()
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use jiff::tz::TimeZoneDatabase;
    use jiff::{Span, Timestamp};

    use super::*;

    /// Compares with `jiff`'s own calendar, which is independent of ours.
    #[test]
    fn random_dates_are_as_in_another_calendar() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let (year, month) = (rng.i64(-9000..9000), rng.i64(1..=12));
            let of_month = rng.i64(1..=calendar::month_length(year, month));
            let day = Temporal::Date(calendar::day_of(year, month, of_month));
            let other = Date::new(year as i16, month as i8, of_month as i8).unwrap();
            let part = |name: &str| day.component(name);
            let iso = other.iso_week_date();
            for (name, expected) in [
                ("weekDay", i64::from(other.weekday().to_monday_one_offset())),
                ("week", i64::from(iso.week())),
                ("weekYear", i64::from(iso.year())),
                ("ordinalDay", i64::from(other.day_of_year())),
            ] {
                assert_eq!(part(name), Some(expected.into()), "{name} of {day}");
            }
            let (months, days) = (rng.i64(-5000..5000), rng.i64(-50_000..50_000));
            // A span has one sign only.
            let plus = |it: Date, span| it.checked_add(span).ok();
            let duration = Temporal::Duration { months, days, seconds: 0, nanos: 0 };
            let moved = plus(other, Span::new().months(months))
                .and_then(|it| plus(it, Span::new().days(days)));
            if let Some(moved) = moved {
                let ours = day.plus(&duration, false).unwrap().unwrap();
                let text = if moved.year() < 0 {
                    format!("-{:04}-{:02}-{:02}", -moved.year(), moved.month(), moved.day())
                } else {
                    moved.to_string()
                };
                assert_eq!(ours.to_string(), text, "{day} + {duration}");
                let text = ours.to_string();
                assert_eq!(parse(TemporalKind::Date, &text), Ok(ours));
            }
        }
    }

    #[test]
    fn random_instants_are_as_in_another_library() {
        let mut rng = fastrand::Rng::with_seed(11);
        let database = TimeZoneDatabase::bundled();
        let names = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"];
        for _ in 0..20_000 {
            let name = names[rng.usize(0..names.len())];
            let seconds = rng.i64(-5_000_000_000..9_000_000_000);
            let ours = Temporal::instant(seconds, 0, &Zone::named(name).unwrap()).unwrap();
            let zone = database.get(name).unwrap();
            let other = Timestamp::from_second(seconds).unwrap().to_zoned(zone);
            assert_eq!(ours.component("hour"), Some(i64::from(other.hour()).into()), "{ours}");
            let (months, days) = (rng.i64(-50..50), rng.i64(-500..500));
            let time = rng.i64(-100_000..100_000);
            let duration = Temporal::Duration { months, days, seconds: time, nanos: 0 };
            // Months and days move the local time, which then gets an offset.
            let local = other.datetime().checked_add(Span::new().months(months)).unwrap();
            let local = local.checked_add(Span::new().days(days)).unwrap();
            let moved = other.time_zone().to_ambiguous_zoned(local).compatible().unwrap();
            // Without a move, the second of two equal times stays the second.
            let moved = if (months, days) == (0, 0) { other } else { moved };
            let expected = moved.timestamp().as_second() + time;
            let found = ours.plus(&duration, false).unwrap().unwrap();
            assert_eq!(
                found.component("epochSeconds"),
                Some(expected.into()),
                "{ours} + {duration}"
            );
            let back = between(Unit::Seconds, &ours, &found).unwrap();
            assert_eq!(back.component("seconds"), Some((expected - seconds).into()));
            // A duration from one to the other leads from one to the other.
            let all = between(Unit::All, &ours, &found).unwrap();
            assert_eq!(ours.plus(&all, false).unwrap().unwrap(), found, "{ours} + {all}");
            let text = found.to_string();
            assert_eq!(parse(TemporalKind::DateTime, &text), Ok(found), "{text}");
        }
    }
}
