//! Parses the text forms of ISO 8601, with or without separators.

use super::calendar::{self, DAY, SECOND, day_of};
use super::duration::{Amount, Parts};
use super::zone::MAX_OFFSET;
use super::{Local, Temporal, TemporalKind, Zone};

/// Parses a date, a time or both.
pub(crate) fn parse(kind: TemporalKind, text: &str) -> Result<Temporal, String> {
    let wrong = || format!("{text:?} is not {}", kind.name());
    let mut cursor = Cursor(text.trim());
    let parsed = match kind {
        TemporalKind::Date => cursor.date().map(Temporal::Date),
        TemporalKind::LocalTime => cursor.time().map(Temporal::LocalTime),
        TemporalKind::Time => cursor.time().and_then(|nanos| {
            let offset = if cursor.0.is_empty() { 0 } else { cursor.offset()? };
            Some(Temporal::Time { nanos, offset })
        }),
        TemporalKind::LocalDateTime => match cursor.local() {
            Some(local) => Some(Temporal::local(local)?),
            None => None,
        },
        TemporalKind::DateTime => match cursor.local() {
            Some(local) => cursor.zoned(local)?,
            None => None,
        },
        TemporalKind::Duration => return parse_duration(text),
    };
    parsed.filter(|_| cursor.0.is_empty()).ok_or_else(wrong)
}

/// Parses an offset such as `+01:00`, or the name of a time zone.
pub(crate) fn parse_zone(text: &str) -> Result<Zone, String> {
    let mut cursor = Cursor(text.trim());
    match cursor.offset() {
        Some(offset) if cursor.0.is_empty() => Ok(Zone::Offset(offset)),
        _ => Zone::named(text.trim()),
    }
}

struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn sign(&mut self) -> Option<i64> {
        if self.eat('-') {
            Some(-1)
        } else if self.eat('+') {
            Some(1)
        } else {
            None
        }
    }

    /// The number of digits ahead.
    fn digits(&self) -> usize {
        self.0.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn number(&mut self, length: usize) -> Option<i64> {
        if length == 0 || self.digits() < length {
            return None;
        }
        let (number, rest) = self.0.split_at(length);
        self.0 = rest;
        number.parse().ok()
    }

    fn date(&mut self) -> Option<i64> {
        let sign = self.sign();
        let ahead = self.digits();
        let year = match sign {
            Some(sign) => sign * self.number(if ahead <= 9 { ahead } else { return None })?,
            None => self.number(4)?,
        };
        let separated = self.eat('-');
        if self.eat('W') {
            return self.week(year, separated);
        }
        if self.eat('Q') {
            let quarter = self.number(1).filter(|quarter| (1..=4).contains(quarter))?;
            let day = if self.eat('-') || self.digits() > 0 { self.number(2)? } else { 1 };
            let is_day = (1..=calendar::quarter_length(year, quarter)).contains(&day);
            return is_day.then(|| day_of(year, 3 * quarter - 2, 1) + day - 1);
        }
        if sign.is_some() && !separated {
            return Some(day_of(year, 1, 1));
        }
        match self.digits() {
            0 if !separated => Some(day_of(year, 1, 1)),
            3 => {
                let day = self.number(3)?;
                let is_day = (1..=calendar::year_length(year)).contains(&day);
                is_day.then(|| day_of(year, 1, 1) + day - 1)
            }
            2 => {
                let month = self.number(2)?;
                let day = if separated && self.eat('-') { self.number(2)? } else { 1 };
                checked_day(year, month, day)
            }
            4 if !separated => {
                let (month, day) = (self.number(2)?, self.number(2)?);
                checked_day(year, month, day)
            }
            _ => None,
        }
    }

    fn week(&mut self, year: i64, separated: bool) -> Option<i64> {
        let week = self.number(2).filter(|week| (1..=calendar::weeks_of(year)).contains(week))?;
        let of_week = if separated && self.eat('-') || !separated && self.digits() > 0 {
            self.number(1).filter(|day| (1..=7).contains(day))?
        } else {
            1
        };
        Some(calendar::first_monday(year) + (week - 1) * 7 + of_week - 1)
    }

    fn time(&mut self) -> Option<i64> {
        let hour = self.number(2).filter(|hour| *hour < 24)?;
        let separated = self.eat(':');
        let mut nanos = hour * 3600 * SECOND;
        if !separated && self.digits() < 2 {
            return Some(nanos);
        }
        nanos += self.number(2).filter(|minute| *minute < 60)? * 60 * SECOND;
        let more = if separated { self.eat(':') } else { self.digits() >= 2 };
        if !more {
            return Some(nanos);
        }
        nanos += self.number(2).filter(|second| *second < 60)? * SECOND;
        if self.eat('.') || self.eat(',') {
            let length = self.digits();
            let fraction = if length <= 9 { self.number(length)? } else { return None };
            nanos += fraction * 10_i64.pow(9 - length as u32);
        }
        Some(nanos)
    }

    /// A day, optionally with a time.
    fn local(&mut self) -> Option<Local> {
        let day = self.date()?;
        Some((day, if self.eat('T') { self.time()? } else { 0 }))
    }

    /// An offset in seconds.
    fn offset(&mut self) -> Option<i32> {
        if self.eat('Z') || self.eat('z') {
            return Some(0);
        }
        let sign = self.sign()?;
        let mut offset = self.number(2)? * 3600;
        for unit in [60, 1] {
            let separated = self.eat(':');
            if !separated && self.digits() < 2 {
                break;
            }
            offset += self.number(2).filter(|part| *part < 60)? * unit;
        }
        i32::try_from(sign * offset).ok().filter(|offset| offset.abs() <= MAX_OFFSET)
    }

    /// The rest of a date and time: an offset, the name of a time zone, or both.
    fn zoned(&mut self, local: Local) -> Result<Option<Temporal>, String> {
        let offset = match self.0.chars().next() {
            None => return Temporal::zoned(local, &Zone::UTC).map(Some),
            Some('[') => None,
            Some(_) => match self.offset() {
                Some(offset) => Some(offset),
                None => return Ok(None),
            },
        };
        let zone = match self.0.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => {
                self.0 = "";
                Zone::named(name)?
            }
            None => match offset {
                Some(offset) => Zone::Offset(offset),
                None => return Ok(None),
            },
        };
        let Some(offset) = offset else { return Temporal::zoned(local, &zone).map(Some) };
        let seconds = super::valid(local.0)? * 86_400 + local.1 / SECOND;
        if !zone.has_offset(seconds, offset) {
            let name = zone.name().unwrap_or_default();
            return Err(format!("{name} does not have this offset at this time"));
        }
        let nanos = (local.1 % SECOND) as u32;
        Temporal::instant(seconds - i64::from(offset), nanos, &zone).map(Some)
    }
}

pub(super) fn checked_day(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_day = calendar::in_range(year)
        && (1..=12).contains(&month)
        && (1..=calendar::month_length(year, month)).contains(&day);
    is_day.then(|| day_of(year, month, day))
}

/// Parses a duration such as `P1Y2M3DT4H5M6.7S` or `P2012-02-02T14:37:21.545`.
fn parse_duration(text: &str) -> Result<Temporal, String> {
    let wrong = || format!("{text:?} is not a duration");
    let trimmed = text.trim();
    let (negative, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let rest = rest.strip_prefix('P').ok_or_else(wrong)?;
    let mut parts = Parts::default();
    if let Some(combined) = combined(rest) {
        for (name, number) in combined {
            let number = if negative { -number } else { number };
            parts.add(name, Amount::Integer(number)).ok_or_else(wrong)??;
        }
        return parts.finish();
    }
    let (mut in_time, mut units) = (false, 0);
    let mut rest = rest;
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T').filter(|time| !in_time && !time.is_empty()) {
            (in_time, rest) = (true, time);
            continue;
        }
        let length = rest.find(|letter: char| letter.is_ascii_uppercase()).ok_or_else(wrong)?;
        let amount = amount(&rest[..length], negative).ok_or_else(wrong)?;
        let name = match (in_time, &rest[length..=length]) {
            (false, "Y") => "years",
            (false, "M") => "months",
            (false, "W") => "weeks",
            (false, "D") => "days",
            (true, "H") => "hours",
            (true, "M") => "minutes",
            (true, "S") => "seconds",
            _ => return Err(wrong()),
        };
        parts.add(name, amount).ok_or_else(wrong)??;
        units += 1;
        rest = &rest[length + 1..];
    }
    if units == 0 { Err(wrong()) } else { parts.finish() }
}

fn amount(text: &str, negative: bool) -> Option<Amount> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b','));
    if !is_number {
        return None;
    }
    Some(match text.parse::<i64>() {
        Ok(number) => Amount::Integer(if negative { number.checked_neg()? } else { number }),
        Err(_) => {
            let number: f64 = text.replace(',', ".").parse().ok()?;
            Amount::Float(if negative { -number } else { number })
        }
    })
}

/// A duration written as a date and a time.
fn combined(text: &str) -> Option<[(&'static str, i64); 5]> {
    let (date, time) = text.split_once('T')?;
    let mut numbers = date.splitn(3, '-').map(|part| {
        let is_number = (2..=9).contains(&part.len()) && part.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| part.parse::<i64>().ok()).flatten()
    });
    let (years, months, days) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let mut cursor = Cursor(time);
    let nanos = cursor.time().filter(|nanos| cursor.0.is_empty() && *nanos < DAY)?;
    let (seconds, nanos) = (nanos / SECOND, nanos % SECOND);
    Some([
        ("years", years),
        ("months", months),
        ("days", days),
        ("seconds", seconds),
        ("nanoseconds", nanos),
    ])
}
