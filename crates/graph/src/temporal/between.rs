//! Durations between two values.

use super::calendar::{self, DAY, SECOND, plus_months};
use super::duration::duration;
use super::{Local, Temporal, Zone, out_of_range};

/// The unit of `duration.between` and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Months, then days, then the time.
    All,
    Months,
    Days,
    Seconds,
}

/// The duration from one value to another. What only one of them has, a day or a time zone, the
/// other takes from it.
pub(crate) fn between(unit: Unit, from: &Temporal, to: &Temporal) -> Result<Temporal, String> {
    if from.is_duration() || to.is_duration() {
        return Err("there is no duration between durations".to_owned());
    }
    let have_days = from.day().is_some() && to.day().is_some();
    let day = from.day().or(to.day()).unwrap_or(0);
    let (mut zone, mut to_zone) = (from.zone()?, to.zone()?);
    if zone.is_none() {
        zone.clone_from(&to_zone);
    } else if to_zone.is_none() {
        to_zone.clone_from(&zone);
    }
    let local = |it: &Temporal| (it.day().unwrap_or(day), it.time().unwrap_or(0));
    let start = Point::new(from, local(from), &zone);
    let end = Point::new(to, local(to), &to_zone);
    // Both as clocks show them in the time zone of the first.
    let shown = match &zone {
        Some(zone) => end.shown_in(zone),
        None => end.local,
    };
    let whole =
        |count: fn(Local, Local) -> i64| if have_days { count(start.local, shown) } else { 0 };
    match unit {
        Unit::Seconds => duration(0, 0, end.nanos - start.nanos),
        Unit::Months => duration(whole(calendar::months_between), 0, 0),
        Unit::Days => duration(0, whole(calendar::days_between), 0),
        Unit::All => {
            let months = whole(calendar::months_between);
            let day = plus_months(start.local.0, months).ok_or_else(out_of_range)?;
            let days =
                if have_days { calendar::days_between((day, start.local.1), shown) } else { 0 };
            if (months, days) == (0, 0) {
                return duration(0, 0, end.nanos - start.nanos);
            }
            let near = (day + days, start.local.1);
            duration(months, days, end.nanos - nanos_of(near, &zone))
        }
    }
}

/// A local time, and the nanoseconds of its instant.
struct Point {
    local: Local,
    nanos: i128,
}

impl Point {
    fn new(it: &Temporal, local: Local, zone: &Option<Zone>) -> Self {
        let nanos = match it {
            Temporal::DateTime { seconds, nanos, .. } => {
                i128::from(*seconds) * i128::from(SECOND) + i128::from(*nanos)
            }
            _ => nanos_of(local, zone),
        };
        Point { local, nanos }
    }

    fn shown_in(&self, zone: &Zone) -> Local {
        let seconds = self.nanos.div_euclid(i128::from(SECOND)) as i64;
        let shown = self.nanos + i128::from(zone.offset_at(seconds)) * i128::from(SECOND);
        let day = i128::from(DAY);
        (shown.div_euclid(day) as i64, shown.rem_euclid(day) as i64)
    }
}

/// The nanoseconds from 1970 to a local time in a time zone, or in none.
fn nanos_of((day, nanos): Local, zone: &Option<Zone>) -> i128 {
    let seconds = day * 86_400 + nanos / SECOND;
    let offset = zone.as_ref().map_or(0, |zone| zone.offset_at_local(seconds));
    i128::from(day) * i128::from(DAY) + i128::from(nanos) - i128::from(offset) * i128::from(SECOND)
}
