//! Finds drawers that are near duplicates of a text.

use std::collections::HashSet;

use isolith_embed::{Model, Vector};
use isolith_protocol::{FindSimilarDrawers, SimilarFound, StoreError};
use isolith_store::passages;
use isolith_types::SimilarDrawer;

use crate::vectors::VectorSearch;

/// Maximum number of passages of a long text that are searched for separately.
const MAX_PASSAGES: usize = 4;

/// Minimum number of candidate passages per vector.
const MIN_CANDIDATES: u32 = 32;

/// Compares the whole text with drawers that have a passage close to it or to one of its passages.
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
    let numbers: HashSet<u64> =
        snapshot.passages(&candidates, false)?.into_iter().flatten().map(|it| it.drawer).collect();
    for number in numbers {
        let Some(drawer) = snapshot.drawers_by_number(&[number])?.pop().flatten() else { continue };
        let similarity = model.embed(&drawer.text).map_or(0.0, |other| cosine(&whole, &other));
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

/// Both vectors must have unit length.
fn cosine(a: &Vector, b: &Vector) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>().clamp(-1.0, 1.0)
}
