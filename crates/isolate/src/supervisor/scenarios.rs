//! Single decisions of the supervisor, as short scenarios. Times are in milliseconds; worker
//! and job numbers start at one.

use std::time::Duration;

use super::Action::{Answer, Cancel, Drained, Fail, Kill, Run, Start, Stop, Taken};
use super::{
    Action, BreakerState, Event, Failing, JobId, Measure, Supervisor, Terms, Time, WorkerId,
};
use crate::class::{DeathClass, KillReason};
use crate::settings::{BreakerPolicy, PoolSettings};

const DEADLINE: Duration = Duration::from_millis(1_000);
const TERMS: Terms = Terms {
    deadline: DEADLINE,
    patience: Duration::from_millis(5_000),
    idempotent: false,
    strikes: 2,
    single: true,
    bisecting: false,
};

struct Story {
    supervisor: Supervisor,
    now: Time,
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn run(worker: WorkerId, job: JobId, attempt: u32) -> Action {
    Run { worker, job, attempt, budget: DEADLINE }
}

fn kill(worker: WorkerId, reason: KillReason) -> Action {
    Kill { worker, reason }
}

fn fail(job: JobId, why: Failing) -> Action {
    Fail { job, why }
}

fn taken(worker: WorkerId, measure: Measure) -> Action {
    Taken { worker, measure }
}

impl Story {
    fn new(workers: usize, spares: usize) -> Self {
        Self::with(PoolSettings { workers, spares, ..PoolSettings::default() })
    }

    fn with(settings: PoolSettings) -> Self {
        Self { supervisor: Supervisor::new(settings), now: Time::ZERO }
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.supervisor.step(self.now, event, &mut actions);
        actions
    }

    fn tick_at(&mut self, at: Time) -> Vec<Action> {
        self.now = at;
        self.step(Event::Tick)
    }

    /// Advances to the next wake-up.
    fn wake(&mut self) -> Vec<Action> {
        let at = self.supervisor.next_wake(self.now).expect("something is planned");
        self.tick_at(at)
    }

    fn submit(&mut self, job: JobId) -> Vec<Action> {
        self.submit_on(job, TERMS)
    }

    fn submit_on(&mut self, job: JobId, terms: Terms) -> Vec<Action> {
        self.step(Event::Submit { job, terms })
    }

    fn ready(&mut self, worker: WorkerId) -> Vec<Action> {
        self.step(Event::Spawned { worker });
        self.step(Event::Ready { worker })
    }

    fn finish(&mut self, worker: WorkerId) -> Vec<Action> {
        self.step(Event::Finished { worker })
    }

    fn die(&mut self, worker: WorkerId, class: DeathClass) -> Vec<Action> {
        self.step(Event::Ended { worker, class: Some(class), refused: false, undelivered: false })
    }

    fn exit(&mut self, worker: WorkerId) -> Vec<Action> {
        self.step(Event::Ended { worker, class: None, refused: false, undelivered: false })
    }
}

#[test]
fn workers_with_old_settings_do_no_further_job() {
    let mut story = Story::new(1, 1);
    story.submit(1);
    story.ready(1);
    story.ready(2);
    // The busy worker continues; the idle one and the starting one are replaced.
    assert_eq!(story.step(Event::Renew), [Stop { worker: 2 }, Start { worker: 3 }]);
    assert_eq!(story.step(Event::Renew), []);
    assert_eq!(story.ready(3), [Stop { worker: 3 }, Start { worker: 4 }]);
    assert_eq!(story.finish(1), [Answer { job: 1 }, Stop { worker: 1 }]);
    assert_eq!(story.ready(4), []);
    assert_eq!(story.submit(2)[0], run(4, 2, 0));
}

#[test]
fn a_job_that_is_passed_on_costs_nobody_anything() {
    let mut story = Story::new(1, 1);
    story.submit(1);
    story.ready(1);
    story.ready(2);
    let passed_on = story.step(Event::PassedOn { worker: 1 });
    assert_eq!(passed_on, [Stop { worker: 1 }, run(2, 1, 0), Start { worker: 3 }]);
    assert_eq!(story.exit(1), []);
    assert_eq!(story.finish(2), [Answer { job: 1 }]);
    assert_eq!(story.supervisor.restarts(), 0);
}

#[test]
fn a_job_is_not_passed_on_for_ever() {
    let mut story = Story::new(1, 0);
    assert_eq!(story.submit(1), [Start { worker: 1 }]);
    for worker in 1..=10 {
        assert_eq!(story.ready(worker), [run(worker, 1, 0)]);
        let next = Start { worker: worker + 1 };
        assert_eq!(story.step(Event::PassedOn { worker }), [Stop { worker }, next]);
        story.exit(worker);
    }
    story.ready(11);
    let why = Failing::Died { class: DeathClass::Killed };
    assert_eq!(story.step(Event::PassedOn { worker: 11 }), [fail(1, why), Stop { worker: 11 }]);
}

#[test]
fn a_job_is_retried_on_the_spare() {
    let mut story = Story::new(1, 1);
    assert_eq!(story.submit(1), [Start { worker: 1 }, Start { worker: 2 }]);
    assert_eq!(story.ready(1), [run(1, 1, 0)]);
    assert_eq!(story.ready(2), []);
    assert_eq!(
        story.die(1, DeathClass::Crash),
        [taken(1, Measure::Retried), run(2, 1, 1), Start { worker: 3 }]
    );
    assert_eq!(story.finish(2), [Answer { job: 1 }]);
}

#[test]
fn a_job_that_its_worker_had_not_read_gets_no_strike() {
    let mut story = Story::new(1, 1);
    story.submit(1);
    story.ready(1);
    story.ready(2);
    let class = Some(DeathClass::Crash);
    let event = Event::Ended { worker: 1, class, refused: false, undelivered: true };
    assert_eq!(story.step(event), [taken(1, Measure::Retried), run(2, 1, 1), Start { worker: 3 }]);
    story.ready(3);
    // The first real death is the first strike.
    assert_eq!(story.die(2, DeathClass::Crash)[..1], [taken(2, Measure::Retried)]);
}

#[test]
fn a_job_that_kills_twice_is_quarantined() {
    let mut story = Story::new(1, 1);
    story.submit(1);
    story.ready(1);
    story.ready(2);
    story.die(1, DeathClass::Crash);
    let why = Failing::Poisoned { class: DeathClass::Panic };
    assert_eq!(
        story.die(2, DeathClass::Panic)[..2],
        [fail(1, why), taken(2, Measure::Quarantined)]
    );
}

#[test]
fn a_timeout_is_retried_only_if_that_does_no_harm() {
    let died = Failing::Died { class: DeathClass::Timeout };
    let table = [
        (false, vec![fail(1, died), taken(1, Measure::GaveUp)]),
        (true, vec![taken(1, Measure::Retried), Start { worker: 2 }]),
    ];
    for (idempotent, expected) in table {
        let mut story = Story::new(1, 0);
        story.submit_on(1, Terms { idempotent, ..TERMS });
        story.ready(1);
        assert_eq!(story.wake(), [kill(1, KillReason::Deadline)]);
        assert_eq!(story.now, DEADLINE);
        assert_eq!(story.die(1, DeathClass::Timeout), expected);
    }
}

#[test]
fn an_answer_that_crosses_the_kill_counts() {
    let mut story = Story::new(1, 0);
    story.submit(1);
    story.ready(1);
    story.wake();
    assert_eq!(story.finish(1), [Answer { job: 1 }]);
    assert_eq!(story.die(1, DeathClass::Timeout), [taken(1, Measure::Replaced)]);
}

/// A pool whose breaker opens at the first death that counts.
fn touchy() -> Story {
    let breaker = BreakerPolicy { deaths: 0, ..BreakerPolicy::default() };
    Story::with(PoolSettings { breaker, ..PoolSettings::default() })
}

#[test]
fn an_open_breaker_refuses_those_who_wait_and_those_who_come() {
    let mut story = touchy();
    story.submit(1);
    story.ready(1);
    story.submit(2);
    let why = Failing::BreakerOpen { retry_after: ms(5_000) };
    // The job was to be retried but then failed, so the report must not say "retried".
    assert_eq!(
        story.die(1, DeathClass::Crash),
        [fail(1, why), fail(2, why), taken(1, Measure::GaveUp)]
    );
    assert_eq!(story.submit(3), [fail(3, why)]);
}

#[test]
fn a_trial_decides_about_the_breaker() {
    for succeeds in [true, false] {
        let mut story = touchy();
        story.submit(1);
        story.die(1, DeathClass::StartFailure);
        story.now = ms(5_000);
        assert_eq!(story.submit(2), [Start { worker: 2 }]);
        assert_eq!(story.supervisor.breaker(), BreakerState::HalfOpen);
        let why = Failing::BreakerOpen { retry_after: ms(5_000) };
        assert_eq!(story.submit(3), [fail(3, why)]);
        if succeeds {
            story.ready(2);
            assert_eq!(story.finish(2), [Answer { job: 2 }]);
            assert_eq!(story.supervisor.breaker(), BreakerState::Closed);
        } else {
            let why = Failing::BreakerOpen { retry_after: ms(10_000) };
            assert_eq!(story.die(2, DeathClass::StartFailure)[0], fail(2, why));
            assert_eq!(story.supervisor.breaker(), BreakerState::Open);
        }
    }
}

#[test]
fn the_second_death_in_a_row_delays_the_restart() {
    let mut story = Story::new(1, 0);
    story.submit(1);
    let replaced = taken(1, Measure::Replaced);
    assert_eq!(story.die(1, DeathClass::StartFailure), [replaced, Start { worker: 2 }]);
    assert_eq!(story.die(2, DeathClass::StartFailure), [taken(2, Measure::Replaced)]);
    assert_eq!(story.wake(), [Start { worker: 3 }]);
    assert!((ms(75)..=ms(125)).contains(&story.now), "{:?}", story.now);
}

#[test]
fn idle_workers_stop_and_spares_with_them() {
    let mut story = Story::new(1, 1);
    story.submit(1);
    story.ready(1);
    story.ready(2);
    story.finish(1);
    assert_eq!(story.tick_at(ms(299_999)), []);
    assert_eq!(story.wake(), [Stop { worker: 1 }, Stop { worker: 2 }]);
    assert_eq!(story.now, ms(300_000));
    // One stops in time, the other must be killed.
    assert_eq!(story.exit(1), []);
    assert_eq!(story.wake(), [kill(2, KillReason::StopGrace)]);
    assert_eq!(story.now, ms(302_000));
}

#[test]
fn a_worn_worker_is_replaced() {
    let mut story = Story::with(PoolSettings { recycle_after: Some(2), ..Default::default() });
    story.submit(1);
    story.ready(1);
    assert_eq!(story.finish(1), [Answer { job: 1 }]);
    assert_eq!(story.submit(2), [run(1, 2, 0)]);
    story.submit(3);
    assert_eq!(story.finish(1), [Answer { job: 2 }, Stop { worker: 1 }, Start { worker: 2 }]);
    assert_eq!(story.ready(2), [run(2, 3, 0)]);
}

#[test]
fn a_cancelled_job_is_forgotten_or_told_to_its_worker() {
    let mut story = Story::new(1, 0);
    story.submit(1);
    story.submit(2);
    story.ready(1);
    assert_eq!(story.step(Event::Cancel { job: 2 }), []);
    assert_eq!(story.supervisor.waiting(), 0);
    assert_eq!(story.step(Event::Cancel { job: 1 }), [Cancel { worker: 1, job: 1 }]);
    assert_eq!(story.submit(3), []);
    assert_eq!(story.finish(1), [run(1, 3, 0)]);
    story.step(Event::Cancel { job: 3 });
    assert_eq!(story.die(1, DeathClass::Crash), [taken(1, Measure::Dropped)]);
}

#[test]
fn a_cancelled_job_that_goes_on_is_ended() {
    let mut story = Story::with(PoolSettings { stop_grace: ms(100), ..Default::default() });
    story.submit(1);
    story.ready(1);
    story.submit(2);
    story.step(Event::Cancel { job: 1 });
    // The next job gets a worker at once.
    assert_eq!(story.wake(), [kill(1, KillReason::Cancelled), Start { worker: 2 }]);
    assert_eq!(story.now, ms(100));
    // An orderly end: no death is reported.
    assert_eq!(story.exit(1), []);
    assert_eq!(story.supervisor.restarts(), 0);
    assert_eq!(story.ready(2), [run(2, 2, 0)]);
}

#[test]
fn a_drain_waits_for_what_runs_until_its_budget_is_over() {
    let mut story = Story::new(2, 1);
    for job in 1..=3 {
        story.submit(job);
    }
    story.ready(1);
    story.ready(2);
    // Waiting jobs fail, the third worker is stopped, two jobs continue.
    assert_eq!(
        story.step(Event::Drain { budget: ms(100) }),
        [fail(3, Failing::Draining), kill(3, KillReason::Shutdown)]
    );
    assert_eq!(story.submit(4), [fail(4, Failing::Draining)]);
    assert_eq!(story.exit(3), []);
    assert_eq!(story.finish(1), [Answer { job: 1 }, Stop { worker: 1 }]);
    assert_eq!(story.exit(1), []);
    assert_eq!(story.wake(), [kill(2, KillReason::Shutdown)]);
    assert_eq!(story.now, ms(100));
    assert_eq!(story.exit(2), [fail(2, Failing::Draining), Drained]);
    // Dropping the pool afterwards kills it.
    assert_eq!(story.step(Event::Kill), []);
}

#[test]
fn a_refused_start_fails_the_queue() {
    let mut story = Story::new(1, 0);
    story.submit(1);
    story.submit(2);
    let class = Some(DeathClass::StartFailure);
    assert_eq!(
        story.step(Event::Ended { worker: 1, class, refused: true, undelivered: false }),
        [
            fail(1, Failing::StartRefused),
            fail(2, Failing::StartRefused),
            taken(1, Measure::Replaced)
        ]
    );
}

#[test]
fn what_ran_out_of_memory_waits_for_a_dying_worker_to_be_gone() {
    let mut story = Story::new(2, 1);
    story.submit(1);
    story.submit(2);
    for worker in 1..=3 {
        story.ready(worker);
    }
    assert_eq!(story.tick_at(ms(1_000))[..2], [1, 2].map(|id| kill(id, KillReason::Deadline)));
    // It ran out of memory before the kill arrived; the other one is not gone yet.
    let actions = story.die(1, DeathClass::OutOfMemory);
    assert_eq!(actions[0], taken(1, Measure::RetriedAlone));
    assert!(!actions.contains(&run(3, 1, 1)), "{actions:?}");
    assert!(story.die(2, DeathClass::Timeout).contains(&run(3, 1, 1)));
}

#[test]
fn a_suspect_gets_its_fresh_worker_however_busy_the_pool_is() {
    let mut story = Story::new(1, 0);
    story.submit_on(1, Terms { idempotent: true, ..TERMS });
    story.submit(2);
    story.submit(3);
    story.ready(1);
    assert_eq!(story.wake(), [kill(1, KillReason::Deadline), Start { worker: 2 }]);
    // The next job takes the new worker before the old one is gone.
    assert_eq!(story.ready(2), [run(2, 2, 0)]);
    assert_eq!(story.die(1, DeathClass::Timeout), [taken(1, Measure::Retried)]);
    assert_eq!(story.finish(2), [Answer { job: 2 }, Stop { worker: 2 }, Start { worker: 3 }]);
    assert_eq!(story.ready(3), [run(3, 1, 1)]);
}

#[test]
fn for_ever_is_a_duration_too() {
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
    let mut story = Story::with(settings);
    story.now = ms(1);
    story.submit_on(1, Terms { deadline: forever, patience: forever, ..TERMS });
    assert_eq!(story.supervisor.next_wake(story.now), None);
    story.ready(1);
    story.die(1, DeathClass::Crash);
    story.die(2, DeathClass::StartFailure);
    assert_eq!(story.supervisor.breaker(), BreakerState::Open);
    story.step(Event::Drain { budget: forever });
    story.tick_at(ms(1_000));
    assert_eq!(story.supervisor.next_wake(story.now), None);
}
