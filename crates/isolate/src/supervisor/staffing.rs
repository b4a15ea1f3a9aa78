//! Assigns jobs to workers, and decides how many workers there are.

use super::worker::{Worker, WorkerPhase};
use super::{BreakerState, JobId, Supervisor, SupervisorAction, Time, WorkerId};

impl Supervisor {
    /// Assigns waiting jobs to idle workers.
    pub(super) fn dispatch(&mut self, now: Time, actions: &mut Vec<SupervisorAction>) {
        if self.queue.is_empty() {
            return;
        }
        let mut busy = self.workers.values().filter(|worker| worker.is_busy()).count();
        let mut at = 0;
        while at < self.queue.len() && busy < self.settings.workers.max(1) {
            let id = self.queue[at];
            let Some(job) = self.jobs.get(&id) else { break };
            // A job that must run alone waits until nothing else runs, and no job may overtake
            // it. A killed worker holds its job's memory until it is gone.
            if job.alone && self.workers.values().any(|worker| worker.job().is_some()) {
                break;
            }
            if busy > 0 && self.someone_runs_alone() {
                break;
            }
            let suspect = job.suspect;
            let Some(worker) = self.pick_idle(suspect) else {
                // Other jobs may overtake a suspect, unless they would take the slot of its
                // fresh worker.
                if suspect && self.has_room_for_fresh() {
                    at += 1;
                    continue;
                }
                break;
            };
            self.assign(now, worker, id, actions);
            busy += 1;
        }
    }

    fn someone_runs_alone(&self) -> bool {
        let running = self.workers.values().filter_map(Worker::job);
        running.filter_map(|id| self.jobs.get(&id)).any(|job| job.alone)
    }

    /// Picks an idle worker. A suspect job needs a fresh one, so that nothing else can be to
    /// blame; other jobs leave fresh workers alone and take the one that has done most jobs,
    /// because its caches are warm.
    fn pick_idle(&self, suspect: bool) -> Option<WorkerId> {
        let idle = self.workers.iter().filter_map(|(&id, worker)| match worker.state {
            WorkerPhase::Idle { since } => Some((id, worker, since)),
            _ => None,
        });
        if suspect {
            return idle.filter(|(_, worker, _)| worker.jobs_done == 0).map(|(id, ..)| id).next();
        }
        idle.max_by_key(|(_, worker, since)| (worker.jobs_done, *since)).map(|(id, ..)| id)
    }

    fn assign(
        &mut self,
        now: Time,
        worker_id: WorkerId,
        id: JobId,
        actions: &mut Vec<SupervisorAction>,
    ) {
        self.leave_queue(id);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Some(worker) = self.workers.get_mut(&worker_id) else {
            return;
        };
        let budget = job.terms.deadline;
        let attempt = job.attempts;
        job.attempts += 1;
        job.worker = Some(worker_id);
        let until = now.saturating_add(budget);
        worker.state = WorkerPhase::Busy { job: id, since: now, until, unwanted: false };
        actions.push(SupervisorAction::Run { worker: worker_id, job: id, attempt, budget });
    }

    /// Starts missing workers and stops surplus ones.
    pub(super) fn staff(&mut self, now: Time, actions: &mut Vec<SupervisorAction>) {
        if self.draining.is_some() {
            return;
        }
        let target = self.target(now);
        let mut live = self.workers.values().filter(|worker| worker.is_live()).count();
        if live > target {
            live -= self.stop_idle(now, live - target, actions);
        }
        let mut missing = target.saturating_sub(live);
        if missing == 0 && self.lacks_fresh_worker() && self.make_room(now, live, actions) {
            missing = 1;
        }
        match self.breaker.state() {
            BreakerState::Closed => {}
            BreakerState::Open => return,
            BreakerState::HalfOpen if self.workers.values().any(Worker::is_starting) => return,
            BreakerState::HalfOpen => missing = missing.min(1),
        }
        if now < self.backoff.not_before() {
            return;
        }
        for _ in 0..missing {
            self.started += 1;
            let until = now.saturating_add(self.settings.start_deadline);
            self.workers.insert(self.started, Worker::new(now, until));
            actions.push(SupervisorAction::Start { worker: self.started });
        }
    }

    /// The number of workers there should be.
    fn target(&self, now: Time) -> usize {
        let busy = self.workers.values().filter(|worker| worker.is_busy()).count();
        let wanted = (busy + self.queue.len()).min(self.settings.workers.max(1));
        let in_use = !self.jobs.is_empty()
            || self
                .settings
                .idle_stop
                .is_none_or(|stop| now < self.last_activity.saturating_add(stop));
        wanted + if in_use { self.settings.spares } else { 0 }
    }

    /// Stops up to `surplus` workers whose idle time has run out; returns how many.
    fn stop_idle(
        &mut self,
        now: Time,
        surplus: usize,
        actions: &mut Vec<SupervisorAction>,
    ) -> usize {
        let Some(patience) = self.settings.idle_stop else {
            return 0;
        };
        let bored: Vec<WorkerId> = self
            .workers
            .iter()
            .filter(|(_, worker)| {
                matches!(worker.state, WorkerPhase::Idle { since } if since.saturating_add(patience) <= now)
            })
            .map(|(&id, _)| id)
            .take(surplus)
            .collect();
        for &id in &bored {
            self.stop(now, id, actions);
        }
        bored.len()
    }

    /// Whether a suspect job waits and no fresh worker exists or is being started.
    fn lacks_fresh_worker(&self) -> bool {
        self.suspects_waiting > 0
            && !self.workers.values().any(|worker| {
                worker.is_starting()
                    || (worker.jobs_done == 0 && matches!(worker.state, WorkerPhase::Idle { .. }))
            })
    }

    /// Whether a fresh worker is starting, or one more may be started.
    fn has_room_for_fresh(&self) -> bool {
        let live = self.workers.values().filter(|worker| worker.is_live()).count();
        live < self.settings.workers.max(1) + self.settings.spares
            || self.workers.values().any(Worker::is_starting)
    }

    /// Makes room for a fresh worker; false if all workers are busy.
    fn make_room(&mut self, now: Time, live: usize, actions: &mut Vec<SupervisorAction>) -> bool {
        if live < self.settings.workers.max(1) + self.settings.spares {
            return true;
        }
        let used = self.workers.iter().find(|(_, worker)| {
            worker.jobs_done > 0 && matches!(worker.state, WorkerPhase::Idle { .. })
        });
        let Some((&id, _)) = used else { return false };
        self.stop(now, id, actions);
        true
    }
}
