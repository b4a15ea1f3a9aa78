//! The stored state of collections and records, as plain values.

use isolith_types::{Collection, CollectionKind, Metric, Record};
use serde::{Deserialize, Serialize};

/// The name of the code index. User collections cannot start with `@`.
pub const CODE_COLLECTION: &str = "@code";

/// The name of the collection that holds agent memory.
pub const MEMORY_COLLECTION: &str = "@memory";

/// A collection with everything that readers and folds need to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionState {
    /// Its number, part of segment file names and never reused.
    pub id: u64,
    /// Unique in the store.
    pub name: String,
    /// The length of its vectors; `None` until the first vector if the spec left it open.
    pub dimension: Option<u32>,
    /// The distance function.
    pub metric: Metric,
    /// The id of the embedding model, if known.
    pub model: Option<String>,
    /// The number of live records.
    pub records: u64,
    /// Its latest change number; deletions count.
    pub last_change: u64,
    /// Tail rows and tombstones: what a fold would absorb.
    pub unfolded: u64,
    /// What its records represent.
    pub kind: CollectionKind,
    /// Its segments; `None` before the first fold.
    pub generation: Option<Generation>,
}

impl CollectionState {
    /// The generation number; 0 before the first fold.
    pub fn generation_number(&self) -> u64 {
        self.generation.as_ref().map_or(0, |generation| generation.number)
    }

    /// Records with a higher change number are not in any segment.
    pub fn complete_to(&self) -> u64 {
        self.generation.as_ref().map_or(0, |generation| generation.complete_to)
    }

    /// Whether searching the tail costs more than folding it.
    pub fn fold_due(&self) -> bool {
        let delta = self.generation.as_ref().map_or(0, |generation| generation.rows(Level::Delta));
        self.unfolded > (delta / 10).clamp(1_000, 10_000)
    }

    /// Whether the generation lacks source segments, because an earlier version built it.
    pub fn lacks_sources(&self) -> bool {
        let has = |generation: &Generation, level| {
            let kinds = [IndexKind::Text, IndexKind::Source];
            let [text, source] = kinds.map(|kind| generation.segment(level, kind).is_some());
            source || !text
        };
        let complete =
            |generation| [Level::Base, Level::Delta].iter().all(|it| has(generation, *it));
        self.kind == CollectionKind::Code && !self.generation.as_ref().is_none_or(complete)
    }

    /// The public view of this collection.
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
    /// Increases with every swap.
    pub number: u64,
    /// The base contains the records that were live at this change number.
    pub base_to: u64,
    /// Base and delta together contain the records that were live at this one.
    pub complete_to: u64,
    /// The segment files.
    pub segments: Vec<SegmentEntry>,
}

impl Generation {
    /// The segment of this level and kind, if there is one.
    pub fn segment(&self, level: Level, kind: IndexKind) -> Option<&SegmentEntry> {
        self.segments.iter().find(|entry| entry.level == level && entry.kind == kind)
    }

    /// The number of records in the segments of `level`.
    pub fn rows(&self, level: Level) -> u64 {
        let of_level = self.segments.iter().filter(|entry| entry.level == level);
        of_level.map(|entry| entry.rows).max().unwrap_or(0)
    }
}

/// The part of a generation that a segment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// The large part, rarely rebuilt.
    Base,
    /// Records newer than the base.
    Delta,
}

impl Level {
    /// The name in the database and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Delta => "delta",
        }
    }

    /// The inverse of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Base, Self::Delta].into_iter().find(|level| level.name() == name)
    }
}

/// What a segment indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IndexKind {
    /// Vectors, for nearest-neighbor search.
    Vector,
    /// Terms, for keyword search.
    Text,
    /// Complete texts of files, for exact search; only of the code index.
    Source,
}

impl IndexKind {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Text => "text",
            Self::Source => "source",
        }
    }

    /// The inverse of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Vector, Self::Text, Self::Source].into_iter().find(|kind| kind.name() == name)
    }
}

/// One file of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Base or delta.
    pub level: Level,
    /// What it indexes.
    pub kind: IndexKind,
    /// The file name in `segments/`.
    pub file: String,
    /// The number of records in it.
    pub rows: u64,
    /// The file size.
    pub bytes: u64,
    /// The CRC-32C of the file's checksum table.
    pub checksum: u32,
    /// If it must not be opened: why.
    pub quarantined: Option<String>,
}

/// A record with its row, change number and times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRecord {
    /// The row number, unique in the store and never reused.
    pub row: u64,
    /// The change number of its last write.
    pub change: u64,
    /// Id, text, metadata and vector.
    pub record: Record,
    /// When it was first stored, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// When it last changed, in milliseconds since the Unix epoch.
    pub updated_at: i64,
}

/// The progress of an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadProgress {
    /// Source rows processed so far.
    pub rows: u64,
    /// New records.
    pub inserted: u64,
    /// Replaced records.
    pub updated: u64,
    /// Records that already existed with the same content.
    pub unchanged: u64,
    /// Rejected rows.
    pub rejected: u64,
    /// Whether the whole source has been read.
    pub finished: bool,
}

/// A job in quarantine, because it killed workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoisonedJob {
    /// The role whose workers it killed.
    pub role: String,
    /// The hash of its input.
    pub input: Vec<u8>,
    /// The front's description of what happened.
    pub poison: String,
    /// When it was quarantined, in milliseconds since the Unix epoch.
    pub at: i64,
}
