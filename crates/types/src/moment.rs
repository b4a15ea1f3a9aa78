use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time: a whole day (in UTC), or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment {
    at: i64,
    whole_day: bool,
}

const DAY_MS: i64 = 86_400_000;

impl Moment {
    /// An instant, in milliseconds since the Unix epoch.
    pub fn instant(at: i64) -> Self {
        Self { at, whole_day: false }
    }

    /// The day, in UTC, that contains this instant.
    pub fn day_of(at: i64) -> Self {
        Self { at: at.div_euclid(DAY_MS) * DAY_MS, whole_day: true }
    }

    /// Its start, in milliseconds since the Unix epoch.
    pub fn start(self) -> i64 {
        self.at
    }

    /// The first millisecond after it; for a day, the start of the next day.
    pub fn end(self) -> i64 {
        self.at.saturating_add(if self.whole_day { DAY_MS } else { 1 })
    }

    /// The day in words, in UTC: Monday 16 November 2026.
    pub fn in_words(self) -> String {
        let at = Timestamp::from_millisecond(self.at).unwrap_or_default();
        at.to_zoned(TimeZone::UTC).strftime("%A %-d %B %Y").to_string()
    }

    /// Its start in UTC, as text that sorts by time: `2026-01-31` for midnight, and
    /// `2026-01-31T09:30:00.000Z`.
    pub fn sortable(self) -> String {
        if self.at.rem_euclid(DAY_MS) == 0 {
            return Self::day_of(self.at).to_string();
        }
        let at = Timestamp::from_millisecond(self.at).unwrap_or_default();
        format!("{at:.3}")
    }

    /// Whether it is a whole day.
    pub fn is_day(self) -> bool {
        self.whole_day
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(at) = Timestamp::from_millisecond(self.at) else { return write!(f, "{}", self.at) };
        match self.whole_day {
            true => write!(f, "{}", at.to_zoned(TimeZone::UTC).date()),
            false => write!(f, "{at}"),
        }
    }
}

/// The text is not a valid [`Moment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMoment(pub String);

impl fmt::Display for InvalidMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.chars().take(60).collect();
        write!(f, "{text:?} is not a date: write a day such as 2026-01-31, or ")?;
        f.write_str("an instant with its zone such as 2026-01-31T09:30:00Z")
    }
}

impl std::error::Error for InvalidMoment {}

impl FromStr for Moment {
    type Err = InvalidMoment;

    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        let invalid = || InvalidMoment(text.to_owned());
        let bytes = text.as_bytes();
        // The parsers below would accept other forms, too.
        let dashes = bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-';
        if !dashes {
            return Err(invalid());
        }
        if bytes.len() == 10 {
            let day: Date = text.parse().map_err(|_| invalid())?;
            let start = day.to_zoned(TimeZone::UTC).map_err(|_| invalid())?;
            return Ok(Self { at: start.timestamp().as_millisecond(), whole_day: true });
        }
        if !matches!(bytes[10], b'T' | b't' | b' ') || text.contains('[') {
            return Err(invalid());
        }
        // The parser refuses a time without a zone, which would be ambiguous.
        let at: Timestamp = text.parse().map_err(|_| invalid())?;
        Ok(Self::instant(at.as_millisecond()))
    }
}

// Text in JSON; two values between processes (postcard).
impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => (self.at, self.whole_day).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            return text.parse().map_err(serde::de::Error::custom);
        }
        let (at, whole_day) = Deserialize::deserialize(deserializer)?;
        Ok(Self { at, whole_day })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn days_and_instants_have_different_ends() {
        for (text, start, end, shown) in [
            ("1970-01-01", 0, DAY_MS, "1970-01-01"),
            ("2026-11-16", 1_794_787_200_000, 1_794_873_600_000, "2026-11-16"),
            ("1970-01-01T00:00:01Z", 1000, 1001, "1970-01-01T00:00:01Z"),
            ("1970-01-01T01:00:00.5+01:00", 500, 501, "1970-01-01T00:00:00.5Z"),
            ("1969-12-31", -DAY_MS, 0, "1969-12-31"),
        ] {
            let it = moment(text);
            assert_eq!((it.start(), it.end(), it.to_string().as_str()), (start, end, shown));
            assert_eq!(moment(shown), it);
        }
        assert_eq!(Moment::day_of(-1), moment("1969-12-31"));
        assert_eq!(moment("2026-11-16T09:30:00Z").in_words(), "Monday 16 November 2026");
    }

    #[test]
    fn sortable_texts_sort_by_time() {
        let times = [
            ("1969-12-31", "1969-12-31"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01"),
            ("1970-01-01T01:00:00.5+01:00", "1970-01-01T00:00:00.500Z"),
            ("1970-01-01T00:00:01Z", "1970-01-01T00:00:01.000Z"),
            ("2026-11-16", "2026-11-16"),
            ("9999-12-30", "9999-12-30"),
        ];
        for (text, sortable) in times {
            assert_eq!(moment(text).sortable(), sortable);
            assert_eq!(moment(sortable).start(), moment(text).start());
        }
        assert!(times.is_sorted_by(|one, other| one.1 < other.1));
    }

    #[test]
    fn other_formats_are_refused_with_an_example() {
        for text in [
            "",
            "yesterday",
            "2026",
            "2026-1-1",
            "20260131",
            "2026-02-30",
            "31.01.2026",
            "2026-01-31T09:30:00",
            "2026-01-31T25:00:00Z",
            "2026-01-31Z",
            "01/31/2026",
            "2026-01-31T09:30:00Z[Europe/Berlin]",
            "２０２６-01-31",
        ] {
            let error = text.parse::<Moment>().unwrap_err().to_string();
            assert!(error.contains("2026-01-31T09:30:00Z"), "{text}: {error}");
        }
    }

    #[test]
    fn moments_round_trip_through_postcard_and_json() {
        for it in [moment("2026-11-16"), Moment::instant(-5)] {
            let bytes = postcard::to_stdvec(&it).unwrap();
            assert_eq!(postcard::from_bytes::<Moment>(&bytes).unwrap(), it);
            let json = serde_json::to_string(&it).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), it);
        }
    }
}
