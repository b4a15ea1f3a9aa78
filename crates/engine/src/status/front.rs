//! The status that a front reports about itself.

use std::collections::BTreeMap;

use isolate::{PoolSnapshot, WorkerSnapshot};
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

impl FrontSnapshot {
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
