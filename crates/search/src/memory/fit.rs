//! How well the best drawers fit a query, on a scale that is the same for all queries.

use serde::{Deserialize, Serialize};

use super::{DrawerCandidate, MemoryWeights, neighbor_weight};
use crate::SearchMode;

/// Weights of the keyword share and the vector similarity, relative to the likeness.
const KEYWORDS_WEIGHT: f32 = 0.75;
const VECTOR_WEIGHT: f32 = 1.5;

/// Below these, nothing fits well. Turns of a conversation share words with any question, and
/// notes are often asked about in other words, so less is expected of notes. Chosen so that few
/// questions about a memory and most about other topics are below; see `bench/RESULTS.md`.
const WEAK_HYBRID: Threshold = Threshold { notes: 0.52, talk: 1.12 };
const WEAK_VECTORS: Threshold = Threshold { notes: 0.15, talk: 0.265 };
const WEAK_KEYWORDS: Threshold = Threshold { notes: 0.27, talk: 0.27 };

/// The best scores among the candidates of a query.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MemoryFit {
    /// The highest share of the query's terms in one drawer.
    pub keywords: f32,
    /// The highest vector similarity, minus that of the mean vector.
    pub vector: f32,
    /// The highest similarity of words.
    pub likeness: f32,
    /// How much drawers are turns of a conversation, from 0 to 1.
    pub talk: f32,
}

/// What a good fit needs at least, in unrelated notes and in conversations.
struct Threshold {
    notes: f32,
    talk: f32,
}

impl MemoryFit {
    /// The fit of the best candidates; `coherence` as [`rank_drawers`](super::rank_drawers) takes
    /// it.
    pub fn of(candidates: &[DrawerCandidate], coherence: f32, weights: &MemoryWeights) -> Self {
        let highest =
            |score: fn(&DrawerCandidate) -> f32| candidates.iter().map(score).fold(0.0, f32::max);
        Self {
            keywords: highest(|it| it.keywords),
            vector: highest(|it| it.vector),
            likeness: highest(|it| it.likeness),
            talk: neighbor_weight(coherence, weights),
        }
    }

    /// How much the best drawers have in common with the query, from 0.
    pub fn strength(&self, mode: SearchMode) -> f32 {
        let Self { keywords, vector, likeness, .. } = self;
        let strength = match mode {
            SearchMode::Keyword => *keywords,
            SearchMode::Vector => *vector,
            SearchMode::Hybrid => likeness + KEYWORDS_WEIGHT * keywords + VECTOR_WEIGHT * vector,
        };
        if strength.is_finite() { strength } else { 0.0 }
    }

    /// Whether nothing fits the query well.
    pub fn is_weak(&self, mode: SearchMode) -> bool {
        let Threshold { notes, talk } = match mode {
            SearchMode::Hybrid => WEAK_HYBRID,
            SearchMode::Keyword => WEAK_KEYWORDS,
            SearchMode::Vector => WEAK_VECTORS,
        };
        self.strength(mode) < notes + self.talk * (talk - notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poor_matches_are_weak() {
        let fit = |keywords, vector, likeness, talk| MemoryFit { keywords, vector, likeness, talk };
        for (fit, mode, expected) in [
            // All words of the query are in one drawer.
            (fit(1.0, 0.3, 0.9, 0.0), SearchMode::Hybrid, false),
            (fit(1.0, 0.3, 0.9, 1.0), SearchMode::Hybrid, false),
            // A paraphrase is expected in notes, and common words in a conversation.
            (fit(0.0, 0.25, 0.3, 0.0), SearchMode::Hybrid, false),
            (fit(0.0, 0.25, 0.3, 1.0), SearchMode::Hybrid, true),
            (fit(0.1, 0.12, 0.2, 0.0), SearchMode::Hybrid, true),
            (fit(0.3, 0.0, 0.0, 0.0), SearchMode::Keyword, false),
            (fit(0.2, 0.9, 0.0, 1.0), SearchMode::Keyword, true),
            (fit(0.9, 0.2, 0.0, 0.0), SearchMode::Vector, false),
            (fit(0.9, 0.2, 0.0, 1.0), SearchMode::Vector, true),
            (fit(0.0, 0.0, 0.0, 0.0), SearchMode::Keyword, true),
            (fit(f32::NAN, 0.0, 0.9, 0.0), SearchMode::Hybrid, true),
        ] {
            assert_eq!(fit.is_weak(mode), expected, "{fit:?} {mode}");
        }
    }

    #[test]
    fn the_fit_is_that_of_the_best_candidates() {
        let candidate =
            DrawerCandidate { room: 1, position: 1, keywords: 0.5, vector: 0.1, likeness: 0.2 };
        let other = DrawerCandidate { vector: 0.3, keywords: 0.0, ..candidate };
        let weights = MemoryWeights::default();
        for (coherence, talk) in [(-0.02, 0.0), (0.02, 0.5), (0.2, 1.0), (f32::NAN, 0.0)] {
            let fit = MemoryFit::of(&[candidate, other], coherence, &weights);
            let expected = MemoryFit { keywords: 0.5, vector: 0.3, likeness: 0.2, talk };
            assert_eq!(fit, expected, "{coherence}");
        }
        assert_eq!(MemoryFit::of(&[], 0.0, &weights), MemoryFit::default());
    }
}
