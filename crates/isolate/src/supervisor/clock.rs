use std::time::Duration;

use super::Time;

/// A wake-up that comes later than planned by more than this means that the front
/// itself did not run: it was stopped, or the machine was.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Time as the front lived it. While the front did not run, it could not see a
/// worker's answer, so that time must not count against a deadline.
#[derive(Debug, Default)]
pub(crate) struct AwakeClock {
    lost: Duration,
}

impl AwakeClock {
    /// The time now, given the monotonic time and when the front had planned to
    /// look at it at the latest.
    pub(crate) fn at(&mut self, monotonic: Duration, planned: Option<Duration>) -> Time {
        if let Some(planned) = planned {
            let late = monotonic.saturating_sub(planned);
            if late > TOLERANCE {
                self.lost += late;
            }
        }
        self.convert(monotonic)
    }

    /// The time now, when nothing was planned.
    pub(crate) fn convert(&self, monotonic: Duration) -> Time {
        monotonic.saturating_sub(self.lost)
    }

    /// The monotonic time at which it will be `time`.
    pub(crate) fn monotonic(&self, time: Time) -> Duration {
        time + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_slept_through_does_not_count() {
        let mut clock = AwakeClock::default();
        let at = Duration::from_secs;
        assert_eq!(clock.at(at(10), Some(at(10))), at(10));
        // A little late is only a busy machine.
        assert_eq!(clock.at(at(11), Some(at(10))), at(11));
        // An hour late is a lid that was closed: a deadline at 20 is still 9 away.
        assert_eq!(clock.at(at(3611), Some(at(11))), at(11));
        assert_eq!(clock.monotonic(at(20)), at(3620));
        assert_eq!(clock.at(at(3612), None), at(12));
    }
}
