//! Finds drawers that are near duplicates of a text.

use std::collections::{HashMap, HashSet};

use isolith_embed::{Model, Vector};
use isolith_protocol::{FindSimilarDrawers, SimilarFound, StoreError};
use isolith_store::passages;
use isolith_types::SimilarDrawer;

use crate::vectors::VectorSearch;

/// Maximum number of passages of a long text that are searched for separately.
const MAX_PASSAGES: usize = 4;

/// Minimum number of candidate passages per vector. A sentence need not be close to the passage that it
/// is in.
const MIN_CANDIDATES: u32 = 128;

/// Maximum number of sentences that are looked for inside a passage.
const MAX_SENTENCES: usize = 8;

/// Compares a text with drawers that have a passage close to it or to one of its passages: with the
/// whole drawer, and with as many sentences in the passage as the text has. The better one counts, so
/// that a sentence is found inside a longer text.
pub(crate) fn similar_drawers(
    mut search: VectorSearch<'_, '_>,
    model: Model,
    query: &FindSimilarDrawers,
) -> Result<SimilarFound, StoreError> {
    let snapshot = search.snapshot;
    let mut found = SimilarFound::default();
    let whole = model
        .embed(&query.text)
        .ok_or_else(|| StoreError::Invalid("the text has no words".to_owned()))?;
    let Some(state) = snapshot.memory_state()? else { return Ok(found) };
    found.searched.collection = state.id;
    let rows = match query.filter.is_empty() {
        true => None,
        false => Some(snapshot.rows_of_drawers(&query.filter)?),
    };
    let mut vectors = vec![whole];
    let passages = passages(&query.text);
    if passages.len() > 1 {
        vectors.extend(passages.iter().take(MAX_PASSAGES).filter_map(|it| model.embed(it)));
    }
    let mut candidates = HashSet::new();
    let limit = query.limit.saturating_mul(4).max(MIN_CANDIDATES);
    for vector in vectors {
        let (vector, searched) = (vector.to_vec(), &mut found.searched);
        let best = search.best(&state, vector, limit, rows.as_deref(), searched)?;
        candidates.extend(best.into_ranked().into_iter().map(|(row, _)| row));
    }
    let candidates: Vec<u64> = candidates.into_iter().collect();
    let count = sentences(&query.text).len();
    let mut best: HashMap<u64, f32> = HashMap::new();
    for passage in snapshot.passages(&candidates, true)?.into_iter().flatten() {
        let inside = match count {
            1..=MAX_SENTENCES => {
                similarity_inside(model, &whole, &passage.text.unwrap_or_default(), count)
            }
            _ => 0.0,
        };
        let similarity = best.entry(passage.drawer).or_default();
        *similarity = similarity.max(inside);
    }
    for (number, inside) in best {
        let Some(drawer) = snapshot.drawers_by_number(&[number])?.pop().flatten() else { continue };
        let similarity = model.embed(&drawer.text).map_or(0.0, |other| cosine(&whole, &other));
        let similarity = similarity.max(inside);
        if similarity >= query.threshold {
            found.drawers.push(SimilarDrawer { drawer, similarity });
        }
    }
    found.drawers.sort_by(|a, b| {
        b.similarity.total_cmp(&a.similarity).then_with(|| a.drawer.id.cmp(&b.drawer.id))
    });
    found.drawers.truncate(query.limit as usize);
    Ok(found)
}

/// The greatest similarity of a text with this many consecutive sentences of a passage.
fn similarity_inside(model: Model, whole: &Vector, passage: &str, count: usize) -> f32 {
    let sentences = sentences(passage);
    let of_window = |window: &[&str]| {
        model.embed(&window.join(" ")).map_or(0.0, |vector| cosine(whole, &vector))
    };
    sentences.windows(count).map(of_window).fold(0.0, f32::max)
}

/// The sentences and lines of a text.
fn sentences(text: &str) -> Vec<&str> {
    let ends = |letter: char| matches!(letter, '.' | '!' | '?' | '\n' | '。' | '！' | '？');
    let has_word = |sentence: &&str| sentence.chars().any(char::is_alphanumeric);
    text.split_inclusive(ends).map(str::trim).filter(has_word).collect()
}

/// Both vectors must have unit length.
fn cosine(a: &Vector, b: &Vector) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>().clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use isolate::InWorker;

    use super::*;

    #[test]
    fn sentences_are_found_inside_longer_texts() {
        let model = Model::embedded(InWorker::in_process());
        let text = "The build failed on Monday.\nAnn prefers tabs over spaces in Makefiles. We meet at \
                    noon, and the minutes go to Bob.";
        let inside = |sentence: &str| {
            let whole = model.embed(sentence).unwrap();
            similarity_inside(model, &whole, text, sentences(sentence).len())
        };
        assert!(inside("Ann prefers tabs over spaces in Makefiles.") > 0.999);
        assert!(inside("ann prefers tabs over spaces in makefiles") > 0.95);
        assert!(
            inside("The build failed on Monday. Ann prefers tabs over spaces in Makefiles.") > 0.95
        );
        assert!(inside("The office is closed in August.") < 0.8);
    }
}
