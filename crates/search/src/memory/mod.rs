//! Ranks drawers for a memory search.
//!
//! A drawer's score is the sum of a keyword score (BM25, relative to the maximum), a vector score
//! and a word similarity score. Neighbors of a good hit in the same room get a boost if adjacent
//! drawers tend to be similar: turns of a conversation are, notes are not.

mod fit;
mod weights;

use std::collections::HashMap;

pub use fit::MemoryFit;
pub use weights::MemoryWeights;

use crate::SearchMode;

/// A drawer found by keywords or vectors, or next to such a drawer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawerCandidate {
    /// Identifies the room among those of the candidates.
    pub room: u64,
    /// Position in the room.
    pub position: u64,
    /// The share of the query's terms that it contains, weighted, from 0 to about 1.
    pub keywords: f32,
    /// Similarity of its vector to the query's, minus that of the mean vector; at least 0.
    pub vector: f32,
    /// Similarity of its words to the query's, word by word, from 0 to 1.
    pub likeness: f32,
}

/// A ranked drawer.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedDrawer {
    /// Index of the candidate.
    pub candidate: usize,
    /// Higher is better.
    pub score: f32,
    /// The parts of the score, largest first, for display.
    pub why: Vec<String>,
}

/// Returns the best `limit` candidates with a score above 0, best first. `coherence` is the mean
/// cosine of adjacent drawers minus that of other pairs; neighbors count only if it is positive.
pub fn rank_drawers(
    candidates: &[DrawerCandidate],
    coherence: f32,
    weights: &MemoryWeights,
    mode: SearchMode,
    limit: usize,
) -> Vec<RankedDrawer> {
    let scores: Vec<DrawerScore> =
        candidates.iter().map(|it| DrawerScore::new(it, weights, mode)).collect();
    let best = scores.iter().map(DrawerScore::sum).fold(0.0, f32::max);
    // Only outstanding scores boost their neighbors.
    let excess: Vec<f32> =
        scores.iter().map(|score| (score.sum() - weights.stand_out * best).max(0.0)).collect();
    let neighbor_weight = neighbor_weight(coherence, weights);
    let indexes: HashMap<(u64, u64), usize> =
        candidates.iter().enumerate().map(|(at, it)| ((it.room, it.position), at)).collect();
    let neighbor_boost = |it: &DrawerCandidate| -> f32 {
        let at = |position| indexes.get(&(it.room, position)).map_or(0.0, |at| excess[*at]);
        let pairs = weights.beside.iter().zip(1..);
        let pair_boost = |(weight, distance): (&f32, u64)| {
            let before = it.position.checked_sub(distance).map_or(0.0, at);
            let after = it.position.checked_add(distance).map_or(0.0, at);
            weight * (before + after)
        };
        neighbor_weight * pairs.map(pair_boost).sum::<f32>()
    };
    let scored = candidates.iter().zip(&scores).enumerate().map(|(candidate, (it, score))| {
        let neighbors = neighbor_boost(it);
        (candidate, score.sum() + neighbors, neighbors)
    });
    let mut scored: Vec<_> = scored.filter(|(_, score, _)| *score > 0.0).collect();
    // The sort is stable: equal scores stay in the order of the candidates.
    scored.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
    scored.truncate(limit);
    let ranked = |(candidate, score, neighbors): (usize, f32, f32)| RankedDrawer {
        candidate,
        score,
        why: scores[candidate].reasons(neighbors),
    };
    scored.into_iter().map(ranked).collect()
}

/// How much neighbors count, from 0 to 1.
fn neighbor_weight(coherence: f32, weights: &MemoryWeights) -> f32 {
    let coherence = coherence / weights.coherent;
    // Not `clamp`, which would keep NaN.
    if coherence > 0.0 { coherence.min(1.0) } else { 0.0 }
}

/// The score of a drawer without its neighbors.
#[derive(Debug, Clone, Copy)]
struct DrawerScore {
    keywords: f32,
    vector: f32,
    likeness: f32,
}

impl DrawerScore {
    fn new(it: &DrawerCandidate, weights: &MemoryWeights, mode: SearchMode) -> Self {
        let enabled = |enabled: bool| f32::from(u8::from(enabled));
        Self {
            // Squared: one shared word of many means little, all of them nearly everything.
            keywords: weights.keywords * it.keywords * it.keywords * enabled(mode.uses_keywords()),
            vector: weights.vector * it.vector * enabled(mode.uses_vectors()),
            likeness: weights.likeness * it.likeness * enabled(mode == SearchMode::Hybrid),
        }
    }

    fn sum(&self) -> f32 {
        self.keywords + self.vector + self.likeness
    }

    fn reasons(&self, neighbors: f32) -> Vec<String> {
        let mut parts = [
            ("keywords", self.keywords),
            ("meaning", self.vector),
            ("similar words", self.likeness),
            ("neighbours", neighbors),
        ];
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let shown = parts.iter().filter(|(_, part)| *part >= 0.005);
        shown.map(|(name, part)| format!("{name} {part:.2}")).collect()
    }
}

#[cfg(test)]
mod tests;
