//! Handles the end of a worker: classification, crash report, metrics.

use std::sync::Arc;
use std::time::Instant;

use super::{PoolState, Shared, unix_ms};
use crate::class::{Circumstances, DeathClass, End, Phase, classify};
use crate::crash::{CrashReport, JobNote};
use crate::error::StartError;
use crate::metrics::Counter;
use crate::pool::Death;
use crate::role::Role;
use crate::snapshot::DeathSnapshot;
use crate::supervisor::{Measure, SupervisorEvent, WorkerId, WorkerState};

/// What an executor knows about its worker's end.
pub(in crate::pool) struct DeathRecord {
    /// `None` if the process could not be started.
    pub(in crate::pool) end: Option<End>,
    /// It had not read its job.
    pub(in crate::pool) undelivered: bool,
    pub(in crate::pool) circumstances: Circumstances,
    pub(in crate::pool) refusal: Option<StartError>,
    pub(in crate::pool) panic: Option<String>,
    pub(in crate::pool) violation: Option<String>,
    pub(in crate::pool) output: Vec<String>,
}

impl DeathRecord {
    /// For a worker without a process that could tell more.
    pub(in crate::pool) fn unknown(
        phase: Phase,
        reason: String,
        refusal: Option<StartError>,
    ) -> Self {
        Self {
            end: None,
            undelivered: false,
            circumstances: Circumstances {
                phase,
                panicked: false,
                violated: phase != Phase::Starting,
                killed: None,
                allocator_refused: false,
                oom_kill: false,
            },
            refusal,
            panic: None,
            violation: Some(reason),
            output: Vec::new(),
        }
    }

    /// A short description of the cause.
    fn summary(&self, class: DeathClass) -> String {
        let end = self.end.map(|end| end.to_string());
        let detail = self.panic.as_ref().or(self.violation.as_ref()).cloned().or(end);
        match detail {
            Some(detail) => format!("{class}, {detail}"),
            None => class.to_string(),
        }
    }
}

impl<R: Role> Shared<R> {
    /// Classifies the end of a worker and lets the supervisor decide.
    pub(in crate::pool) fn ended(self: &Arc<Self>, worker: WorkerId, record: DeathRecord) {
        let mut state = self.lock();
        let killed_outside = record.end == Some(End::Signaled(libc::SIGKILL))
            && record.circumstances.killed.is_none();
        let circumstances = Circumstances {
            oom_kill: killed_outside && state.oom_kills.happened_recently(),
            ..record.circumstances
        };
        let class = classify(record.end.unwrap_or(End::Unknown), &circumstances);
        if let Some(class) = class {
            self.note_death(&mut state, worker, class, &record);
        } else {
            let pid = state.workers.get(&worker).and_then(|entry| entry.pid);
            tracing::debug!(role = R::NAME, pid, "worker stopped");
        }
        let refused = record.refusal.is_some();
        if refused {
            state.start_error = record.refusal;
        }
        let undelivered = record.undelivered;
        self.step_locked(
            &mut state,
            SupervisorEvent::Ended { worker, class, refused, undelivered },
        );
        state.workers.remove(&worker);
        self.release(state);
    }

    /// Reports the panic of a worker's executor. That is not the worker's fault, unless
    /// something it sent caused the panic.
    pub(in crate::pool) fn executor_panicked(self: &Arc<Self>, worker: WorkerId) {
        let state = self.lock();
        let now = state.clock.convert(self.origin.elapsed());
        let view = state.supervisor.views(now).find(|(id, _)| *id == worker);
        let phase = match view.map(|(_, view)| view.state) {
            None => return,
            Some(WorkerState::Spawning | WorkerState::Warming) => Phase::Starting,
            Some(_) => Phase::Busy,
        };
        drop(state);
        self.ended(worker, DeathRecord::unknown(phase, "its executor panicked".into(), None));
    }

    fn note_death(
        &self,
        state: &mut PoolState<R>,
        worker: WorkerId,
        class: DeathClass,
        record: &DeathRecord,
    ) {
        let now = state.clock.convert(self.origin.elapsed());
        let view = state.supervisor.views(now).find(|(id, _)| *id == worker).map(|(_, view)| view);
        let Some(entry) = state.workers.get_mut(&worker) else {
            return;
        };
        let end = record.end.unwrap_or(End::Unknown);
        let job = view.and_then(|view| view.job).filter(|_| !record.undelivered);
        let job = job.and_then(|id| state.jobs.get_mut(&id));
        let note = job.map(|job| {
            let ran = job.sent.map(|at| at.elapsed()).unwrap_or_default();
            job.waiting_since = Instant::now();
            job.deaths.push(Death { class, end, pid: entry.pid.unwrap_or_default(), ran });
            JobNote {
                kind: job.kind.to_owned(),
                input_hash: job.parcel.digest(),
                attempt: job.attempt,
                ran_ms: ran.as_millis() as u64,
            }
        });
        let unix_ms = unix_ms();
        let summary = record.summary(class);
        self.hooks.metrics.add(Counter::Deaths, R::NAME, class.name(), 1);
        tracing::warn!(
            role = R::NAME,
            pid = entry.pid,
            class = class.name(),
            summary,
            "worker died"
        );
        state.last_death =
            Some(DeathSnapshot { class, end: summary.clone(), pid: entry.pid, unix_ms });
        entry.death = Some(CrashReport {
            unix_ms,
            class,
            end: record.end.map_or(summary, |end| end.to_string()),
            signal: if let End::Signaled(signal) = end { Some(signal) } else { None },
            exit_code: if let End::Exited(code) = end { Some(code) } else { None },
            role: R::NAME.to_owned(),
            pid: entry.pid,
            age_ms: view.map_or(0, |view| view.age.as_millis() as u64),
            jobs_done: view.map_or(0, |view| view.jobs_done),
            rss_bytes: entry.rss_bytes,
            job: note,
            panic: record.panic.clone(),
            violation: record.violation.clone(),
            output: record.output.clone(),
            action: Measure::Replaced,
        });
    }
}
