use serde::Serialize;

/// What an index run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IndexReport {
    /// How many files.
    pub files: FileCounts,
    /// Chunks in the index of this root; those stored so far if it was interrupted.
    pub chunks: u64,
    /// Files that are not in the index, or not as they should be.
    pub problems: Vec<IndexProblem>,
    /// How long it took.
    pub seconds: Seconds,
    /// The most memory that the front and its workers used together.
    pub peak_pss_bytes: u64,
    /// Whether it was told to stop before the end.
    pub interrupted: bool,
    /// Whether [`Engine::gather_history`](crate::Engine::gather_history) has something to
    /// do.
    #[serde(skip)]
    pub history_due: bool,
}

impl IndexReport {
    /// Adds what was done for another root.
    pub(super) fn add(&mut self, other: Self) {
        let (files, more) = (&mut self.files, other.files);
        files.seen += more.seen;
        files.indexed += more.indexed;
        files.unchanged += more.unchanged;
        files.removed += more.removed;
        files.renamed += more.renamed;
        files.failed += more.failed;
        self.chunks += other.chunks;
        self.problems.extend(other.problems);
        self.interrupted |= other.interrupted;
    }
}

/// How many files a run dealt with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileCounts {
    /// That belong to the code.
    pub seen: u64,
    /// That are new or changed, and stored now.
    pub indexed: u64,
    /// That were like that already.
    pub unchanged: u64,
    /// That are no longer there.
    pub removed: u64,
    /// That have another path now, and the same content.
    pub renamed: u64,
    /// That could not be read, or killed their parser (these are stored as plain text).
    pub failed: u64,
}

/// A file that is not in the index, or not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexProblem {
    /// Relative to the root.
    pub path: String,
    /// For programs: `secret`, `secret_included`, `too_large`, `bad_name`, `unreadable`, `quarantined`,
    /// `parser_died`, `slow`, `missing_root`.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

/// How long a run took, by stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// All of it.
    pub total: f64,
    /// Looking for files.
    pub walk: f64,
    /// Parsing, embedding and storing.
    pub parse: f64,
    /// Building segments.
    pub fold: f64,
}
