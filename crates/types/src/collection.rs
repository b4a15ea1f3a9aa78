use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Metadata;

/// A distance function for vectors. Smaller is nearer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// One minus the cosine similarity.
    #[default]
    Cosine,
    /// The squared Euclidean distance.
    L2,
    /// One minus the inner product.
    Dot,
}

impl Metric {
    /// The name in the database, in flags and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Cosine => "cosine",
            Metric::L2 => "l2",
            Metric::Dot => "dot",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown: {:?}", self.0)
    }
}

impl std::error::Error for Unknown {}

impl FromStr for Metric {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        [Metric::Cosine, Metric::L2, Metric::Dot]
            .into_iter()
            .find(|metric| metric.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// What the records of a collection represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectionKind {
    /// Records that users put there.
    #[default]
    Records,
    /// Chunks of indexed files.
    Code,
    /// Passages of drawers.
    Memory,
}

impl CollectionKind {
    /// The name in the database and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Code => "code",
            Self::Memory => "memory",
        }
    }
}

impl FromStr for CollectionKind {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        [Self::Records, Self::Code, Self::Memory]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// The maximum Euclidean length of vectors in records and queries, for any metric. The squared
/// length of longer ones, and so their distances, can overflow f32.
pub const LONGEST_VECTOR: f64 = 1e18;

/// The properties of a new collection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectionSpec {
    /// Unique in the store.
    pub name: String,
    /// The length of its vectors; if not given, that of the first vector.
    pub dimension: Option<u32>,
    /// The distance function.
    pub metric: Metric,
    /// The id of the embedding model, if known.
    pub model: Option<String>,
}

/// The current state of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// Unique in the store.
    pub name: String,
    /// The length of its vectors; `None` until the first vector if it was not given.
    pub dimension: Option<u32>,
    /// The distance function.
    pub metric: Metric,
    /// The id of the embedding model, if known.
    pub model: Option<String>,
    /// The number of records.
    pub records: u64,
    /// The generation number; 0 before the first fold.
    pub generation: u64,
    /// The number of changes that are not yet in a segment.
    pub tail: u64,
}

/// What a collection stores under one id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Unique in its collection.
    pub id: String,
    /// The text, if any.
    pub document: Option<String>,
    /// Values for filters.
    pub metadata: Metadata,
    /// Its length is the collection's dimension. Empty in replies if vectors were not requested.
    pub vector: Vec<f32>,
}

/// A record that a query found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The record's id.
    pub id: String,
    /// The distance from the query's vector; `None` for keyword searches.
    pub distance: Option<f32>,
    /// The keyword score; `None` for vector searches, and for hits of hybrid ones that keywords
    /// did not find.
    pub score: Option<f32>,
    /// What hits of hybrid searches are ordered by, at most 1; `None` for the others.
    pub fused: Option<f32>,
    /// What contributed to the fused score; empty for searches that are not hybrid.
    pub why: Vec<String>,
    /// The record's text.
    pub document: Option<String>,
    /// The record's metadata.
    pub metadata: Metadata,
}
