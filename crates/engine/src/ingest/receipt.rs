use isolith_protocol::{Done, LoadProgress, RecordsPut};
use isolith_roles::Layout;
use isolith_types::Failure;
use serde::Serialize;

use crate::writes::Written;

/// The result of an ingest. Counts include only durable writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// Whether the whole file was loaded, except for rows skipped on request.
    pub success: bool,
    /// The target collection.
    pub collection: String,
    /// Number of rows in the file.
    pub rows: u64,
    /// Number of new records.
    pub inserted: u64,
    /// Number of replaced records.
    pub updated: u64,
    /// Number of records that already existed unchanged.
    pub unchanged: u64,
    /// The first rejected rows.
    pub rejected: Vec<Rejected>,
    /// Number of rejected rows.
    pub rejected_rows: u64,
    /// Number of rows already loaded by an earlier, interrupted run.
    pub resumed_at: u64,
    /// Number of records in the collection before the ingest.
    pub count_before: u64,
    /// Number of records in the collection after it.
    pub count_after: u64,
    /// How long it took.
    pub seconds: f64,
    /// The process id of the last writer.
    pub worker_pid: u32,
    /// Workers that died during the ingest.
    pub retries: u64,
    /// Why it stopped.
    pub error: Option<Failure>,
}

/// A rejected row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Its number in the file, from 1.
    pub row: u64,
    /// Why it was rejected.
    pub reason: String,
}

/// Maximum number of rows listed in a receipt; all are counted.
pub(crate) const LISTED: usize = 1_000;

impl Receipt {
    /// An empty receipt.
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

    /// Adds the counts of an interrupted run.
    pub(super) fn resume(&mut self, done: &LoadProgress) {
        self.resumed_at = done.rows;
        self.inserted = done.inserted;
        self.updated = done.updated;
        self.unchanged = done.unchanged;
    }

    /// Adds the result of a batch; `rows` are the row numbers of its records.
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
