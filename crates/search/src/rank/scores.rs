//! Normalized keyword and vector scores.

use super::{ChunkCandidate, sanitized};
use crate::{CodeWeights, SearchMode};

/// Keyword and vector scores of each file and each candidate. The best file and the best candidate
/// get the full share of the mode.
pub(super) struct Scores {
    pub(super) file_keywords: Vec<f32>,
    pub(super) file_vectors: Vec<f32>,
    pub(super) chunk_keywords: Vec<f32>,
    pub(super) chunk_vectors: Vec<f32>,
}

impl Scores {
    pub(super) fn new(
        files: usize,
        candidates: &[ChunkCandidate<'_>],
        weights: &CodeWeights,
        mode: SearchMode,
    ) -> Self {
        let (keywords, vectors) = match mode {
            SearchMode::Hybrid => (sanitized(weights.keywords), sanitized(weights.vectors)),
            SearchMode::Keyword => (1.0, 0.0),
            SearchMode::Vector => (0.0, 1.0),
        };
        let signal = |share: f32, score: fn(&ChunkCandidate<'_>) -> f32| {
            let mut chunks: Vec<f32> = candidates.iter().map(|it| sanitized(score(it))).collect();
            let mut by_file = vec![Vec::new(); files];
            for (candidate, &score) in candidates.iter().zip(&chunks) {
                if let Some(scores) = by_file.get_mut(candidate.file as usize) {
                    scores.push(score);
                }
            }
            let mut files: Vec<f32> =
                by_file.into_iter().map(|scores| aggregate(scores, weights)).collect();
            normalize(&mut files, share);
            normalize(&mut chunks, share);
            (files, chunks)
        };
        let (file_keywords, chunk_keywords) = signal(keywords, |candidate| candidate.keywords);
        let (file_vectors, chunk_vectors) = signal(vectors, |candidate| candidate.vector);
        Self { file_keywords, file_vectors, chunk_keywords, chunk_vectors }
    }
}

/// The score of a file from those of its best chunks, each counting less than the previous one.
fn aggregate(mut scores: Vec<f32>, weights: &CodeWeights) -> f32 {
    scores.sort_by(|a, b| b.total_cmp(a));
    let mut weight = 1.0;
    let mut sum = 0.0;
    for score in scores.iter().take(weights.chunks as usize) {
        sum += score * weight;
        weight *= sanitized(weights.next_chunk).min(1.0);
    }
    sum
}

/// Scales the scores so that the highest is `share`.
fn normalize(scores: &mut [f32], share: f32) {
    let highest = scores.iter().copied().fold(0.0, f32::max);
    for score in scores {
        *score = if highest > 0.0 { *score / highest * share } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_scores_are_aggregated() {
        let weights = CodeWeights::default();
        assert_eq!(aggregate(vec![], &weights), 0.0);
        assert_eq!(aggregate(vec![1.0, 4.0, 2.0], &weights), 4.0 + 1.0 + 0.25);
        let single = CodeWeights { chunks: 1, ..CodeWeights::default() };
        assert_eq!(aggregate(vec![1.0, 4.0, 2.0], &single), 4.0);
        assert!((aggregate(vec![1.0; 1000], &weights) - 2.0).abs() < 0.01);
    }

    #[test]
    fn the_best_score_gets_the_full_share() {
        let mut scores = [1.0, 4.0, 0.0];
        normalize(&mut scores, 0.5);
        assert_eq!(scores, [0.125, 0.5, 0.0]);
        let mut zeros = [0.0, 0.0];
        normalize(&mut zeros, 0.5);
        assert_eq!(zeros, [0.0, 0.0]);
    }
}
