//! What a pool looks like right now, ready to be shown or sent.

use serde::{Deserialize, Serialize};

use crate::class::DeathClass;
use crate::sandbox::Confinement;
use crate::supervisor::{BreakerState, WorkerState};

/// A pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolSnapshot {
    /// Its role.
    pub role: String,
    /// Whether it trusts its workers.
    pub breaker: BreakerState,
    /// How many jobs wait for a worker.
    pub waiting: usize,
    /// How many workers died and were replaced.
    pub restarts: u64,
    /// How many jobs are in quarantine.
    pub quarantined: usize,
    /// The last death of one of its workers.
    pub last_death: Option<DeathSnapshot>,
    /// Its workers.
    pub workers: Vec<WorkerSnapshot>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// Its process, once there is one.
    pub pid: Option<u32>,
    /// What it is doing.
    pub state: WorkerState,
    /// How long it has been there.
    pub age_ms: u64,
    /// How many jobs it has done.
    pub jobs_done: u64,
    /// The job it is running.
    pub job: Option<JobSnapshot>,
    /// Its resident memory.
    pub rss_bytes: Option<u64>,
    /// How far its sandbox is in force, once it is ready.
    pub confinement: Option<Confinement>,
}

/// A running job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// Its kind.
    pub kind: String,
    /// How long it has been running.
    pub age_ms: u64,
}

/// A death.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeathSnapshot {
    /// What the worker died of.
    pub class: DeathClass,
    /// How it ended, for people.
    pub end: String,
    /// Its process, if there was one.
    pub pid: Option<u32>,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
}
