//! An independent statement of the rules: the model follows events and orders, and knows which
//! results are still expected.

mod orders;
mod state;

use crate::class::{DeathClass, KillReason};
use crate::settings::PoolSettings;
use crate::supervisor::{
    BreakerState, JobFailure, JobId, JobTerms, Measure, SupervisorEvent, Time, WorkerId,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ProcessPhase {
    Spawning { until: Time },
    Warming { until: Time },
    Idle { since: Time },
    Busy { job: JobId, until: Time, unwanted: bool },
    Stopping { until: Time },
    Killed { job: Option<JobId>, reason: KillReason, starting: bool },
}

#[derive(Debug)]
pub(super) struct Process {
    pub id: WorkerId,
    pub phase: ProcessPhase,
    pub jobs_done: u64,
}

#[derive(Debug)]
pub(super) struct Job {
    pub id: JobId,
    terms: JobTerms,
    /// When its wait times out; `None` while it runs.
    waits: Option<Time>,
    attempts: u32,
    strikes: u32,
    outside_kills: u32,
    suspect: bool,
    alone: bool,
    cancelled: bool,
}

/// What the supervisor must do for a job within the step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ExpectedAction {
    Answer,
    CancelOrder,
    Fail(JobFailure),
}

#[derive(Debug)]
pub(super) struct Model {
    pub settings: PoolSettings,
    pub now: Time,
    pub event: SupervisorEvent,
    pub workers: Vec<Process>,
    /// Jobs without an outcome, in order of submission.
    pub jobs: Vec<Job>,
    pub drain_until: Option<Time>,
    pub drained: bool,
    /// The last job that was answered.
    pub answered: Option<JobId>,
    /// The wake-up that the supervisor requested.
    pub wake: Option<Time>,
    seed: u64,
    steps: u64,
    started: WorkerId,
    last_activity: Time,
    activity_before: Time,
    /// Whether the submitted job found the queue full.
    full: bool,
    /// Whether a start was refused while no worker was serving.
    start_refused: bool,
    expected_action: Option<(JobId, ExpectedAction)>,
    expected_measure: Option<(WorkerId, Measure)>,
    /// The worker that just passed its job on.
    retiring: Option<WorkerId>,
    /// The job of the worker that just died.
    job_of_dead_worker: Option<JobId>,
    /// Whether this step's death counts for breaker and back-off.
    counts: bool,
    counted: Vec<Time>,
    breaker: BreakerState,
    not_before: Time,
}

impl Process {
    fn is_starting(&self) -> bool {
        matches!(self.phase, ProcessPhase::Spawning { .. } | ProcessPhase::Warming { .. })
    }

    fn is_idle(&self) -> bool {
        matches!(self.phase, ProcessPhase::Idle { .. })
    }

    fn is_busy(&self) -> bool {
        matches!(self.phase, ProcessPhase::Busy { .. })
    }

    fn is_live(&self) -> bool {
        !matches!(self.phase, ProcessPhase::Stopping { .. } | ProcessPhase::Killed { .. })
    }

    fn job(&self) -> Option<JobId> {
        match self.phase {
            ProcessPhase::Busy { job, .. } => Some(job),
            ProcessPhase::Killed { job, .. } => job,
            _ => None,
        }
    }

    fn until(&self) -> Option<Time> {
        match self.phase {
            ProcessPhase::Spawning { until }
            | ProcessPhase::Warming { until }
            | ProcessPhase::Busy { until, .. }
            | ProcessPhase::Stopping { until } => Some(until),
            ProcessPhase::Idle { .. } | ProcessPhase::Killed { .. } => None,
        }
    }
}

impl Model {
    pub(super) fn new(settings: PoolSettings, seed: u64) -> Self {
        Self {
            settings,
            now: Time::ZERO,
            event: SupervisorEvent::Tick,
            workers: Vec::new(),
            jobs: Vec::new(),
            drain_until: None,
            drained: false,
            answered: None,
            wake: None,
            seed,
            steps: 0,
            started: 0,
            last_activity: Time::ZERO,
            activity_before: Time::ZERO,
            full: false,
            start_refused: false,
            expected_action: None,
            expected_measure: None,
            retiring: None,
            job_of_dead_worker: None,
            counts: false,
            counted: Vec::new(),
            breaker: BreakerState::Closed,
            not_before: Time::ZERO,
        }
    }

    #[track_caller]
    pub(super) fn must(&self, holds: bool, rule: &str) {
        if !holds {
            let Self { seed, steps, now, event, .. } = self;
            panic!("seed {seed}, step {steps}, {now:?}, {event:?}: broken rule: {rule}\n{self:#?}");
        }
    }

    pub(super) fn phase(&self, worker: WorkerId) -> ProcessPhase {
        self.process(worker).phase
    }

    fn process(&self, id: WorkerId) -> &Process {
        let found = self.workers.iter().find(|worker| worker.id == id);
        self.must(found.is_some(), "orders go to workers that exist");
        found.unwrap()
    }

    fn set(&mut self, id: WorkerId, phase: ProcessPhase) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.id == id) {
            worker.phase = phase;
        }
    }

    fn job_at(&self, id: JobId) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    fn count(&self, what: impl Fn(&Process) -> bool) -> usize {
        self.workers.iter().filter(|worker| what(worker)).count()
    }

    fn slots(&self) -> usize {
        self.settings.workers.max(1)
    }

    fn waiting(&self) -> usize {
        self.jobs.iter().filter(|job| job.waits.is_some()).count()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.workers.iter().all(Process::is_idle)
    }

    /// Updates the model for an event that the supervisor is about to get.
    pub(super) fn note(&mut self, event: &SupervisorEvent) {
        self.steps += 1;
        self.event = event.clone();
        self.counts = false;
        self.start_refused = false;
        self.job_of_dead_worker = None;
        self.retiring = None;
        self.activity_before = self.last_activity;
        match *event {
            SupervisorEvent::Submit { job, terms } => {
                self.full = self.waiting() >= self.settings.queue_bound.max(1);
                self.last_activity = self.now;
                self.jobs.push(Job {
                    id: job,
                    terms,
                    waits: Some(self.now.saturating_add(terms.patience)),
                    attempts: 0,
                    strikes: 0,
                    outside_kills: 0,
                    suspect: false,
                    alone: false,
                    cancelled: false,
                });
            }
            SupervisorEvent::Cancel { job } => self.note_cancel(job),
            SupervisorEvent::Spawned { worker } => {
                if let ProcessPhase::Spawning { until } = self.phase(worker) {
                    self.set(worker, ProcessPhase::Warming { until });
                }
            }
            SupervisorEvent::Ready { worker } => {
                if self.process(worker).is_starting() {
                    self.set(worker, ProcessPhase::Idle { since: self.now });
                }
            }
            SupervisorEvent::Finished { worker } => self.note_finished(worker),
            SupervisorEvent::PassedOn { worker } => self.note_passed_on(worker),
            SupervisorEvent::Ended { worker, class, refused, .. } => {
                self.note_ended(worker, class);
                let serving = self.count(|worker| worker.is_idle() || worker.is_busy());
                self.start_refused = refused && serving == 0;
            }
            // Changes of settings are covered by the scenarios, not simulated here.
            SupervisorEvent::Tick | SupervisorEvent::Renew => {}
            SupervisorEvent::Drain { budget } => self.note_drain(self.now.saturating_add(budget)),
            SupervisorEvent::Kill => self.note_drain(self.now),
        }
    }

    fn note_drain(&mut self, until: Time) {
        self.drain_until = Some(self.drain_until.map_or(until, |before| before.min(until)));
    }

    fn note_cancel(&mut self, id: JobId) {
        let Some(at) = self.job_at(id) else { return };
        if self.jobs[at].waits.is_some() {
            self.jobs.remove(at);
        } else {
            self.jobs[at].cancelled = true;
            self.expected_action = Some((id, ExpectedAction::CancelOrder));
            let latest = self.now.saturating_add(self.settings.stop_grace);
            for worker in self.workers.iter_mut().filter(|worker| worker.job() == Some(id)) {
                if let ProcessPhase::Busy { until, unwanted, .. } = &mut worker.phase {
                    (*until, *unwanted) = (latest.min(*until), true);
                }
            }
        }
    }

    /// Takes the job off a worker and returns it.
    fn note_job_taken(&mut self, id: WorkerId) -> Option<JobId> {
        let now = self.now;
        let worker = self.workers.iter_mut().find(|worker| worker.id == id)?;
        let job = worker.job()?;
        match &mut worker.phase {
            ProcessPhase::Killed { job, .. } => *job = None,
            phase => {
                *phase = ProcessPhase::Idle { since: now };
                worker.jobs_done += 1;
            }
        }
        self.last_activity = now;
        Some(job)
    }

    fn note_passed_on(&mut self, id: WorkerId) {
        let Some(job_id) = self.note_job_taken(id) else { return };
        self.retiring = Some(id);
        let at = self.job_at(job_id).unwrap();
        let job = &mut self.jobs[at];
        job.attempts -= 1;
        job.outside_kills += 1;
        let retry = job.outside_kills <= self.settings.retry.outside_kills;
        if job.cancelled {
            self.jobs.remove(at);
        } else if retry && self.drain_until.is_none() {
            job.waits = Some(self.now.saturating_add(job.terms.patience));
        } else {
            let class = DeathClass::Killed;
            self.expected_action = Some((job_id, ExpectedAction::Fail(JobFailure::Died { class })));
        }
    }

    fn note_finished(&mut self, id: WorkerId) {
        let Some(job) = self.note_job_taken(id) else { return };
        let at = self.job_at(job).unwrap();
        if self.jobs[at].cancelled {
            self.jobs.remove(at);
        } else {
            self.expected_action = Some((job, ExpectedAction::Answer));
        }
    }

    fn note_ended(&mut self, id: WorkerId, class: Option<DeathClass>) {
        let at = self.workers.iter().position(|worker| worker.id == id).unwrap();
        let worker = self.workers.remove(at);
        let Some(job_id) = worker.job() else {
            self.counts = match class {
                Some(DeathClass::StartFailure) => true,
                Some(class) => class != DeathClass::Killed && worker.is_idle(),
                None => false,
            };
            self.expected_measure = class.map(|_| (id, Measure::Replaced));
            return;
        };
        self.job_of_dead_worker = Some(job_id);
        let at = self.job_at(job_id).unwrap();
        let job = &mut self.jobs[at];
        let Some(class) = class else {
            if job.cancelled {
                self.jobs.remove(at);
            } else {
                self.expected_action = Some((job_id, ExpectedAction::Fail(JobFailure::Draining)));
            }
            return;
        };
        let blamed = class != DeathClass::Killed;
        self.counts = blamed && job.strikes == 0 && !job.terms.bisecting;
        job.strikes += u32::from(blamed);
        job.outside_kills += u32::from(!blamed);
        let retry = match class {
            DeathClass::Killed => job.outside_kills <= self.settings.retry.outside_kills,
            DeathClass::Timeout => job.terms.idempotent && job.strikes < job.terms.strikes,
            _ => job.strikes < job.terms.strikes,
        };
        let measure = if job.cancelled {
            self.jobs.remove(at);
            Measure::Dropped
        } else if retry && self.drain_until.is_none() {
            job.suspect |= blamed;
            job.alone |= class == DeathClass::OutOfMemory;
            job.waits = Some(self.now.saturating_add(job.terms.patience));
            if job.alone { Measure::RetriedAlone } else { Measure::Retried }
        } else if blamed && job.terms.single && job.strikes >= 2 {
            self.expected_action =
                Some((job_id, ExpectedAction::Fail(JobFailure::Poisoned { class })));
            Measure::Quarantined
        } else {
            self.expected_action = Some((job_id, ExpectedAction::Fail(JobFailure::Died { class })));
            Measure::GaveUp
        };
        self.expected_measure = Some((id, measure));
    }
}
