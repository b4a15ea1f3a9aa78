use std::time::Duration;

use super::Time;
use crate::settings::RestartPolicy;

/// When the next worker may be started after deaths.
#[derive(Debug)]
pub(super) struct Backoff {
    policy: RestartPolicy,
    in_a_row: u32,
    last_death: Option<Time>,
    not_before: Time,
}

impl Backoff {
    pub(super) fn new(policy: RestartPolicy) -> Self {
        Self { policy, in_a_row: 0, last_death: None, not_before: Time::ZERO }
    }

    /// Counts a death. The jitter keeps pools from starting workers in step.
    pub(super) fn count(&mut self, now: Time, random: &mut fastrand::Rng) {
        let healthy =
            self.last_death.is_some_and(|at| now >= at.saturating_add(self.policy.healthy_after));
        self.in_a_row = if healthy { 1 } else { self.in_a_row.saturating_add(1) };
        self.last_death = Some(now);
        let delay = self.delay();
        let jittered = delay.as_secs_f64() * (0.75 + random.f64() * 0.5);
        let jittered = Duration::try_from_secs_f64(jittered).unwrap_or(Duration::MAX);
        self.not_before = now.saturating_add(jittered);
    }

    fn delay(&self) -> Duration {
        match self.in_a_row {
            0 | 1 => Duration::ZERO,
            n => {
                let doubled = self.policy.first_delay.saturating_mul(1 << (n - 2).min(20));
                doubled.min(self.policy.longest_delay)
            }
        }
    }

    pub(super) fn not_before(&self) -> Time {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_and_resets_after_a_healthy_period() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(RestartPolicy::default());
        let mut now = Duration::from_secs(1);
        for expected in [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000] {
            backoff.count(now, &mut random);
            let waited = (backoff.not_before() - now).as_millis();
            assert!(
                (expected * 3 / 4..=expected * 5 / 4).contains(&waited),
                "{waited} instead of about {expected}"
            );
            now += Duration::from_secs(31);
        }
        now += Duration::from_secs(60);
        backoff.count(now, &mut random);
        assert_eq!(backoff.not_before(), now);
    }
}
