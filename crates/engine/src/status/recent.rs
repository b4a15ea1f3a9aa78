//! The outcomes of the last jobs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolate::{Counter, Gauge, Histogram, Metrics, Tally};
use isolith_types::counted;
use serde::{Deserialize, Serialize};

/// Number of jobs whose outcome is kept.
const KEPT_OUTCOMES: usize = 100;

/// Maximum number of failures among the last hundred jobs without a warning: 5 %.
const MAX_FAILURES: u64 = 5;

/// The outcome of jobs that a stopping front refuses.
const DRAINING: &str = "draining";

/// Whether an outcome of [`Counter::Jobs`] is a failure. That a caller cancelled a job, or that a
/// front is stopping, is none.
pub fn is_job_failure(outcome: &str) -> bool {
    !["answered", "cancelled", DRAINING].contains(&outcome)
}

/// A tally that also keeps the last outcomes.
pub(crate) struct Recent {
    tally: Arc<Tally>,
    /// Whether each of the last jobs failed.
    failed: Mutex<VecDeque<bool>>,
}

/// Counts of a front's last jobs, at most a hundred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentJobs {
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs that no worker answered.
    pub failed: u64,
}

impl RecentJobs {
    /// A warning if too many failed.
    pub fn warning(&self) -> Option<String> {
        (self.failed > MAX_FAILURES)
            .then(|| format!("{} of its last {} failed", self.failed, counted(self.jobs, "job")))
    }
}

impl Recent {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self { tally, failed: Mutex::new(VecDeque::with_capacity(KEPT_OUTCOMES)) }
    }

    pub(crate) fn jobs(&self) -> RecentJobs {
        let failed = self.failed();
        let count = failed.iter().filter(|failed| **failed).count();
        RecentJobs { jobs: failed.len() as u64, failed: count as u64 }
    }

    /// Number of worker deaths since the front started, by class.
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
        if counter != Counter::Jobs || label == DRAINING {
            return;
        }
        let mut failed = self.failed();
        for _ in 0..by.min(KEPT_OUTCOMES as u64) {
            if failed.len() == KEPT_OUTCOMES {
                failed.pop_front();
            }
            failed.push_back(is_job_failure(label));
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
        assert!(!is_job_failure("cancelled"));
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
