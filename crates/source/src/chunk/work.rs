use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How much work may go into one file.
///
/// Work is counted in steps: about 100 operations of a parser, or 1,000 nodes of a tree that is
/// read, some 25 µs together. Unlike time, this is the same for the same text however busy the
/// machine is, so the index does not depend on it. Recovering from errors can make each operation
/// a hundred times slower; CPU time limits that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkLimit {
    steps: u64,
    cpu: Duration,
}

impl WorkLimit {
    /// Any amount of work, for tests and benchmarks.
    pub const NONE: Self = Self::steps(u64::MAX);

    /// At most this many steps.
    pub const fn steps(steps: u64) -> Self {
        Self { steps, cpu: Duration::MAX }
    }

    /// The same, but not more than about this much CPU time of the thread.
    pub const fn with_cpu(self, cpu: Duration) -> Self {
        Self { cpu, ..self }
    }
}

/// How many steps are taken between two looks at the CPU time.
const STEPS_PER_LOOK: u64 = 64;

/// Why a file was not parsed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    TooMuchWork,
    Cancelled,
}

/// The work that is left for a file.
pub(super) struct Work<'c> {
    left: Cell<u64>,
    /// The CPU time of the thread when there is none left for the file.
    cpu_end: Option<Duration>,
    cancelled: &'c dyn Fn() -> bool,
}

impl<'c> Work<'c> {
    pub(super) fn new(limit: WorkLimit, cancelled: &'c dyn Fn() -> bool) -> Self {
        let is_limited = limit.cpu < Duration::MAX;
        let cpu_end = is_limited.then(cpu_time).map(|now| now.saturating_add(limit.cpu));
        Self { left: Cell::new(limit.steps), cpu_end, cancelled }
    }

    /// Takes one step, unless none is left or the caller is gone.
    pub(super) fn step(&self) -> Result<(), Stopped> {
        if (self.cancelled)() {
            return Err(Stopped::Cancelled);
        }
        let left = self.left.get().checked_sub(1).ok_or(Stopped::TooMuchWork)?;
        self.left.set(left);
        match self.cpu_end {
            Some(end) if left.is_multiple_of(STEPS_PER_LOOK) && cpu_time() >= end => {
                Err(Stopped::TooMuchWork)
            }
            _ => Ok(()),
        }
    }
}

fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(used.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_counts_and_waiting_does_not() {
        let slowly = || {
            std::thread::sleep(Duration::from_millis(1));
            false
        };
        let limit = WorkLimit::steps(u64::MAX).with_cpu(Duration::from_millis(200));
        let waiting = Work::new(limit, &slowly);
        assert!((0..300).all(|_| waiting.step().is_ok()), "300 ms went by");
        let busy = Work::new(limit, &|| false);
        let stopped = std::iter::repeat_with(|| busy.step()).find_map(Result::err);
        assert_eq!(stopped, Some(Stopped::TooMuchWork));
    }
}
