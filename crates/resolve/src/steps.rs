use std::cell::Cell;

/// How many steps from an origin to its value are followed.
pub(crate) const MOST_STEPS: u32 = 40;

/// How many steps are taken in all for one origin, as there may be many ways to go.
const MOST_STEPS_IN_ALL: u32 = 10_000;

/// The steps that were taken for the origin at hand.
pub(crate) struct Steps {
    /// How many more there may be.
    left: Cell<u32>,
    /// The fewest that any way had left to go on, since this was last reset.
    lowest: Cell<u32>,
    /// How often a way ended because it was too long.
    too_long: Cell<u32>,
    /// How often one ended that would be gone further at another time.
    cut_short: Cell<u32>,
}

/// How many steps were taken in all, and how many after each other.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    steps: u32,
    depth: u32,
    /// If a way was too long: how many steps it might have had.
    pub(crate) too_long: Option<u32>,
}

/// What there was when something was begun.
pub(crate) struct Begun {
    left: u32,
    lowest: u32,
    too_long: u32,
    cut_short: u32,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            left: Cell::new(MOST_STEPS_IN_ALL),
            lowest: Cell::new(MOST_STEPS),
            too_long: Cell::new(0),
            cut_short: Cell::new(0),
        }
    }
}

impl Steps {
    /// An origin that no other led to.
    pub(crate) fn renew(&self) {
        self.left.set(MOST_STEPS_IN_ALL);
    }

    pub(crate) fn are_left(&self) -> bool {
        self.left.get() > 0
    }

    /// One step on a way that may have so many more: how many may follow it, if any.
    pub(crate) fn take(&self, left: u32) -> Option<u32> {
        let Some(in_all) = self.left.get().checked_sub(1) else {
            self.cut_short();
            return None;
        };
        self.left.set(in_all);
        let Some(left) = left.checked_sub(1) else {
            count(&self.too_long);
            return None;
        };
        self.lowest.set(self.lowest.get().min(left));
        Some(left)
    }

    /// A way is not gone to its end: at another time, more may be found there.
    pub(crate) fn cut_short(&self) {
        count(&self.cut_short);
    }

    /// From here on it is counted what something costs.
    pub(crate) fn begin(&self) -> Begun {
        let lowest = self.lowest.replace(MOST_STEPS);
        let (too_long, cut_short) = (self.too_long.get(), self.cut_short.get());
        Begun { left: self.left.get(), lowest, too_long, cut_short }
    }

    /// What was paid since, on a way that had this many steps left. Nothing if more may be found
    /// at another time.
    pub(crate) fn end(&self, begun: &Begun, left: u32) -> Option<Cost> {
        let lowest = self.lowest.get();
        self.lowest.set(lowest.min(begun.lowest));
        let steps = begun.left.saturating_sub(self.left.get());
        let too_long = (begun.too_long != self.too_long.get()).then_some(left);
        (begun.cut_short == self.cut_short.get()).then(|| Cost {
            steps,
            depth: left.saturating_sub(lowest),
            too_long,
        })
    }

    /// Pays for what was found before, unless there are too few steps left for it, or more
    /// could be found with those that are left.
    pub(crate) fn pay(&self, cost: Cost, left: u32) -> bool {
        let fits = cost.too_long.map_or(left >= cost.depth, |same| same == left);
        if !fits || self.left.get() < cost.steps {
            return false;
        }
        self.left.set(self.left.get() - cost.steps);
        self.lowest.set(self.lowest.get().min(left - cost.depth));
        if cost.too_long.is_some() {
            count(&self.too_long);
        }
        true
    }
}

fn count(times: &Cell<u32>) {
    times.set(times.get().wrapping_add(1));
}
