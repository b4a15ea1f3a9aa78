//! How often a memory search says that nothing fits: for questions about the memory, and for
//! questions about something else.

use crate::score::mean;

/// How often the groups are split into halves. Each half chooses a threshold once.
const SPLITS: u64 = 50;

/// A search in one of the memories.
pub(crate) struct WeakSample {
    /// What is chosen on and scored on together: a conversation, or a single note.
    pub(crate) group: usize,
    /// Whether the question is about this memory.
    pub(crate) own: bool,
    pub(crate) strength: f32,
    pub(crate) weak: bool,
}

/// The share of own questions, and of others, that are weak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WeakRates {
    pub(crate) own: f64,
    pub(crate) other: f64,
}

/// The rates with the built-in rule.
pub(crate) fn weak_rates(samples: &[WeakSample]) -> WeakRates {
    rates(samples.iter(), |it| it.weak)
}

/// Chooses a threshold on half of the groups, so that the given share of their own questions is
/// weak, and returns the mean rates on the other halves.
pub(crate) fn cross_validated_rates(samples: &[WeakSample], share: f64) -> WeakRates {
    let groups = samples.iter().map(|it| it.group + 1).max().unwrap_or(0);
    let mut groups: Vec<usize> = (0..groups).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut all: Vec<WeakRates> = Vec::new();
    for _ in 0..SPLITS {
        random.shuffle(&mut groups);
        let (one, other) = groups.split_at(groups.len() / 2);
        for (training, scored) in [(one, other), (other, one)] {
            let of = |groups: &[usize]| {
                let groups = groups.to_vec();
                samples.iter().filter(move |it| groups.contains(&it.group))
            };
            let threshold = threshold(of(training), share);
            all.push(rates(of(scored), |it| it.strength < threshold));
        }
    }
    let mean_of = |rate: fn(&WeakRates) -> f64| mean(&all.iter().map(rate).collect::<Vec<_>>());
    WeakRates { own: mean_of(|it| it.own), other: mean_of(|it| it.other) }
}

/// The strength that a share of the own questions stays below.
fn threshold<'s>(samples: impl Iterator<Item = &'s WeakSample>, share: f64) -> f32 {
    let mut own: Vec<f32> = samples.filter(|it| it.own).map(|it| it.strength).collect();
    own.sort_by(f32::total_cmp);
    let at = (own.len() as f64 * share) as usize;
    own.get(at).copied().unwrap_or(0.0)
}

fn rates<'s>(
    samples: impl Iterator<Item = &'s WeakSample>,
    is_weak: impl Fn(&WeakSample) -> bool,
) -> WeakRates {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for sample in samples {
        let rates = if sample.own { &mut own } else { &mut other };
        rates.push(if is_weak(sample) { 1.0 } else { 0.0 });
    }
    WeakRates { own: mean(&own), other: mean(&other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(group: usize, own: bool, strength: f32) -> WeakSample {
        WeakSample { group, own, strength, weak: strength < 0.2 }
    }

    #[test]
    fn rates_are_shares_of_each_kind() {
        let samples = [
            sample(0, true, 0.1),
            sample(0, true, 0.3),
            sample(0, true, 0.4),
            sample(0, true, 0.5),
            sample(0, false, 0.1),
            sample(0, false, 0.3),
        ];
        assert_eq!(weak_rates(&samples), WeakRates { own: 0.25, other: 0.5 });
    }

    #[test]
    fn thresholds_are_chosen_on_other_groups() {
        // The groups are on different scales, so no threshold transfers to the other one.
        let samples = |scale: [f32; 2]| -> Vec<WeakSample> {
            let of = |group| (1..=10).map(move |it| (group, it as f32 * scale[group]));
            let own = [0, 1].into_iter().flat_map(of);
            own.flat_map(|(group, it)| [sample(group, true, it), sample(group, false, it / 20.0)])
                .collect()
        };
        let same = cross_validated_rates(&samples([1.0, 1.0]), 0.1);
        assert!((same.own - 0.1).abs() < 1e-9 && same.other == 1.0, "{same:?}");
        let different = cross_validated_rates(&samples([1.0, 100.0]), 0.1);
        assert!(different.own > 0.4, "{different:?}");
    }
}
