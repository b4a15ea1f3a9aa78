//! Embeds drawers in the writer, because calling another worker would cost more than embedding.

use isolith_embed::{DIMENSION, Model, model_name};
use isolith_protocol::{Action, AddDrawers, DrawerVectors, SaveCheckpoint, UpdateDrawer};
use isolith_store::passages;
use isolith_types::LONGEST_DRAWER;

/// Computes the vectors that an action needs.
pub(crate) fn embed(action: &mut Action, model: Model) {
    let (texts, vectors) = match action {
        Action::AddDrawers(AddDrawers { drawers, vectors, .. })
        | Action::SaveCheckpoint(SaveCheckpoint { drawers, vectors, .. }) => {
            let texts: Vec<&str> = drawers.iter().map(|drawer| drawer.text.as_str()).collect();
            (texts, vectors)
        }
        Action::UpdateDrawer(UpdateDrawer { patch, vectors, .. }) => {
            (patch.text.as_deref().into_iter().collect(), vectors)
        }
        _ => return,
    };
    *vectors = DrawerVectors {
        model: model_name().to_owned(),
        dimension: DIMENSION as u32,
        of_drawers: texts.into_iter().map(|text| embed_text(model, text)).collect(),
    };
}

/// The vectors of a text's passages, concatenated; empty if the text has no words. A passage
/// without words gets the vector of the whole text.
fn embed_text(model: Model, text: &str) -> Vec<u8> {
    // The store will reject it.
    if text.len() > LONGEST_DRAWER {
        return Vec::new();
    }
    let passages = passages(text);
    let own: Vec<_> = passages.iter().map(|passage| embed_passage(model, passage)).collect();
    let whole = match own.iter().all(Option::is_some) {
        true => None,
        false => embed_passage(model, text),
    };
    let vectors: Option<Vec<_>> =
        own.into_iter().map(|own| own.or_else(|| whole.clone())).collect();
    vectors.unwrap_or_default().concat()
}

/// The vector of a passage in little-endian bytes; `None` if it has no words.
pub(crate) fn embed_passage(model: Model, passage: &str) -> Option<Vec<u8>> {
    Some(model.embed(passage)?.into_iter().flat_map(f32::to_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use isolate::InWorker;
    use isolith_types::{DrawerPatch, NewDrawer};

    use super::*;

    fn vectors_of(texts: &[&str]) -> DrawerVectors {
        let drawer = |text: &&str| NewDrawer { text: (*text).to_owned(), ..NewDrawer::default() };
        let mut action = Action::from(AddDrawers {
            drawers: texts.iter().map(drawer).collect(),
            skip_bad: false,
            vectors: DrawerVectors::default(),
        });
        embed(&mut action, Model::embedded(InWorker::in_process()));
        let Action::AddDrawers(AddDrawers { vectors, .. }) = action else { unreachable!() };
        vectors
    }

    #[test]
    fn embeds_every_passage_or_none() {
        let width = DIMENSION * 4;
        let long = "The cat sat on the mat. ".repeat(200);
        // Combining marks alone are not words.
        let marks = "\u{301}".repeat(2_000);
        let mixed = format!("{long}\n\n{marks}");
        let vectors = vectors_of(&["Hello there.", &long, &marks, &mixed, ""]);
        let counts: Vec<usize> = vectors.of_drawers.iter().map(|own| own.len() / width).collect();
        assert_eq!(counts, [1, passages(&long).len(), 0, passages(&mixed).len(), 0]);
        assert_eq!((vectors.dimension, vectors.model.as_str()), (DIMENSION as u32, model_name()));
        let whole = Model::embedded(InWorker::in_process()).embed(&mixed).unwrap();
        let whole: Vec<u8> = whole.into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(vectors.of_drawers[3].rchunks(width).next(), Some(&whole[..]));
    }

    #[test]
    fn update_without_text_needs_no_vectors() {
        let mut action = Action::from(UpdateDrawer {
            id: String::new(),
            patch: Box::new(DrawerPatch::default()),
            vectors: DrawerVectors::default(),
        });
        embed(&mut action, Model::embedded(InWorker::in_process()));
        let Action::UpdateDrawer(UpdateDrawer { vectors, .. }) = action else { unreachable!() };
        assert!(vectors.of_drawers.is_empty());
    }
}
