//! The reports of phases, in JSON, on either side.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// Filling an empty store.
#[derive(Serialize, Deserialize)]
pub(crate) struct FillReport {
    /// Until the last record was acknowledged.
    pub added: TimeSpent,
    /// Until all records are searchable at full speed.
    pub searchable: TimeSpent,
    pub written_bytes: u64,
    pub disk_bytes: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TimeSpent {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
}

/// Queries to a warm store.
#[derive(Serialize, Deserialize)]
pub(crate) struct QueryReport {
    /// By the metadata key of the filter, `all` for none.
    pub queries: BTreeMap<String, QueryStats>,
    pub pss_bytes: u64,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct QueryStats {
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    /// Per query.
    pub cpu_seconds: f64,
    pub recall: f64,
}

/// A single query by a new process.
#[derive(Serialize, Deserialize)]
pub(crate) struct ColdQueryReport {
    /// CPU time after the interpreter has loaded its modules.
    pub cpu_without_import_seconds: Option<f64>,
}

/// Adding in small steps, with folds in the background.
#[derive(Serialize, Deserialize)]
pub(crate) struct StepReport {
    pub spent: TimeSpent,
    pub written_bytes: u64,
    pub generations: u64,
}

/// A summary of small durable writes.
pub(crate) struct WriteSummary {
    pub failures: u64,
    pub per_second: f64,
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    pub longest_seconds: f64,
}

/// The duration of each write, whether or not it succeeded.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct WriteTimes {
    pub nanoseconds: Vec<u64>,
    pub failures: u64,
    /// The message of the first failure.
    pub why: Option<String>,
}

impl WriteTimes {
    pub(crate) fn add(&mut self, other: Self) {
        self.nanoseconds.extend(other.nanoseconds);
        self.failures += other.failures;
        self.why = self.why.take().or(other.why);
    }

    pub(crate) fn done(&self) -> u64 {
        (self.nanoseconds.len() as u64).saturating_sub(self.failures)
    }

    pub(crate) fn summary(&self, seconds: f64) -> Option<WriteSummary> {
        let samples: Samples = self.nanoseconds.iter().copied().map(Duration::from_nanos).collect();
        let at = |percent| samples.percentile(percent).map(|took| took.as_secs_f64());
        Some(WriteSummary {
            failures: self.failures,
            per_second: self.done() as f64 / seconds,
            p50_seconds: at(50)?,
            p99_seconds: at(99)?,
            longest_seconds: at(100)?,
        })
    }
}
