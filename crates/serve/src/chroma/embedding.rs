//! Embedding documents and questions for collections that were created for that.
//!
//! Chroma's clients embed by themselves and send vectors. They pass the metadata of a collection
//! through untouched, so a key there says that the server is to embed.

use isolith_engine::{Engine, Patch, Records};
use serde_json::Value as Json;

use super::error::{ChromaError, Reply};
use super::metadata::NewMetadata;
use super::vectors::Vectors;

/// The metadata key of collections whose documents are embedded here.
const KEY: &str = "isolith:embed";

/// Whether the metadata of a new collection asks for it.
pub(super) fn is_wanted(metadata: Option<&NewMetadata>) -> Reply<bool> {
    match metadata.and_then(|metadata| metadata.0.get(KEY)) {
        None | Some(Json::Bool(false)) => Ok(false),
        Some(Json::Bool(true)) => Ok(true),
        Some(other) => Err(ChromaError::validation(format!(
            "metadata: {KEY} must be true or false, not {other}"
        ))),
    }
}

/// Refuses vectors, because a collection never mixes those of two models.
pub(super) fn unwanted() -> ChromaError {
    ChromaError::invalid(
        "This collection embeds its documents by itself: send documents without embeddings",
    )
}

/// Computes the vectors of records, all of which need a document.
pub(super) async fn embed_records(engine: &Engine, records: &mut Records) -> Reply<()> {
    let mut texts = Vec::with_capacity(records.ids.len());
    for (document, id) in records.documents.iter().zip(&records.ids) {
        let missing = || {
            let message = format!("documents: the record {id:?} has none to embed");
            ChromaError::validation(message)
        };
        texts.push(document.as_deref().ok_or_else(missing)?);
    }
    let vectors =
        embed(engine, &texts, |at| format!("the document of {:?}", records.ids[at])).await?;
    records.dimension = vectors.first().map_or(0, |vector| vector.len() as u32);
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|it| it.to_le_bytes()).collect();
    records.vectors = bytes.into();
    Ok(())
}

/// Computes the vectors of patches that have a new document.
pub(super) async fn embed_patches(engine: &Engine, patches: &mut [Patch]) -> Reply<()> {
    let (mut places, mut texts) = (Vec::new(), Vec::new());
    for (place, patch) in patches.iter().enumerate() {
        if let Some(Some(text)) = &patch.document {
            places.push(place);
            texts.push(text.as_str());
        }
    }
    let vectors =
        embed(engine, &texts, |at| format!("the document of {:?}", patches[places[at]].id)).await?;
    for (place, vector) in places.into_iter().zip(vectors) {
        patches[place].vector = Some(vector);
    }
    Ok(())
}

/// Computes the vectors of questions.
pub(super) async fn embed_questions(engine: &Engine, texts: &[String]) -> Reply<Vectors> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embed(engine, &texts, |at| format!("the text {:?}", texts[at])).await?;
    Ok(Vectors::of_rows(vectors))
}

async fn embed(
    engine: &Engine,
    texts: &[&str],
    name: impl Fn(usize) -> String,
) -> Reply<Vec<Vec<f32>>> {
    let vectors = engine.embed(texts).await?;
    let found = vectors.into_iter().enumerate().map(|(at, vector)| {
        let wordless = || ChromaError::invalid(format!("{} has no words to embed", name(at)));
        vector.ok_or_else(wordless)
    });
    found.collect()
}
