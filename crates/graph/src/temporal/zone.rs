//! Time zones: an offset, or a name in the IANA database that is compiled into the program.

use std::sync::OnceLock;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::calendar::CYCLE;

/// The largest offset from UTC, in seconds.
pub(super) const MAX_OFFSET: i32 = 18 * 3600;

/// Names in the database are shorter.
pub(super) const MAX_NAME: usize = 64;

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) enum Zone {
    Offset(i32),
    Named(Box<str>, TimeZone),
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Offset(0);

    /// Finds a named time zone.
    pub(super) fn named(name: &str) -> Result<Zone, String> {
        static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
        let name = name.replace(' ', "_");
        let found = DATABASE.get_or_init(TimeZoneDatabase::bundled).get(&name);
        let zone = found.map_err(|_| format!("unknown time zone {name:?}"))?;
        let name = zone.iana_name().unwrap_or(&name).into();
        Ok(Zone::Named(name, zone))
    }

    pub(super) fn name(&self) -> Option<Box<str>> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(name, _) => Some(name.clone()),
        }
    }

    /// The offset at a local time in seconds. A time that clocks skip is moved forward by what they
    /// skip; of a time that they show twice, the first is meant.
    pub(super) fn offset_at_local(&self, seconds: i64) -> i32 {
        match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(_, zone) => {
                let shifted = within(seconds);
                let Some(local) = local(shifted) else { return 0 };
                let ambiguous = zone.to_ambiguous_timestamp(local);
                // In a gap, the offset before it moves the time forward.
                ambiguous.compatible().map_or(0, |at| (shifted - at.as_second()) as i32)
            }
        }
    }

    /// Whether clocks show this local time with this offset.
    pub(super) fn has_offset(&self, seconds: i64, offset: i32) -> bool {
        self.offset_at(seconds - i64::from(offset)) == offset
    }

    /// The offset at an instant in seconds.
    pub(super) fn offset_at(&self, seconds: i64) -> i32 {
        match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(_, zone) => match Timestamp::from_second(within(seconds)) {
                Ok(at) => zone.to_offset(at).seconds(),
                Err(_) => 0,
            },
        }
    }
}

/// A time in the years that the database covers, with the same rules: the calendar repeats every
/// 400 years, and so do the rules of the far future and of the far past.
fn within(seconds: i64) -> i64 {
    const CYCLE_SECONDS: i64 = CYCLE * 86_400;
    /// Years 5970 and -2030, in the last and first cycles that are safely covered.
    const HALF: i64 = 10 * CYCLE_SECONDS;
    if (-HALF..HALF).contains(&seconds) {
        seconds
    } else {
        let of_cycle = seconds.rem_euclid(CYCLE_SECONDS);
        if seconds > 0 { HALF - CYCLE_SECONDS + of_cycle } else { -HALF + of_cycle }
    }
}

fn local(seconds: i64) -> Option<DateTime> {
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::calendar::day_of;

    #[test]
    fn rules_apply_to_all_years() {
        let zone = Zone::named("europe/stockholm").unwrap();
        assert_eq!(zone.name().as_deref(), Some("Europe/Stockholm"));
        let summer = |year| zone.offset_at_local(day_of(year, 7, 1) * 86_400);
        for (year, offset) in [(-500_000_000, 3208), (1818, 3208), (2017, 7200)] {
            assert_eq!(summer(year), offset, "{year}");
        }
        assert_eq!(summer(900_000_000), 7200);
        assert!(Zone::named("Nowhere/Town").is_err());
    }

    #[test]
    fn clocks_that_change_are_read_as_documented() {
        let zone = Zone::named("Europe/Stockholm").unwrap();
        let at = |month, day, hour: i64, minute: i64| {
            zone.offset_at_local(day_of(2017, month, day) * 86_400 + hour * 3600 + minute * 60)
        };
        assert_eq!((at(3, 26, 1, 59), at(3, 26, 2, 30), at(3, 26, 3, 0)), (3600, 3600, 7200));
        assert_eq!((at(10, 29, 2, 30), at(10, 29, 3, 0)), (7200, 3600));
    }
}
