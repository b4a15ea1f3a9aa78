//! What a store knows about drawers.

use isolith_types::{CollectionSpec, DrawerFilter, Metric};
use serde::{Deserialize, Serialize};

use crate::state::MEMORY_COLLECTION;

/// What the memory of a model is.
pub fn memory_spec(dimension: u32, model: impl Into<String>) -> CollectionSpec {
    CollectionSpec {
        name: MEMORY_COLLECTION.to_owned(),
        dimension: Some(dimension),
        metric: Metric::Cosine,
        model: Some(model.into()),
    }
}

/// The vectors of drawers on their way into the truth. Whoever writes makes them, as they
/// follow from the texts: they do not travel with a request, and are no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrawerVectors {
    /// The model that made them.
    pub model: String,
    /// The length of each.
    pub dimension: u32,
    /// For each drawer the vectors of its passages, one after the other: f32,
    /// little-endian. Empty if nothing in its text has a vector.
    pub of_drawers: Vec<Vec<u8>>,
}

/// Which drawers to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhichDrawers {
    /// These. Ids that are not there are counted as missing.
    Ids(Vec<String>),
    /// All that the filter allows; it must not allow all there are.
    Matching(DrawerFilter),
}

/// A passage as the truth has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPassage {
    /// The row of its record.
    pub row: u64,
    /// The number of the record's last change.
    pub change: u64,
    /// The number of its drawer, which is never used again.
    pub drawer: u64,
    /// The wing of its drawer.
    pub wing: String,
    /// The room of its drawer.
    pub room: String,
    /// The drawer's place in the order of arrival there.
    pub position: u64,
    /// Its text, if it was asked for.
    pub text: Option<String>,
}
