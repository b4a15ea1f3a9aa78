//! The checks of a probe, and their results.

use serde::{Deserialize, Serialize};

use isolith_protocol::Damage;

/// A check of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// SQLite's integrity check of the database.
    Integrity,
    /// Whether all acknowledged commits are in the database or its log.
    Log,
    /// Tables, indexes and version of the database.
    Schema,
    /// References between rows.
    References,
    /// Stored counts of records.
    Counts,
    /// Dimensions and values of stored vectors.
    Vectors,
    /// The values that filters use, compared with the metadata.
    Fields,
    /// Row counts of segments, tombstones and tail, compared with the records.
    Generations,
    /// Checksums of all segments.
    Segments,
    /// Whether searches for stored vectors find them.
    SelfQueries,
    /// Owners and modes of files and folders.
    Permissions,
    /// Free disk space.
    Disk,
    /// Who holds the store's locks.
    Locks,
    /// Resource limits of processes.
    Limits,
    /// Quarantined jobs.
    Quarantine,
    /// Crash reports of workers.
    Crashes,
    /// Files that are kept only up to a limit, and leftovers.
    Kept,
    /// Data that earlier salvages could not recover.
    Losses,
}

impl Check {
    /// All checks, in the order in which they are run and shown.
    pub const ALL: [Check; 18] = [
        Check::Integrity,
        Check::Log,
        Check::Schema,
        Check::References,
        Check::Counts,
        Check::Vectors,
        Check::Fields,
        Check::Generations,
        Check::Segments,
        Check::SelfQueries,
        Check::Permissions,
        Check::Disk,
        Check::Locks,
        Check::Limits,
        Check::Quarantine,
        Check::Crashes,
        Check::Kept,
        Check::Losses,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Check::Integrity => "integrity",
            Check::Log => "log",
            Check::Schema => "schema",
            Check::References => "references",
            Check::Counts => "counts",
            Check::Vectors => "vectors",
            Check::Fields => "fields",
            Check::Generations => "generations",
            Check::Segments => "segments",
            Check::SelfQueries => "self_queries",
            Check::Permissions => "permissions",
            Check::Disk => "disk",
            Check::Locks => "locks",
            Check::Limits => "limits",
            Check::Quarantine => "quarantine",
            Check::Crashes => "crashes",
            Check::Kept => "kept",
            Check::Losses => "losses",
        }
    }

    /// Whether its duration grows with the size of the store.
    pub fn reads_everything(self) -> bool {
        matches!(
            self,
            Check::Integrity
                | Check::Log
                | Check::References
                | Check::Counts
                | Check::Vectors
                | Check::Fields
                | Check::Generations
                | Check::Segments
                | Check::SelfQueries
        )
    }
}

/// The result of a check, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// No problem was found.
    Ok,
    /// Nothing is broken, but the user should know about it.
    Warn,
    /// It could not be checked, or does not work.
    Failed,
    /// Stored data is damaged.
    Corrupt,
}

impl Health {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Warn => "warn",
            Health::Failed => "failed",
            Health::Corrupt => "corrupt",
        }
    }
}

/// The result of one check, with details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The severity.
    pub status: Health,
    /// A human-readable description.
    pub detail: String,
    /// The repairs that would fix it.
    pub repairs: Vec<Repair>,
}

impl Finding {
    /// A finding without repairs.
    pub fn new(status: Health, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), repairs: Vec::new() }
    }

    pub(super) fn ok(detail: impl Into<String>) -> Self {
        Self::new(Health::Ok, detail)
    }

    #[must_use]
    pub(super) fn with(mut self, repair: Repair) -> Self {
        self.repairs.push(repair);
        self
    }

    /// A finding with several problems, of which the first are listed.
    pub(super) fn of_problems(status: Health, problems: &[String]) -> Self {
        Self::new(status, joined(problems))
    }
}

/// A repair of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repair {
    /// Salvage what can be read of the database into a new file.
    Salvage,
    /// Rebuild the database from the old one and everything readable in its log.
    RecoverLog,
    /// Count the records of all collections again.
    Recount,
    /// Rebuild a collection's segments.
    RebuildCollection(CollectionRebuild),
    /// Quarantine these files and rebuild the graph segment.
    RebuildGraph(Vec<Damage>),
    /// Make files and folders accessible to the owner only.
    Permissions,
    /// Remove unreferenced files.
    Leftovers,
}

/// A collection whose segments must be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionRebuild {
    /// The collection's name.
    pub collection: String,
    /// The collection's id.
    pub id: u64,
    /// The generation that was checked.
    pub generation: u64,
    /// The files to quarantine.
    pub damaged: Vec<Damage>,
}

/// Maximum number of problems listed in a detail.
const LISTED: usize = 5;

/// The first problems in one line, and the number of the others.
pub(super) fn joined(problems: &[String]) -> String {
    let mut text = problems.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    if problems.len() > LISTED {
        text.push_str(&format!("; and {} more", problems.len() - LISTED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_match_the_json() {
        let names: std::collections::BTreeSet<_> = Check::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Check::ALL.len());
        for check in Check::ALL {
            assert_eq!(serde_json::to_string(&check).unwrap(), format!("\"{}\"", check.name()));
        }
    }

    #[test]
    fn long_lists_are_abbreviated() {
        let many: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        assert_eq!(joined(&many), "0; 1; 2; 3; 4; and 3 more");
        assert_eq!(joined(&many[..2]), "0; 1");
    }
}
