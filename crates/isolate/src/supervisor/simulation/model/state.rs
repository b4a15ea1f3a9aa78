//! The rules that hold between steps.

use super::{Model, Process, ProcessPhase};
use crate::supervisor::{BreakerState, Supervisor, SupervisorEvent, Time};

/// How many workers and jobs are in which state.
#[derive(Default)]
struct Numbers {
    starting: usize,
    idle: usize,
    busy: usize,
    stopping: usize,
    /// Workers that were killed while running a job.
    dying_with_job: usize,
    waiting: usize,
    /// Suspects among the waiting jobs.
    suspects: usize,
    /// Whether a waiting job must run alone.
    alone: bool,
}

impl Model {
    /// Checks the rules that hold between steps.
    pub(in crate::supervisor::simulation) fn check_state(&mut self, supervisor: &Supervisor) {
        self.must(self.expected_action.is_none(), "a job's outcome is reported in the same step");
        self.must(self.expected_measure.is_none(), "every death is reported");
        self.wake = supervisor.next_wake(self.now);
        let idle = |id| self.workers.iter().any(|worker| worker.id == id && worker.is_idle());
        self.must(!self.retiring.is_some_and(idle), "a worker that passes its job on is stopped");
        let numbers = self.numbers();
        self.check_records(supervisor, &numbers);
        self.check_breaker(supervisor, &numbers);
        self.check_deadlines();
        if let SupervisorEvent::Submit { job, .. } = self.event {
            self.must(!self.full || self.job_at(job).is_none(), "a full queue accepts no job");
        }
        self.must(
            !self.start_refused || numbers.waiting == 0,
            "no job waits when no worker can start",
        );
        match self.drain_until {
            Some(until) => self.check_drain(until <= self.now, &numbers),
            None => self.check_staff(&numbers),
        }
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::default();
        for worker in &self.workers {
            match worker.phase {
                ProcessPhase::Spawning { .. } | ProcessPhase::Warming { .. } => {
                    numbers.starting += 1
                }
                ProcessPhase::Idle { .. } => numbers.idle += 1,
                ProcessPhase::Busy { .. } => numbers.busy += 1,
                ProcessPhase::Stopping { .. } => numbers.stopping += 1,
                ProcessPhase::Killed { job, .. } => {
                    numbers.dying_with_job += usize::from(job.is_some())
                }
            }
        }
        for job in &self.jobs {
            numbers.alone |= job.alone;
            if job.waits.is_some() {
                numbers.waiting += 1;
                numbers.suspects += usize::from(job.suspect);
            }
        }
        numbers
    }

    fn check_records(&self, supervisor: &Supervisor, numbers: &Numbers) {
        self.must(
            supervisor.waiting() == numbers.waiting,
            "the queue holds exactly the waiting jobs",
        );
        self.must(
            supervisor.patience.len() == numbers.waiting,
            "every waiting job has a time limit",
        );
        self.must(supervisor.suspects_waiting == numbers.suspects, "suspects are counted");
        self.must(supervisor.jobs.len() == self.jobs.len(), "a job is removed with its outcome");
        self.must(
            supervisor.workers.len() == self.workers.len(),
            "the supervisor and the model have the same workers",
        );
        for ((&id, worker), process) in supervisor.workers.iter().zip(&self.workers) {
            self.must(
                id == process.id
                    && worker.job() == process.job()
                    && worker.jobs_done == process.jobs_done
                    && worker.deadline() == process.until(),
                "the supervisor knows what each worker is doing",
            );
        }
    }

    fn check_breaker(&mut self, supervisor: &Supervisor, numbers: &Numbers) {
        use BreakerState::{Closed, HalfOpen, Open};
        let state = supervisor.breaker();
        let expected = match (self.breaker, &self.event) {
            (Closed, _) if self.counts => {
                let (now, window) = (self.now, self.settings.breaker.window);
                self.counted.retain(|&at| now - at <= window);
                self.counted.push(now);
                if self.counted.len() > self.settings.breaker.deaths { Open } else { Closed }
            }
            (HalfOpen, _) if self.counts => Open,
            (HalfOpen, SupervisorEvent::Finished { .. }) => Closed,
            // The breaker's own tests check whether it was time for a trial.
            (Open, SupervisorEvent::Submit { .. }) if state == HalfOpen => HalfOpen,
            (before, _) => before,
        };
        self.must(state == expected, "the breaker follows the deaths that count");
        if state == Open {
            self.counted.clear();
            self.must(numbers.waiting == 0, "no job waits while the breaker is open");
        }
        self.must(state != HalfOpen || self.jobs.len() <= 1, "one trial at a time");
        self.breaker = state;
        let not_before = supervisor.backoff.not_before();
        self.must(
            self.counts || not_before == self.not_before,
            "only deaths that count delay a restart",
        );
        self.not_before = not_before;
    }

    fn check_deadlines(&self) {
        self.must(self.wake.is_none_or(|at| at > self.now), "nothing due is left undone");
        let mut due = Time::MAX;
        for until in self.workers.iter().filter_map(Process::until) {
            due = due.min(until).min(self.drain_until.unwrap_or(until));
        }
        for until in self.jobs.iter().filter_map(|job| job.waits) {
            due = due.min(until);
        }
        self.must(due > self.now, "deadlines are kept");
        self.must_wake(due, "the wake-up comes in time for the next deadline");
    }

    fn must_wake(&self, due: Time, rule: &str) {
        self.must(due == Time::MAX || self.wake.is_some_and(|at| at <= due), rule);
    }

    fn check_drain(&self, over: bool, numbers: &Numbers) {
        let Numbers { starting, idle, busy, stopping, waiting, .. } = *numbers;
        self.must(waiting == 0, "no job waits while the pool drains");
        self.must(idle + starting == 0, "a drain stops idle workers and kills starting ones");
        self.must(
            !over || busy + stopping == 0,
            "a drain kills all workers when its budget is spent",
        );
        self.must(!self.workers.is_empty() || self.drained, "the end of the drain is reported");
    }

    /// Checks that the right number of workers exist and are busy.
    fn check_staff(&self, numbers: &Numbers) {
        let Numbers { starting, idle, busy, waiting, suspects, .. } = *numbers;
        let live = starting + idle + busy;
        let delayed = self.now < self.not_before;
        if delayed && waiting > 0 {
            self.must_wake(self.not_before, "the wake-up comes in time for the restart");
        }

        let crowded = numbers.alone && busy + numbers.dying_with_job > 0;
        self.must(
            waiting == 0 || busy == self.slots() || starting > 0 || delayed || crowded,
            "waiting jobs have a worker coming",
        );
        self.must(
            waiting == suspects || idle == 0 || busy == self.slots() || crowded,
            "no worker is idle while a job waits that needs no fresh one",
        );

        let stop = self.settings.idle_stop.unwrap_or(Time::MAX);
        let idle_stop_at = self.last_activity.saturating_add(stop);
        let in_use = !self.jobs.is_empty() || self.now < idle_stop_at;
        let spares = if in_use { self.settings.spares } else { 0 };
        let target = (busy + waiting).min(self.slots()) + spares;
        let trusted = self.breaker == BreakerState::Closed;
        self.must(live >= target || delayed || !trusted, "there are enough spares");
        let limit = self.settings.recycle_after.unwrap_or(u64::MAX).max(1);
        self.must(
            !self.workers.iter().any(|worker| worker.is_idle() && worker.jobs_done >= limit),
            "workers that reached the recycle limit are stopped",
        );
        // A suspect's fresh worker may briefly exceed the target.
        if live > target && suspects == 0 {
            for worker in &self.workers {
                if let ProcessPhase::Idle { since } = worker.phase {
                    let due = since.saturating_add(stop);
                    self.must(due > self.now, "surplus idle workers are stopped");
                    self.must_wake(due, "the wake-up comes in time for an idle stop");
                }
            }
        }
        if self.jobs.is_empty() && in_use && live > 0 {
            self.must_wake(idle_stop_at, "the wake-up comes in time to stop spares");
        }
    }
}
