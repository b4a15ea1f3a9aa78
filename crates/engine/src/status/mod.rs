//! The status of a store and its live fronts, computed on request.

mod activity;
mod figures;
mod front;
mod recent;
mod report;
mod serve;
mod socket;

pub use activity::{ActivityCounts, DamageSeen, IndexCounts, SearchCounts};
pub use figures::{DiskSpace, MIN_DISK_FREE, StoreFigures};
pub use front::{BreakerStatus, FrontSnapshot, PoolStatus, WorkerStatus};
pub use recent::{RecentJobs, is_job_failure};
pub use report::{CollectionStatus, FrontStatus, GraphStatus, MemoryStatus, Problem, StatusReport};
pub use serve::{StatusSocket, WatchedPool};

pub(crate) use activity::Activity;
pub(crate) use recent::Recent;
pub(crate) use serve::Serving;
pub(crate) use socket::{FrontReply, RunFolder};
