//! What keywords and vectors say of files.

use super::{Candidate, sound};
use crate::{Mode, Weights};

/// What keywords and vectors add to the score of each file and of each candidate.
pub(super) struct Shares {
    pub(super) keywords: Vec<f32>,
    pub(super) vectors: Vec<f32>,
    pub(super) chunk_keywords: Vec<f32>,
    pub(super) chunk_vectors: Vec<f32>,
}

/// Relative to the best file, and to the best chunk.
pub(super) fn file_shares(
    files: usize,
    candidates: &[Candidate<'_>],
    weights: &Weights,
    mode: Mode,
) -> Shares {
    // In the modes that look at one side only, that side has the whole score.
    let (keywords, vectors) = match mode {
        Mode::Hybrid => (sound(weights.keywords), sound(weights.vectors)),
        Mode::Keyword => (1.0, 0.0),
        Mode::Vector => (0.0, 1.0),
    };
    let side = |share: f32, score: fn(&Candidate<'_>) -> f32| {
        let mut chunks: Vec<f32> = candidates.iter().map(|it| sound(score(it))).collect();
        let mut of_files = vec![Vec::new(); files];
        for (candidate, &score) in candidates.iter().zip(&chunks) {
            if let Some(scores) = of_files.get_mut(candidate.file as usize) {
                scores.push(score);
            }
        }
        let mut files: Vec<f32> =
            of_files.into_iter().map(|scores| together(scores, weights)).collect();
        scale(&mut files, share);
        scale(&mut chunks, share);
        (files, chunks)
    };
    let (keywords, chunk_keywords) = side(keywords, |candidate| candidate.keywords);
    let (vectors, chunk_vectors) = side(vectors, |candidate| candidate.vector);
    Shares { keywords, vectors, chunk_keywords, chunk_vectors }
}

/// The best chunks of a file, each counting less than the one before.
fn together(mut scores: Vec<f32>, weights: &Weights) -> f32 {
    scores.sort_by(|a, b| b.total_cmp(a));
    let mut weight = 1.0;
    let mut sum = 0.0;
    for score in scores.iter().take(weights.chunks as usize) {
        sum += score * weight;
        weight *= sound(weights.next_chunk).min(1.0);
    }
    sum
}

/// Makes the greatest of all numbers `share`.
fn scale(numbers: &mut [f32], share: f32) {
    let greatest = numbers.iter().copied().fold(0.0, f32::max);
    for number in numbers {
        *number = if greatest > 0.0 { *number / greatest * share } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_a_file_count_together() {
        let weights = Weights::default();
        assert_eq!(together(vec![], &weights), 0.0);
        assert_eq!(together(vec![1.0, 4.0, 2.0], &weights), 4.0 + 1.0 + 0.25);
        let alone = Weights { chunks: 1, ..Weights::default() };
        assert_eq!(together(vec![1.0, 4.0, 2.0], &alone), 4.0);
        assert!((together(vec![1.0; 1000], &weights) - 2.0).abs() < 0.01);
    }

    #[test]
    fn the_best_has_the_whole_share() {
        let mut numbers = [1.0, 4.0, 0.0];
        scale(&mut numbers, 0.5);
        assert_eq!(numbers, [0.125, 0.5, 0.0]);
        let mut nothing = [0.0, 0.0];
        scale(&mut nothing, 0.5);
        assert_eq!(nothing, [0.0, 0.0]);
    }
}
