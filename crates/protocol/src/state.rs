//! What the truth says about collections and records, as plain values.

use isolith_types::{Collection, CollectionKind, Metric, Record};
use serde::{Deserialize, Serialize};

/// The name of the code index. No other collection has a name that begins like it.
pub const CODE_COLLECTION: &str = "@code";

/// The name of the memory, which is a collection as well.
pub const MEMORY_COLLECTION: &str = "@memory";

/// A collection with everything that a reader or a fold must know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionState {
    /// Its number, never used again; names of files hold it.
    pub id: u64,
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
    /// The number of the last change in it, removals included.
    pub last_change: u64,
    /// Tail rows and tombstones: what a fold would clear away.
    pub unfolded: u64,
    /// What its records are.
    pub kind: CollectionKind,
    /// Its segments, if it has been folded.
    pub generation: Option<Generation>,
}

impl CollectionState {
    /// The number of its generation; 0 before the first.
    pub fn generation_number(&self) -> u64 {
        self.generation.as_ref().map_or(0, |generation| generation.number)
    }

    /// Records with a change number above this one are in no segment.
    pub fn complete_to(&self) -> u64 {
        self.generation.as_ref().map_or(0, |generation| generation.complete_to)
    }

    /// Whether so much is unfolded that searching it costs more than folding.
    pub fn fold_due(&self) -> bool {
        let delta = self.generation.as_ref().map_or(0, |generation| generation.rows(Level::Delta));
        self.unfolded > (delta / 10).clamp(1_000, 10_000)
    }

    /// As the outside sees it.
    pub fn summary(&self) -> Collection {
        Collection {
            name: self.name.clone(),
            dimension: self.dimension,
            metric: self.metric,
            model: self.model.clone(),
            records: self.records,
            generation: self.generation_number(),
            tail: self.unfolded,
        }
    }
}

/// The current segments of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Rises with every swap.
    pub number: u64,
    /// The base holds what was alive at this change number.
    pub base_to: u64,
    /// Base and delta together hold what was alive at this one.
    pub complete_to: u64,
    /// Their files.
    pub segments: Vec<SegmentEntry>,
}

impl Generation {
    /// The file of this level and kind.
    pub fn segment(&self, level: Level, kind: Kind) -> Option<&SegmentEntry> {
        self.segments.iter().find(|entry| entry.level == level && entry.kind == kind)
    }

    /// How many records the level holds.
    pub fn rows(&self, level: Level) -> u64 {
        let of_level = self.segments.iter().filter(|entry| entry.level == level);
        of_level.map(|entry| entry.rows).max().unwrap_or(0)
    }
}

/// Which part of a generation a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// The large part, built seldom.
    Base,
    /// What came since.
    Delta,
}

impl Level {
    /// The name in the truth and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Delta => "delta",
        }
    }

    /// The opposite of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Base, Self::Delta].into_iter().find(|level| level.name() == name)
    }
}

/// What a segment is searched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Vectors.
    Vector,
    /// Words.
    Text,
}

impl Kind {
    /// The name in the truth.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Text => "text",
        }
    }

    /// The opposite of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Vector, Self::Text].into_iter().find(|kind| kind.name() == name)
    }
}

/// One file of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Which part it is.
    pub level: Level,
    /// What it is searched by.
    pub kind: Kind,
    /// Its name in `segments/`.
    pub file: String,
    /// How many records it holds.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// The crc32c of its own table of checksums.
    pub checksum: u32,
    /// Why it must not be opened, if so.
    pub quarantined: Option<String>,
}

/// A record with what the truth knows about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRecord {
    /// Its row, unique in the store and never used again.
    pub row: u64,
    /// The number of its last change.
    pub change: u64,
    /// The record itself.
    pub record: Record,
    /// When it was first stored, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
}

/// How far an ingest has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadProgress {
    /// Rows of the source that are done.
    pub rows: u64,
    /// Records that are new.
    pub inserted: u64,
    /// Records that were replaced.
    pub updated: u64,
    /// Records that were there already.
    pub unchanged: u64,
    /// Rows that were left out.
    pub rejected: u64,
    /// Whether the end was reached.
    pub finished: bool,
}

/// A job that is known to kill workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoisonedJob {
    /// The role that it kills.
    pub role: String,
    /// The hash of its input.
    pub input: Vec<u8>,
    /// What happened, as the front wrote it down.
    pub poison: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}
