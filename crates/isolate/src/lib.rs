#![doc = include_str!("../README.md")]

mod batch;
mod class;
mod crash;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod linux;
mod metrics;
#[cfg(feature = "misbehave")]
pub mod misbehave;
mod pool;
mod quarantine;
mod role;
mod sandbox;
mod settings;
mod shutdown;
mod snapshot;
mod supervisor;
mod wire;
mod worker;

pub use batch::BatchPart;
pub use class::{DeathClass, End};
pub use crash::{CrashFolder, CrashFolderError, CrashReport, CrashSink, JobNote, removed_reports};
pub use error::{CallError, StartError};
pub use isolate_types::{Bulk, InWorker};
pub use linux::process_memory::give_back_memory;
pub use metrics::{Counter, Gauge, Histogram, Metrics, Spread, Tally};
pub use pool::{Answer, CallOptions, Death, Hooks, Pool};
pub use quarantine::{MemoryQuarantine, Poison, Quarantine};
pub use role::{Context, Refusal, Role};
pub use sandbox::{Confinement, Enforcement, Files, Sandbox};
pub use settings::{BreakerPolicy, PoolSettings, RestartPolicy, RetryPolicy};
pub use shutdown::{Interrupted, OtherProcess, Signal, Signals, Supervised, run_until_signalled};
pub use snapshot::{DeathSnapshot, JobSnapshot, PoolSnapshot, WorkerSnapshot};
pub use supervisor::{BreakerState, Measure, WorkerState};
pub use wire::Progress;
pub use worker::{RoleEntry, role, worker_main};
