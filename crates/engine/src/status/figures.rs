//! The sizes of a store, for monitoring: what can be known without asking other processes.

use std::path::Path;

use isolith_roles::bytes_below;
use isolith_types::Failure;
use serde::Serialize;

use super::report::{CollectionStatus, GraphStatus, log_bytes};
use crate::open::Engine;

/// With less free space, the disk counts as nearly full, unless the user says otherwise.
pub const MIN_DISK_FREE: u64 = 1 << 30;

/// The sizes of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreFigures {
    /// Its collections; empty if they cannot be read.
    pub collections: Vec<CollectionStatus>,
    /// The size of its graph.
    pub graph: GraphStatus,
    /// Number of jobs in quarantine.
    pub quarantine: u64,
    /// Size of the database's write-ahead log, in bytes.
    pub wal_bytes: u64,
    /// Total size of its files, in bytes.
    pub disk_bytes: u64,
    /// The space on its disk, if the system tells.
    pub disk: Option<DiskSpace>,
    /// Why the collections cannot be read.
    pub error: Option<Failure>,
}

/// The space on the disk of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiskSpace {
    /// Bytes that can still be written.
    pub free_bytes: u64,
    /// Its size in bytes.
    pub total_bytes: u64,
}

impl DiskSpace {
    /// The space on the disk that a path is on.
    pub fn of(path: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(Self {
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            total_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        })
    }
}

impl Engine {
    /// Measures the store. Asks a reader, and reads the sizes of all its files.
    pub async fn figures(&self) -> StoreFigures {
        let folder = self.inner.folder.clone();
        let sizes = tokio::task::spawn_blocking(move || {
            (log_bytes(&folder), bytes_below(folder.path()), DiskSpace::of(folder.path()))
        });
        let (overview, sizes) = tokio::join!(self.overview(), sizes);
        // Only a runtime that is shutting down runs no such task.
        let (wal_bytes, disk_bytes, disk) = sizes.unwrap_or_default();
        let mut figures = StoreFigures {
            collections: Vec::new(),
            graph: GraphStatus::default(),
            quarantine: 0,
            wal_bytes,
            disk_bytes,
            disk,
            error: None,
        };
        match overview {
            Ok((collections, jobs, graph)) => {
                figures.collections = collections;
                figures.graph = GraphStatus::of(&graph);
                figures.quarantine = jobs;
            }
            Err(failure) => figures.error = Some(failure),
        }
        figures
    }
}
