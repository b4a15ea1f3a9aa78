//! Samples of durations.

use std::time::Duration;

/// Calls at the start of each round that are not measured, for either side: the rival's round has
/// filled the caches.
pub(crate) const WARM_UP_CALLS: usize = 10;

/// Durations of repeated runs of the same work.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// The value that `percent` of the samples do not exceed; `None` without samples.
    pub(crate) fn percentile(&self, percent: usize) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let hundred: Samples = (1..=100).rev().map(Duration::from_micros).collect();
        let at = |percent| hundred.percentile(percent);
        assert_eq!(at(50), Some(Duration::from_micros(50)));
        assert_eq!(at(99), Some(Duration::from_micros(99)));
        assert_eq!(at(100), Some(Duration::from_micros(100)));

        let one: Samples = [Duration::from_secs(1)].into_iter().collect();
        assert_eq!(one.percentile(50), Some(Duration::from_secs(1)));
        assert_eq!(Samples::default().percentile(50), None);
    }
}
