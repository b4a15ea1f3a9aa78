//! Which orders the supervisor may give, and when.

use super::{Job, Model, Owed, Phase, Process};
use crate::class::KillReason;
use crate::supervisor::{
    Action, BreakerState, Event, Failing, JobId, Measure, Supervisor, WorkerId,
};

impl Model {
    /// Checks an order of the supervisor and updates the model.
    pub(in crate::supervisor::simulation) fn check_action(
        &mut self,
        supervisor: &Supervisor,
        action: &Action,
    ) {
        match *action {
            Action::Start { worker } => self.check_start(supervisor, worker),
            Action::Run { worker, job, attempt, budget } => {
                self.check_run(worker, job, attempt);
                let until = self.now.saturating_add(budget);
                self.set(worker, Phase::Busy { job, until, unwanted: false });
            }
            Action::Cancel { worker, job } => {
                self.must(self.process(worker).job() == Some(job), "cancel where it runs");
                self.pay(job, Owed::CancelOrder);
            }
            Action::Stop { worker } => {
                self.check_stop(worker);
                let until = self.now.saturating_add(self.settings.stop_grace);
                self.set(worker, Phase::Stopping { until });
            }
            Action::Kill { worker, reason } => self.check_kill(worker, reason),
            Action::Answer { job } => {
                self.pay(job, Owed::Answer);
                self.answered = Some(job);
                self.conclude(job);
            }
            Action::Fail { job, why } => self.check_fail(job, why),
            Action::Taken { worker, measure } => {
                let owed = self.owed_measure.take();
                self.must(owed == Some((worker, measure)), "a death is reported as what it was");
            }
            Action::Drained => {
                self.must(self.drain_until.is_some(), "drained only when draining");
                self.must(!self.drained, "drained is told once");
                self.must(self.workers.is_empty(), "drained means that all are gone");
                self.drained = true;
            }
        }
    }

    fn pay(&mut self, job: JobId, what: Owed) {
        self.must(self.owed == Some((job, what)), "a job is told what happened to it");
        self.owed = None;
    }

    fn conclude(&mut self, job: JobId) {
        let at = self.job_at(job);
        self.must(at.is_some(), "a job has one outcome");
        self.jobs.remove(at.unwrap());
    }

    fn check_start(&mut self, supervisor: &Supervisor, id: WorkerId) {
        self.must(id > self.started, "workers have numbers of their own");
        self.must(self.drain_until.is_none(), "no start while draining");
        self.must(supervisor.breaker() != BreakerState::Open, "no start with an open breaker");
        self.must(self.now >= supervisor.backoff.not_before(), "no start before its time");
        self.must(
            supervisor.breaker() == BreakerState::Closed || self.count(Process::is_starting) == 0,
            "one start at a time with a half-open breaker",
        );
        self.started = id;
        let until = self.now.saturating_add(self.settings.start_deadline);
        self.workers.push(Process { id, phase: Phase::Spawning { until }, jobs_done: 0 });
        self.must(
            self.count(Process::is_live) <= self.slots() + self.settings.spares,
            "no more workers than busy ones and spares",
        );
    }

    fn check_run(&mut self, worker_id: WorkerId, id: JobId, attempt: u32) {
        let worker = self.process(worker_id);
        self.must(worker.is_idle(), "run goes to a worker that is ready and idle");
        let at = self.job_at(id);
        self.must(at.is_some(), "only jobs that are there are run");
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
        self.must(!job.alone || others().count() == 0, "what ran out of memory runs alone");
        let is_alone = |id| self.jobs.iter().any(|job| job.id == id && job.alone);
        let busy = || self.workers.iter().filter(|worker| worker.is_busy());
        self.must(
            !busy().filter_map(Process::job).any(is_alone),
            "nothing runs beside what must run alone",
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
            "nobody takes the place that a suspect needs for a fresh worker",
        );
        let job = &mut self.jobs[at];
        job.attempts += 1;
        job.waits = None;
    }

    fn check_stop(&self, id: WorkerId) {
        let worker = self.process(id);
        let Phase::Idle { since } = worker.phase else {
            return self.must(false, "only idle workers are stopped");
        };
        let worn = self.settings.recycle_after.is_some_and(|limit| worker.jobs_done >= limit);
        let bored =
            self.settings.idle_stop.is_some_and(|stop| since.saturating_add(stop) <= self.now);
        let in_the_way =
            worker.jobs_done > 0 && self.jobs.iter().any(|job| job.waits.is_some() && job.suspect);
        self.must(
            self.drain_until.is_some() || worn || bored || in_the_way || self.retiring == Some(id),
            "a worker is stopped for a reason",
        );
    }

    fn check_kill(&mut self, id: WorkerId, reason: KillReason) {
        let worker = self.process(id);
        let overdue = worker.until().is_some_and(|until| until <= self.now);
        let stopping = matches!(worker.phase, Phase::Stopping { .. });
        let unwanted = matches!(worker.phase, Phase::Busy { unwanted: true, .. });
        self.must(!matches!(worker.phase, Phase::Killed { .. }), "nobody is killed twice");
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
        self.set(id, Phase::Killed { job, reason, starting });
    }

    fn check_fail(&mut self, id: JobId, why: Failing) {
        let at = self.job_at(id);
        self.must(at.is_some(), "a job has one outcome");
        let job = &self.jobs[at.unwrap()];
        self.must(!job.cancelled, "nobody is told about a cancelled job");
        let submitted = matches!(self.event, Event::Submit { job, .. } if job == id);
        let waits = job.waits.is_some();
        match why {
            Failing::QueueFull => {
                self.must(submitted && self.full, "only new jobs find the queue full");
            }
            Failing::QueueTimeout => self.must(
                job.waits.is_some_and(|until| until <= self.now),
                "only patience that is over ends waiting",
            ),
            Failing::BreakerOpen { .. } => {
                self.must(waits, "an open breaker fails only what waits");
            }
            Failing::Draining if waits => {
                self.must(self.drain_until.is_some(), "the pool is draining");
            }
            Failing::StartRefused => {
                self.must(waits && self.deserted, "the start was refused and all are gone")
            }
            Failing::Draining | Failing::Died { .. } | Failing::Poisoned { .. } => {
                self.pay(id, Owed::Fail(why));
            }
        }
        if submitted && why != Failing::QueueTimeout {
            self.last_activity = self.activity_before;
        }
        // It was to be retried, but there was no worker left to run it.
        let given_up = matches!(why, Failing::BreakerOpen { .. } | Failing::StartRefused);
        if given_up && self.bereaved == Some(id) {
            self.must(self.owed_measure.is_some(), "a death is reported when it is decided");
            self.owed_measure = self.owed_measure.map(|(worker, _)| (worker, Measure::GaveUp));
        }
        self.conclude(id);
    }
}
