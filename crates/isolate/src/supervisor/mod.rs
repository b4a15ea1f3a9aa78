//! The supervisor's decisions, without processes, clocks or locks.
//!
//! A [`SupervisorEvent`] and the current time go in, [`SupervisorAction`]s come out. The pool
//! around it does the input and output. So a test can run a hundred thousand schedules through
//! it, with simulated processes.

mod backoff;
mod breaker;
mod clock;
mod job;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod simulation;
mod staffing;
mod worker;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::{DeathClass, KillReason};
use crate::settings::PoolSettings;
use backoff::Backoff;
use breaker::Breaker;
pub use breaker::BreakerState;
pub(crate) use clock::AwakeClock;
use job::Job;
pub(crate) use job::{JobFailure, JobTerms};
pub use worker::WorkerState;
pub(crate) use worker::WorkerView;
use worker::{Worker, WorkerPhase};

/// Time since the pool was created.
pub(crate) type Time = Duration;

/// Workers and jobs are numbered in order of creation.
pub(crate) type WorkerId = u64;
pub(crate) type JobId = u64;

/// Something that happened, for the supervisor to react to.
#[derive(Debug, Clone)]
pub(crate) enum SupervisorEvent {
    Submit {
        job: JobId,
        terms: JobTerms,
    },
    /// The caller dropped the call.
    Cancel {
        job: JobId,
    },
    /// The process exists and is warming up.
    Spawned {
        worker: WorkerId,
    },
    Ready {
        worker: WorkerId,
    },
    /// The worker answered its job.
    Finished {
        worker: WorkerId,
    },
    /// The pool's settings for workers changed.
    Renew,
    /// The worker cannot do its job, but another one can.
    PassedOn {
        worker: WorkerId,
    },
    /// The process is gone, or could not be started. `class` is `None` for an orderly end;
    /// `refused` means that another start would fail in the same way; `undelivered` means that
    /// the worker had not read its job.
    Ended {
        worker: WorkerId,
        class: Option<DeathClass>,
        refused: bool,
        undelivered: bool,
    },
    /// Time has passed.
    Tick,
    /// Accept no more jobs, let running ones finish within the budget, then stop.
    Drain {
        budget: Duration,
    },
    /// Stop now.
    Kill,
}

/// Something for the pool to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SupervisorAction {
    Start {
        worker: WorkerId,
    },
    Run {
        worker: WorkerId,
        job: JobId,
        attempt: u32,
        budget: Duration,
    },
    /// Tell the worker that its job was cancelled.
    Cancel {
        worker: WorkerId,
        job: JobId,
    },
    Stop {
        worker: WorkerId,
    },
    Kill {
        worker: WorkerId,
        reason: KillReason,
    },
    /// Send the job's reply to its caller.
    Answer {
        job: JobId,
    },
    Fail {
        job: JobId,
        why: JobFailure,
    },
    /// How the supervisor responded to the death of a worker, for the report.
    Taken {
        worker: WorkerId,
        measure: Measure,
    },
    /// All workers are gone after a drain or a kill.
    Drained,
}

/// What the supervisor did about a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The job was given to another worker.
    Retried,
    /// The job will be retried with nothing else running.
    RetriedAlone,
    /// The job was given up and quarantined.
    Quarantined,
    /// The job was given up.
    GaveUp,
    /// The job had been cancelled.
    Dropped,
    /// There was no job; the worker is replaced when needed.
    Replaced,
}

/// The state of one pool.
#[derive(Debug)]
pub(crate) struct Supervisor {
    settings: PoolSettings,
    random: fastrand::Rng,
    workers: BTreeMap<WorkerId, Worker>,
    jobs: HashMap<JobId, Job>,
    /// Jobs that wait for a worker, in the order in which they will run.
    queue: VecDeque<JobId>,
    /// How many jobs in the queue need a fresh worker.
    suspects_waiting: usize,
    /// When each job in the queue times out.
    patience: BTreeSet<(Time, JobId)>,
    breaker: Breaker,
    backoff: Backoff,
    draining: Option<Draining>,
    started: u64,
    restarts: u64,
    last_activity: Time,
}

#[derive(Debug, Clone, Copy)]
struct Draining {
    until: Time,
    reported: bool,
}

impl Supervisor {
    pub(crate) fn new(settings: PoolSettings) -> Self {
        Self {
            random: fastrand::Rng::with_seed(settings.seed),
            workers: BTreeMap::new(),
            jobs: HashMap::new(),
            queue: VecDeque::new(),
            suspects_waiting: 0,
            patience: BTreeSet::new(),
            breaker: Breaker::new(settings.breaker.clone()),
            backoff: Backoff::new(settings.restart.clone()),
            draining: None,
            started: 0,
            restarts: 0,
            last_activity: Time::ZERO,
            settings,
        }
    }

    /// Handles `event` and appends what the pool must do to `actions`.
    pub(crate) fn step(
        &mut self,
        now: Time,
        event: SupervisorEvent,
        actions: &mut Vec<SupervisorAction>,
    ) {
        match event {
            SupervisorEvent::Submit { job, terms } => self.submit(now, job, terms, actions),
            SupervisorEvent::Cancel { job } => self.cancel(now, job, actions),
            SupervisorEvent::Spawned { worker } => self.spawned(worker),
            SupervisorEvent::Ready { worker } => self.ready(now, worker, actions),
            SupervisorEvent::Finished { worker } => self.finished(now, worker, actions),
            SupervisorEvent::PassedOn { worker } => self.passed_on(now, worker, actions),
            SupervisorEvent::Ended { worker, class, refused, undelivered } => {
                self.ended(now, worker, class, refused, undelivered, actions);
            }
            SupervisorEvent::Tick => {}
            SupervisorEvent::Renew => self.renew(now, actions),
            SupervisorEvent::Drain { budget } => self.drain(now, budget, actions),
            SupervisorEvent::Kill => self.kill_all(now, actions),
        }
        // Dispatch before expiring, so that a job without patience still gets an idle worker;
        // then again, as a kill may have made room.
        self.dispatch(now, actions);
        if self.expire(now, actions) {
            self.dispatch(now, actions);
        }
        self.staff(now, actions);
        self.report_drained(actions);
    }

    fn submit(
        &mut self,
        now: Time,
        id: JobId,
        terms: JobTerms,
        actions: &mut Vec<SupervisorAction>,
    ) {
        let refusal = if self.draining.is_some() {
            Some(JobFailure::Draining)
        } else if let Err(retry_after) = self.breaker.admit(now, self.jobs.is_empty()) {
            Some(JobFailure::BreakerOpen { retry_after })
        } else if self.queue.len() >= self.settings.queue_bound.max(1) {
            Some(JobFailure::QueueFull)
        } else {
            None
        };
        if let Some(why) = refusal {
            actions.push(SupervisorAction::Fail { job: id, why });
            return;
        }
        self.last_activity = now;
        self.jobs.insert(id, Job::new(terms));
        self.queue.push_back(id);
        self.await_worker(now, id);
    }

    fn cancel(&mut self, now: Time, id: JobId, actions: &mut Vec<SupervisorAction>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        match job.worker {
            Some(worker) => {
                job.cancelled = true;
                actions.push(SupervisorAction::Cancel { worker, job: id });
                let latest = now.saturating_add(self.settings.stop_grace);
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.cancel(latest);
                }
            }
            None => {
                self.leave_queue(id);
                self.jobs.remove(&id);
            }
        }
    }

    fn spawned(&mut self, id: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.spawned();
        }
    }

    fn ready(&mut self, now: Time, id: WorkerId, actions: &mut Vec<SupervisorAction>) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        if worker.is_starting() {
            worker.state = WorkerPhase::Idle { since: now };
            if self.draining.is_some() || worker.outdated {
                self.stop(now, id, actions);
            }
        }
    }

    fn finished(&mut self, now: Time, id: WorkerId, actions: &mut Vec<SupervisorAction>) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let Some(job) = worker.finish(now) else {
            return;
        };
        let replace = worker.outdated
            || self.settings.recycle_after.is_some_and(|limit| worker.jobs_done >= limit);
        let idle = matches!(worker.state, WorkerPhase::Idle { .. });
        self.last_activity = now;
        self.breaker.succeeded();
        if self.jobs.remove(&job).is_some_and(|job| !job.cancelled) {
            actions.push(SupervisorAction::Answer { job });
        }
        if idle && (replace || self.draining.is_some()) {
            self.stop(now, id, actions);
        }
    }

    /// Marks all workers as outdated: they finish their current job and take no further one.
    fn renew(&mut self, now: Time, actions: &mut Vec<SupervisorAction>) {
        let mut idle = Vec::new();
        for (id, worker) in &mut self.workers {
            worker.outdated = true;
            if matches!(worker.state, WorkerPhase::Idle { .. }) {
                idle.push(*id);
            }
        }
        for id in idle {
            self.stop(now, id, actions);
        }
    }

    /// Treated as if the worker had been killed from outside, except that the attempt does not
    /// count.
    fn passed_on(&mut self, now: Time, id: WorkerId, actions: &mut Vec<SupervisorAction>) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let Some(job) = worker.finish(now) else {
            return;
        };
        let idle = matches!(worker.state, WorkerPhase::Idle { .. });
        self.last_activity = now;
        if let Some(job) = self.jobs.get_mut(&job) {
            job.attempts -= 1;
        }
        self.judge(now, job, DeathClass::Killed, actions);
        if let Some(retry_after) = self.breaker.open_for(now) {
            self.fail_queue(JobFailure::BreakerOpen { retry_after }, actions);
        }
        if idle {
            self.stop(now, id, actions);
        }
    }

    fn ended(
        &mut self,
        now: Time,
        id: WorkerId,
        class: Option<DeathClass>,
        refused: bool,
        undelivered: bool,
        actions: &mut Vec<SupervisorAction>,
    ) {
        let Some(worker) = self.workers.remove(&id) else {
            return;
        };
        let job = worker.job();
        let Some(class) = class else {
            // The supervisor killed it because its job was cancelled or the pool is stopping.
            if let Some(job) = job
                && self.jobs.remove(&job).is_some_and(|job| !job.cancelled)
            {
                actions.push(SupervisorAction::Fail { job, why: JobFailure::Draining });
            }
            return;
        };
        self.restarts += 1;
        let mut measure = match job {
            Some(job) if undelivered => {
                // The worker is to blame; for the job this counts as an outside kill.
                if class != DeathClass::Killed {
                    self.count_death(now);
                }
                self.judge(now, job, DeathClass::Killed, actions)
            }
            Some(job) => self.judge(now, job, class, actions),
            None => {
                if worker.failed_by_itself(class) {
                    self.count_death(now);
                }
                Measure::Replaced
            }
        };
        if let Some(retry_after) = self.breaker.open_for(now) {
            self.fail_queue(JobFailure::BreakerOpen { retry_after }, actions);
        }
        if refused && !self.workers.values().any(Worker::is_serving) {
            self.fail_queue(JobFailure::StartRefused, actions);
        }
        let retried = matches!(measure, Measure::Retried | Measure::RetriedAlone);
        if retried && job.is_some_and(|job| !self.jobs.contains_key(&job)) {
            measure = Measure::GaveUp;
        }
        actions.push(SupervisorAction::Taken { worker: id, measure });
    }

    /// Decides what happens to a job whose worker died.
    fn judge(
        &mut self,
        now: Time,
        id: JobId,
        class: DeathClass,
        actions: &mut Vec<SupervisorAction>,
    ) -> Measure {
        let Some(job) = self.jobs.get_mut(&id) else {
            return Measure::Dropped;
        };
        job.worker = None;
        job.count(class);
        let counts = class.blames_job() && job.strikes == 1 && !job.terms.bisecting;
        let retry = job.may_retry(class, &self.settings.retry) && self.draining.is_none();
        let measure = if job.cancelled {
            self.jobs.remove(&id);
            Measure::Dropped
        } else if retry {
            job.suspect |= class.blames_job();
            job.alone |= class == DeathClass::OutOfMemory;
            let alone = job.alone;
            self.suspects_waiting += usize::from(job.suspect);
            self.queue.push_front(id);
            self.await_worker(now, id);
            if alone { Measure::RetriedAlone } else { Measure::Retried }
        } else if job.is_poison(class) {
            self.jobs.remove(&id);
            actions.push(SupervisorAction::Fail { job: id, why: JobFailure::Poisoned { class } });
            Measure::Quarantined
        } else {
            self.jobs.remove(&id);
            actions.push(SupervisorAction::Fail { job: id, why: JobFailure::Died { class } });
            Measure::GaveUp
        };
        if counts {
            self.count_death(now);
        }
        measure
    }

    /// Counts a death for back-off and breaker.
    fn count_death(&mut self, now: Time) {
        self.backoff.count(now, &mut self.random);
        self.breaker.count(now);
    }

    fn fail_queue(&mut self, why: JobFailure, actions: &mut Vec<SupervisorAction>) {
        self.patience.clear();
        self.suspects_waiting = 0;
        for job in self.queue.drain(..) {
            self.jobs.remove(&job);
            actions.push(SupervisorAction::Fail { job, why });
        }
    }

    fn drain(&mut self, now: Time, budget: Duration, actions: &mut Vec<SupervisorAction>) {
        let until = now.saturating_add(budget);
        let draining = self.draining.get_or_insert(Draining { until, reported: false });
        draining.until = draining.until.min(until);
        self.fail_queue(JobFailure::Draining, actions);
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        for id in ids {
            match self.workers.get(&id).map(|worker| worker.state) {
                Some(WorkerPhase::Idle { .. }) => self.stop(now, id, actions),
                Some(WorkerPhase::Spawning { .. } | WorkerPhase::Warming { .. }) => {
                    self.kill(id, KillReason::Shutdown, actions);
                }
                _ => {}
            }
        }
    }

    fn kill_all(&mut self, now: Time, actions: &mut Vec<SupervisorAction>) {
        self.drain(now, Duration::ZERO, actions);
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        for id in ids {
            self.kill(id, KillReason::Shutdown, actions);
        }
    }

    fn report_drained(&mut self, actions: &mut Vec<SupervisorAction>) {
        if let Some(draining) = &mut self.draining
            && self.workers.is_empty()
            && !draining.reported
        {
            draining.reported = true;
            actions.push(SupervisorAction::Drained);
        }
    }

    /// Handles expired deadlines and time limits; true if there were any.
    fn expire(&mut self, now: Time, actions: &mut Vec<SupervisorAction>) -> bool {
        let before = actions.len();
        while let Some(&(until, job)) = self.patience.first()
            && until <= now
        {
            self.leave_queue(job);
            self.jobs.remove(&job);
            actions.push(SupervisorAction::Fail { job, why: JobFailure::QueueTimeout });
        }
        let drain_over = self.draining.is_some_and(|draining| draining.until <= now);
        let due: Vec<(WorkerId, KillReason)> = self
            .workers
            .iter()
            .filter_map(|(&id, worker)| Some((id, worker.overdue(now, drain_over)?)))
            .collect();
        for (id, reason) in due {
            self.kill(id, reason, actions);
        }
        actions.len() > before
    }

    fn stop(&mut self, now: Time, id: WorkerId, actions: &mut Vec<SupervisorAction>) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let until = now.saturating_add(self.settings.stop_grace);
        worker.state = if self.draining.is_some() {
            WorkerPhase::Draining { until }
        } else {
            WorkerPhase::Recycling { until }
        };
        actions.push(SupervisorAction::Stop { worker: id });
    }

    fn kill(&mut self, id: WorkerId, reason: KillReason, actions: &mut Vec<SupervisorAction>) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        if worker.kill() {
            actions.push(SupervisorAction::Kill { worker: id, reason });
        }
    }

    fn await_worker(&mut self, now: Time, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            let until = now.saturating_add(job.terms.patience);
            job.waits_until = Some(until);
            self.patience.insert((until, id));
        }
    }

    fn leave_queue(&mut self, id: JobId) {
        let Some(at) = self.queue.iter().position(|&queued| queued == id) else {
            return;
        };
        self.queue.remove(at);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        self.suspects_waiting -= usize::from(job.suspect);
        if let Some(until) = job.waits_until.take() {
            self.patience.remove(&(until, id));
        }
    }

    /// When the next [`SupervisorEvent::Tick`] is due if no other event comes first.
    pub(crate) fn next_wake(&self, now: Time) -> Option<Time> {
        let deadlines = self.workers.values().filter_map(Worker::deadline);
        let patience = self.patience.first().map(|&(until, _)| until);
        let drain = self
            .draining
            .filter(|_| self.workers.values().any(|worker| worker.deadline().is_some()))
            .map(|draining| draining.until);
        let due = deadlines.chain(patience).chain(drain).min();
        // These are checked on every step, so only future times matter.
        let restart = Some(self.backoff.not_before());
        let idle_stop = self.settings.idle_stop.and_then(|patience| {
            let idle = self.workers.values().filter_map(Worker::idle_since);
            let ends = idle.chain([self.last_activity]).map(|since| since.saturating_add(patience));
            ends.filter(|&at| at > now).min()
        });
        let later = restart.into_iter().chain(idle_stop).filter(|&at| at > now).min();
        // `Time::MAX` comes from `Duration::MAX` and means never.
        due.into_iter().chain(later).min().filter(|&at| at < Time::MAX)
    }

    /// Whether any worker has a deadline.
    pub(crate) fn is_watching(&self) -> bool {
        self.workers.values().any(|worker| worker.deadline().is_some())
    }

    pub(crate) fn breaker(&self) -> BreakerState {
        self.breaker.state()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(crate) fn views(&self, now: Time) -> impl Iterator<Item = (WorkerId, WorkerView)> {
        self.workers.iter().map(move |(&id, worker)| (id, worker.view(now)))
    }
}
