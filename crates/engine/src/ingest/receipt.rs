use isolith_protocol::{Done, LoadProgress, RecordsPut};
use isolith_roles::Layout;
use isolith_types::Failure;
use serde::Serialize;

use crate::writes::Written;

/// What became of a file. Only what is durable is counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// Whether all of it was taken in, but for rows that were to be skipped.
    pub success: bool,
    /// Where its records went.
    pub collection: String,
    /// Rows in the file.
    pub rows: u64,
    /// Records that are new.
    pub inserted: u64,
    /// Records that were replaced.
    pub updated: u64,
    /// Records that were there as they are.
    pub unchanged: u64,
    /// Rows that were left out, the first of them.
    pub rejected: Vec<Rejected>,
    /// How many rows were left out.
    pub rejected_rows: u64,
    /// Rows that an earlier, interrupted run had done already.
    pub resumed_at: u64,
    /// Records in the collection before.
    pub count_before: u64,
    /// Records in it after.
    pub count_after: u64,
    /// How long it took.
    pub seconds: f64,
    /// The process that wrote last.
    pub worker_pid: u32,
    /// Workers that died on the way.
    pub retries: u64,
    /// Why it stopped.
    pub error: Option<Failure>,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Its number in the file, from 1.
    pub row: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Rows that a receipt lists; it counts all of them.
pub(crate) const LISTED: usize = 1_000;

impl Receipt {
    /// Of nothing yet.
    pub fn new(collection: &str) -> Self {
        Self {
            success: false,
            collection: collection.to_owned(),
            rows: 0,
            inserted: 0,
            updated: 0,
            unchanged: 0,
            rejected: Vec::new(),
            rejected_rows: 0,
            resumed_at: 0,
            count_before: 0,
            count_after: 0,
            seconds: 0.0,
            worker_pid: 0,
            retries: 0,
            error: None,
        }
    }

    pub(super) fn take_layout(&mut self, layout: &Layout) {
        self.rows = layout.rows;
        self.rejected_rows = layout.rejected;
        self.rejected = layout
            .problems
            .iter()
            .map(|problem| Rejected { row: problem.row, reason: problem.reason.clone() })
            .collect();
    }

    /// Starts from what an interrupted run did.
    pub(super) fn resume(&mut self, done: &LoadProgress) {
        self.resumed_at = done.rows;
        self.inserted = done.inserted;
        self.updated = done.updated;
        self.unchanged = done.unchanged;
    }

    /// Adds what one batch came to; `rows` are those of its records in the file.
    pub(super) fn add(
        &mut self,
        written: &Written<RecordsPut>,
        rows: &mut dyn Iterator<Item = u64>,
    ) {
        let Done { reply, collection, .. } = &written.done;
        self.inserted += reply.inserted;
        self.updated += reply.updated;
        self.unchanged += reply.unchanged;
        self.count_after = collection.as_ref().map_or(0, |state| state.records);
        self.rejected_rows += reply.rejected_count;
        let mut passed = 0;
        for (index, reason) in &reply.rejected {
            let ahead = usize::try_from(index.saturating_sub(passed)).unwrap_or(usize::MAX);
            let Some(row) = rows.nth(ahead) else { break };
            passed = index + 1;
            if self.rejected.len() < LISTED {
                self.rejected.push(Rejected { row, reason: reason.clone() });
            }
        }
        self.worker_pid = written.worker_pid;
        self.retries += written.deaths.len() as u64;
    }
}
