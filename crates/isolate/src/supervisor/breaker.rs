use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Time;
use crate::settings::BreakerPolicy;

/// The state of a pool's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Jobs are accepted.
    Closed,
    /// Too many workers died: jobs are refused.
    Open,
    /// One job at a time is accepted, as a trial.
    HalfOpen,
}

#[derive(Debug)]
pub(super) struct Breaker {
    policy: BreakerPolicy,
    deaths: VecDeque<Time>,
    state: BreakerPhase,
}

#[derive(Debug, Clone, Copy)]
enum BreakerPhase {
    Closed,
    Open { until: Time, cooldown: Duration },
    HalfOpen { cooldown: Duration },
}

impl Breaker {
    pub(super) fn new(policy: BreakerPolicy) -> Self {
        Self { policy, deaths: VecDeque::new(), state: BreakerPhase::Closed }
    }

    /// Admits a job, or returns how long to wait. `quiet` means that the pool has no other job;
    /// only then does an open breaker admit a trial.
    pub(super) fn admit(&mut self, now: Time, quiet: bool) -> Result<(), Duration> {
        match self.state {
            BreakerPhase::Closed => Ok(()),
            BreakerPhase::Open { until, cooldown } if now >= until && quiet => {
                self.state = BreakerPhase::HalfOpen { cooldown };
                Ok(())
            }
            BreakerPhase::Open { until, .. } if now < until => Err(until - now),
            // The trial must wait for running jobs to end.
            BreakerPhase::Open { cooldown, .. } => Err(cooldown),
            BreakerPhase::HalfOpen { .. } if quiet => Ok(()),
            BreakerPhase::HalfOpen { cooldown } => Err(cooldown),
        }
    }

    /// Counts a death.
    pub(super) fn count(&mut self, now: Time) {
        match self.state {
            BreakerPhase::Open { .. } => {}
            BreakerPhase::HalfOpen { cooldown } => {
                self.open(now, cooldown.saturating_mul(2).min(self.policy.longest_cooldown));
            }
            BreakerPhase::Closed => {
                self.deaths.push_back(now);
                while self
                    .deaths
                    .front()
                    .is_some_and(|&at| at.saturating_add(self.policy.window) < now)
                {
                    self.deaths.pop_front();
                }
                if self.deaths.len() > self.policy.deaths {
                    self.open(now, self.policy.cooldown);
                }
            }
        }
    }

    fn open(&mut self, now: Time, cooldown: Duration) {
        self.deaths.clear();
        self.state = BreakerPhase::Open { until: now.saturating_add(cooldown), cooldown };
    }

    /// How long the breaker stays open; `None` if it is not open.
    pub(super) fn open_for(&self, now: Time) -> Option<Duration> {
        match self.state {
            BreakerPhase::Open { until, .. } => Some(until.saturating_sub(now)),
            _ => None,
        }
    }

    /// Records a completed job, which ends a trial successfully.
    pub(super) fn succeeded(&mut self) {
        if let BreakerPhase::HalfOpen { .. } = self.state {
            self.state = BreakerPhase::Closed;
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.state {
            BreakerPhase::Closed => BreakerState::Closed,
            BreakerPhase::Open { .. } => BreakerState::Open,
            BreakerPhase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Time {
        Duration::from_secs(n)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        for at in 0..5 {
            breaker.count(seconds(at));
            assert_eq!(breaker.open_for(seconds(at)), None);
        }
        breaker.count(seconds(5));
        assert_eq!(breaker.open_for(seconds(7)), Some(seconds(3)));
        breaker
    }

    #[test]
    fn deaths_far_apart_do_not_open_the_breaker() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        for n in 0..100 {
            breaker.count(seconds(n * 3));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn an_open_breaker_admits_one_trial_then_closes() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(seconds(6), true), Err(seconds(4)));
        assert_eq!(
            breaker.admit(seconds(10), false),
            Err(seconds(5)),
            "a trial waits for running jobs"
        );
        assert_eq!(breaker.admit(seconds(10), true), Ok(()));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.admit(seconds(10), false).is_err());
        breaker.succeeded();
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert_eq!(breaker.admit(seconds(10), false), Ok(()));
    }

    #[test]
    fn a_failed_trial_doubles_the_cooldown() {
        let mut breaker = opened();
        let mut now = seconds(5);
        for wait in [5, 10, 20, 40, 60, 60] {
            assert!(breaker.admit(now + seconds(wait - 1), true).is_err());
            now += seconds(wait);
            assert_eq!(breaker.admit(now, true), Ok(()), "{wait}");
            breaker.count(now);
            assert_eq!(breaker.state(), BreakerState::Open);
        }
    }
}
