//! From a question and candidates to ranked drawers.
//!
//! Three things speak for a text: words of the question in it (BM25, as a share of what
//! can be had), its vector, and the likeness of its words to those of the question, one by
//! one. What stands beside a good hit in the same room is likely to be about the same, if
//! texts in that memory are at all like those beside them: turns of a conversation are,
//! notes are not.

mod weights;

use std::collections::HashMap;

pub use weights::MemoryWeights;

use crate::Mode;

/// A drawer that may be what is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawerCandidate {
    /// Which room it is in.
    pub room: u64,
    /// Its place in the room.
    pub position: u64,
    /// The share of the question's words that it has, weighted by what they tell, from 0
    /// to about 1.
    pub keywords: f32,
    /// How much nearer its vector is to the question's than vectors are on average, at
    /// least 0.
    pub vector: f32,
    /// How like its words are to the question's, from 0 to 1.
    pub likeness: f32,
}

/// A candidate in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedDrawer {
    /// Its place among the candidates.
    pub candidate: usize,
    /// Larger is better.
    pub score: f32,
    /// What put it here, in words, the most important first.
    pub why: Vec<String>,
}

/// Ranks drawers. `coherence` says how much more alike texts are to those beside them than
/// to others: the difference of the mean cosines.
pub fn rank_drawers(
    candidates: &[DrawerCandidate],
    coherence: f32,
    weights: &MemoryWeights,
    mode: Mode,
    limit: usize,
) -> Vec<RankedDrawer> {
    let own: Vec<Parts> = candidates.iter().map(|it| Parts::of(it, weights, mode)).collect();
    let best = own.iter().map(Parts::sum).fold(0.0, f32::max);
    // Only what stands out speaks for its neighbours.
    let spoken: Vec<f32> =
        own.iter().map(|own| (own.sum() - weights.stand_out * best).max(0.0)).collect();
    let coherent = coherence / weights.coherent;
    let trust = if coherent > 0.0 { coherent.min(1.0) } else { 0.0 };
    let places: HashMap<(u64, u64), usize> =
        candidates.iter().enumerate().map(|(at, it)| ((it.room, it.position), at)).collect();
    let beside = |it: &DrawerCandidate| -> f32 {
        let at = |position| places.get(&(it.room, position)).map_or(0.0, |at| spoken[*at]);
        let pairs = weights.beside.iter().zip(1..);
        let of_pair = |(weight, distance): (&f32, u64)| {
            let before = it.position.checked_sub(distance).map_or(0.0, at);
            let after = it.position.checked_add(distance).map_or(0.0, at);
            weight * (before + after)
        };
        trust * pairs.map(of_pair).sum::<f32>()
    };
    let scored = candidates.iter().zip(&own).enumerate().map(|(candidate, (it, own))| {
        let beside = beside(it);
        (candidate, own.sum() + beside, beside)
    });
    let mut scored: Vec<_> = scored.filter(|(_, score, _)| *score > 0.0).collect();
    // The order of candidates decides between equals.
    scored.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
    scored.truncate(limit);
    let ranked = |(candidate, score, beside): (usize, f32, f32)| RankedDrawer {
        candidate,
        score,
        why: own[candidate].why(beside),
    };
    scored.into_iter().map(ranked).collect()
}

/// What speaks for a drawer by itself.
#[derive(Debug, Clone, Copy)]
struct Parts {
    keywords: f32,
    vector: f32,
    likeness: f32,
}

impl Parts {
    fn of(it: &DrawerCandidate, weights: &MemoryWeights, mode: Mode) -> Self {
        let on = |is: bool| f32::from(u8::from(is));
        Self {
            // One common word of many says little; all of them say nearly everything.
            keywords: weights.keywords * it.keywords * it.keywords * on(mode.has_keywords()),
            vector: weights.vector * it.vector * on(mode.has_vectors()),
            likeness: weights.likeness * it.likeness * on(mode == Mode::Hybrid),
        }
    }

    fn sum(&self) -> f32 {
        self.keywords + self.vector + self.likeness
    }

    fn why(&self, beside: f32) -> Vec<String> {
        let mut parts = [
            ("keywords", self.keywords),
            ("meaning", self.vector),
            ("like words", self.likeness),
            ("neighbours", beside),
        ];
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let said = parts.iter().filter(|(_, part)| *part >= 0.005);
        said.map(|(name, part)| format!("{name} {part:.2}")).collect()
    }
}

#[cfg(test)]
mod tests;
