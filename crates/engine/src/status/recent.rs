//! What became of the last jobs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolate::{Counter, Gauge, Histogram, Metrics, Tally};
use serde::{Deserialize, Serialize};

/// Jobs that are remembered.
const REMEMBERED: usize = 100;

/// More failures than this among the last hundred jobs are worth a warning: 5 %.
const FAILURES_TO_TOLERATE: u64 = 5;

/// Counts as a tally does, and remembers the last outcomes.
pub(crate) struct Recent {
    tally: Arc<Tally>,
    /// Whether each of the last jobs failed.
    failed: Mutex<VecDeque<bool>>,
}

/// The last jobs of a front, a hundred at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentJobs {
    /// How many there were.
    pub jobs: u64,
    /// How many of them no worker answered.
    pub failed: u64,
}

impl RecentJobs {
    /// What to warn of, if too many failed.
    pub fn warning(&self) -> Option<String> {
        (self.failed > FAILURES_TO_TOLERATE)
            .then(|| format!("{} of its last {} jobs failed", self.failed, self.jobs))
    }
}

impl Recent {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self { tally, failed: Mutex::new(VecDeque::with_capacity(REMEMBERED)) }
    }

    pub(crate) fn jobs(&self) -> RecentJobs {
        let failed = self.failed();
        let count = failed.iter().filter(|failed| **failed).count();
        RecentJobs { jobs: failed.len() as u64, failed: count as u64 }
    }

    /// How many workers have died since the front began, by class.
    pub(crate) fn deaths(&self) -> BTreeMap<String, u64> {
        let mut deaths = BTreeMap::new();
        for (counter, _, class, count) in self.tally.counters() {
            if counter == Counter::Deaths {
                *deaths.entry(class.to_owned()).or_default() += count;
            }
        }
        deaths
    }

    fn failed(&self) -> MutexGuard<'_, VecDeque<bool>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics for Recent {
    fn add(&self, counter: Counter, role: &'static str, label: &'static str, by: u64) {
        self.tally.add(counter, role, label, by);
        // A front that is stopping refuses jobs; nothing is wrong with them.
        if counter != Counter::Jobs || label == "draining" {
            return;
        }
        let mut failed = self.failed();
        for _ in 0..by.min(REMEMBERED as u64) {
            if failed.len() == REMEMBERED {
                failed.pop_front();
            }
            failed.push_back(label != "answered");
        }
    }

    fn observe(&self, histogram: Histogram, role: &'static str, value: f64) {
        self.tally.observe(histogram, role, value);
    }

    fn set(&self, gauge: Gauge, role: &'static str, value: f64) {
        self.tally.set(gauge, role, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_hundred_jobs_count() {
        let tally = Arc::new(Tally::default());
        let recent = Recent::new(Arc::clone(&tally));
        recent.add(Counter::Jobs, "parse", "worker_died", 6);
        recent.add(Counter::Jobs, "parse", "draining", 50);
        recent.add(Counter::Deaths, "parse", "crash", 12);
        assert_eq!(recent.jobs(), RecentJobs { jobs: 6, failed: 6 });
        assert!(recent.jobs().warning().is_some());
        for _ in 0..95 {
            recent.add(Counter::Jobs, "parse", "answered", 1);
        }
        assert_eq!(recent.jobs(), RecentJobs { jobs: 100, failed: 5 });
        assert!(recent.jobs().warning().is_none());
        assert_eq!(recent.deaths(), BTreeMap::from([("crash".to_owned(), 12)]));
        assert_eq!(tally.count(Counter::Jobs, "parse", Some("answered")), 95);
    }
}
