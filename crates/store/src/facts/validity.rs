//! When a fact is true, and how two facts with the same statement are combined.

use isolith_protocol::StoreError;
use isolith_types::{FactState, Moment};

/// The period in which a fact is true: half-open, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    /// Start as given; `None` if unknown.
    pub(crate) from: Option<Moment>,
    /// End as given; `None` if it has not ended.
    pub(crate) to: Option<Moment>,
    /// The first millisecond at which the fact is no longer true.
    pub(crate) until: Option<i64>,
}

/// How a new fact relates to an existing one with the same statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Both are the same fact, which now starts here.
    Same(Option<Moment>),
    /// Both are kept.
    Beside,
    /// They overlap but end at different times.
    Clash,
}

impl Validity {
    /// The same day for both means that day; the same instant, that instant.
    pub(crate) fn new(from: Option<Moment>, to: Option<Moment>) -> Result<Self, StoreError> {
        let until = match (from, to) {
            (Some(from), Some(to)) if from == to => Some(from.end()),
            (Some(from), Some(to)) if from.start() >= to.start() => {
                return Err(inverted(from, to));
            }
            (_, to) => to.map(Moment::start),
        };
        Ok(Self { from, to, until })
    }

    /// Returns this validity with an end. One that ends when it starts was true for a moment.
    pub(crate) fn ended(self, at: Moment) -> Result<Self, StoreError> {
        let until = match self.from {
            Some(from) if from.start() > at.start() => return Err(inverted(from, at)),
            Some(from) => at.start().max(from.start().saturating_add(1)),
            None => at.start(),
        };
        Ok(Self { to: Some(at), until: Some(until), ..self })
    }

    /// Whether it ends after `at`, or never.
    pub(crate) fn outlasts(self, at: i64) -> bool {
        self.until.is_none_or(|until| until > at)
    }

    /// Whether it has started by `at`, as far as known.
    pub(crate) fn has_begun(self, at: i64) -> bool {
        self.from.is_none_or(|from| from.start() <= at)
    }

    /// Whether it includes this millisecond.
    pub(crate) fn is_true(self, at: i64) -> bool {
        self.has_begun(at) && self.outlasts(at)
    }

    /// Whether a writer could have created it.
    pub(crate) fn makes_sense(self) -> bool {
        let made = Self::new(self.from, self.to) == Ok(self);
        let ended = || Some(Self { to: None, until: None, ..self }.ended(self.to?) == Ok(self));
        made || ended().unwrap_or(false)
    }

    /// How this relates to the existing `there`, which was recorded at `recorded_at`.
    pub(crate) fn fit(self, there: Self, recorded_at: i64, now: i64) -> Fit {
        let undated = self.from.is_none() && self.to.is_none();
        if undated && there.is_true(now) {
            return Fit::Same(there.from);
        }
        let both_open = self.until.is_none() && there.until.is_none();
        if both_open {
            // A fact without dates is true now.
            return if undated { Fit::Clash } else { Fit::Same(earlier(self.from, there.from)) };
        }
        let is_vague = self.from.is_none() || there.from.is_none();
        let begin_together = self.start() == there.start();
        if self.until == there.until && (begin_together || is_vague) {
            return Fit::Same(there.from.or(self.from));
        }
        if self.overlaps(there, recorded_at, now) { Fit::Clash } else { Fit::Beside }
    }

    /// Whether both are certainly true at some time; `there` was recorded at `recorded_at`.
    pub(crate) fn overlaps(self, there: Self, recorded_at: i64, now: i64) -> bool {
        self.outlasts(there.certain_from(recorded_at)) && there.outlasts(self.certain_from(now))
    }

    /// Its state at any time from `start` until just before `end`.
    pub(crate) fn state(self, start: i64, end: i64) -> FactState {
        match self.from {
            Some(from) if from.start() >= end => FactState::Future,
            _ if self.outlasts(start) => FactState::Current,
            _ => FactState::Past,
        }
    }

    fn start(self) -> Option<i64> {
        self.from.map(Moment::start)
    }

    /// From when it is certainly true. If the start is unknown, that is when it was recorded,
    /// or just before its end.
    pub(crate) fn certain_from(self, recorded_at: i64) -> i64 {
        let before_end = self.until.map_or(i64::MAX, |until| until.saturating_sub(1));
        self.start().unwrap_or(recorded_at.min(before_end))
    }
}

impl std::fmt::Display for Validity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.from, self.to) {
            (None, None) => f.write_str("without dates"),
            (Some(from), None) => write!(f, "from {from} on"),
            (None, Some(to)) => write!(f, "until {to}"),
            (Some(from), Some(to)) => write!(f, "from {from} to {to}"),
        }
    }
}

fn earlier(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.start() < other.start() { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn inverted(from: Moment, to: Moment) -> StoreError {
    let mut reason = format!("a fact that is true from {from} cannot end at {to}");
    if from.is_day() != to.is_day() {
        reason.push_str(" (a day begins at 00:00 UTC; give both as days or both as instants)");
    }
    StoreError::Invalid(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-06-15T12:00:00Z";

    fn moment(text: &str) -> Option<Moment> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    fn at(text: &str) -> i64 {
        moment(text).unwrap().start()
    }

    /// Parses `from/to`, either of which may be empty.
    fn validity(text: &str) -> Result<Validity, StoreError> {
        let (from, to) = text.split_once('/').unwrap();
        Validity::new(moment(from), moment(to))
    }

    #[test]
    fn the_end_is_exclusive() {
        for (given, last, not) in [
            ("2024-01-01/2024-03-01", "2024-02-29T23:59:59.999Z", "2024-03-01T00:00:00Z"),
            ("2024-01-01/2024-01-01", "2024-01-01T23:59:59.999Z", "2024-01-02T00:00:00Z"),
            ("/2024-01-01", "2023-12-31T23:59:59.999Z", "2024-01-01T00:00:00Z"),
            (
                "2024-01-01T09:00:00Z/2024-01-01T09:00:00Z",
                "2024-01-01T09:00:00Z",
                "2024-01-01T09:00:00.001Z",
            ),
            (
                "2024-01-01/2024-01-01T00:00:00.001Z",
                "2024-01-01T00:00:00Z",
                "2024-01-01T00:00:00.001Z",
            ),
        ] {
            let it = validity(given).unwrap();
            assert_eq!((it.is_true(at(last)), it.is_true(at(not))), (true, false), "{given}");
            assert!(it.makes_sense(), "{given}");
        }
        for given in [
            "2024-01-02/2024-01-01",
            "2024-01-01T09:00:00Z/2024-01-01T08:59:59Z",
            "2024-01-01T09:00:00Z/2024-01-01",
            "2024-01-01/2024-01-01T00:00:00Z",
        ] {
            assert!(validity(given).is_err(), "{given}");
        }
    }

    #[test]
    fn a_fact_that_ends_when_it_starts_was_true_for_a_moment() {
        let day = validity("2024-01-01/").unwrap().ended(moment("2024-01-01").unwrap()).unwrap();
        assert!(day.is_true(at("2024-01-01")) && !day.is_true(at("2024-01-01") + 1));
        assert!(day.makes_sense());
        assert_ne!(day, validity("2024-01-01/2024-01-01").unwrap());
        let early = moment("2023-12-31").unwrap();
        assert!(validity("2024-01-01/").unwrap().ended(early).is_err());
        let any = validity("/").unwrap().ended(early).unwrap();
        assert_eq!((any.is_true(i64::MIN), any.outlasts(early.start())), (true, false));
        let odd = Validity { until: Some(7), ..any };
        assert!(!odd.makes_sense());
    }

    #[test]
    fn equal_statements_merge_coexist_or_clash() {
        let recorded = at("2026-01-01");
        let same = |from: &str| Fit::Same(moment(from));
        for (new, there, expected) in [
            // Both open: the earlier start is used.
            ("/", "/", same("")),
            ("/", "2024-01-01/", same("2024-01-01")),
            ("2024-01-01/", "/", same("2024-01-01")),
            ("2023-01-01/", "2024-01-01/", same("2023-01-01")),
            ("2025-01-01/", "2024-01-01/", same("2024-01-01")),
            // Without dates: true now, so it matches one that will end.
            ("/", "2024-01-01/2030-01-01", same("2024-01-01")),
            ("/", "/2030-01-01", same("")),
            ("/", "2030-01-01/", Fit::Clash),
            ("2025-01-01/", "2030-01-01/", same("2025-01-01")),
            ("/", "2024-01-01/2025-01-01", Fit::Beside),
            // Both closed.
            ("2020-01-01/2021-01-01", "2020-01-01/2021-01-01", same("2020-01-01")),
            ("2020-01-01/2021-01-01", "/2021-01-01", same("2020-01-01")),
            ("/2021-01-01", "2020-01-01/2021-01-01", same("2020-01-01")),
            ("2020-01-01/2021-01-01", "2021-01-01/2022-01-01", Fit::Beside),
            ("2021-01-01/2022-01-01", "2020-01-01/2021-01-01", Fit::Beside),
            ("2020-01-01/2021-01-01", "2020-06-01/2021-01-01", Fit::Clash),
            ("2020-01-01/2021-01-01", "2020-12-31/2022-01-01", Fit::Clash),
            ("/2021-01-01", "2020-01-01/2022-01-01", Fit::Clash),
            // One open, one that ended before it.
            ("2020-01-01/2021-01-01", "2024-01-01/", Fit::Beside),
            ("2020-01-01/2024-01-01", "2024-01-01/", Fit::Beside),
            ("2020-01-01/2021-01-01", "/", Fit::Beside),
            ("2020-01-01/2026-01-02", "/", Fit::Clash),
            ("2020-01-01/2025-01-01", "2024-01-01/", Fit::Clash),
            ("2024-01-01/2025-01-01", "2024-01-01/", Fit::Clash),
            ("2024-01-01/", "2020-01-01/2025-01-01", Fit::Clash),
            ("2025-01-01/", "2020-01-01/2025-01-01", Fit::Beside),
        ] {
            let (new, there) = (validity(new).unwrap(), validity(there).unwrap());
            let fit = new.fit(there, recorded, at(NOW));
            assert_eq!(fit, expected, "{new}, there is one {there}");
        }
    }
}
