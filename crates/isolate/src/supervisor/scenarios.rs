//! Single decisions of the supervisor, as short scenarios. Times are in milliseconds; worker
//! and job numbers start at one.

use std::time::Duration;

use super::SupervisorAction::{Answer, Cancel, Drained, Fail, Kill, Run, Start, Stop, Taken};
use super::{
    BreakerState, JobFailure, JobId, JobTerms, Measure, Supervisor, SupervisorAction,
    SupervisorEvent, Time, WorkerId,
};
use crate::class::{DeathClass, KillReason};
use crate::settings::{BreakerPolicy, PoolSettings};

const DEADLINE: Duration = Duration::from_millis(1_000);
const TERMS: JobTerms = JobTerms {
    deadline: DEADLINE,
    patience: Duration::from_millis(5_000),
    idempotent: false,
    strikes: 2,
    single: true,
    bisecting: false,
};

struct Scenario {
    supervisor: Supervisor,
    now: Time,
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn run(worker: WorkerId, job: JobId, attempt: u32) -> SupervisorAction {
    Run { worker, job, attempt, budget: DEADLINE }
}

fn kill(worker: WorkerId, reason: KillReason) -> SupervisorAction {
    Kill { worker, reason }
}

fn fail(job: JobId, why: JobFailure) -> SupervisorAction {
    Fail { job, why }
}

fn taken(worker: WorkerId, measure: Measure) -> SupervisorAction {
    Taken { worker, measure }
}

impl Scenario {
    fn new(workers: usize, spares: usize) -> Self {
        Self::with(PoolSettings { workers, spares, ..PoolSettings::default() })
    }

    fn with(settings: PoolSettings) -> Self {
        Self { supervisor: Supervisor::new(settings), now: Time::ZERO }
    }

    fn step(&mut self, event: SupervisorEvent) -> Vec<SupervisorAction> {
        let mut actions = Vec::new();
        self.supervisor.step(self.now, event, &mut actions);
        actions
    }

    fn tick_at(&mut self, at: Time) -> Vec<SupervisorAction> {
        self.now = at;
        self.step(SupervisorEvent::Tick)
    }

    /// Advances to the next wake-up.
    fn wake(&mut self) -> Vec<SupervisorAction> {
        let at = self.supervisor.next_wake(self.now).expect("a wake-up is planned");
        self.tick_at(at)
    }

    fn submit(&mut self, job: JobId) -> Vec<SupervisorAction> {
        self.submit_on(job, TERMS)
    }

    fn submit_on(&mut self, job: JobId, terms: JobTerms) -> Vec<SupervisorAction> {
        self.step(SupervisorEvent::Submit { job, terms })
    }

    fn ready(&mut self, worker: WorkerId) -> Vec<SupervisorAction> {
        self.step(SupervisorEvent::Spawned { worker });
        self.step(SupervisorEvent::Ready { worker })
    }

    fn finish(&mut self, worker: WorkerId) -> Vec<SupervisorAction> {
        self.step(SupervisorEvent::Finished { worker })
    }

    fn die(&mut self, worker: WorkerId, class: DeathClass) -> Vec<SupervisorAction> {
        self.step(SupervisorEvent::Ended {
            worker,
            class: Some(class),
            refused: false,
            undelivered: false,
        })
    }

    fn exit(&mut self, worker: WorkerId) -> Vec<SupervisorAction> {
        self.step(SupervisorEvent::Ended {
            worker,
            class: None,
            refused: false,
            undelivered: false,
        })
    }
}

#[test]
fn workers_with_old_settings_take_no_further_job() {
    let mut scenario = Scenario::new(1, 1);
    scenario.submit(1);
    scenario.ready(1);
    scenario.ready(2);
    // The busy worker continues; the idle one and the starting one are replaced.
    assert_eq!(scenario.step(SupervisorEvent::Renew), [Stop { worker: 2 }, Start { worker: 3 }]);
    assert_eq!(scenario.step(SupervisorEvent::Renew), []);
    assert_eq!(scenario.ready(3), [Stop { worker: 3 }, Start { worker: 4 }]);
    assert_eq!(scenario.finish(1), [Answer { job: 1 }, Stop { worker: 1 }]);
    assert_eq!(scenario.ready(4), []);
    assert_eq!(scenario.submit(2)[0], run(4, 2, 0));
}

#[test]
fn passing_a_job_on_counts_against_nobody() {
    let mut scenario = Scenario::new(1, 1);
    scenario.submit(1);
    scenario.ready(1);
    scenario.ready(2);
    let passed_on = scenario.step(SupervisorEvent::PassedOn { worker: 1 });
    assert_eq!(passed_on, [Stop { worker: 1 }, run(2, 1, 0), Start { worker: 3 }]);
    assert_eq!(scenario.exit(1), []);
    assert_eq!(scenario.finish(2), [Answer { job: 1 }]);
    assert_eq!(scenario.supervisor.restarts(), 0);
}

#[test]
fn a_job_can_be_passed_on_only_so_often() {
    let mut scenario = Scenario::new(1, 0);
    assert_eq!(scenario.submit(1), [Start { worker: 1 }]);
    for worker in 1..=10 {
        assert_eq!(scenario.ready(worker), [run(worker, 1, 0)]);
        let next = Start { worker: worker + 1 };
        assert_eq!(scenario.step(SupervisorEvent::PassedOn { worker }), [Stop { worker }, next]);
        scenario.exit(worker);
    }
    scenario.ready(11);
    let why = JobFailure::Died { class: DeathClass::Killed };
    assert_eq!(
        scenario.step(SupervisorEvent::PassedOn { worker: 11 }),
        [fail(1, why), Stop { worker: 11 }]
    );
}

#[test]
fn a_job_is_retried_on_the_spare() {
    let mut scenario = Scenario::new(1, 1);
    assert_eq!(scenario.submit(1), [Start { worker: 1 }, Start { worker: 2 }]);
    assert_eq!(scenario.ready(1), [run(1, 1, 0)]);
    assert_eq!(scenario.ready(2), []);
    assert_eq!(
        scenario.die(1, DeathClass::Crash),
        [taken(1, Measure::Retried), run(2, 1, 1), Start { worker: 3 }]
    );
    assert_eq!(scenario.finish(2), [Answer { job: 1 }]);
}

#[test]
fn an_undelivered_job_gets_no_strike() {
    let mut scenario = Scenario::new(1, 1);
    scenario.submit(1);
    scenario.ready(1);
    scenario.ready(2);
    let class = Some(DeathClass::Crash);
    let event = SupervisorEvent::Ended { worker: 1, class, refused: false, undelivered: true };
    assert_eq!(
        scenario.step(event),
        [taken(1, Measure::Retried), run(2, 1, 1), Start { worker: 3 }]
    );
    scenario.ready(3);
    // The first real death is the first strike.
    assert_eq!(scenario.die(2, DeathClass::Crash)[..1], [taken(2, Measure::Retried)]);
}

#[test]
fn a_job_that_kills_twice_is_quarantined() {
    let mut scenario = Scenario::new(1, 1);
    scenario.submit(1);
    scenario.ready(1);
    scenario.ready(2);
    scenario.die(1, DeathClass::Crash);
    let why = JobFailure::Poisoned { class: DeathClass::Panic };
    assert_eq!(
        scenario.die(2, DeathClass::Panic)[..2],
        [fail(1, why), taken(2, Measure::Quarantined)]
    );
}

#[test]
fn a_timeout_is_retried_only_if_idempotent() {
    let died = JobFailure::Died { class: DeathClass::Timeout };
    let table = [
        (false, vec![fail(1, died), taken(1, Measure::GaveUp)]),
        (true, vec![taken(1, Measure::Retried), Start { worker: 2 }]),
    ];
    for (idempotent, expected) in table {
        let mut scenario = Scenario::new(1, 0);
        scenario.submit_on(1, JobTerms { idempotent, ..TERMS });
        scenario.ready(1);
        assert_eq!(scenario.wake(), [kill(1, KillReason::Deadline)]);
        assert_eq!(scenario.now, DEADLINE);
        assert_eq!(scenario.die(1, DeathClass::Timeout), expected);
    }
}

#[test]
fn an_answer_sent_before_the_kill_counts() {
    let mut scenario = Scenario::new(1, 0);
    scenario.submit(1);
    scenario.ready(1);
    scenario.wake();
    assert_eq!(scenario.finish(1), [Answer { job: 1 }]);
    assert_eq!(scenario.die(1, DeathClass::Timeout), [taken(1, Measure::Replaced)]);
}

/// A pool whose breaker opens at the first death that counts.
fn pool_with_sensitive_breaker() -> Scenario {
    let breaker = BreakerPolicy { deaths: 0, ..BreakerPolicy::default() };
    Scenario::with(PoolSettings { breaker, ..PoolSettings::default() })
}

#[test]
fn an_open_breaker_fails_waiting_and_new_jobs() {
    let mut scenario = pool_with_sensitive_breaker();
    scenario.submit(1);
    scenario.ready(1);
    scenario.submit(2);
    let why = JobFailure::BreakerOpen { retry_after: ms(5_000) };
    // The job was to be retried but then failed, so the report must not say "retried".
    assert_eq!(
        scenario.die(1, DeathClass::Crash),
        [fail(1, why), fail(2, why), taken(1, Measure::GaveUp)]
    );
    assert_eq!(scenario.submit(3), [fail(3, why)]);
}

#[test]
fn a_trial_closes_or_reopens_the_breaker() {
    for succeeds in [true, false] {
        let mut scenario = pool_with_sensitive_breaker();
        scenario.submit(1);
        scenario.die(1, DeathClass::StartFailure);
        scenario.now = ms(5_000);
        assert_eq!(scenario.submit(2), [Start { worker: 2 }]);
        assert_eq!(scenario.supervisor.breaker(), BreakerState::HalfOpen);
        let why = JobFailure::BreakerOpen { retry_after: ms(5_000) };
        assert_eq!(scenario.submit(3), [fail(3, why)]);
        if succeeds {
            scenario.ready(2);
            assert_eq!(scenario.finish(2), [Answer { job: 2 }]);
            assert_eq!(scenario.supervisor.breaker(), BreakerState::Closed);
        } else {
            let why = JobFailure::BreakerOpen { retry_after: ms(10_000) };
            assert_eq!(scenario.die(2, DeathClass::StartFailure)[0], fail(2, why));
            assert_eq!(scenario.supervisor.breaker(), BreakerState::Open);
        }
    }
}

#[test]
fn the_second_death_in_a_row_delays_the_restart() {
    let mut scenario = Scenario::new(1, 0);
    scenario.submit(1);
    let replaced = taken(1, Measure::Replaced);
    assert_eq!(scenario.die(1, DeathClass::StartFailure), [replaced, Start { worker: 2 }]);
    assert_eq!(scenario.die(2, DeathClass::StartFailure), [taken(2, Measure::Replaced)]);
    assert_eq!(scenario.wake(), [Start { worker: 3 }]);
    assert!((ms(75)..=ms(125)).contains(&scenario.now), "{:?}", scenario.now);
}

#[test]
fn idle_workers_and_spares_are_stopped() {
    let mut scenario = Scenario::new(1, 1);
    scenario.submit(1);
    scenario.ready(1);
    scenario.ready(2);
    scenario.finish(1);
    assert_eq!(scenario.tick_at(ms(299_999)), []);
    assert_eq!(scenario.wake(), [Stop { worker: 1 }, Stop { worker: 2 }]);
    assert_eq!(scenario.now, ms(300_000));
    // One stops in time, the other must be killed.
    assert_eq!(scenario.exit(1), []);
    assert_eq!(scenario.wake(), [kill(2, KillReason::StopGrace)]);
    assert_eq!(scenario.now, ms(302_000));
}

#[test]
fn a_worker_is_replaced_after_its_last_job() {
    let mut scenario =
        Scenario::with(PoolSettings { recycle_after: Some(2), ..Default::default() });
    scenario.submit(1);
    scenario.ready(1);
    assert_eq!(scenario.finish(1), [Answer { job: 1 }]);
    assert_eq!(scenario.submit(2), [run(1, 2, 0)]);
    scenario.submit(3);
    assert_eq!(scenario.finish(1), [Answer { job: 2 }, Stop { worker: 1 }, Start { worker: 2 }]);
    assert_eq!(scenario.ready(2), [run(2, 3, 0)]);
}

#[test]
fn a_cancelled_job_is_removed_or_its_worker_is_told() {
    let mut scenario = Scenario::new(1, 0);
    scenario.submit(1);
    scenario.submit(2);
    scenario.ready(1);
    assert_eq!(scenario.step(SupervisorEvent::Cancel { job: 2 }), []);
    assert_eq!(scenario.supervisor.waiting(), 0);
    assert_eq!(scenario.step(SupervisorEvent::Cancel { job: 1 }), [Cancel { worker: 1, job: 1 }]);
    assert_eq!(scenario.submit(3), []);
    assert_eq!(scenario.finish(1), [run(1, 3, 0)]);
    scenario.step(SupervisorEvent::Cancel { job: 3 });
    assert_eq!(scenario.die(1, DeathClass::Crash), [taken(1, Measure::Dropped)]);
}

#[test]
fn a_cancelled_job_that_does_not_return_is_killed() {
    let mut scenario = Scenario::with(PoolSettings { stop_grace: ms(100), ..Default::default() });
    scenario.submit(1);
    scenario.ready(1);
    scenario.submit(2);
    scenario.step(SupervisorEvent::Cancel { job: 1 });
    // The next job gets a worker at once.
    assert_eq!(scenario.wake(), [kill(1, KillReason::Cancelled), Start { worker: 2 }]);
    assert_eq!(scenario.now, ms(100));
    // An orderly end: no death is reported.
    assert_eq!(scenario.exit(1), []);
    assert_eq!(scenario.supervisor.restarts(), 0);
    assert_eq!(scenario.ready(2), [run(2, 2, 0)]);
}

#[test]
fn a_drain_waits_for_running_jobs_within_its_budget() {
    let mut scenario = Scenario::new(2, 1);
    for job in 1..=3 {
        scenario.submit(job);
    }
    scenario.ready(1);
    scenario.ready(2);
    // Waiting jobs fail, the third worker is stopped, two jobs continue.
    assert_eq!(
        scenario.step(SupervisorEvent::Drain { budget: ms(100) }),
        [fail(3, JobFailure::Draining), kill(3, KillReason::Shutdown)]
    );
    assert_eq!(scenario.submit(4), [fail(4, JobFailure::Draining)]);
    assert_eq!(scenario.exit(3), []);
    assert_eq!(scenario.finish(1), [Answer { job: 1 }, Stop { worker: 1 }]);
    assert_eq!(scenario.exit(1), []);
    assert_eq!(scenario.wake(), [kill(2, KillReason::Shutdown)]);
    assert_eq!(scenario.now, ms(100));
    assert_eq!(scenario.exit(2), [fail(2, JobFailure::Draining), Drained]);
    // Dropping the pool afterwards kills it.
    assert_eq!(scenario.step(SupervisorEvent::Kill), []);
}

#[test]
fn a_refused_start_fails_the_queue() {
    let mut scenario = Scenario::new(1, 0);
    scenario.submit(1);
    scenario.submit(2);
    let class = Some(DeathClass::StartFailure);
    assert_eq!(
        scenario.step(SupervisorEvent::Ended {
            worker: 1,
            class,
            refused: true,
            undelivered: false
        }),
        [
            fail(1, JobFailure::StartRefused),
            fail(2, JobFailure::StartRefused),
            taken(1, Measure::Replaced)
        ]
    );
}

#[test]
fn an_out_of_memory_retry_waits_for_dying_workers() {
    let mut scenario = Scenario::new(2, 1);
    scenario.submit(1);
    scenario.submit(2);
    for worker in 1..=3 {
        scenario.ready(worker);
    }
    assert_eq!(scenario.tick_at(ms(1_000))[..2], [1, 2].map(|id| kill(id, KillReason::Deadline)));
    // It ran out of memory before the kill arrived; the other one is not gone yet.
    let actions = scenario.die(1, DeathClass::OutOfMemory);
    assert_eq!(actions[0], taken(1, Measure::RetriedAlone));
    assert!(!actions.contains(&run(3, 1, 1)), "{actions:?}");
    assert!(scenario.die(2, DeathClass::Timeout).contains(&run(3, 1, 1)));
}

#[test]
fn a_suspect_gets_a_fresh_worker_even_in_a_busy_pool() {
    let mut scenario = Scenario::new(1, 0);
    scenario.submit_on(1, JobTerms { idempotent: true, ..TERMS });
    scenario.submit(2);
    scenario.submit(3);
    scenario.ready(1);
    assert_eq!(scenario.wake(), [kill(1, KillReason::Deadline), Start { worker: 2 }]);
    // The next job takes the new worker before the old one is gone.
    assert_eq!(scenario.ready(2), [run(2, 2, 0)]);
    assert_eq!(scenario.die(1, DeathClass::Timeout), [taken(1, Measure::Retried)]);
    assert_eq!(scenario.finish(2), [Answer { job: 2 }, Stop { worker: 2 }, Start { worker: 3 }]);
    assert_eq!(scenario.ready(3), [run(3, 1, 1)]);
}

#[test]
fn the_maximum_duration_means_never() {
    let forever = Duration::MAX;
    let mut settings = PoolSettings {
        spares: 1,
        start_deadline: forever,
        stop_grace: forever,
        idle_stop: Some(forever),
        ..PoolSettings::default()
    };
    settings.restart.healthy_after = forever;
    settings.breaker =
        BreakerPolicy { deaths: 1, window: forever, cooldown: forever, longest_cooldown: forever };
    let mut scenario = Scenario::with(settings);
    scenario.now = ms(1);
    scenario.submit_on(1, JobTerms { deadline: forever, patience: forever, ..TERMS });
    assert_eq!(scenario.supervisor.next_wake(scenario.now), None);
    scenario.ready(1);
    scenario.die(1, DeathClass::Crash);
    scenario.die(2, DeathClass::StartFailure);
    assert_eq!(scenario.supervisor.breaker(), BreakerState::Open);
    scenario.step(SupervisorEvent::Drain { budget: forever });
    scenario.tick_at(ms(1_000));
    assert_eq!(scenario.supervisor.next_wake(scenario.now), None);
}
