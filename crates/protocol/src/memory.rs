//! Drawers and passages as stored.

use isolith_types::{CollectionSpec, DrawerFilter, Metric};
use serde::{Deserialize, Serialize};

use crate::state::MEMORY_COLLECTION;

/// The spec of the memory collection for a model.
pub fn memory_spec(dimension: u32, model: impl Into<String>) -> CollectionSpec {
    CollectionSpec {
        name: MEMORY_COLLECTION.to_owned(),
        dimension: Some(dimension),
        metric: Metric::Cosine,
        model: Some(model.into()),
    }
}

/// The vectors of drawers that are being written. The writer computes them from the texts; they
/// are not part of the request and are not sent with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrawerVectors {
    /// The embedding model.
    pub model: String,
    /// The length of each vector.
    pub dimension: u32,
    /// For each drawer the concatenated vectors of its passages: f32, little-endian. Empty
    /// if no passage has a vector.
    pub of_drawers: Vec<Vec<u8>>,
}

/// Which drawers to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhichDrawers {
    /// The drawers with these ids. Unknown ids are counted as missing.
    Ids(Vec<String>),
    /// All drawers that match the filter, which must not be empty.
    Matching(DrawerFilter),
}

/// A passage as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPassage {
    /// The row of its record.
    pub row: u64,
    /// The change number of the record.
    pub change: u64,
    /// The number of its drawer, never reused.
    pub drawer: u64,
    /// The wing of its drawer.
    pub wing: String,
    /// The room of its drawer.
    pub room: String,
    /// The drawer's position in that room, in order of arrival.
    pub position: u64,
    /// Its text, if requested.
    pub text: Option<String>,
}
