//! What a phase reports, on either side: one document of JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// Filling an empty store.
#[derive(Serialize, Deserialize)]
pub(crate) struct Filled {
    /// Until the last record was acknowledged.
    pub added: Spent,
    /// Until it was all searchable at full speed.
    pub searchable: Spent,
    pub written_bytes: u64,
    pub disk_bytes: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Spent {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
}

/// Answering from a store that is warm.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// By the share of the records that the filter lets through.
    pub queries: BTreeMap<String, Answers>,
    pub pss_bytes: u64,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Answers {
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    /// Of one query.
    pub cpu_seconds: f64,
    pub recall: f64,
}

/// A new process that asks once.
#[derive(Serialize, Deserialize)]
pub(crate) struct AskedOnce {
    /// What is left when the interpreter has loaded its modules.
    pub cpu_without_import_seconds: Option<f64>,
}

/// Adding in small steps while segments are folded.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stepped {
    pub spent: Spent,
    pub written_bytes: u64,
    pub generations: u64,
}

/// Small durable writes, all together.
pub(crate) struct Wrote {
    pub failures: u64,
    pub per_second: f64,
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    pub longest_seconds: f64,
}

/// How long each write took, whether it succeeded or not.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Waits {
    pub nanoseconds: Vec<u64>,
    pub failures: u64,
    /// The first failure, for people.
    pub why: Option<String>,
}

impl Waits {
    pub(crate) fn add(&mut self, other: Self) {
        self.nanoseconds.extend(other.nanoseconds);
        self.failures += other.failures;
        self.why = self.why.take().or(other.why);
    }

    pub(crate) fn done(&self) -> u64 {
        (self.nanoseconds.len() as u64).saturating_sub(self.failures)
    }

    pub(crate) fn summary(&self, seconds: f64) -> Option<Wrote> {
        let samples: Samples = self.nanoseconds.iter().copied().map(Duration::from_nanos).collect();
        let at = |percent| samples.percentile(percent).map(|took| took.as_secs_f64());
        Some(Wrote {
            failures: self.failures,
            per_second: self.done() as f64 / seconds,
            p50_seconds: at(50)?,
            p99_seconds: at(99)?,
            longest_seconds: at(100)?,
        })
    }
}
