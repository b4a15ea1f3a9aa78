//! Measured figures, rivals' figures and goals.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A measured value. In JSON a number: nanoseconds, calls per second, bytes, or the plain value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    Time(Duration),
    Rate(f64),
    Bytes(u64),
    Count(u64),
    /// From 0 to 1; higher is better.
    Share(f64),
    /// A factor; lower is better.
    Times(f64),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rival {
    /// There is no rival for this row.
    None,
    NotAvailable,
    Figure(Figure),
}

#[derive(Debug, Serialize)]
pub(crate) struct Goal {
    text: String,
    met: bool,
    /// Our figure divided by the goal.
    share: f64,
}

impl Figure {
    pub(crate) fn seconds(seconds: f64) -> Self {
        Self::Time(Duration::from_secs_f64(seconds))
    }

    /// How many times better this figure is than the rival's.
    fn ratio(self, rival: Self) -> Option<f64> {
        let ratio = match (self, rival) {
            (Self::Time(ours), Self::Time(rival)) => rival.as_secs_f64() / ours.as_secs_f64(),
            (Self::Rate(ours), Self::Rate(rival)) => ours / rival,
            (Self::Bytes(ours), Self::Bytes(rival)) => rival as f64 / ours as f64,
            (Self::Times(ours), Self::Times(rival)) => rival / ours,
            _ => return None,
        };
        ratio.is_finite().then_some(ratio)
    }
}

impl Goal {
    pub(crate) fn within(ours: Duration, limit: Duration) -> Self {
        let share = ours.as_secs_f64() / limit.as_secs_f64();
        Self { text: format!("<= {}", Figure::Time(limit)), met: share <= 1.0, share }
    }

    /// `ours` and `limit` have the same unit; `text` describes the limit.
    pub(crate) fn at_most(ours: f64, limit: f64, text: &str) -> Self {
        Self { text: format!("<= {text}"), met: ours <= limit, share: ours / limit }
    }

    pub(crate) fn at_least(ours: f64, limit: f64, text: &str) -> Self {
        Self { text: format!(">= {text}"), met: ours >= limit, share: ours / limit }
    }

    pub(crate) fn zero(ours: u64) -> Self {
        Self { text: "0".to_owned(), met: ours == 0, share: ours as f64 }
    }

    pub(crate) fn named(self, text: &str) -> Self {
        Self { text: format!("<= {text}"), ..self }
    }

    /// The goal and the verdict.
    pub(crate) fn cells(goal: Option<&Self>) -> [String; 2] {
        match goal {
            None => Default::default(),
            Some(Self { text, met, share }) => {
                let word = if *met { "met" } else { "MISSED" };
                [text.clone(), format!("{word} ({share:.2} of goal)")]
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
    /// The rival's figure, and the ratio to ours.
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
            Self::Time(took) => {
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
            Self::Time(took) => took.as_nanos().serialize(serializer),
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
    fn a_ratio_above_one_means_ours_is_better() {
        let cells = |ours: Figure, rival| Rival::Figure(rival).cells(ours)[1].clone();
        assert_eq!(cells(Figure::seconds(1.0), Figure::seconds(3.0)), "3.00");
        assert_eq!(cells(Figure::Rate(10.0), Figure::Rate(2.0)), "5.00");
        assert_eq!(cells(Figure::Bytes(100), Figure::Bytes(5)), "0.050");
        assert_eq!(cells(Figure::Share(1.0), Figure::Share(0.9)), "");
    }

    #[test]
    fn verdicts_show_the_share_of_the_goal() {
        let cells = |goal: Goal| Goal::cells(Some(&goal)).join(" ");
        let limit = Duration::from_millis(50);
        assert_eq!(cells(Goal::within(limit * 2, limit)), "<= 50.00 ms MISSED (2.00 of goal)");
        assert_eq!(cells(Goal::at_least(30.0, 10.0, "10 times")), ">= 10 times met (3.00 of goal)");
        assert_eq!(cells(Goal::zero(0)), "0 met (0.00 of goal)");
    }
}
