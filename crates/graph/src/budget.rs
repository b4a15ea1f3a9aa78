//! Limits on the time and memory of a query.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::value::{MAX_DEPTH, Value, live};

/// The limits of a query, checked inside every loop that may be long.
///
/// Memory is what the query reports with [`Budget::keep`], plus the bodies of all live texts,
/// lists and maps that it created, which count themselves.
pub struct Budget<'a> {
    deadline: Option<Instant>,
    cancelled: Option<&'a dyn Fn() -> bool>,
    memory: usize,
    row: usize,
    used: Cell<usize>,
    /// The bytes of this thread's live values when the budget was created.
    before: usize,
    most: Cell<usize>,
    countdown: Cell<u32>,
}

/// The number of steps between two checks of the clock.
const STEPS_PER_CLOCK_CHECK: u32 = 1024;

/// Bounds the time that a single string function can take.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 20;

impl<'a> Budget<'a> {
    /// No limits except 1 GiB of memory.
    pub fn unbounded() -> Self {
        Budget {
            deadline: None,
            cancelled: None,
            memory: 1 << 30,
            row: usize::MAX,
            used: Cell::new(0),
            before: live(),
            most: Cell::new(0),
            countdown: Cell::new(STEPS_PER_CLOCK_CHECK),
        }
    }

    /// Sets the time at which the query is stopped.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets a function that is called periodically; the query stops when it returns true.
    #[must_use]
    pub fn with_cancellation(mut self, cancelled: &'a dyn Fn() -> bool) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// Sets the approximate memory limit of the query, in bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the approximate limit on one row of the answer, in bytes of the receiver's memory.
    #[must_use]
    pub fn with_row_bytes(mut self, bytes: usize) -> Self {
        self.row = bytes;
        self
    }

    /// The query's peak memory, in bytes.
    pub fn peak(&self) -> usize {
        self.most.get()
    }

    pub(crate) fn row(&self) -> usize {
        self.row
    }

    /// Counts one step of work; fails if the deadline has passed or the query was cancelled.
    #[inline]
    pub fn step(&self) -> Result<()> {
        let left = self.countdown.get();
        if left > 1 {
            self.countdown.set(left - 1);
            return Ok(());
        }
        self.check_clock()
    }

    /// Counts many steps of work at once.
    #[inline]
    pub fn steps(&self, count: usize) -> Result<()> {
        let left = self.countdown.get();
        if (left as usize) > count {
            self.countdown.set(left - count as u32);
            return Ok(());
        }
        self.check_clock()
    }

    #[cold]
    fn check_clock(&self) -> Result<()> {
        self.countdown.set(STEPS_PER_CLOCK_CHECK);
        if self.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(Error::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::Timeout);
        }
        self.afford(0)
    }

    /// Fails if there is no room for this many more bytes. Call it before creating a value, which
    /// then counts itself.
    pub fn afford(&self, bytes: usize) -> Result<()> {
        // Older values may have been dropped since, so the difference can be negative.
        let values = (live().wrapping_sub(self.before) as isize).max(0) as usize;
        let total = self.used.get().saturating_add(values).saturating_add(bytes);
        if total > self.memory {
            return Err(self.too_large("the query needs more memory than"));
        }
        if total > self.most.get() {
            self.most.set(total);
        }
        Ok(())
    }

    /// Counts this many more bytes; fails if that exceeds the limit.
    pub fn keep(&self, bytes: usize) -> Result<()> {
        self.afford(bytes)?;
        self.used.set(self.used.get().saturating_add(bytes));
        Ok(())
    }

    /// Stops counting this many bytes.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// A guard that releases what it counts when it is dropped.
    pub(crate) fn hold(&self) -> HeldBytes<'_> {
        HeldBytes { budget: self, bytes: 0 }
    }

    /// Checks a newly created compound value. Fails if it nests too deeply or is too large with
    /// shared parts counted at every occurrence: comparing, sorting or returning it visits them
    /// that often.
    pub(crate) fn check_value(&self, value: Value) -> Result<Value> {
        let extent = value.extent();
        if extent.depth > MAX_DEPTH {
            let message = format!("a value is nested more than {MAX_DEPTH} levels deep");
            return Err(Error::TooLarge(message));
        }
        if extent.bytes > self.memory {
            return Err(self.too_large("a value would be larger than"));
        }
        self.afford(0)?;
        Ok(value)
    }

    /// Fails if a text of this many bytes may not be created.
    pub(crate) fn text(&self, bytes: usize) -> Result<()> {
        if bytes > MAX_TEXT_BYTES {
            let longest = MAX_TEXT_BYTES >> 20;
            return Err(Error::TooLarge(format!("a string would be longer than {longest} MiB")));
        }
        self.steps(bytes / 64)?;
        self.afford(bytes)
    }

    /// Fails if a list of this many values may not be created.
    pub(crate) fn list(&self, length: usize) -> Result<()> {
        self.steps(length)?;
        self.afford(length.saturating_mul(size_of::<Value>()))
    }

    fn too_large(&self, what: &str) -> Error {
        Error::TooLarge(format!("{what} {} MiB", self.memory >> 20))
    }
}

/// Counted bytes that are released on drop, also after an error.
pub(crate) struct HeldBytes<'b> {
    budget: &'b Budget<'b>,
    bytes: usize,
}

impl HeldBytes<'_> {
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.budget.keep(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.release(bytes);
    }
}

impl Drop for HeldBytes<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_themselves() {
        let budget = Budget::unbounded().with_memory(100_000);
        let text = Value::text("x".repeat(60_000));
        assert!(budget.afford(50_000).is_err());
        assert!(budget.keep(30_000).is_ok());
        assert!(budget.keep(30_000).is_err());
        drop(text);
        assert!(budget.keep(60_000).is_ok());
        assert!(budget.peak() >= 90_000);
    }

    #[test]
    fn held_bytes_are_released_on_drop() {
        let budget = Budget::unbounded().with_memory(100);
        let mut held = budget.hold();
        held.keep(80).unwrap();
        assert!(held.keep(80).is_err());
        drop(held);
        assert!(budget.keep(100).is_ok());
    }
}
