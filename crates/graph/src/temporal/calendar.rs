//! The proleptic Gregorian calendar, in days since 1970-01-01.

/// The first and the last year that a value can have.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = -999_999_999..=999_999_999;

/// The nanoseconds of a day.
pub(super) const DAY: i64 = 86_400 * SECOND;

/// The nanoseconds of a second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// The days of 400 years, after which the calendar repeats.
pub(super) const CYCLE: i64 = 146_097;

/// The day of a date. The month must be valid; the day may be any.
pub(super) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * CYCLE + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
}

/// The year, month and day of the month.
pub(super) fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (cycle, of_cycle) = (day.div_euclid(CYCLE), day.rem_euclid(CYCLE));
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + i64::from(month <= 2), month, of_month)
}

pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub(super) fn year_length(year: i64) -> i64 {
    337 + month_length(year, 2)
}

/// The days of a quarter from 1 to 4.
pub(super) fn quarter_length(year: i64, quarter: i64) -> i64 {
    (1..=3).map(|month| month_length(year, 3 * (quarter - 1) + month)).sum()
}

/// The day of the week: 1 is Monday.
pub(super) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7) + 1
}

/// The Monday of the first week of a year of weeks.
pub(super) fn first_monday(year: i64) -> i64 {
    // The first week is the one with January 4.
    let fourth = day_of(year, 1, 4);
    fourth - (weekday(fourth) - 1)
}

/// The number of weeks of a year of weeks.
pub(super) fn weeks_of(year: i64) -> i64 {
    (first_monday(year + 1) - first_monday(year)) / 7
}

/// The year of weeks that contains a day, and the week in it.
pub(super) fn week_of(day: i64) -> (i64, i64) {
    // The Thursday of a week lies in the year that the week belongs to.
    let (year, _, _) = date_of(day - weekday(day) + 4);
    (year, (day - first_monday(year)) / 7 + 1)
}

/// Adds months; the day is the last of the month if that is shorter. `None` beyond the range.
pub(super) fn plus_months(day: i64, months: i64) -> Option<i64> {
    let (year, month, of_month) = date_of(day);
    let months = (year * 12 + month - 1).checked_add(months)?;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    in_range(year).then(|| day_of(year, month, of_month.min(month_length(year, month))))
}

pub(super) fn in_range(year: i64) -> bool {
    YEARS.contains(&year)
}

/// Whether a value can have this day.
pub(super) fn is_valid(day: i64) -> bool {
    (day_of(*YEARS.start(), 1, 1)..=day_of(*YEARS.end(), 12, 31)).contains(&day)
}

/// The whole months from one day and time to another, which may be earlier.
pub(super) fn months_between(from: (i64, i64), to: (i64, i64)) -> i64 {
    let end = whole_day(from, to);
    let number = |day: i64| {
        let (year, month, of_month) = date_of(day);
        (year * 12 + month) * 32 + of_month
    };
    (number(end) - number(from.0)) / 32
}

/// The whole days from one day and time to another, which may be earlier.
pub(super) fn days_between(from: (i64, i64), to: (i64, i64)) -> i64 {
    whole_day(from, to) - from.0
}

/// The day of `to`, or the one next to it if the last day is not complete.
fn whole_day(from: (i64, i64), to: (i64, i64)) -> i64 {
    if to.0 > from.0 && to.1 < from.1 {
        to.0 - 1
    } else if to.0 < from.0 && to.1 > from.1 {
        to.0 + 1
    } else {
        to.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        let (mut day, end) = (day_of(1599, 12, 31), day_of(2405, 1, 1));
        let mut before = (1599, 12, 30);
        while day <= end {
            let date = date_of(day);
            assert_eq!(day_of(date.0, date.1, date.2), day);
            assert!(date > before, "{before:?} {date:?}");
            assert!(date.2 <= month_length(date.0, date.1));
            let (year, week) = week_of(day);
            assert_eq!(first_monday(year) + (week - 1) * 7 + weekday(day) - 1, day);
            assert!((1..=weeks_of(year)).contains(&week));
            before = date;
            day += 1;
        }
        assert_eq!((day_of(1970, 1, 1), weekday(0)), (0, 4));
        for year in [*YEARS.start(), -1, 0, *YEARS.end()] {
            assert_eq!(date_of(day_of(year, 12, 31)), (year, 12, 31));
        }
    }
}
