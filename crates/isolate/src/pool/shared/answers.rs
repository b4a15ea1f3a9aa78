//! Sends outcomes to callers and quarantines jobs.

use super::{FinishedJob, Outcome, PoolState, Shared, unix_ms};
use crate::class::DeathClass;
use crate::error::CallError;
use crate::metrics::{Counter, Gauge, Histogram};
use crate::pool::Answer;
use crate::quarantine::Poison;
use crate::role::Role;
use crate::supervisor::{JobFailure, JobId};
use crate::wire::Parcel;

impl<R: Role> Shared<R> {
    pub(super) fn answer(&self, state: &mut PoolState<R>, job: JobId) {
        let Some(entry) = state.jobs.remove(&job) else {
            return;
        };
        let Some((worker, finish)) = entry.reply else {
            return;
        };
        let sent = entry.sent.unwrap_or(entry.waiting_since);
        let outcome = match finish {
            FinishedJob::Reply(reply, ran) => {
                let queued = sent.duration_since(entry.waiting_since);
                let overhead = sent.elapsed().saturating_sub(ran);
                let metrics = &self.hooks.metrics;
                metrics.observe(Histogram::QueueSeconds, R::NAME, queued.as_secs_f64());
                metrics.observe(Histogram::RunSeconds, R::NAME, ran.as_secs_f64());
                metrics.observe(Histogram::OverheadSeconds, R::NAME, overhead.as_secs_f64());
                let worker_pid =
                    state.workers.get(&worker).and_then(|entry| entry.pid).unwrap_or_default();
                Ok(Answer { reply, worker_pid, deaths: entry.deaths, queued, ran, overhead })
            }
            FinishedJob::Unanswerable(reason) => Err(CallError::Unanswerable(reason)),
        };
        self.count_job(&outcome);
        // The caller may be gone by now.
        let _ = entry.answer.send(outcome);
    }

    pub(super) fn fail(&self, state: &mut PoolState<R>, job: JobId, why: JobFailure) {
        let Some(entry) = state.jobs.remove(&job) else {
            return;
        };
        let role = R::NAME;
        let error = match why {
            JobFailure::QueueFull => {
                CallError::QueueFull { role, waiting: state.supervisor.waiting() }
            }
            JobFailure::QueueTimeout => {
                let patience = entry.options.patience.unwrap_or(self.settings.queue_patience);
                CallError::QueueTimeout { role, patience }
            }
            JobFailure::BreakerOpen { retry_after } => {
                let last = state.last_death.as_ref().map(|death| death.end.clone());
                CallError::BreakerOpen { role, last: last.unwrap_or_default(), retry_after }
            }
            JobFailure::Draining => CallError::Draining { role },
            JobFailure::StartRefused => match state.start_error.clone() {
                Some(error) => CallError::StartFailed { role, error },
                None => CallError::Draining { role },
            },
            JobFailure::Died { class } => CallError::Died { role, class, deaths: entry.deaths },
            JobFailure::Poisoned { class } => {
                let input_hash = entry.parcel.digest();
                self.quarantine(entry.kind, class, &input_hash);
                CallError::Poisoned { role, class, input_hash, deaths: entry.deaths }
            }
        };
        let outcome = Err(error);
        self.count_job(&outcome);
        let _ = entry.answer.send(outcome);
    }

    fn count_job(&self, outcome: &Outcome<R>) {
        let label = outcome.as_ref().map_or_else(CallError::code, |_| "answered");
        self.hooks.metrics.add(Counter::Jobs, R::NAME, label, 1);
    }

    fn quarantine(&self, kind: &str, class: DeathClass, input_hash: &str) {
        tracing::warn!(role = R::NAME, kind, input_hash, "job quarantined");
        self.hooks.quarantine.add(Poison {
            role: R::NAME.to_owned(),
            input_hash: input_hash.to_owned(),
            kind: kind.to_owned(),
            class,
            build: self.build.clone(),
            unix_ms: unix_ms(),
        });
        let size = self.hooks.quarantine.len();
        self.hooks.metrics.set(Gauge::Quarantine, R::NAME, size as f64);
    }

    /// The quarantine's entry for this input, if it still applies.
    pub(in crate::pool) fn poison(&self, parcel: &Parcel) -> Option<Poison> {
        if self.hooks.quarantine.is_empty() {
            return None;
        }
        let poison = self.hooks.quarantine.find(R::NAME, &parcel.digest())?;
        poison.holds(&self.build, unix_ms(), self.settings.quarantine_for).then_some(poison)
    }
}
