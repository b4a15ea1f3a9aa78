//! What a front tells about itself.

use std::collections::BTreeMap;

use isolate::{PoolSnapshot, WorkerSnapshot};
use serde::{Deserialize, Serialize};

use super::recent::RecentJobs;

/// A live front, as it answers on its socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontSnapshot {
    /// Its process.
    pub pid: u32,
    /// How long it has had the store open.
    pub age_ms: u64,
    /// The pools of its workers.
    pub pools: Vec<PoolSnapshot>,
    /// What became of its last jobs.
    pub recent: RecentJobs,
    /// How many of its workers died, by class.
    pub deaths: BTreeMap<String, u64>,
    /// Collections that it is about to fold.
    pub due: Vec<String>,
}

/// A worker, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// The process of its front.
    pub front: u32,
    /// Its role.
    pub role: String,
    /// What its front knows of it.
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
