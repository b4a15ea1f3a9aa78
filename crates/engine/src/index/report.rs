use serde::Serialize;

/// The result of an index run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IndexReport {
    /// Numbers of files.
    pub files: FileCounts,
    /// Number of chunks in the index of this root.
    pub chunks: u64,
    /// Number of indexed files that were taken over from another worktree of the repository.
    pub reused: u64,
    /// Files that are not indexed, or not completely.
    pub problems: Vec<IndexProblem>,
    /// How long it took.
    pub seconds: Seconds,
    /// Peak memory of the front and its workers together, in bytes.
    pub peak_pss_bytes: u64,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Whether [`Engine::gather_history`](crate::Engine::gather_history) should be called.
    #[serde(skip)]
    pub history_due: bool,
}

impl IndexReport {
    /// Adds the result for another root.
    pub fn add(&mut self, other: Self) {
        let (files, more) = (&mut self.files, other.files);
        files.seen += more.seen;
        files.indexed += more.indexed;
        files.unchanged += more.unchanged;
        files.removed += more.removed;
        files.renamed += more.renamed;
        files.failed += more.failed;
        files.skipped += more.skipped;
        files.pending += more.pending;
        self.chunks += other.chunks;
        self.reused += other.reused;
        self.problems.extend(other.problems);
        self.interrupted |= other.interrupted;
    }

    /// Marks the run as interrupted.
    pub(super) fn interrupt(&mut self) {
        let FileCounts { seen, indexed, unchanged, renamed, failed, skipped, .. } = self.files;
        let done = indexed + unchanged + renamed + failed + skipped;
        self.files.pending = seen.saturating_sub(done);
        self.interrupted = true;
    }

    /// Updates the number of chunks after a write.
    pub(super) fn count_chunks(&mut self, inserted: u64, deleted: u64) {
        self.chunks = (self.chunks + inserted).saturating_sub(deleted);
    }
}

/// Numbers of files in a run: `seen` is the sum of all others but `removed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileCounts {
    /// All files to be indexed.
    pub seen: u64,
    /// New or changed files that were stored.
    pub indexed: u64,
    /// Unchanged files.
    pub unchanged: u64,
    /// Files that no longer exist.
    pub removed: u64,
    /// Renamed files with the same content.
    pub renamed: u64,
    /// Files that could not be read, or that crashed the parser (these are stored as plain text).
    pub failed: u64,
    /// Files with secrets in them, which are not indexed.
    pub skipped: u64,
    /// Files that an interrupted run did not get to.
    pub pending: u64,
}

/// A file that is not indexed, or not completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexProblem {
    /// Relative to the root.
    pub path: String,
    /// The kind of problem: `secret`, `secret_included`, `too_large`, `bad_name`, `unreadable`, `quarantined`,
    /// `parser_died`, `slow`, `missing_root`, `repository`, `worktree_removed`, and others.
    pub code: &'static str,
    /// A description for people.
    pub message: String,
}

/// Durations of the stages of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// The whole run.
    pub total: f64,
    /// Listing files.
    pub walk: f64,
    /// Parsing, embedding and storing.
    pub parse: f64,
    /// Building segments.
    pub fold: f64,
}
