//! What a probe is asked and what it finds, as plain values.

use serde::{Deserialize, Serialize};

use isolith_protocol::Damage;

/// Something that can be wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// SQLite's own check of the truth.
    Integrity,
    /// The log of changes, and whether all that was acknowledged is there.
    Log,
    /// Tables, indexes and version of the truth.
    Schema,
    /// Rows that belong to nothing.
    References,
    /// The numbers of records that collections claim to have.
    Counts,
    /// Lengths and numbers of stored vectors.
    Vectors,
    /// What filters look at against the metadata.
    Fields,
    /// Rows of segments, tombstones and tail against the records.
    Generations,
    /// Every byte of every segment.
    Segments,
    /// Whether stored vectors find themselves.
    SelfQueries,
    /// Owners and modes of files and folders.
    Permissions,
    /// Room on the disk.
    Disk,
    /// Who holds the store's locks.
    Locks,
    /// What the system allows a process.
    Limits,
    /// Jobs that are not tried again.
    Quarantine,
    /// What workers died of.
    Crashes,
    /// What is kept, and how much of it may be.
    Kept,
    /// What earlier salvages could not save.
    Losses,
}

impl Check {
    /// All of them, in the order in which they are run and shown.
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

    /// Whether it takes the longer the more is stored.
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

/// How bad it is; the later the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing is wrong.
    Ok,
    /// Nothing is broken, but somebody should know.
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

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is.
    pub status: Health,
    /// What was seen, for people.
    pub detail: String,
    /// What a repair can do about it.
    pub cures: Vec<Cure>,
}

impl Finding {
    /// A finding without a cure.
    pub fn new(status: Health, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), cures: Vec::new() }
    }

    pub(super) fn ok(detail: impl Into<String>) -> Self {
        Self::new(Health::Ok, detail)
    }

    #[must_use]
    pub(super) fn with(mut self, cure: Cure) -> Self {
        self.cures.push(cure);
        self
    }

    /// Makes one finding of several problems: the worst decides, the first ones are
    /// told.
    pub(super) fn of_problems(status: Health, problems: &[String]) -> Self {
        Self::new(status, joined(problems))
    }
}

/// What a repair can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cure {
    /// Save what can be read of the truth into a new file.
    Salvage,
    /// Make a new truth of the old one and all that can be read of its log.
    RecoverLog,
    /// Count the records of all collections again.
    Recount,
    /// Make a collection's segments anew.
    Rebuild(Rebuild),
    /// Make the graph's segment anew; these are not to be used any more.
    RebuildGraph(Vec<Damage>),
    /// Take rights away from others, and give them to the owner.
    Permissions,
    /// Remove files that nothing refers to.
    Leftovers,
}

/// A collection whose segments are to be made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Its name.
    pub collection: String,
    /// Its number.
    pub id: u64,
    /// The generation that was looked at.
    pub generation: u64,
    /// The files that must not be used any more.
    pub damaged: Vec<Damage>,
}

/// Problems that a detail lists; the rest is counted.
const LISTED: usize = 5;

/// The first of several sentences, in one line.
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
    fn every_check_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Check::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Check::ALL.len());
        for check in Check::ALL {
            assert_eq!(serde_json::to_string(&check).unwrap(), format!("\"{}\"", check.name()));
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        assert_eq!(joined(&many), "0; 1; 2; 3; 4; and 3 more");
        assert_eq!(joined(&many[..2]), "0; 1");
    }
}
