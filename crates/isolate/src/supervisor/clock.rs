use std::time::Duration;

use super::Time;

/// If a wake-up is later than planned by more than this, the front itself was not running: it
/// was stopped or the machine was suspended.
const TOLERANCE: Duration = Duration::from_secs(1);

/// A clock that stands still while the front does not run. The front cannot see a worker's
/// answer then, so that time must not count against a deadline.
#[derive(Debug, Default)]
pub(crate) struct AwakeClock {
    lost: Duration,
}

impl AwakeClock {
    /// The time now, given the monotonic time and the latest time at which the front had
    /// planned to check.
    pub(crate) fn at(&mut self, monotonic: Duration, planned: Option<Duration>) -> Time {
        if let Some(planned) = planned {
            let late = monotonic.saturating_sub(planned);
            if late > TOLERANCE {
                self.lost += late;
            }
        }
        self.convert(monotonic)
    }

    /// The time at `monotonic`, assuming that the front has been running.
    pub(crate) fn convert(&self, monotonic: Duration) -> Time {
        monotonic.saturating_sub(self.lost)
    }

    /// The monotonic time that corresponds to `time`.
    pub(crate) fn monotonic(&self, time: Time) -> Duration {
        time + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_while_suspended_does_not_count() {
        let mut clock = AwakeClock::default();
        let at = Duration::from_secs;
        assert_eq!(clock.at(at(10), Some(at(10))), at(10));
        // A little late: the machine is just busy.
        assert_eq!(clock.at(at(11), Some(at(10))), at(11));
        // An hour late: the machine was suspended. A deadline at 20 is still 9 away.
        assert_eq!(clock.at(at(3611), Some(at(11))), at(11));
        assert_eq!(clock.monotonic(at(20)), at(3620));
        assert_eq!(clock.at(at(3612), None), at(12));
    }
}
