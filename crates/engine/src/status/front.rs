//! The status that a front reports about itself.

use std::collections::BTreeMap;

use isolate::{BreakerState, DeathSnapshot, PoolSnapshot, WorkerSnapshot};
use serde::{Deserialize, Serialize};

use super::recent::RecentJobs;

/// The status of a live front, as sent on its socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontSnapshot {
    /// Its process id.
    pub pid: u32,
    /// How long the store has been open.
    pub age_ms: u64,
    /// Its worker pools.
    pub pools: Vec<PoolSnapshot>,
    /// The outcomes of its last jobs.
    pub recent: RecentJobs,
    /// Number of worker deaths, by class.
    pub deaths: BTreeMap<String, u64>,
    /// Collections waiting to be folded.
    pub due: Vec<String>,
}

/// A worker of some front.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// The process id of its front.
    pub front: u32,
    /// Its role.
    pub role: String,
    /// The front's record of it.
    #[serde(flatten)]
    pub worker: WorkerSnapshot,
}

/// A pool of workers of some front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// Its role.
    pub role: String,
    /// The state of its breaker.
    pub breaker: BreakerState,
    /// Number of jobs waiting for a worker.
    pub waiting: usize,
    /// Number of workers that died.
    pub restarts: u64,
    /// The most recent death of a worker.
    pub last_death: Option<DeathSnapshot>,
}

/// The breaker of a pool that refuses jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BreakerStatus {
    /// The pool's role.
    pub role: String,
    /// Open or half-open.
    pub state: BreakerState,
}

impl FrontSnapshot {
    /// The breakers that are not closed, each role once.
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        let tripped = self.pools.iter().filter(|pool| pool.breaker != BreakerState::Closed);
        let mut breakers: Vec<BreakerStatus> = tripped
            .map(|pool| BreakerStatus { role: pool.role.clone(), state: pool.breaker })
            .collect();
        // Open ones first.
        breakers.sort_by_key(|it| (it.role.clone(), it.state != BreakerState::Open));
        breakers.dedup_by(|later, first| later.role == first.role);
        breakers
    }

    pub(super) fn pools(&self) -> Vec<PoolStatus> {
        let pool = |it: &PoolSnapshot| PoolStatus {
            role: it.role.clone(),
            breaker: it.breaker,
            waiting: it.waiting,
            restarts: it.restarts,
            last_death: it.last_death.clone(),
        };
        self.pools.iter().map(pool).collect()
    }

    pub(super) fn into_workers(self) -> Vec<WorkerStatus> {
        let front = self.pid;
        let of_pool = |pool: PoolSnapshot| {
            let PoolSnapshot { role, workers, .. } = pool;
            workers.into_iter().map(move |worker| WorkerStatus {
                front,
                role: role.clone(),
                worker,
            })
        };
        self.pools.into_iter().flat_map(of_pool).collect()
    }
}
