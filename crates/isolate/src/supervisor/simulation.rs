//! Random schedules for the supervisor: the clock is a number, processes are simulated, and a
//! model checks the rules after every step.
//!
//! A violation reports its seed; `ISOLATE_SEED=n cargo test -p isolate --lib schedules` runs
//! only that schedule and prints a trace.

mod model;

use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::{
    BreakerState, JobId, JobTerms, Supervisor, SupervisorAction, SupervisorEvent, Time, WorkerId,
};
use crate::class::{DeathClass, KillReason};
use crate::settings::{BreakerPolicy, PoolSettings, RestartPolicy, RetryPolicy};
use model::{Model, ProcessPhase};

const SCHEDULES: u64 = 100_000;
const THREADS: u64 = 4;

/// The maximum number of steps in which a schedule must settle.
const MAX_STEPS_TO_SETTLE: usize = 2_000;

#[test]
fn a_hundred_thousand_schedules_follow_the_rules() {
    if let Some(seed) = std::env::var("ISOLATE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        World::new(seed, true).run();
        return;
    }
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..SCHEDULES).step_by(THREADS as usize) {
                    World::new(seed, false).run();
                }
            });
        }
    });
}

/// What a process will do next, unless something else happens first.
#[derive(Debug, Clone, Copy)]
enum PlannedEvent {
    Spawn,
    Warm,
    FinishedJob,
    PassOn,
    Die { class: Option<DeathClass>, refused: bool },
}

/// How a job treats its workers. Once faults are over, only poison still fails.
#[derive(Debug, Clone, Copy)]
enum JobBehavior {
    Healthy,
    Flaky,
    Hangs,
    Poison(DeathClass),
}

struct World {
    supervisor: Supervisor,
    model: Model,
    random: Rng,
    plans: Vec<(Time, WorkerId, PlannedEvent)>,
    /// Indexed by job ID.
    behaviors: Vec<JobBehavior>,
    /// Whether most workers fail to start.
    broken: bool,
    /// Whether faults are over.
    calm: bool,
    actions: Vec<SupervisorAction>,
    trace: bool,
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl World {
    fn new(seed: u64, trace: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let settings = settings(&mut random, seed);
        Self {
            supervisor: Supervisor::new(settings.clone()),
            model: Model::new(settings, seed),
            broken: random.u8(0..12) == 0,
            random,
            plans: Vec::new(),
            behaviors: Vec::new(),
            calm: false,
            actions: Vec::new(),
            trace,
        }
    }

    fn run(mut self) {
        for _ in 0..self.random.u8(20..80) {
            match self.random.u8(0..100) {
                0..24 => self.submit(),
                24..29 => self.cancel(),
                29..34 => self.kill_random_worker(),
                34..37 => self.wake_up_late(),
                37 if self.random.u8(0..4) == 0 => self.shut_down(),
                _ => {
                    self.advance();
                }
            }
        }
        self.settle();
    }

    /// Faults stop: every job gets its outcome, the pool works again, and then it stops,
    /// leaving nothing behind.
    fn settle(&mut self) {
        self.calm = true;
        if self.model.drain_until.is_none() && self.random.bool() {
            // The death of a worker killed earlier may still count against the pool.
            self.advance_until(|world| world.model.jobs.is_empty() && world.model.is_quiet());
            if self.supervisor.breaker() == BreakerState::Open {
                let wait = self.supervisor.breaker.open_for(self.model.now).unwrap_or_default();
                self.model.now += wait;
            }
            let job =
                self.submit_job(JobBehavior::Healthy, JobTerms { patience: ms(60_000), ..TERMS });
            self.advance_until(|world| world.model.jobs.is_empty());
            self.model.must(self.model.answered == Some(job), "a pool without faults answers");
            self.model.must(
                self.supervisor.breaker() == BreakerState::Closed,
                "an answer closes the breaker",
            );
            if self.model.settings.idle_stop.is_some_and(|stop| stop < Time::MAX) {
                self.advance_until(|world| world.model.wake.is_none());
                self.advance_until(|world| world.plans.is_empty());
                self.model.must(self.model.workers.is_empty(), "an unused pool has no workers");
            }
        }
        self.shut_down();
        self.advance_until(|world| world.model.workers.is_empty());
        self.model.must(self.model.jobs.is_empty(), "every job has an outcome");
        self.model.must(self.model.drained, "the end of the drain is reported");
        self.step(SupervisorEvent::Tick);
        self.step(SupervisorEvent::Kill);
        self.model.must(
            self.supervisor.next_wake(self.model.now).is_none_or(|at| at < Time::MAX),
            "there is no wake-up at `Time::MAX`",
        );
    }

    fn advance_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..MAX_STEPS_TO_SETTLE {
            if done(self) {
                return;
            }
            if !self.advance() {
                break;
            }
        }
        self.model.must(done(self), "everything settles");
    }

    /// Advances to the next event: a process's planned one or the wake-up.
    fn advance(&mut self) -> bool {
        let wake = self.model.wake;
        let planned = (0..self.plans.len()).min_by_key(|&at| (self.plans[at].0, self.plans[at].1));
        let tick_first = match (wake, planned) {
            (None, None) => return false,
            (Some(wake), Some(planned)) => {
                let due = self.plans[planned].0;
                wake < due || (wake == due && self.random.bool())
            }
            (wake, _) => wake.is_some(),
        };
        if let (Some(wake), true) = (wake, tick_first) {
            self.model.now = self.model.now.max(wake);
            self.step(SupervisorEvent::Tick);
        } else if let Some(at) = planned {
            let (due, worker, planned) = self.plans.swap_remove(at);
            self.model.now = self.model.now.max(due);
            self.perform(worker, planned);
        }
        true
    }

    fn perform(&mut self, worker: WorkerId, planned: PlannedEvent) {
        let killed = match self.model.phase(worker) {
            ProcessPhase::Killed { reason, starting, .. } => Some((reason, starting)),
            _ => None,
        };
        if let Some((reason, starting)) = killed
            && !matches!(planned, PlannedEvent::Die { .. })
        {
            let class = self.class_of_killed(reason, starting);
            self.plan(worker, 0..3, PlannedEvent::Die { class, refused: false });
        }
        match planned {
            PlannedEvent::Spawn => {
                if killed.is_none() {
                    self.plan_warm_up(worker);
                }
                self.step(SupervisorEvent::Spawned { worker });
            }
            PlannedEvent::Warm => self.step(SupervisorEvent::Ready { worker }),
            PlannedEvent::FinishedJob => self.step(SupervisorEvent::Finished { worker }),
            PlannedEvent::PassOn => self.step(SupervisorEvent::PassedOn { worker }),
            PlannedEvent::Die { class, refused } => {
                self.step(SupervisorEvent::Ended { worker, class, refused, undelivered: false })
            }
        }
    }

    fn submit(&mut self) {
        let behavior = match self.random.u8(0..20) {
            0..10 => JobBehavior::Healthy,
            10..14 => JobBehavior::Flaky,
            14..16 => JobBehavior::Hangs,
            _ => JobBehavior::Poison(self.class_of_busy()),
        };
        let terms = JobTerms {
            deadline: ms(self.random.u64(3..40)),
            patience: match self.random.u8(0..20) {
                0 => Duration::ZERO,
                1..6 => Duration::MAX,
                _ => ms(self.random.u64(1..150)),
            },
            idempotent: self.random.bool(),
            strikes: self.random.u32(1..=3),
            single: self.random.bool(),
            bisecting: self.random.u8(0..8) == 0,
        };
        self.submit_job(behavior, terms);
    }

    fn submit_job(&mut self, behavior: JobBehavior, terms: JobTerms) -> JobId {
        let job = self.behaviors.len() as JobId;
        self.behaviors.push(behavior);
        self.step(SupervisorEvent::Submit { job, terms });
        job
    }

    /// Cancels a random recent job, which may already have been answered.
    fn cancel(&mut self) {
        if !self.behaviors.is_empty() {
            let recent = self.behaviors.len().saturating_sub(6);
            let job = self.random.usize(recent..self.behaviors.len()) as JobId;
            self.step(SupervisorEvent::Cancel { job });
        }
    }

    /// A process dies unexpectedly.
    fn kill_random_worker(&mut self) {
        let Some(worker) = self.random.choice(&self.model.workers) else {
            return;
        };
        let (id, phase) = (worker.id, worker.phase);
        let class = match phase {
            ProcessPhase::Spawning { .. } | ProcessPhase::Warming { .. } => {
                DeathClass::StartFailure
            }
            // Only our own kill leads to a timeout.
            ProcessPhase::Busy { .. } => match self.class_of_busy() {
                DeathClass::Timeout => DeathClass::Killed,
                class => class,
            },
            ProcessPhase::Idle { .. } | ProcessPhase::Stopping { .. } => {
                *self.random.choice(&[DeathClass::Killed, DeathClass::Crash]).unwrap()
            }
            ProcessPhase::Killed { .. } => return,
        };
        self.plans.retain(|&(_, planned, _)| planned != id);
        self.step(SupervisorEvent::Ended {
            worker: id,
            class: Some(class),
            refused: false,
            undelivered: false,
        });
    }

    /// The wake-up comes late.
    fn wake_up_late(&mut self) {
        self.model.now += ms(self.random.u64(0..60));
        self.step(SupervisorEvent::Tick);
    }

    fn shut_down(&mut self) {
        let budget = match self.random.u8(0..8) {
            0 => Duration::ZERO,
            1 => Duration::MAX,
            _ => ms(self.random.u64(1..60)),
        };
        let event = if self.random.bool() {
            SupervisorEvent::Kill
        } else {
            SupervisorEvent::Drain { budget }
        };
        self.step(event);
    }

    fn step(&mut self, event: SupervisorEvent) {
        if self.trace {
            eprintln!("{:?} {event:?}", self.model.now);
        }
        self.model.note(&event);
        let mut actions = std::mem::take(&mut self.actions);
        self.supervisor.step(self.model.now, event, &mut actions);
        for action in actions.drain(..) {
            if self.trace {
                eprintln!("    {action:?}");
            }
            self.model.check_action(&self.supervisor, &action);
            self.execute_order(&action);
        }
        self.actions = actions;
        if let SupervisorEvent::Ended { worker, .. } = self.model.event {
            self.plans.retain(|&(_, planned, _)| planned != worker);
        }
        self.model.check_state(&self.supervisor);
    }

    /// Plans how the process reacts to an order.
    fn execute_order(&mut self, action: &SupervisorAction) {
        match *action {
            SupervisorAction::Start { worker } => self.plan_start(worker),
            SupervisorAction::Run { worker, job, budget, .. } => self.plan_run(worker, job, budget),
            SupervisorAction::Stop { worker } => self.plan_stop(worker),
            SupervisorAction::Kill { worker, reason } => self.plan_kill(worker, reason),
            _ => {}
        }
    }

    fn plan(&mut self, worker: WorkerId, after: std::ops::Range<u64>, planned: PlannedEvent) {
        let due = self.model.now + ms(self.random.u64(after));
        self.plans.retain(|&(_, planned, _)| planned != worker);
        self.plans.push((due, worker, planned));
    }

    fn fails_to_start(&mut self) -> bool {
        !self.calm && self.random.u8(0..100) < if self.broken { 85 } else { 6 }
    }

    fn plan_start(&mut self, worker: WorkerId) {
        if self.fails_to_start() {
            let refused = self.random.u8(0..3) == 0;
            self.plan(
                worker,
                0..5,
                PlannedEvent::Die { class: Some(DeathClass::StartFailure), refused },
            );
        } else {
            self.plan(worker, 0..3, PlannedEvent::Spawn);
        }
    }

    fn plan_warm_up(&mut self, worker: WorkerId) {
        if self.fails_to_start() {
            let refused = self.random.u8(0..6) == 0;
            self.plan(
                worker,
                0..9,
                PlannedEvent::Die { class: Some(DeathClass::StartFailure), refused },
            );
        } else if self.calm {
            self.plan(worker, 1..3, PlannedEvent::Warm);
        } else if self.random.u8(0..16) > 0 {
            let deadline = self.model.settings.start_deadline.as_millis() as u64;
            self.plan(worker, 1..deadline + 2, PlannedEvent::Warm);
        }
    }

    fn plan_run(&mut self, worker: WorkerId, job: JobId, budget: Duration) {
        let deadline = budget.as_millis() as u64;
        let class = match self.behaviors[job as usize] {
            JobBehavior::Poison(class) => Some(class),
            JobBehavior::Flaky if !self.calm && self.random.bool() => Some(self.class_of_busy()),
            JobBehavior::Hangs if !self.calm => Some(DeathClass::Timeout),
            _ => None,
        };
        match class {
            // It hangs until it is killed.
            Some(DeathClass::Timeout) => {}
            Some(_) => self.plan(worker, 0..deadline, PlannedEvent::Die { class, refused: false }),
            None if self.calm => self.plan(worker, 1..3, PlannedEvent::FinishedJob),
            None if self.random.u8(0..8) == 0 => {
                self.plan(worker, 1..deadline + 3, PlannedEvent::PassOn);
            }
            None => self.plan(worker, 1..deadline + 3, PlannedEvent::FinishedJob),
        }
    }

    fn plan_stop(&mut self, worker: WorkerId) {
        let grace = self.model.settings.stop_grace.as_millis() as u64;
        let (class, within) = match self.random.u8(0..10) {
            _ if self.calm => (None, grace),
            // It ignores the order.
            0 => return,
            1 => (Some(DeathClass::Crash), grace),
            _ => (None, grace + 2),
        };
        self.plan(worker, 0..within, PlannedEvent::Die { class, refused: false });
    }

    fn plan_kill(&mut self, worker: WorkerId, reason: KillReason) {
        let ProcessPhase::Killed { job, starting, .. } = self.model.phase(worker) else {
            return;
        };
        // What was sent before the signal arrived is still received.
        let planned = match job {
            _ if self.random.u8(0..4) > 0 => {
                PlannedEvent::Die { class: self.class_of_killed(reason, starting), refused: false }
            }
            Some(_) if self.random.u8(0..4) == 0 => PlannedEvent::PassOn,
            Some(_) => PlannedEvent::FinishedJob,
            None if self.random.bool() => PlannedEvent::Spawn,
            None => PlannedEvent::Warm,
        };
        self.plan(worker, 0..5, planned);
    }

    fn class_of_busy(&mut self) -> DeathClass {
        let classes = [
            DeathClass::Crash,
            DeathClass::Panic,
            DeathClass::OutOfMemory,
            DeathClass::Killed,
            DeathClass::Timeout,
            DeathClass::Protocol,
            DeathClass::Exit,
        ];
        *self.random.choice(&classes).unwrap()
    }

    fn class_of_killed(&mut self, reason: KillReason, starting: bool) -> Option<DeathClass> {
        match reason {
            KillReason::Shutdown | KillReason::Cancelled => None,
            _ if starting => Some(DeathClass::StartFailure),
            // It ended by itself just before the signal.
            KillReason::StopGrace if self.random.u8(0..4) == 0 => None,
            _ if self.random.u8(0..8) == 0 => Some(DeathClass::Crash),
            _ => Some(DeathClass::Timeout),
        }
    }
}

const TERMS: JobTerms = JobTerms {
    deadline: Duration::from_millis(20),
    patience: Duration::from_millis(100),
    idempotent: true,
    strikes: 2,
    single: true,
    bisecting: false,
};

fn settings(random: &mut Rng, seed: u64) -> PoolSettings {
    let forever = |random: &mut Rng, most: u64| {
        if random.u8(0..8) == 0 { Duration::MAX } else { ms(random.u64(1..most)) }
    };
    PoolSettings {
        workers: random.usize(0..=3),
        spares: random.usize(0..=2),
        start_deadline: ms(random.u64(6..30)),
        stop_grace: ms(random.u64(1..20)),
        recycle_after: random.bool().then(|| random.u64(0..4)),
        idle_stop: (random.u8(0..4) > 0).then(|| forever(random, 100)),
        queue_bound: random.usize(0..8),
        retry: RetryPolicy { strikes: 2, outside_kills: random.u32(0..3) },
        restart: RestartPolicy {
            first_delay: ms(random.u64(0..20)),
            longest_delay: ms(random.u64(1..100)),
            healthy_after: forever(random, 200),
        },
        breaker: BreakerPolicy {
            deaths: random.usize(0..8),
            window: forever(random, 100),
            cooldown: ms(random.u64(1..50)),
            longest_cooldown: forever(random, 200),
        },
        seed,
        ..PoolSettings::default()
    }
}
