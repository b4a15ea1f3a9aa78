//! How long a query may run and how much it may keep.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Error, Result};

/// The bounds of a query, asked inside every loop that may be long.
pub struct Budget<'a> {
    deadline: Option<Instant>,
    cancelled: Option<&'a dyn Fn() -> bool>,
    memory: usize,
    used: Cell<usize>,
    countdown: Cell<u32>,
}

/// So many steps pass between two looks at the clock.
const STRIDE: u32 = 1024;

impl<'a> Budget<'a> {
    /// No bounds but for memory: 1 GiB.
    pub fn unbounded() -> Self {
        Budget {
            deadline: None,
            cancelled: None,
            memory: 1 << 30,
            used: Cell::new(0),
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

    /// The same bounds with so many bytes for what the query keeps, about.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
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
        Ok(())
    }

    /// So many bytes more are kept.
    pub fn keep(&self, bytes: usize) -> Result<()> {
        let used = self.used.get().saturating_add(bytes);
        if used > self.memory {
            let bound = self.memory >> 20;
            return Err(Error::TooLarge(format!(
                "the query would keep more than its {bound} MiB of memory"
            )));
        }
        self.used.set(used);
        Ok(())
    }

    /// So many bytes are kept no longer.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}
