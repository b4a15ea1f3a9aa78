//! Which orders the supervisor may give, and when.

use super::{ExpectedAction, Job, Model, Process, ProcessPhase};
use crate::class::KillReason;
use crate::supervisor::{
    BreakerState, JobFailure, JobId, Measure, Supervisor, SupervisorAction, SupervisorEvent,
    WorkerId,
};

impl Model {
    /// Checks an order of the supervisor and updates the model.
    pub(in crate::supervisor::simulation) fn check_action(
        &mut self,
        supervisor: &Supervisor,
        action: &SupervisorAction,
    ) {
        match *action {
            SupervisorAction::Start { worker } => self.check_start(supervisor, worker),
            SupervisorAction::Run { worker, job, attempt, budget } => {
                self.check_run(worker, job, attempt);
                let until = self.now.saturating_add(budget);
                self.set(worker, ProcessPhase::Busy { job, until, unwanted: false });
            }
            SupervisorAction::Cancel { worker, job } => {
                self.must(
                    self.process(worker).job() == Some(job),
                    "cancel goes to the worker that runs the job",
                );
                self.fulfil(job, ExpectedAction::CancelOrder);
            }
            SupervisorAction::Stop { worker } => {
                self.check_stop(worker);
                let until = self.now.saturating_add(self.settings.stop_grace);
                self.set(worker, ProcessPhase::Stopping { until });
            }
            SupervisorAction::Kill { worker, reason } => self.check_kill(worker, reason),
            SupervisorAction::Answer { job } => {
                self.fulfil(job, ExpectedAction::Answer);
                self.answered = Some(job);
                self.conclude(job);
            }
            SupervisorAction::Fail { job, why } => self.check_fail(job, why),
            SupervisorAction::Taken { worker, measure } => {
                let expected_action = self.expected_measure.take();
                self.must(
                    expected_action == Some((worker, measure)),
                    "the reported response to a death is the expected one",
                );
            }
            SupervisorAction::Drained => {
                self.must(self.drain_until.is_some(), "drained only when draining");
                self.must(!self.drained, "drained is reported once");
                self.must(self.workers.is_empty(), "drained means that all workers are gone");
                self.drained = true;
            }
        }
    }

    fn fulfil(&mut self, job: JobId, what: ExpectedAction) {
        self.must(self.expected_action == Some((job, what)), "a job gets the expected outcome");
        self.expected_action = None;
    }

    fn conclude(&mut self, job: JobId) {
        let at = self.job_at(job);
        self.must(at.is_some(), "a job has one outcome");
        self.jobs.remove(at.unwrap());
    }

    fn check_start(&mut self, supervisor: &Supervisor, id: WorkerId) {
        self.must(id > self.started, "worker IDs are unique");
        self.must(self.drain_until.is_none(), "no start while draining");
        self.must(supervisor.breaker() != BreakerState::Open, "no start with an open breaker");
        self.must(
            self.now >= supervisor.backoff.not_before(),
            "no start before the back-off has passed",
        );
        self.must(
            supervisor.breaker() == BreakerState::Closed || self.count(Process::is_starting) == 0,
            "one start at a time with a half-open breaker",
        );
        self.started = id;
        let until = self.now.saturating_add(self.settings.start_deadline);
        self.workers.push(Process { id, phase: ProcessPhase::Spawning { until }, jobs_done: 0 });
        self.must(
            self.count(Process::is_live) <= self.slots() + self.settings.spares,
            "no more workers than busy ones and spares",
        );
    }

    fn check_run(&mut self, worker_id: WorkerId, id: JobId, attempt: u32) {
        let worker = self.process(worker_id);
        self.must(worker.is_idle(), "run goes to a worker that is ready and idle");
        let at = self.job_at(id);
        self.must(at.is_some(), "only existing jobs are run");
        let at = at.unwrap();
        let job = &self.jobs[at];
        self.must(job.waits.is_some(), "a job runs on one worker at a time");
        self.must(self.count(Process::is_busy) < self.slots(), "no more busy workers than allowed");
        self.must(attempt == job.attempts, "attempts are counted");
        self.must(
            attempt < job.terms.strikes + self.settings.retry.outside_kills,
            "attempts are bounded",
        );
        self.must(!job.suspect || worker.jobs_done == 0, "a suspect gets a fresh worker");
        let others = || self.workers.iter().filter_map(Process::job);
        self.must(!job.alone || others().count() == 0, "a job that ran out of memory runs alone");
        let is_alone = |id| self.jobs.iter().any(|job| job.id == id && job.alone);
        let busy = || self.workers.iter().filter(|worker| worker.is_busy());
        self.must(
            !busy().filter_map(Process::job).any(is_alone),
            "nothing runs beside a job that must run alone",
        );
        let earlier = &self.jobs[..at];
        // Jobs that are retried or were passed on go first.
        let is_new = |job: &Job| job.attempts == 0 && job.outside_kills == 0;
        self.must(
            !is_new(job) || !earlier.iter().any(|job| job.waits.is_some() && is_new(job)),
            "first come, first served",
        );
        let suspect_waits =
            self.jobs.iter().any(|other| other.id != id && other.waits.is_some() && other.suspect);
        let fresh_comes = self.workers.iter().any(|worker| worker.is_starting())
            || self.count(Process::is_live) < self.slots() + self.settings.spares;
        self.must(
            job.suspect || !is_new(job) || !suspect_waits || fresh_comes,
            "no job takes the slot that a suspect needs for a fresh worker",
        );
        let job = &mut self.jobs[at];
        job.attempts += 1;
        job.waits = None;
    }

    fn check_stop(&self, id: WorkerId) {
        let worker = self.process(id);
        let ProcessPhase::Idle { since } = worker.phase else {
            return self.must(false, "only idle workers are stopped");
        };
        let replace = self.settings.recycle_after.is_some_and(|limit| worker.jobs_done >= limit);
        let bored =
            self.settings.idle_stop.is_some_and(|stop| since.saturating_add(stop) <= self.now);
        let in_the_way =
            worker.jobs_done > 0 && self.jobs.iter().any(|job| job.waits.is_some() && job.suspect);
        self.must(
            self.drain_until.is_some()
                || replace
                || bored
                || in_the_way
                || self.retiring == Some(id),
            "a worker is stopped for a reason",
        );
    }

    fn check_kill(&mut self, id: WorkerId, reason: KillReason) {
        let worker = self.process(id);
        let overdue = worker.until().is_some_and(|until| until <= self.now);
        let stopping = matches!(worker.phase, ProcessPhase::Stopping { .. });
        let unwanted = matches!(worker.phase, ProcessPhase::Busy { unwanted: true, .. });
        self.must(
            !matches!(worker.phase, ProcessPhase::Killed { .. }),
            "no worker is killed twice",
        );
        self.must(
            match reason {
                KillReason::Deadline => overdue && !stopping && !unwanted,
                KillReason::Cancelled => overdue && unwanted,
                KillReason::StopGrace => overdue && stopping,
                KillReason::Shutdown => self.drain_until.is_some(),
                KillReason::Violation => false,
            },
            "a worker is killed for a reason",
        );
        let (job, starting) = (worker.job(), worker.is_starting());
        self.set(id, ProcessPhase::Killed { job, reason, starting });
    }

    fn check_fail(&mut self, id: JobId, why: JobFailure) {
        let at = self.job_at(id);
        self.must(at.is_some(), "a job has one outcome");
        let job = &self.jobs[at.unwrap()];
        self.must(!job.cancelled, "a cancelled job gets no outcome");
        let submitted = matches!(self.event, SupervisorEvent::Submit { job, .. } if job == id);
        let waits = job.waits.is_some();
        match why {
            JobFailure::QueueFull => {
                self.must(submitted && self.full, "only new jobs find the queue full");
            }
            JobFailure::QueueTimeout => self.must(
                job.waits.is_some_and(|until| until <= self.now),
                "a job times out only when its patience has run out",
            ),
            JobFailure::BreakerOpen { .. } => {
                self.must(waits, "an open breaker fails only waiting jobs");
            }
            JobFailure::Draining if waits => {
                self.must(self.drain_until.is_some(), "the pool is draining");
            }
            JobFailure::StartRefused => {
                self.must(waits && self.start_refused, "a start was refused and no worker serves")
            }
            JobFailure::Draining | JobFailure::Died { .. } | JobFailure::Poisoned { .. } => {
                self.fulfil(id, ExpectedAction::Fail(why));
            }
        }
        if submitted && why != JobFailure::QueueTimeout {
            self.last_activity = self.activity_before;
        }
        // It was to be retried, but there was no worker left to run it.
        let given_up = matches!(why, JobFailure::BreakerOpen { .. } | JobFailure::StartRefused);
        if given_up && self.job_of_dead_worker == Some(id) {
            self.must(self.expected_measure.is_some(), "a death is reported when it is decided");
            self.expected_measure =
                self.expected_measure.map(|(worker, _)| (worker, Measure::GaveUp));
        }
        self.conclude(id);
    }
}
