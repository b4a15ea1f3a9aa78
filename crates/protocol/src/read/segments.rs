//! Which segments a search used, and which are damaged.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Verifies all segments; the reply lists the damaged ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifySegments;

/// What segments are derived from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SegmentsOf {
    /// A collection, by name.
    Collection(String),
    /// The graph.
    Graph,
}

impl fmt::Display for SegmentsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collection(name) => f.write_str(name),
            // No user collection starts with `@`.
            Self::Graph => f.write_str("@graph"),
        }
    }
}

/// Which segments a search used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The collection's number; 0 for the graph.
    pub collection: u64,
    /// Its generation, or the graph's change number; 0 if none.
    pub generation: u64,
    /// Segment files that were skipped because a worker had died on this search.
    pub avoided: Vec<String>,
    /// Segment files that could not be read.
    pub damaged: Vec<Damage>,
    /// Whether a segment was already in quarantine.
    pub quarantined: bool,
    /// Whether keyword ranking was skipped for lack of time.
    pub unranked: bool,
}

impl Searched {
    /// Why the answer is incomplete or slow, for the reply; `None` if all segments were used.
    pub fn degraded(&self) -> Option<String> {
        let how = if self.unranked { "keyword ranking is missing" } else { "exact scan used" };
        self.trouble().map(|why| format!("{why}: {how}"))
    }

    /// Why segments were not used; `None` if all were.
    pub fn trouble(&self) -> Option<&'static str> {
        if !self.damaged.is_empty() {
            Some("a segment cannot be used")
        } else if self.quarantined {
            Some("a segment is in quarantine until it is rebuilt")
        } else if !self.avoided.is_empty() {
            Some("a worker died during this search")
        } else {
            None
        }
    }

    /// Whether a segment file had been removed before it could be opened.
    pub fn came_too_late(&self) -> bool {
        self.damaged.iter().any(|damage| damage.kind == SegmentDamageKind::Missing)
    }
}

/// A segment that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Its file name.
    pub file: String,
    /// The error.
    pub reason: String,
    /// The kind of problem.
    pub kind: SegmentDamageKind,
}

/// Why a segment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SegmentDamageKind {
    /// The content is damaged.
    Damaged,
    /// The file does not exist.
    Missing,
    /// The operating system cannot read the file, which may be intact.
    Unreadable,
}
