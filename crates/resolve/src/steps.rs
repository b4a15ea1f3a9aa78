use std::cell::Cell;

/// The maximum length of a path from an origin to its value.
pub(crate) const MAX_DEPTH: u32 = 40;

/// The maximum number of steps for one origin over all paths, of which there may be many.
const MAX_STEPS: u32 = 10_000;

/// Limits the steps that resolving one origin may take.
pub(crate) struct StepBudget {
    /// The number of steps left over all paths.
    left: Cell<u32>,
    /// The least remaining depth of any path since the measurement started.
    lowest: Cell<u32>,
    /// How many paths ended because they were too deep.
    too_deep: Cell<u32>,
    /// How many paths ended for a reason that may not apply next time.
    cut_short: Cell<u32>,
}

/// The cost of a result: steps over all paths, and depth of the deepest one.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    steps: u32,
    depth: u32,
    /// If a path was too deep: the remaining depth with which it started.
    pub(crate) too_deep: Option<u32>,
}

/// The counters at the start of a measurement.
pub(crate) struct Measurement {
    left: u32,
    lowest: u32,
    too_deep: u32,
    cut_short: u32,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self {
            left: Cell::new(MAX_STEPS),
            lowest: Cell::new(MAX_DEPTH),
            too_deep: Cell::new(0),
            cut_short: Cell::new(0),
        }
    }
}

impl StepBudget {
    /// Starts over, for an independent origin.
    pub(crate) fn reset(&self) {
        self.left.set(MAX_STEPS);
    }

    pub(crate) fn are_left(&self) -> bool {
        self.left.get() > 0
    }

    /// Takes one step on a path with this remaining depth. Returns the depth that remains after
    /// it, or `None` if a limit is reached.
    pub(crate) fn take(&self, left: u32) -> Option<u32> {
        let Some(in_all) = self.left.get().checked_sub(1) else {
            self.cut_short();
            return None;
        };
        self.left.set(in_all);
        let Some(left) = left.checked_sub(1) else {
            count(&self.too_deep);
            return None;
        };
        self.lowest.set(self.lowest.get().min(left));
        Some(left)
    }

    /// Records that a path was abandoned: the same lookup may find more next time.
    pub(crate) fn cut_short(&self) {
        count(&self.cut_short);
    }

    /// Starts to measure the cost of a result.
    pub(crate) fn start_measuring(&self) -> Measurement {
        let lowest = self.lowest.replace(MAX_DEPTH);
        let (too_deep, cut_short) = (self.too_deep.get(), self.cut_short.get());
        Measurement { left: self.left.get(), lowest, too_deep, cut_short }
    }

    /// The cost since `begun`, on a path that had this remaining depth. `None` if a path was
    /// abandoned, so that the result must not be cached.
    pub(crate) fn finish_measuring(&self, begun: &Measurement, left: u32) -> Option<Cost> {
        let lowest = self.lowest.get();
        self.lowest.set(lowest.min(begun.lowest));
        let steps = begun.left.saturating_sub(self.left.get());
        let too_deep = (begun.too_deep != self.too_deep.get()).then_some(left);
        (begun.cut_short == self.cut_short.get()).then(|| Cost {
            steps,
            depth: left.saturating_sub(lowest),
            too_deep,
        })
    }

    /// Pays for a cached result. Returns `false` if too few steps are left for it, or if a new
    /// lookup could find more.
    pub(crate) fn pay(&self, cost: Cost, left: u32) -> bool {
        let fits = cost.too_deep.map_or(left >= cost.depth, |same| same == left);
        if !fits || self.left.get() < cost.steps {
            return false;
        }
        self.left.set(self.left.get() - cost.steps);
        self.lowest.set(self.lowest.get().min(left - cost.depth));
        if cost.too_deep.is_some() {
            count(&self.too_deep);
        }
        true
    }
}

fn count(times: &Cell<u32>) {
    times.set(times.get().wrapping_add(1));
}
