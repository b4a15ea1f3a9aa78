//! What a salvage could not save, and the report file that is kept as long as the damaged truth.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use isolith_protocol::StoreError;
use serde::{Deserialize, Serialize};

use crate::folder::{StoreFolder, io_failure};
use crate::identity::with_suffix;

/// Maximum number of ids per loss.
pub(super) const MAX_NAMED_IDS: usize = 1000;

/// Suffix of a report; the rest of its name is that of the damaged truth.
const SUFFIX: &str = ".report.json";

/// What a salvage saved and what it could not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SalvageReport {
    /// Collections in the new truth.
    pub collections: u64,
    /// Records in the new truth.
    pub records: u64,
    /// Facts in the new truth.
    pub facts: u64,
    /// What could not be saved unchanged, by table and extent.
    pub lost: Vec<Loss>,
    /// Ids of lost records and drawers, as far as an index still knew them; the first thousand.
    pub lost_ids: Vec<String>,
    /// Number of records known to be lost.
    pub lost_records: u64,
    /// Path of the damaged file.
    pub kept_as: PathBuf,
    /// Path of the report file with the same contents.
    pub report: PathBuf,
}

/// What could not be saved of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Name of the table.
    pub table: String,
    /// What happened to the rows.
    pub extent: Extent,
    /// Number of rows; with [`Extent::Unknown`] an upper bound, or 0 if nothing is known.
    pub rows: u64,
    /// Ids or names of the first thousand rows, as far as known.
    pub ids: Vec<String>,
    /// The cause, or what is missing.
    pub reason: String,
}

/// What happened to damaged rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Not in the new truth.
    Lost,
    /// Some of their columns were saved.
    Partial,
    /// Two copies of them disagree; one was kept.
    Doubtful,
    /// There may have been rows in an unreadable range.
    Unknown,
    /// Derived from files; the next `isolith index` recreates them.
    Derived,
}

impl Loss {
    /// Describes the loss: how many rows of what, and the first ids.
    pub fn in_words(&self, named: usize) -> String {
        let count = match (self.extent, self.rows) {
            (Extent::Unknown, 0) => format!("an unknown number of {}", in_words(&self.table, 0)),
            (Extent::Unknown, rows) => format!("up to {rows} {}", in_words(&self.table, rows)),
            (_, rows) => format!("{rows} {}", in_words(&self.table, rows)),
        };
        let fate = match self.extent {
            Extent::Lost => "lost",
            Extent::Partial => "saved in part",
            Extent::Doubtful => "doubtful",
            Extent::Unknown => "may be lost",
            Extent::Derived => "to be indexed again",
        };
        let mut names: Vec<String> =
            self.ids.iter().take(named).map(|id| format!("{id:?}")).collect();
        if self.ids.len() > named || (!names.is_empty() && self.rows > self.ids.len() as u64) {
            names.push("…".to_owned());
        }
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        format!("{fate}: {count} ({}){names}", self.reason)
    }
}

/// Describes this many rows of a table in users' terms.
fn in_words(table: &str, rows: u64) -> String {
    let (one, many) = match table {
        "alias" => ("alias of an entity", "aliases of entities"),
        "chunk" => ("chunk of code", "chunks of code"),
        "code_graph" | "code_lookup" | "code_module" => {
            ("part of the code graph", "parts of the code graph")
        }
        "entity" => ("entity", "entities"),
        "fact_source" => ("source of a fact", "sources of facts"),
        "graph_name" => ("name of the graph", "names of labels, types and properties"),
        "graph_constraint" => ("constraint of the graph", "constraints of the graph"),
        "quarantined_job" => ("quarantined job", "quarantined jobs"),
        "vector" => ("record without a readable vector", "records without a readable vector"),
        "store" | "graph" => ("row of the store's own numbers", "rows of the store's own numbers"),
        "collection" | "record" | "load" | "receipt" | "root" | "file" | "drawer" | "passage"
        | "predicate" | "fact" | "node" | "edge" => {
            return if rows == 1 { table.to_owned() } else { format!("{table}s") };
        }
        other if rows == 1 => return format!("row of {other}"),
        other => return format!("rows of {other}"),
    };
    if rows == 1 { one.to_owned() } else { many.to_owned() }
}

/// The report file that a salvage leaves next to the damaged truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedReport {
    /// Time of the salvage, in milliseconds since 1970.
    pub at: i64,
    /// Collections in the new truth.
    pub collections: u64,
    /// Records in the new truth.
    pub records: u64,
    /// Facts in the new truth.
    pub facts: u64,
    /// What could not be saved unchanged.
    pub lost: Vec<Loss>,
}

impl SavedReport {
    /// The reports of damaged truths that still exist, with their paths, oldest first. `None`
    /// for a report that cannot be read.
    pub fn all(folder: &StoreFolder) -> Vec<(PathBuf, Option<Self>)> {
        let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let mut reports: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let damaged = name.strip_suffix(SUFFIX)?;
                let is_kept = damaged.starts_with("truth.sqlite.damaged-")
                    && folder.path().join(damaged).exists();
                is_kept.then(|| entry.path())
            })
            .collect();
        reports.sort();
        let read = |path: PathBuf| {
            let report = std::fs::read(&path).ok();
            let report = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            (path, report)
        };
        reports.into_iter().map(read).collect()
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(path)?;
            let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::other)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(|error| io_failure(path, "write the report", &error))
    }
}

/// The path of the report for a truth.
pub(super) fn beside(truth: &Path) -> PathBuf {
    with_suffix(truth, SUFFIX)
}
