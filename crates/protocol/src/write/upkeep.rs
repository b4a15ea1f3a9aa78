//! Maintenance of a store: segments, quarantine and cleanup.

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
    /// The generation that the fold started from; 0 if none.
    pub from_generation: u64,
    /// A new delta for the current base, or a new base without a delta.
    pub level: Level,
    /// The collection's change number when the fold read the database.
    pub complete_to: u64,
    /// The new files of that level.
    pub segments: Vec<SegmentEntry>,
}

/// The reply to [`SwapSegments`] and [`SwapGraphSegment`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentsSwapped {
    /// Whether the new segments became current; not if the generation had changed.
    pub swapped: bool,
    /// Files in `segments/` that are no longer used.
    pub obsolete_files: Vec<String>,
}

/// Marks segments of a collection as quarantined, so that nobody opens them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantineSegments {
    /// The collection's number.
    pub collection: u64,
    /// Their generation; the operation does nothing if it is no longer current.
    pub generation: u64,
    /// Their file names.
    pub files: Vec<String>,
    /// Why they are quarantined.
    pub reason: String,
}

/// The reply to operations that update rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Marked {
    /// The number of changed rows.
    pub updated: u64,
}

/// Makes a new graph segment current, or removes the current one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwapGraphSegment {
    /// The new segment; `None` to have none.
    pub entry: Option<GraphSegmentEntry>,
}

/// Marks the graph segment as quarantined, so that nobody opens it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantineGraphSegment {
    /// Its file name; the operation does nothing if it is no longer current.
    pub file: String,
    /// Why it is quarantined.
    pub reason: String,
}

/// Removes rows of deleted collections, a batch at a time.
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
    /// Whether rows remain.
    pub more: bool,
}

/// Quarantines a job that kills workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RememberPoison {
    /// The role whose workers it killed.
    pub role: String,
    /// The hash of its input.
    pub input: Vec<u8>,
    /// What happened.
    pub poison: String,
}

/// Removes jobs from quarantine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetPoison {
    /// Of this role only, if given.
    pub role: Option<String>,
    /// With this input only, if given.
    pub input: Option<Vec<u8>>,
}

/// Removes expired rows, and returns some free space to the filesystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tidy;

/// Recomputes the record counts of all collections.
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
