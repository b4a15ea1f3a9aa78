use std::cell::Cell;

/// How much work may go into one file, in steps: about 100 operations of a parser, or 1,000 nodes
/// of a tree that is read.
///
/// Unlike time, this is the same for the same text however busy the machine is, so the index does
/// not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkLimit(u64);

impl WorkLimit {
    /// Any amount of work, for tests and benchmarks.
    pub const NONE: Self = Self(u64::MAX);

    /// At most this many steps.
    pub const fn steps(steps: u64) -> Self {
        Self(steps)
    }
}

/// Why a file was not parsed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    TooMuchWork,
    Cancelled,
}

/// The work that is left for a file.
pub(super) struct Work<'c> {
    left: Cell<u64>,
    cancelled: &'c dyn Fn() -> bool,
}

impl<'c> Work<'c> {
    pub(super) fn new(limit: WorkLimit, cancelled: &'c dyn Fn() -> bool) -> Self {
        Self { left: Cell::new(limit.0), cancelled }
    }

    /// Takes one step, unless none is left or the caller is gone.
    pub(super) fn step(&self) -> Result<(), Stopped> {
        if (self.cancelled)() {
            return Err(Stopped::Cancelled);
        }
        let left = self.left.get().checked_sub(1).ok_or(Stopped::TooMuchWork)?;
        self.left.set(left);
        Ok(())
    }
}
