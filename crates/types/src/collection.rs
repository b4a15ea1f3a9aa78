use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Metadata;

/// How far apart two vectors are. Smaller is nearer, for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// One minus the cosine of the angle.
    #[default]
    Cosine,
    /// The squared Euclidean distance.
    L2,
    /// One minus the inner product.
    Dot,
}

impl Metric {
    /// The name in the truth, in flags and in JSON.
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

/// A name that means nothing here.
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

/// What the records of a collection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectionKind {
    /// What people put there.
    #[default]
    Records,
    /// Chunks of indexed files.
    Code,
    /// Passages of drawers.
    Memory,
}

impl CollectionKind {
    /// The name in the truth and in JSON.
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

/// The longest vector that is stored or asked for, under any metric: beyond this its
/// square leaves the range of f32, and so do distances.
pub const LONGEST_VECTOR: f64 = 1e18;

/// What a collection is to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectionSpec {
    /// Unique in the store.
    pub name: String,
    /// The length of its vectors; the first vector decides if it is not given.
    pub dimension: Option<u32>,
    /// How distances are measured.
    pub metric: Metric,
    /// The id of the model that makes its vectors, if one is known.
    pub model: Option<String>,
}

/// A collection as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// Unique in the store.
    pub name: String,
    /// The length of its vectors; none before the first, if it was not given.
    pub dimension: Option<u32>,
    /// How distances are measured.
    pub metric: Metric,
    /// The id of the model that makes its vectors, if one is known.
    pub model: Option<String>,
    /// How many records it has.
    pub records: u64,
    /// The number of its generation of segments; 0 before the first.
    pub generation: u64,
    /// Changes that no segment has yet.
    pub tail: u64,
}

/// What a collection keeps under one id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Unique in its collection.
    pub id: String,
    /// The text, if there is one.
    pub document: Option<String>,
    /// What filters look at.
    pub metadata: Metadata,
    /// As long as the collection's dimension. Empty in answers that were not asked
    /// for vectors.
    pub vector: Vec<f32>,
}

/// A record that a query found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The record's id.
    pub id: String,
    /// The distance from the query's vector; none for keywords.
    pub distance: Option<f32>,
    /// How well the keywords fit; none for vectors.
    pub score: Option<f32>,
    /// The record's text.
    pub document: Option<String>,
    /// The record's metadata.
    pub metadata: Metadata,
}
