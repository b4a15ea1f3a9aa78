//! The text form, as in ISO 8601.

use std::fmt::{Display, Formatter, Result};

use super::Temporal;
use super::calendar::{SECOND, date_of};

impl Display for Temporal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Temporal::Date(day) => date(f, *day),
            Temporal::LocalTime(nanos) => time(f, *nanos),
            Temporal::Time { nanos, offset } => {
                time(f, *nanos)?;
                f.write_str(&offset_text(*offset))
            }
            Temporal::LocalDateTime { .. } => local(f, self),
            Temporal::DateTime { offset, zone, .. } => {
                local(f, self)?;
                f.write_str(&offset_text(*offset))?;
                match zone {
                    Some(name) => write!(f, "[{name}]"),
                    None => Ok(()),
                }
            }
            Temporal::Duration { months, days, seconds, nanos } => {
                duration(f, *months, *days, i128::from(*seconds), i128::from(*nanos))
            }
        }
    }
}

fn date(f: &mut Formatter<'_>, day: i64) -> Result {
    let (year, month, day) = date_of(day);
    match year {
        0..=9999 => write!(f, "{year:04}")?,
        10_000.. => write!(f, "+{year}")?,
        _ => write!(f, "-{:04}", -year)?,
    }
    write!(f, "-{month:02}-{day:02}")
}

fn time(f: &mut Formatter<'_>, nanos: i64) -> Result {
    let (seconds, nanos) = (nanos / SECOND, nanos % SECOND);
    write!(f, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
    if seconds % 60 != 0 || nanos != 0 {
        write!(f, ":{:02}", seconds % 60)?;
    }
    if nanos == 0 {
        Ok(())
    } else if nanos % 1_000_000 == 0 {
        write!(f, ".{:03}", nanos / 1_000_000)
    } else if nanos % 1_000 == 0 {
        write!(f, ".{:06}", nanos / 1_000)
    } else {
        write!(f, ".{nanos:09}")
    }
}

fn local(f: &mut Formatter<'_>, it: &Temporal) -> Result {
    let (Some(day), Some(nanos)) = (it.day(), it.time()) else { return Ok(()) };
    date(f, day)?;
    f.write_str("T")?;
    time(f, nanos)
}

/// An offset such as `+01:00`, or `Z`.
pub(super) fn offset_text(offset: i32) -> String {
    if offset == 0 {
        return "Z".to_owned();
    }
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.unsigned_abs();
    let (hours, minutes, seconds) = (offset / 3600, offset / 60 % 60, offset % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

fn duration(f: &mut Formatter<'_>, months: i64, days: i64, seconds: i128, nanos: i128) -> Result {
    let second = i128::from(SECOND);
    // Every unit has the sign of the whole time.
    let time = seconds * second + nanos;
    let (seconds, nanos) = (time / second, time % second);
    if months == 0 && days == 0 && time == 0 {
        return f.write_str("PT0S");
    }
    f.write_str("P")?;
    for (amount, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
        if amount != 0 {
            write!(f, "{amount}{unit}")?;
        }
    }
    if time == 0 {
        return Ok(());
    }
    f.write_str("T")?;
    for (amount, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
        if amount != 0 {
            write!(f, "{amount}{unit}")?;
        }
    }
    let seconds = seconds % 60;
    if nanos == 0 {
        return if seconds == 0 { Ok(()) } else { write!(f, "{seconds}S") };
    }
    let sign = if time < 0 { "-" } else { "" };
    let digits = format!("{:09}", nanos.abs());
    write!(f, "{sign}{}.{}S", seconds.abs(), digits.trim_end_matches('0'))
}
