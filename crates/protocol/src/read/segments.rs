//! What a search went through, and which segments are damaged.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reads and checks all segments; the reply lists those that are damaged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifySegments;

/// What segments are made from.
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
            // No collection of people's own begins like that.
            Self::Graph => f.write_str("@graph"),
        }
    }
}

/// What a search went through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The collection's number; 0 for the graph.
    pub collection: u64,
    /// Its generation, or the graph's change; 0 if it has none.
    pub generation: u64,
    /// Segment files that were left out because a worker died before.
    pub avoided: Vec<String>,
    /// Segment files that could not be used.
    pub damaged: Vec<Damage>,
    /// Whether a segment is in quarantine already.
    pub quarantined: bool,
    /// Whether there was no time to rank by keywords.
    pub unranked: bool,
}

impl Searched {
    /// What to say of a search that had to do without segments.
    pub fn degraded(&self) -> Option<String> {
        let how = if self.unranked { "keyword ranking is missing" } else { "exact scan used" };
        self.trouble().map(|why| format!("{why}: {how}"))
    }

    /// Why segments were not used.
    pub fn trouble(&self) -> Option<&'static str> {
        if !self.damaged.is_empty() {
            Some("a segment cannot be used")
        } else if self.quarantined {
            Some("a segment is in quarantine until it is rebuilt")
        } else if !self.avoided.is_empty() {
            Some("a worker died over this search")
        } else {
            None
        }
    }

    /// Whether a file was gone when it was to be opened.
    pub fn came_too_late(&self) -> bool {
        self.damaged.iter().any(|damage| damage.kind == DamageKind::Missing)
    }
}

/// A segment that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Its file.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whose fault that is.
    pub kind: DamageKind,
}

/// Why a segment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DamageKind {
    /// The file is not as it was written.
    Damaged,
    /// The file is gone.
    Missing,
    /// The system refuses to read it; the file may be sound.
    Unreadable,
}
