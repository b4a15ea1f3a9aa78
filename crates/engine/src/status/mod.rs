//! The status of a store and its live fronts, computed on request.

mod front;
mod recent;
mod report;
mod serve;
mod socket;

pub use front::{FrontSnapshot, WorkerStatus};
pub use recent::RecentJobs;
pub use report::{CollectionStatus, FrontStatus, GraphStatus, MemoryStatus, StatusReport};
pub use serve::{StatusSocket, WatchedPool};

pub(crate) use recent::Recent;
pub(crate) use serve::Serving;
pub(crate) use socket::{FrontReply, RunFolder};
