use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isolith_protocol::StoreError;

/// When the running operation must stop; shared by a connection, its busy and progress handlers,
/// and cancellers.
#[derive(Debug, Clone)]
pub(crate) struct Deadline(Arc<Shared>);

/// Cancels the running operation of a writer or reader. It then fails with
/// [`StoreError::Deadline`]; a commit that has started is completed first.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// Nanoseconds after `start`; [`NEVER`] means no deadline.
    at: AtomicU64,
    cancelled: AtomicBool,
    /// While set, nothing is interrupted: a commit must be able to report its result.
    held: AtomicBool,
}

const NEVER: u64 = u64::MAX;

impl Deadline {
    pub(crate) fn at(deadline: Option<Instant>) -> Self {
        let this = Self(Arc::new(Shared {
            start: Instant::now(),
            at: AtomicU64::new(NEVER),
            cancelled: AtomicBool::new(false),
            held: AtomicBool::new(false),
        }));
        this.set(deadline);
        this
    }

    /// Starts a new operation, which may run until `deadline`.
    pub(crate) fn set(&self, deadline: Option<Instant>) {
        let at = deadline.map_or(NEVER, |deadline| {
            let after = deadline.saturating_duration_since(self.0.start).as_nanos();
            u64::try_from(after).unwrap_or(NEVER)
        });
        self.0.at.store(at, Ordering::Relaxed);
        self.0.cancelled.store(false, Ordering::Relaxed);
    }

    pub(crate) fn passed(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
            || match self.0.at.load(Ordering::Relaxed) {
                NEVER => false,
                at => self.0.start.elapsed().as_nanos() >= u128::from(at),
            }
    }

    /// Whether a running statement must be interrupted.
    pub(crate) fn interrupts(&self) -> bool {
        !self.0.held.load(Ordering::Relaxed) && self.passed()
    }

    pub(crate) fn check(&self, operation: &str) -> Result<(), StoreError> {
        if self.passed() {
            return Err(StoreError::Deadline { operation: operation.to_owned() });
        }
        Ok(())
    }

    /// Runs `work` to completion, ignoring the deadline.
    pub(crate) fn uninterrupted<T>(&self, work: impl FnOnce() -> T) -> T {
        let outer = self.0.held.swap(true, Ordering::Relaxed);
        let done = work();
        self.0.held.store(outer, Ordering::Relaxed);
        done
    }

    /// Runs `work` for at most `limit` from now, without extending the current deadline.
    pub(crate) fn within<T>(&self, limit: Duration, work: impl FnOnce() -> T) -> T {
        let outer = self.0.at.load(Ordering::Relaxed);
        let soon = (self.0.start.elapsed() + limit).as_nanos();
        self.0.at.store(u64::try_from(soon).unwrap_or(NEVER).min(outer), Ordering::Relaxed);
        let done = work();
        self.0.at.store(outer, Ordering::Relaxed);
        done
    }

    /// Sleeps briefly, for a random time so that waiters do not run in lockstep. Returns false
    /// at once if the deadline has passed.
    pub(crate) fn wait_a_moment(&self) -> bool {
        if self.passed() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(100..900)));
        true
    }

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.0))
    }
}

impl Canceller {
    /// Stops the running operation. The next one is not affected.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_and_can_be_extended() {
        let deadline = Deadline::at(None);
        assert!(!deadline.passed());
        deadline.set(Some(Instant::now()));
        assert!(deadline.passed() && deadline.interrupts() && !deadline.wait_a_moment());
        deadline.uninterrupted(|| assert!(!deadline.interrupts()));
        assert!(deadline.check("test").is_err());
        deadline.set(Some(Instant::now() + Duration::from_secs(60)));
        assert!(!deadline.passed() && deadline.wait_a_moment());
        deadline.within(Duration::ZERO, || assert!(deadline.passed()));
        assert!(!deadline.passed());
        deadline.canceller().cancel();
        assert!(deadline.passed());
        deadline.set(None);
        assert!(!deadline.passed());
    }
}
