use std::time::Duration;

use super::{Time, WorkerId};
use crate::class::DeathClass;
use crate::settings::RetryPolicy;

/// The conditions under which a job runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JobTerms {
    /// How long one attempt may run.
    pub deadline: Duration,
    /// How long it may wait for a worker.
    pub patience: Duration,
    /// Whether it may be retried even though it may already have taken effect.
    pub idempotent: bool,
    /// How many workers it may kill before it is given up.
    pub strikes: u32,
    /// Whether it is a single input that can be blamed, not a batch.
    pub single: bool,
    /// Whether it is run to find the culprit in a batch: its deaths are expected and do not
    /// count against the pool.
    pub bisecting: bool,
}

/// Why a job failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum JobFailure {
    QueueFull,
    QueueTimeout,
    BreakerOpen {
        retry_after: Duration,
    },
    Draining,
    StartRefused,
    /// Its worker died, and it may not be retried, or not again.
    Died {
        class: DeathClass,
    },
    /// It killed two workers by itself.
    Poisoned {
        class: DeathClass,
    },
}

#[derive(Debug)]
pub(super) struct Job {
    pub terms: JobTerms,
    /// The worker that is running it.
    pub worker: Option<WorkerId>,
    pub waits_until: Option<Time>,
    pub attempts: u32,
    /// How many workers it killed.
    pub strikes: u32,
    /// How often its worker was killed from outside.
    pub outside_kills: u32,
    /// It killed a worker, so the next one must be fresh.
    pub suspect: bool,
    /// It ran out of memory, so nothing else may run beside it.
    pub alone: bool,
    pub cancelled: bool,
}

impl Job {
    pub(super) fn new(terms: JobTerms) -> Self {
        Self {
            terms,
            worker: None,
            waits_until: None,
            attempts: 0,
            strikes: 0,
            outside_kills: 0,
            suspect: false,
            alone: false,
            cancelled: false,
        }
    }

    pub(super) fn count(&mut self, class: DeathClass) {
        if class.blames_job() {
            self.strikes += 1;
        } else {
            self.outside_kills += 1;
        }
    }

    pub(super) fn may_retry(&self, class: DeathClass, policy: &RetryPolicy) -> bool {
        match class {
            DeathClass::Killed => self.outside_kills <= policy.outside_kills,
            DeathClass::Timeout if !self.terms.idempotent => false,
            _ => self.strikes < self.terms.strikes,
        }
    }

    /// Whether the death of its last worker, of this class, proves that it is poison.
    pub(super) fn is_poison(&self, class: DeathClass) -> bool {
        class.blames_job() && self.terms.single && self.strikes >= 2
    }
}
