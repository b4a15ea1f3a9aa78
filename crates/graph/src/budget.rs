//! How long a query may run and how much it may keep.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::value::{MAX_DEPTH, Value, live};

/// The bounds of a query, asked inside every loop that may be long.
///
/// Memory is what the query says it keeps ([`Budget::keep`]) and the bodies of all texts, lists
/// and maps that it made and that still live, which count themselves.
pub struct Budget<'a> {
    deadline: Option<Instant>,
    cancelled: Option<&'a dyn Fn() -> bool>,
    memory: usize,
    row: usize,
    used: Cell<usize>,
    /// What values of this thread took when the budget was made.
    before: usize,
    most: Cell<usize>,
    countdown: Cell<u32>,
}

/// This many steps pass between two looks at the clock.
const STRIDE: u32 = 1024;

/// No string is longer, so that no function on one takes long.
pub(crate) const LONGEST_TEXT: usize = 64 << 20;

impl<'a> Budget<'a> {
    /// No bounds but for memory: 1 GiB.
    pub fn unbounded() -> Self {
        Budget {
            deadline: None,
            cancelled: None,
            memory: 1 << 30,
            row: usize::MAX,
            used: Cell::new(0),
            before: live(),
            most: Cell::new(0),
            countdown: Cell::new(STRIDE),
        }
    }

    /// The same bounds with a time at which the query is stopped.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same bounds with a question that is asked now and then: is the query still
    /// wanted?
    #[must_use]
    pub fn with_cancellation(mut self, cancelled: &'a dyn Fn() -> bool) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// The same bounds with this many bytes for what the query keeps, about.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// The same bounds with this many bytes for one row of the answer, about, as whoever takes
    /// rows holds it in memory.
    #[must_use]
    pub fn with_row(mut self, bytes: usize) -> Self {
        self.row = bytes;
        self
    }

    /// The most that the query has kept at any time.
    pub fn most(&self) -> usize {
        self.most.get()
    }

    pub(crate) fn row(&self) -> usize {
        self.row
    }

    /// One step of work.
    #[inline]
    pub fn step(&self) -> Result<()> {
        let left = self.countdown.get();
        if left > 1 {
            self.countdown.set(left - 1);
            return Ok(());
        }
        self.look()
    }

    /// Many steps of work at once.
    #[inline]
    pub fn steps(&self, count: usize) -> Result<()> {
        let left = self.countdown.get();
        if (left as usize) > count {
            self.countdown.set(left - count as u32);
            return Ok(());
        }
        self.look()
    }

    #[cold]
    fn look(&self) -> Result<()> {
        self.countdown.set(STRIDE);
        if self.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(Error::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::Timeout);
        }
        self.afford(0)
    }

    /// Whether there is room for this many bytes more; for what is about to be made and counts
    /// itself then.
    pub fn afford(&self, bytes: usize) -> Result<()> {
        // Values that were there before may be gone by now.
        let values = (live().wrapping_sub(self.before) as isize).max(0) as usize;
        let total = self.used.get().saturating_add(values).saturating_add(bytes);
        if total > self.memory {
            return Err(self.too_large("the query needs more than its memory of"));
        }
        if total > self.most.get() {
            self.most.set(total);
        }
        Ok(())
    }

    /// This many bytes more are kept.
    pub fn keep(&self, bytes: usize) -> Result<()> {
        self.afford(bytes)?;
        self.used.set(self.used.get().saturating_add(bytes));
        Ok(())
    }

    /// This many bytes are kept no longer.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// What is kept until the guard is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held { budget: self, bytes: 0 }
    }

    /// A value of parts that was just made. It is refused if it nests too deep, or if it is too
    /// large when each part is counted as often as it occurs: whoever compares, sorts or
    /// returns it meets them as often.
    pub(crate) fn made(&self, value: Value) -> Result<Value> {
        let extent = value.extent();
        if extent.depth > MAX_DEPTH {
            let message = format!("a value nests more than {MAX_DEPTH} deep");
            return Err(Error::TooLarge(message));
        }
        if extent.bytes > self.memory {
            return Err(self.too_large("a value would be larger than"));
        }
        self.afford(0)?;
        Ok(value)
    }

    /// Room for a text of this many bytes, which is about to be made.
    pub(crate) fn text(&self, bytes: usize) -> Result<()> {
        if bytes > LONGEST_TEXT {
            let longest = LONGEST_TEXT >> 20;
            return Err(Error::TooLarge(format!("a string would be longer than {longest} MiB")));
        }
        self.steps(bytes / 64)?;
        self.afford(bytes)
    }

    /// Room for a list of this many values, which is about to be made.
    pub(crate) fn list(&self, length: usize) -> Result<()> {
        self.steps(length)?;
        self.afford(length.saturating_mul(size_of::<Value>()))
    }

    fn too_large(&self, what: &str) -> Error {
        Error::TooLarge(format!("{what} {} MiB", self.memory >> 20))
    }
}

/// Bytes that are kept until this is dropped, however whoever keeps them ends.
pub(crate) struct Held<'b> {
    budget: &'b Budget<'b>,
    bytes: usize,
}

impl Held<'_> {
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

impl Drop for Held<'_> {
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
        assert!(budget.most() >= 90_000);
    }

    #[test]
    fn what_is_held_is_released_with_its_holder() {
        let budget = Budget::unbounded().with_memory(100);
        let mut held = budget.hold();
        held.keep(80).unwrap();
        assert!(held.keep(80).is_err());
        drop(held);
        assert!(budget.keep(100).is_ok());
    }
}
