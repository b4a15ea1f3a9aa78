use std::time::{Duration, Instant};

/// The time limit and cancellation of a run.
pub(crate) struct Clock<'a> {
    end: Option<Instant>,
    cancelled: &'a dyn Fn() -> bool,
}

/// The budget is spent, or the caller has cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUp;

impl<'a> Clock<'a> {
    pub(crate) fn start(budget: Duration, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { end: Instant::now().checked_add(budget), cancelled }
    }

    pub(crate) fn check(&self) -> Result<(), TimeUp> {
        let spent = self.end.is_some_and(|end| Instant::now() >= end);
        if spent || (self.cancelled)() { Err(TimeUp) } else { Ok(()) }
    }
}
