//! Counts of what an engine was asked to do, for monitoring.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use isolate::Spread;
use isolith_protocol::{ReadJob, ReadOperation, ReadReply, RunCypher, Searched};
use isolith_types::{Code, Failure};

use crate::index::IndexReport;

/// Counts since the engine was opened.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<ActivityCounts>);

/// Counts since the engine was opened. Names are those of operations, so their number is limited.
#[derive(Debug, Clone, Default)]
pub struct ActivityCounts {
    /// Reads by operation and outcome; `None` is success.
    pub reads: HashMap<(&'static str, Option<Code>), u64>,
    /// Writes by operation and outcome; `None` is success.
    pub writes: HashMap<(&'static str, Option<Code>), u64>,
    /// Searches by operation.
    pub searches: BTreeMap<&'static str, SearchCounts>,
    /// Index runs.
    pub index: IndexCounts,
    /// Damage that made an operation fail.
    pub damage: Option<DamageSeen>,
}

/// Counts of searches.
#[derive(Debug, Clone, Default)]
pub struct SearchCounts {
    /// How long answered ones took, waiting included.
    pub seconds: Spread,
    /// Number of answers that were incomplete, or slower for lack of a segment.
    pub degraded: u64,
    /// Number of searches that failed.
    pub failed: u64,
}

/// Counts of index runs.
#[derive(Debug, Clone, Default)]
pub struct IndexCounts {
    /// How long the runs took that did not fail.
    pub seconds: Spread,
    /// Number of them that were interrupted.
    pub interrupted: u64,
    /// Number of runs that failed.
    pub failed: u64,
    /// Number of files stored.
    pub files_indexed: u64,
    /// Number of files removed.
    pub files_removed: u64,
    /// Number of files that could not be indexed.
    pub files_failed: u64,
}

/// Damage that made operations fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamageSeen {
    /// Number of operations that failed.
    pub count: u64,
    /// The last one's error.
    pub message: String,
}

impl Activity {
    pub(crate) fn counts(&self) -> ActivityCounts {
        self.lock().clone()
    }

    pub(crate) fn read(
        &self,
        operation: &'static str,
        outcome: Result<&ReadReply, &Failure>,
        took: Duration,
    ) {
        let mut counts = self.lock();
        let failed = counts.failure(outcome.err());
        *counts.reads.entry((operation, failed)).or_default() += 1;
        if operation != RunCypher::NAME && !ReadJob::SEARCHES.contains(&operation) {
            return;
        }
        let search = counts.searches.entry(operation).or_default();
        let Ok(reply) = outcome else {
            search.failed += 1;
            return;
        };
        let trouble = match reply {
            ReadReply::RunCypher(found) => found.searched.trouble(),
            reply => reply.searched().and_then(Searched::trouble),
        };
        search.seconds.add(took.as_secs_f64());
        search.degraded += u64::from(trouble.is_some());
    }

    pub(crate) fn write(&self, operation: &'static str, failure: Option<&Failure>) {
        let mut counts = self.lock();
        let failed = counts.failure(failure);
        *counts.writes.entry((operation, failed)).or_default() += 1;
    }

    pub(crate) fn index(&self, outcome: Result<&IndexReport, &Failure>, took: Duration) {
        let mut counts = self.lock();
        let counts = &mut counts.index;
        let Ok(report) = outcome else {
            counts.failed += 1;
            return;
        };
        counts.seconds.add(took.as_secs_f64());
        counts.interrupted += u64::from(report.interrupted);
        counts.files_indexed += report.files.indexed;
        counts.files_removed += report.files.removed;
        counts.files_failed += report.files.failed;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ActivityCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActivityCounts {
    /// Notes damage; returns the code of the failure.
    fn failure(&mut self, failure: Option<&Failure>) -> Option<Code> {
        let failure = failure?;
        if failure.code == Code::Corrupt {
            let seen = self.damage.get_or_insert(DamageSeen { count: 0, message: String::new() });
            seen.count += 1;
            seen.message.clone_from(&failure.message);
        }
        Some(failure.code)
    }
}
