//! Batches: many inputs in one job, and the bisection that finds the ones that kill workers.

use std::ops::Range;

use crate::class::DeathClass;
use crate::error::CallError;
use crate::pool::{Answer, CallOptions, Pool};
use crate::role::Role;
use crate::supervisor::JobTerms;

/// The outcome of a run of adjacent items in a batch.
#[derive(Debug)]
pub struct BatchPart<T> {
    /// The indices of the items.
    pub items: Range<usize>,
    /// Their common answer, or why there is none.
    pub outcome: Result<Answer<T>, CallError>,
}

impl<R: Role> Pool<R> {
    /// Runs a batch; `request` builds the job for any run of adjacent items.
    ///
    /// Normally this is one job and returns one part. A batch that kills its workers is halved
    /// until the deadly items are isolated; these are quarantined and the others are answered.
    /// The parts are in the order of the items and cover all of them.
    pub async fn call_batch<I>(
        &self,
        items: &[I],
        request: impl Fn(&[I]) -> R::Request,
        options: CallOptions,
    ) -> Vec<BatchPart<R::Reply>> {
        let mut parts = Vec::new();
        let mut healthy = Vec::new();
        for index in 0..items.len() {
            match self.is_quarantined(&request(&items[index..=index])) {
                Some(error) => {
                    parts.push(BatchPart { items: index..index + 1, outcome: Err(error) });
                }
                None => healthy.push(index),
            }
        }
        let mut bisection = Bisection::of(&healthy);
        while let Some(step) = bisection.next() {
            let job = request(&items[step.items.clone()]);
            let terms = step.terms(self.terms(&options));
            let outcome = self.call_on(&job, options.clone(), terms).await;
            match outcome {
                Err(error) if is_deadly(&error, &options) && step.items.len() > 1 => {
                    bisection.split(step.items);
                }
                outcome => parts.push(BatchPart { items: step.items, outcome }),
            }
        }
        parts.sort_by_key(|part| part.items.start);
        parts
    }
}

/// Whether an item of the job may be to blame, and finding out which is allowed.
fn is_deadly(error: &CallError, options: &CallOptions) -> bool {
    match error {
        CallError::Died { class: DeathClass::Timeout, .. } => options.idempotent,
        CallError::Died { class, .. } => class.blames_job(),
        _ => false,
    }
}

/// The runs of items still to be tried.
#[derive(Debug)]
struct Bisection {
    todo: Vec<BisectionStep>,
}

#[derive(Debug, Clone, PartialEq)]
struct BisectionStep {
    items: Range<usize>,
    bisecting: bool,
}

impl BisectionStep {
    /// A whole batch may kill twice before it is halved. After that, each half is split after
    /// one death; a single item may kill twice, like any job.
    fn terms(&self, terms: JobTerms) -> JobTerms {
        let single = self.items.len() == 1;
        let strikes = if self.bisecting && !single { 1 } else { terms.strikes };
        JobTerms { strikes, single, bisecting: self.bisecting, ..terms }
    }
}

impl Bisection {
    /// Starts with one step for each run of consecutive indices.
    fn of(indices: &[usize]) -> Self {
        let mut todo: Vec<BisectionStep> = indices
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| BisectionStep { items: run[0]..run[run.len() - 1] + 1, bisecting: false })
            .collect();
        todo.reverse();
        Self { todo }
    }

    fn next(&mut self) -> Option<BisectionStep> {
        self.todo.pop()
    }

    fn split(&mut self, items: Range<usize>) {
        let middle = items.start + items.len() / 2;
        for half in [middle..items.end, items.start..middle] {
            self.todo.push(BisectionStep { items: half, bisecting: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a bisection in which the items in `deadly` kill; returns the culprits found and the
    /// number of jobs.
    fn run_bisection(items: usize, deadly: &[usize]) -> (Vec<usize>, usize) {
        let mut bisection = Bisection::of(&(0..items).collect::<Vec<_>>());
        let (mut culprits, mut jobs) = (Vec::new(), 0);
        while let Some(step) = bisection.next() {
            jobs += 1;
            if !deadly.iter().any(|item| step.items.contains(item)) {
                continue;
            }
            if step.items.len() > 1 {
                bisection.split(step.items);
            } else {
                culprits.push(step.items.start);
            }
        }
        (culprits, jobs)
    }

    #[test]
    fn one_culprit_in_a_thousand_is_found_in_about_twenty_jobs() {
        assert_eq!(run_bisection(1000, &[617]).0, [617]);
        assert!(run_bisection(1000, &[617]).1 <= 21);
        assert_eq!(run_bisection(1000, &[]), (vec![], 1));
    }

    #[test]
    fn quarantined_items_are_skipped() {
        let steps = Bisection::of(&[0, 1, 3, 6, 7]).todo;
        let runs: Vec<_> = steps.into_iter().rev().map(|step| step.items).collect();
        assert_eq!(runs, [0..2, 3..4, 6..8]);
    }

    proptest! {
        #[test]
        fn exactly_the_deadly_items_are_found(
            items in 1usize..200,
            picks in proptest::collection::btree_set(0usize..200, 0..6),
        ) {
            let deadly: Vec<usize> = picks.into_iter().filter(|&item| item < items).collect();
            prop_assert_eq!(run_bisection(items, &deadly).0, deadly);
        }
    }
}
