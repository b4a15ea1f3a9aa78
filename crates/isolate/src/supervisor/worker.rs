use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{JobId, Time};
use crate::class::{DeathClass, KillReason};

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// The process is being started.
    Spawning,
    /// The role is warming up.
    Warming,
    /// Ready for a job.
    Idle,
    /// Running a job.
    Busy,
    /// Told to stop, to be replaced or because it is not needed.
    Recycling,
    /// Told to stop because the pool is stopping.
    Draining,
    /// Killed, but not gone yet.
    Killing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum WorkerPhase {
    Spawning {
        until: Time,
    },
    Warming {
        until: Time,
    },
    Idle {
        since: Time,
    },
    /// `unwanted` means that the job was cancelled.
    Busy {
        job: JobId,
        since: Time,
        until: Time,
        unwanted: bool,
    },
    Recycling {
        until: Time,
    },
    Draining {
        until: Time,
    },
    Killing {
        job: Option<JobId>,
    },
}

#[derive(Debug)]
pub(super) struct Worker {
    pub state: WorkerPhase,
    pub jobs_done: u64,
    /// Whether it was started with settings that the pool has since replaced.
    pub outdated: bool,
    started: Time,
}

/// A worker, as shown outside of the supervisor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerView {
    pub state: WorkerState,
    pub age: Duration,
    pub jobs_done: u64,
    pub job: Option<JobId>,
    pub job_age: Option<Duration>,
}

impl Worker {
    pub(super) fn new(now: Time, until: Time) -> Self {
        Self { state: WorkerPhase::Spawning { until }, jobs_done: 0, outdated: false, started: now }
    }

    pub(super) fn spawned(&mut self) {
        if let WorkerPhase::Spawning { until } = self.state {
            self.state = WorkerPhase::Warming { until };
        }
    }

    /// Takes the finished job off the worker, which becomes idle unless it is being killed.
    pub(super) fn finish(&mut self, now: Time) -> Option<JobId> {
        match self.state {
            WorkerPhase::Busy { job, .. } => {
                self.jobs_done += 1;
                self.state = WorkerPhase::Idle { since: now };
                Some(job)
            }
            WorkerPhase::Killing { job: Some(job) } => {
                self.state = WorkerPhase::Killing { job: None };
                Some(job)
            }
            _ => None,
        }
    }

    /// Marks its job as cancelled: it must return by `latest`.
    pub(super) fn cancel(&mut self, latest: Time) {
        if let WorkerPhase::Busy { until, unwanted, .. } = &mut self.state {
            (*until, *unwanted) = (latest.min(*until), true);
        }
    }

    /// Marks it as killed; false if it already was.
    pub(super) fn kill(&mut self) -> bool {
        let job = self.job();
        let newly_killed = !matches!(self.state, WorkerPhase::Killing { .. });
        if newly_killed {
            self.state = WorkerPhase::Killing { job };
        }
        newly_killed
    }

    pub(super) fn job(&self) -> Option<JobId> {
        match self.state {
            WorkerPhase::Busy { job, .. } => Some(job),
            WorkerPhase::Killing { job } => job,
            _ => None,
        }
    }

    /// Whether its death, without a job, counts against the pool: it does before the worker was
    /// ready or while it was idle, but not while it was being stopped or killed.
    pub(super) fn failed_by_itself(&self, class: DeathClass) -> bool {
        class == DeathClass::StartFailure
            || (class != DeathClass::Killed && matches!(self.state, WorkerPhase::Idle { .. }))
    }

    /// Why it must be killed now; `None` if it need not be.
    pub(super) fn overdue(&self, now: Time, drain_over: bool) -> Option<KillReason> {
        match self.state {
            WorkerPhase::Killing { .. } => None,
            WorkerPhase::Busy { until, unwanted: true, .. } if until <= now => {
                Some(KillReason::Cancelled)
            }
            WorkerPhase::Spawning { until }
            | WorkerPhase::Warming { until }
            | WorkerPhase::Busy { until, .. }
                if until <= now =>
            {
                Some(KillReason::Deadline)
            }
            WorkerPhase::Recycling { until } | WorkerPhase::Draining { until } if until <= now => {
                Some(KillReason::StopGrace)
            }
            _ if drain_over => Some(KillReason::Shutdown),
            _ => None,
        }
    }

    /// When it is killed unless its state changes before.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.state {
            WorkerPhase::Spawning { until }
            | WorkerPhase::Warming { until }
            | WorkerPhase::Busy { until, .. }
            | WorkerPhase::Recycling { until }
            | WorkerPhase::Draining { until } => Some(until),
            WorkerPhase::Idle { .. } | WorkerPhase::Killing { .. } => None,
        }
    }

    pub(super) fn idle_since(&self) -> Option<Time> {
        match self.state {
            WorkerPhase::Idle { since } => Some(since),
            _ => None,
        }
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state, WorkerPhase::Spawning { .. } | WorkerPhase::Warming { .. })
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, WorkerPhase::Busy { .. })
    }

    /// Whether it started successfully and takes jobs.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.state, WorkerPhase::Idle { .. } | WorkerPhase::Busy { .. })
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_starting() || self.is_serving()
    }

    pub(super) fn view(&self, now: Time) -> WorkerView {
        let (state, job_since) = match self.state {
            WorkerPhase::Spawning { .. } => (WorkerState::Spawning, None),
            WorkerPhase::Warming { .. } => (WorkerState::Warming, None),
            WorkerPhase::Idle { .. } => (WorkerState::Idle, None),
            WorkerPhase::Busy { since, .. } => (WorkerState::Busy, Some(since)),
            WorkerPhase::Recycling { .. } => (WorkerState::Recycling, None),
            WorkerPhase::Draining { .. } => (WorkerState::Draining, None),
            WorkerPhase::Killing { .. } => (WorkerState::Killing, None),
        };
        WorkerView {
            state,
            age: now.saturating_sub(self.started),
            jobs_done: self.jobs_done,
            job: self.job(),
            job_age: job_since.map(|since| now.saturating_sub(since)),
        }
    }
}
