//! Periods that questions name in English words: "in May 2026", "last week", "two months ago".

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};

use crate::Moment;

/// The days that a text speaks of. Both ends are included; at least one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub since: Option<Moment>,
    /// The last day.
    pub until: Option<Moment>,
}

/// Longer texts are not questions, and not searched for dates.
const MAX_WORDS: usize = 60;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
];

impl Period {
    /// The first period that a text names, as of the day of `now` in UTC. `None` if it names none,
    /// or only one that could also be something else, such as a bare "May" or a bare number.
    pub fn in_text(text: &str, now: Moment) -> Option<Self> {
        let today = Timestamp::from_millisecond(now.start()).ok()?.to_zoned(TimeZone::UTC).date();
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| c.is_whitespace() || c == ',')
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .map(|word| word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word))
            .filter(|word| !word.is_empty())
            .collect();
        if words.len() > MAX_WORDS {
            return None;
        }
        (0..words.len()).find_map(|at| {
            let before = at.checked_sub(1).map(|at| words[at]);
            let days = Days::at_start(&words[at..], before, today)?;
            days.bounded(before).as_period()
        })
    }
}

/// The first and the last day of a period.
#[derive(Debug, Clone, Copy)]
struct Days {
    first: Option<Date>,
    last: Option<Date>,
}

impl Days {
    fn one(day: Date) -> Self {
        Self { first: Some(day), last: Some(day) }
    }

    fn week(day: Date) -> Option<Self> {
        let monday =
            day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).ok()?;
        Some(Self { first: Some(monday), last: Some(monday.checked_add(6.days()).ok()?) })
    }

    fn month(day: Date) -> Self {
        Self { first: Some(day.first_of_month()), last: Some(day.last_of_month()) }
    }

    fn year(day: Date) -> Self {
        Self { first: Some(day.first_of_year()), last: Some(day.last_of_year()) }
    }

    /// The period that these words begin with.
    fn at_start(words: &[&str], before: Option<&str>, today: Date) -> Option<Self> {
        let next = words.get(1).copied();
        let month_of = |word: &str| {
            let month = MONTHS.iter().position(|month| *month == word)?;
            i8::try_from(month + 1).ok()
        };
        match words[0] {
            "today" => Some(Self::one(today)),
            "yesterday" => Some(Self::one(today.yesterday().ok()?)),
            "last" | "past" | "previous" => Self::relative(next?, -1, today),
            "this" => Self::relative(next?, 0, today),
            word => {
                if let Some(month) = month_of(word) {
                    return Self::of_month(month, &words[1..], before, today);
                }
                if let Ok(day) = word.parse::<Date>() {
                    return Some(Self::one(day));
                }
                if let Some(ago) = Self::ago(words, today) {
                    return Some(ago);
                }
                // 3 May 2026, 3rd of May 2026
                let day = day_of_month(word)?;
                let rest = if next == Some("of") { &words[2..] } else { &words[1..] };
                let (month, year) = (month_of(rest.first()?)?, year_of(rest.get(1)?)?);
                Date::new(year, month, day).ok().map(Self::one)
            }
        }
    }

    /// May 2026, May 3 2026, or with a preposition the last May that has begun.
    fn of_month(month: i8, rest: &[&str], before: Option<&str>, today: Date) -> Option<Self> {
        if let Some(year) = rest.first().and_then(|word| year_of(word)) {
            return Date::new(year, month, 1).ok().map(Self::month);
        }
        if let Some(day) = rest.first().and_then(|word| day_of_month(word)) {
            let year = year_of(rest.get(1)?)?;
            return Date::new(year, month, day).ok().map(Self::one);
        }
        let is_time = matches!(before?, "in" | "during" | "since" | "until" | "before" | "after");
        let year = if month <= today.month() { today.year() } else { today.year() - 1 };
        is_time.then(|| Date::new(year, month, 1).ok().map(Self::month)).flatten()
    }

    /// The week, month, year or weekday that is this one, or the one before it.
    fn relative(unit: &str, step: i64, today: Date) -> Option<Self> {
        match unit {
            "week" => Self::week(today.checked_add(step.weeks()).ok()?),
            "month" => Some(Self::month(today.checked_add(step.months()).ok()?)),
            "year" => Some(Self::year(today.checked_add(step.years()).ok()?)),
            name if step < 0 => {
                if let Some(month) = MONTHS.iter().position(|month| *month == name) {
                    let month = i8::try_from(month + 1).ok()?;
                    let before = month < today.month();
                    let year = if before { today.year() } else { today.year() - 1 };
                    return Date::new(year, month, 1).ok().map(Self::month);
                }
                let back = today.nth_weekday(-1, weekday_of(name)?).ok()?;
                Some(Self::one(back))
            }
            _ => None,
        }
    }

    /// "two months ago": that day, week, month or year.
    fn ago(words: &[&str], today: Date) -> Option<Self> {
        let [number, unit, "ago", ..] = words else { return None };
        let number = match *number {
            "a" | "an" => 1,
            number => match NUMBERS.iter().position(|known| *known == number) {
                Some(number) => number as i64,
                None => number.parse().ok().filter(|number| (1..1_000).contains(number))?,
            },
        };
        let back = |span: Span| today.checked_sub(span).ok();
        match unit.strip_suffix('s').unwrap_or(unit) {
            "day" => back(number.days()).map(Self::one),
            "week" => back(number.weeks()).and_then(Self::week),
            "month" => back(number.months()).map(Self::month),
            "year" => back(number.years()).map(Self::year),
            _ => None,
        }
    }

    /// The days since, until, before or after these.
    fn bounded(self, preposition: Option<&str>) -> Self {
        let Self { first, last } = self;
        match preposition {
            Some("since" | "from") => Self { first, last: None },
            Some("until" | "till") => Self { first: None, last },
            Some("before") => {
                Self { first: None, last: first.and_then(|first| first.yesterday().ok()) }
            }
            Some("after") => Self { first: last.and_then(|last| last.tomorrow().ok()), last: None },
            _ => self,
        }
    }

    fn as_period(self) -> Option<Period> {
        let day = |date: Date| {
            let start = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
            Some(Moment::day_of(start))
        };
        let (since, until) = (self.first.and_then(day), self.last.and_then(day));
        (since.is_some() || until.is_some()).then_some(Period { since, until })
    }
}

fn weekday_of(name: &str) -> Option<Weekday> {
    Some(match name {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

fn year_of(word: &str) -> Option<i16> {
    let year = word.parse().ok()?;
    (word.len() == 4 && (1900..2100).contains(&year)).then_some(year)
}

/// 3, 3rd.
fn day_of_month(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end));
    digits.unwrap_or(word).parse().ok().filter(|day| (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days named in a text, asked on Wednesday 18 November 2026.
    fn days(text: &str) -> String {
        let now: Moment = "2026-11-18T15:00:00Z".parse().unwrap();
        let shown = |day: Option<Moment>| day.map_or("…".to_owned(), |day| day.to_string());
        match Period::in_text(text, now) {
            Some(Period { since, until }) => format!("{} {}", shown(since), shown(until)),
            None => String::new(),
        }
    }

    #[test]
    fn questions_name_periods() {
        for (question, expected) in [
            ("What did we decide in May 2026?", "2026-05-01 2026-05-31"),
            ("February 2024's outage", "2024-02-01 2024-02-29"),
            ("what broke on May 3, 2026", "2026-05-03 2026-05-03"),
            ("what broke on the 3rd of May 2026", "2026-05-03 2026-05-03"),
            ("notes of 2026-05-03.", "2026-05-03 2026-05-03"),
            ("what happened in May?", "2026-05-01 2026-05-31"),
            ("what happened in December?", "2025-12-01 2025-12-31"),
            ("last May", "2026-05-01 2026-05-31"),
            ("last November", "2025-11-01 2025-11-30"),
            ("What did Ann say yesterday?", "2026-11-17 2026-11-17"),
            ("today's plan", "2026-11-18 2026-11-18"),
            ("Where did we eat last week", "2026-11-09 2026-11-15"),
            ("this week", "2026-11-16 2026-11-22"),
            ("last Tuesday", "2026-11-17 2026-11-17"),
            ("last Wednesday", "2026-11-11 2026-11-11"),
            ("the trip two months ago", "2026-09-01 2026-09-30"),
            ("3 days ago", "2026-11-15 2026-11-15"),
            ("a year ago", "2025-01-01 2025-12-31"),
            ("a week ago", "2026-11-09 2026-11-15"),
            ("changes since May 2026", "2026-05-01 …"),
            ("all before May 2026", "… 2026-04-30"),
            ("all after yesterday", "2026-11-18 …"),
            ("until last month", "… 2026-10-31"),
        ] {
            assert_eq!(days(question), expected, "{question}");
        }
    }

    #[test]
    fn other_words_are_not_dates() {
        for question in [
            "May I ask who owns deploys?",
            "What is the last name of April?",
            "the last step of 2026 steps",
            "who won in 3 sets",
            "long ago",
            "99999999999 days ago",
            "February 31, 2026",
            "last",
            "ago",
            "",
            "why does March lose to June",
        ] {
            assert_eq!(days(question), "", "{question}");
        }
        assert_eq!(days(&"yesterday ".repeat(61)), "");
    }
}
