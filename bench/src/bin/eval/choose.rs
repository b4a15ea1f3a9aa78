//! Choosing constants without fooling oneself: what is chosen on half of the repositories
//! is scored on the other half.

use std::collections::{BTreeMap, BTreeSet};

use crate::score::mean;

/// How often the repositories are cut in halves. Each half chooses once.
const CUTS: u64 = 50;

/// A choice has to better the usual constants by this much, or the usual ones are kept.
const LEAST_GAIN: f64 = 0.0005;

/// The scores of each repository's questions, with the same constants.
pub(crate) type ByRepository<'a> = BTreeMap<&'a str, Vec<f64>>;

/// What came of choosing.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    /// What the usual constants score on the halves that did not choose, on average.
    pub(crate) usual: f64,
    /// What the chosen ones score there.
    pub(crate) chosen: f64,
    /// How often each was chosen.
    pub(crate) times: Vec<usize>,
}

/// Chooses among constants, the usual ones first, on one half after the other of many cuts.
pub(crate) fn choose(tried: &[ByRepository<'_>]) -> Choice {
    let names: Vec<&str> = tried.iter().flat_map(|scores| scores.keys().copied()).collect();
    let mut names: Vec<&str> = BTreeSet::from_iter(names).into_iter().collect();
    let mut choice = Choice { usual: 0.0, chosen: 0.0, times: vec![0; tried.len()] };
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..CUTS {
        random.shuffle(&mut names);
        let (one, other) = names.split_at(names.len() / 2);
        for (choosing, scored) in [(one, other), (other, one)] {
            let best = best(tried, choosing);
            choice.times[best] += 1;
            choice.usual += over(&tried[0], scored) / (2 * CUTS) as f64;
            choice.chosen += over(&tried[best], scored) / (2 * CUTS) as f64;
        }
    }
    choice
}

fn best(tried: &[ByRepository<'_>], choosing: &[&str]) -> usize {
    let mut best = 0;
    let mut highest = over(&tried[0], choosing) + LEAST_GAIN;
    for (index, scores) in tried.iter().enumerate().skip(1) {
        let score = over(scores, choosing);
        if score > highest {
            (best, highest) = (index, score);
        }
    }
    best
}

/// The mean over all questions of some repositories.
fn over(scores: &ByRepository<'_>, names: &[&str]) -> f64 {
    let scores = names.iter().filter_map(|name| scores.get(name)).flatten();
    mean(&scores.copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(of: impl Fn(usize) -> f64) -> ByRepository<'static> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        names.into_iter().enumerate().map(|(at, name)| (name, vec![of(at); 3])).collect()
    }

    #[test]
    fn what_is_better_everywhere_is_chosen_and_gains() {
        let choice = choose(&[scores(|_| 0.5), scores(|_| 0.6), scores(|_| 0.4)]);
        assert_eq!(choice.times, [0, 100, 0]);
        assert!((choice.usual - 0.5).abs() < 1e-9 && (choice.chosen - 0.6).abs() < 1e-9);
    }

    #[test]
    fn what_is_fitted_to_one_repository_gains_nothing_elsewhere() {
        let fitted = |at| scores(move |repository| if repository == at { 0.9 } else { 0.48 });
        let tried: Vec<_> = [scores(|_| 0.5)].into_iter().chain((0..8).map(fitted)).collect();
        let choice = choose(&tried);
        assert_eq!(choice.times[0], 0);
        assert!(choice.chosen < choice.usual);
    }

    #[test]
    fn what_is_no_better_leaves_the_usual() {
        let choice = choose(&[scores(|_| 0.5), scores(|_| 0.5002)]);
        assert_eq!(
            choice,
            Choice { usual: choice.usual, chosen: choice.usual, times: vec![100, 0] }
        );
    }
}
