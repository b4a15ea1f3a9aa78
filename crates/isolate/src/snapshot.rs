//! The current state of a pool, as plain data.

use serde::{Deserialize, Serialize};

use crate::class::DeathClass;
use crate::sandbox::Confinement;
use crate::supervisor::{BreakerState, WorkerState};

/// The state of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolSnapshot {
    /// Its role.
    pub role: String,
    /// The state of its circuit breaker.
    pub breaker: BreakerState,
    /// The number of jobs waiting for a worker.
    pub waiting: usize,
    /// The number of workers that died.
    pub restarts: u64,
    /// The number of quarantined jobs.
    pub quarantined: usize,
    /// The most recent death of a worker.
    pub last_death: Option<DeathSnapshot>,
    /// Its workers.
    pub workers: Vec<WorkerSnapshot>,
}

/// The state of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// Its process ID, once it has been started.
    pub pid: Option<u32>,
    /// What it is doing.
    pub state: WorkerState,
    /// How long it has existed.
    pub age_ms: u64,
    /// The number of jobs it has completed.
    pub jobs_done: u64,
    /// The job it is running.
    pub job: Option<JobSnapshot>,
    /// Its resident memory when last sampled.
    pub rss_bytes: Option<u64>,
    /// How far its sandbox is enforced, once it is ready.
    pub confinement: Option<Confinement>,
}

/// A running job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// Its kind, from [`Role::kind`](crate::Role::kind).
    pub kind: String,
    /// How long it has been running.
    pub age_ms: u64,
}

/// The death of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeathSnapshot {
    /// The class of the death.
    pub class: DeathClass,
    /// How the process ended: the signal's name or the exit code.
    pub end: String,
    /// Its process ID, if it had been started.
    pub pid: Option<u32>,
    /// When it died, in milliseconds since 1970.
    pub unix_ms: u64,
}
