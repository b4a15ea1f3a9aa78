//! Sorting that can be interrupted.

use std::cmp::Ordering;

use super::Run;
use crate::error::Result;

/// The number of items sorted without checking the budget, if they are cheap to compare.
const RUN: usize = 4096;

/// Merge sort over small runs. The budget is checked between runs and for every merged item.
/// `weight` is the cost of comparing an item, beyond that of a number.
pub(crate) fn sorted<T>(
    run: &Run<'_>,
    mut items: Vec<T>,
    order: impl Fn(&T, &T) -> Ordering,
    weight: impl Fn(&T) -> usize,
) -> Result<Vec<T>> {
    run.budget.steps(items.len())?;
    let heaviest = items.iter().map(&weight).max().unwrap_or(0);
    // Heavier items make shorter runs, so that the work per run stays the same.
    let length = (RUN / (heaviest / 16 + 1)).max(1);
    if items.len() <= length {
        items.sort_unstable_by(&order);
        return Ok(items);
    }
    run.budget.afford(items.len().saturating_mul(2 * size_of::<T>()))?;
    let mut runs = Vec::with_capacity(items.len() / length + 1);
    let mut rest = items.into_iter();
    loop {
        let mut some: Vec<T> = rest.by_ref().take(length).collect();
        if some.is_empty() {
            break;
        }
        run.budget.steps(RUN)?;
        some.sort_unstable_by(&order);
        runs.push(some);
    }
    while runs.len() > 1 {
        let mut merged_runs = Vec::with_capacity(runs.len() / 2 + 1);
        let mut pairs = runs.into_iter();
        while let Some(first) = pairs.next() {
            merged_runs.push(match pairs.next() {
                Some(second) => merged(run, first, second, &order, &weight)?,
                None => first,
            });
        }
        runs = merged_runs;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merged<T>(
    run: &Run<'_>,
    first: Vec<T>,
    second: Vec<T>,
    order: &impl Fn(&T, &T) -> Ordering,
    weight: &impl Fn(&T) -> usize,
) -> Result<Vec<T>> {
    let mut result = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
        run.budget.steps(1 + weight(a).min(weight(b)))?;
        let next = if order(b, a) == Ordering::Less { second.next() } else { first.next() };
        result.extend(next);
    }
    result.extend(first);
    result.extend(second);
    Ok(result)
}
