//! What a store needs to stay fast and healthy.

use serde::{Deserialize, Serialize};

use super::{About, Handled, Handling};
use crate::graph::GraphSegmentEntry;
use crate::state::{Level, SegmentEntry};

/// Makes new segments of a collection current.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwapSegments {
    /// The segments, and what they replace.
    pub plan: SwapPlan,
}

/// New segments, ready to become current.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapPlan {
    /// The collection's number.
    pub collection: u64,
    /// The generation that the fold started from; 0 if there was none.
    pub from_generation: u64,
    /// A new delta on the old base, or a new base alone.
    pub level: Level,
    /// The change number at which the fold read the truth.
    pub complete_to: u64,
    /// The new files of that level.
    pub segments: Vec<SegmentEntry>,
}

/// The reply to [`SwapSegments`] and [`SwapGraphSegment`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentsSwapped {
    /// Whether the new segments are current now.
    pub swapped: bool,
    /// Names in `segments/` that nothing refers to any more.
    pub obsolete_files: Vec<String>,
}

/// Marks segments of a collection that must not be opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantineSegments {
    /// The collection's number.
    pub collection: u64,
    /// The generation they belong to; nothing happens if it is no longer current.
    pub generation: u64,
    /// Their names.
    pub files: Vec<String>,
    /// What they did.
    pub reason: String,
}

/// The reply to operations that mark, forget or count rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Marked {
    /// How many rows were changed.
    pub updated: u64,
}

/// Makes a new segment of the graph current, or removes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwapGraphSegment {
    /// The new segment.
    pub entry: Option<GraphSegmentEntry>,
}

/// Marks the segment of the graph as one that must not be opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantineGraphSegment {
    /// Its name; nothing happens if it is no longer current.
    pub file: String,
    /// What it did.
    pub reason: String,
}

/// Removes rows of deleted collections, a slice at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Purge {
    /// The maximum number of rows.
    pub limit_rows: u32,
}

/// The reply to [`Purge`] and [`Tidy`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Purged {
    /// Rows that were removed.
    pub deleted: u64,
    /// Whether rows are left.
    pub more: bool,
}

/// Remembers a job that kills workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RememberPoison {
    /// The role it kills.
    pub role: String,
    /// The hash of its input.
    pub input: Vec<u8>,
    /// What happened.
    pub poison: String,
}

/// Forgets jobs that killed workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetPoison {
    /// Of this role only, if given.
    pub role: Option<String>,
    /// With this input only, if given.
    pub input: Option<Vec<u8>>,
}

/// Removes expired rows, and gives a little space back to the filesystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tidy;

/// Counts the records of all collections again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recount;

impl Handled for SwapSegments {
    fn handling(&self) -> Handling<'_> {
        Handling::of(About::Number(self.plan.collection)).alone()
    }
}

impl Handled for QuarantineSegments {
    fn handling(&self) -> Handling<'_> {
        Handling::of(About::Number(self.collection))
    }
}

impl Handled for SwapGraphSegment {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for QuarantineGraphSegment {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for Purge {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}

impl Handled for RememberPoison {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for ForgetPoison {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for Tidy {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}

impl Handled for Recount {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}
