//! Cross-validation of ranking constants: what is chosen on half of the repositories is scored on
//! the other half.

use std::collections::{BTreeMap, BTreeSet};

use crate::score::mean;

/// How often the repositories are split into halves. Each half chooses once.
const SPLITS: u64 = 50;

/// Minimum gain over the default constants; below it, the defaults are kept.
const MIN_GAIN: f64 = 0.0005;

/// The scores of each repository's questions with one set of constants.
pub(crate) type RepositoryScores<'a> = BTreeMap<&'a str, Vec<f64>>;

#[derive(Debug, PartialEq)]
pub(crate) struct CrossValidation {
    /// Mean score of the default constants on the halves that did not choose.
    pub(crate) default: f64,
    /// Mean score of the chosen constants there.
    pub(crate) chosen: f64,
    /// How often each set of constants was chosen.
    pub(crate) times: Vec<usize>,
}

/// Chooses among sets of constants, of which the first are the defaults, on both halves of each
/// split.
pub(crate) fn cross_validate(tried: &[RepositoryScores<'_>]) -> CrossValidation {
    let names: Vec<&str> = tried.iter().flat_map(|scores| scores.keys().copied()).collect();
    let mut names: Vec<&str> = BTreeSet::from_iter(names).into_iter().collect();
    let mut choice = CrossValidation { default: 0.0, chosen: 0.0, times: vec![0; tried.len()] };
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..SPLITS {
        random.shuffle(&mut names);
        let (one, other) = names.split_at(names.len() / 2);
        for (training, scores) in [(one, other), (other, one)] {
            let best = best(tried, training);
            choice.times[best] += 1;
            choice.default += over(&tried[0], scores) / (2 * SPLITS) as f64;
            choice.chosen += over(&tried[best], scores) / (2 * SPLITS) as f64;
        }
    }
    choice
}

fn best(tried: &[RepositoryScores<'_>], training: &[&str]) -> usize {
    let mut best = 0;
    let mut highest = over(&tried[0], training) + MIN_GAIN;
    for (index, scores) in tried.iter().enumerate().skip(1) {
        let score = over(scores, training);
        if score > highest {
            (best, highest) = (index, score);
        }
    }
    best
}

/// The mean score of all questions of some repositories.
fn over(scores: &RepositoryScores<'_>, names: &[&str]) -> f64 {
    let scores = names.iter().filter_map(|name| scores.get(name)).flatten();
    mean(&scores.copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(of: impl Fn(usize) -> f64) -> RepositoryScores<'static> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        names.into_iter().enumerate().map(|(at, name)| (name, vec![of(at); 3])).collect()
    }

    #[test]
    fn constants_that_are_better_everywhere_are_chosen() {
        let choice = cross_validate(&[scores(|_| 0.5), scores(|_| 0.6), scores(|_| 0.4)]);
        assert_eq!(choice.times, [0, 100, 0]);
        assert!((choice.default - 0.5).abs() < 1e-9 && (choice.chosen - 0.6).abs() < 1e-9);
    }

    #[test]
    fn constants_fitted_to_one_repository_gain_nothing_elsewhere() {
        let fitted = |at| scores(move |repository| if repository == at { 0.9 } else { 0.48 });
        let tried: Vec<_> = [scores(|_| 0.5)].into_iter().chain((0..8).map(fitted)).collect();
        let choice = cross_validate(&tried);
        assert_eq!(choice.times[0], 0);
        assert!(choice.chosen < choice.default);
    }

    #[test]
    fn without_a_gain_the_defaults_are_kept() {
        let choice = cross_validate(&[scores(|_| 0.5), scores(|_| 0.5002)]);
        assert_eq!(
            choice,
            CrossValidation {
                default: choice.default,
                chosen: choice.default,
                times: vec![100, 0]
            }
        );
    }
}
