//! What was measured, and what was hoped for.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// In JSON a number: nanoseconds, calls in a second, bytes, or as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    Took(Duration),
    Rate(f64),
    Bytes(u64),
    Count(u64),
    /// Of one; more is better.
    Share(f64),
    /// This many times as much; less is better.
    Times(f64),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rival {
    /// There is none here.
    None,
    NotAvailable,
    Figure(Figure),
}

#[derive(Debug, Serialize)]
pub(crate) struct Goal {
    text: String,
    met: bool,
    /// Ours divided by the goal.
    share: f64,
}

impl Figure {
    pub(crate) fn seconds(seconds: f64) -> Self {
        Self::Took(Duration::from_secs_f64(seconds))
    }

    /// How many times better this is than the rival's.
    fn ratio(self, rival: Self) -> Option<f64> {
        let ratio = match (self, rival) {
            (Self::Took(ours), Self::Took(rival)) => rival.as_secs_f64() / ours.as_secs_f64(),
            (Self::Rate(ours), Self::Rate(rival)) => ours / rival,
            (Self::Bytes(ours), Self::Bytes(rival)) => rival as f64 / ours as f64,
            (Self::Times(ours), Self::Times(rival)) => rival / ours,
            _ => return None,
        };
        ratio.is_finite().then_some(ratio)
    }
}

impl Goal {
    pub(crate) fn at_most(ours: Duration, limit: Duration) -> Self {
        let share = ours.as_secs_f64() / limit.as_secs_f64();
        Self { text: format!("<= {}", Figure::Took(limit)), met: share <= 1.0, share }
    }

    /// `ours` and `limit` are in the same unit; `text` says what the limit is.
    pub(crate) fn no_more(ours: f64, limit: f64, text: &str) -> Self {
        Self { text: format!("<= {text}"), met: ours <= limit, share: ours / limit }
    }

    pub(crate) fn no_less(ours: f64, limit: f64, text: &str) -> Self {
        Self { text: format!(">= {text}"), met: ours >= limit, share: ours / limit }
    }

    /// None at all.
    pub(crate) fn zero(ours: u64) -> Self {
        Self { text: "0".to_owned(), met: ours == 0, share: ours as f64 }
    }

    pub(crate) fn named(self, text: &str) -> Self {
        Self { text: format!("<= {text}"), ..self }
    }

    /// What was hoped for, and what came of it.
    pub(crate) fn cells(goal: Option<&Self>) -> [String; 2] {
        match goal {
            None => Default::default(),
            Some(Self { text, met, share }) => {
                let word = if *met { "met" } else { "MISSED" };
                [text.clone(), format!("{word} ({share:.2} of it)")]
            }
        }
    }
}

impl From<Option<Figure>> for Rival {
    fn from(figure: Option<Figure>) -> Self {
        figure.map_or(Self::NotAvailable, Self::Figure)
    }
}

impl Rival {
    /// The figure and how many times better ours is.
    pub(crate) fn cells(&self, ours: Figure) -> [String; 2] {
        match self {
            Self::None => ["-".into(), String::new()],
            Self::NotAvailable => ["not available".into(), String::new()],
            Self::Figure(figure) => {
                let ratio = ours.ratio(*figure).map(|ratio| {
                    let digits = if ratio < 0.1 { 3 } else { 2 };
                    format!("{ratio:.digits$}")
                });
                [figure.to_string(), ratio.unwrap_or_default()]
            }
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Took(took) => {
                let us = took.as_secs_f64() * 1e6;
                match us {
                    ..100.0 => write!(f, "{us:.1} us"),
                    ..1000.0 => write!(f, "{us:.0} us"),
                    ..100_000.0 => write!(f, "{:.2} ms", us / 1e3),
                    ..10_000_000.0 => write!(f, "{:.0} ms", us / 1e3),
                    _ => write!(f, "{:.1} s", us / 1e6),
                }
            }
            Self::Rate(rate) => write!(f, "{rate:.0}/s"),
            Self::Bytes(bytes) => write!(f, "{:.1} MB", bytes as f64 / 1e6),
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{share:.4}"),
            Self::Times(times) => write!(f, "{times:.2}"),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Took(took) => took.as_nanos().serialize(serializer),
            Self::Bytes(count) | Self::Count(count) => count.serialize(serializer),
            Self::Rate(value) | Self::Share(value) | Self::Times(value) => {
                value.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_one_ours_is_better() {
        let cells = |ours: Figure, rival| Rival::Figure(rival).cells(ours)[1].clone();
        assert_eq!(cells(Figure::seconds(1.0), Figure::seconds(3.0)), "3.00");
        assert_eq!(cells(Figure::Rate(10.0), Figure::Rate(2.0)), "5.00");
        assert_eq!(cells(Figure::Bytes(100), Figure::Bytes(5)), "0.050");
        assert_eq!(cells(Figure::Share(1.0), Figure::Share(0.9)), "");
    }

    #[test]
    fn goals_say_by_how_much() {
        let cells = |goal: Goal| Goal::cells(Some(&goal)).join(" ");
        let limit = Duration::from_millis(50);
        assert_eq!(cells(Goal::at_most(limit * 2, limit)), "<= 50.00 ms MISSED (2.00 of it)");
        assert_eq!(cells(Goal::no_less(30.0, 10.0, "10 times")), ">= 10 times met (3.00 of it)");
        assert_eq!(cells(Goal::zero(0)), "0 met (0.00 of it)");
    }
}
