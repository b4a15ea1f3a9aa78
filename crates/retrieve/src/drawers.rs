//! Drawers that are nearly the same as a text.

use std::collections::HashSet;

use isolith_embed::{Model, Vector};
use isolith_protocol::{FindSimilarDrawers, SimilarFound, StoreError};
use isolith_store::passages;
use isolith_types::SimilarDrawer;

use crate::vectors::Nearest;

/// This many passages of a long text are compared one by one.
const PASSAGES: usize = 4;

/// At least this many passages are taken as candidates.
const CANDIDATES: u32 = 32;

/// Drawers with a passage near to the text, or to a part of it, are compared as wholes.
pub(crate) fn similar(
    mut nearest: Nearest<'_, '_>,
    model: Model,
    wanted: &FindSimilarDrawers,
) -> Result<SimilarFound, StoreError> {
    let snapshot = nearest.snapshot;
    let mut found = SimilarFound::default();
    let whole = model
        .embed(&wanted.text)
        .ok_or_else(|| StoreError::Invalid("the text has no words to compare".to_owned()))?;
    let Some(state) = snapshot.memory_state()? else { return Ok(found) };
    found.searched.collection = state.id;
    let rows = match wanted.filter.is_empty() {
        true => None,
        false => Some(snapshot.rows_of_drawers(&wanted.filter)?),
    };
    let mut questions = vec![whole];
    let parts = passages(&wanted.text);
    if parts.len() > 1 {
        questions.extend(parts.iter().take(PASSAGES).filter_map(|part| model.embed(part)));
    }
    let mut candidates = HashSet::new();
    let want = wanted.limit.saturating_mul(4).max(CANDIDATES);
    for question in questions {
        let (vector, searched) = (question.to_vec(), &mut found.searched);
        let best = nearest.best(&state, vector, want, rows.as_deref(), searched)?;
        candidates.extend(best.into_ranked().into_iter().map(|(row, _)| row));
    }
    let candidates: Vec<u64> = candidates.into_iter().collect();
    let numbers: HashSet<u64> =
        snapshot.passages(&candidates, false)?.into_iter().flatten().map(|it| it.drawer).collect();
    for number in numbers {
        let Some(drawer) = snapshot.drawers_by_number(&[number])?.pop().flatten() else { continue };
        let similarity = model.embed(&drawer.text).map_or(0.0, |other| cosine(&whole, &other));
        if similarity >= wanted.threshold {
            found.drawers.push(SimilarDrawer { drawer, similarity });
        }
    }
    found.drawers.sort_by(|a, b| {
        b.similarity.total_cmp(&a.similarity).then_with(|| a.drawer.id.cmp(&b.drawer.id))
    });
    found.drawers.truncate(wanted.limit as usize);
    Ok(found)
}

/// Of two vectors of unit length.
fn cosine(one: &Vector, other: &Vector) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>().clamp(-1.0, 1.0)
}
