//! The truth: one SQLite file with collections, records and receipts.
//!
//! docs/format.md describes the file. A [`Writer`] applies groups of writes, each exactly once; a
//! [`Reader`] takes [`Snapshot`]s. Both take an [`InWorker`](isolate::InWorker) token: SQLite
//! runs in workers only. [`StoreFolder`] and the plain values that cross between processes need
//! no token. This crate does not search; segments are built from what it returns.

mod acknowledged;
mod adopt;
mod check;
mod create;
mod deadline;
mod facts;
mod folder;
mod graph;
mod holder;
mod identity;
mod lock;
mod log;
mod memory;
mod migrations;
pub mod names;
mod open;
mod pragmas;
mod read;
mod rewrite;
mod salvage;
mod schema;
mod sqlite;
mod write;

pub use acknowledged::Progress;
pub use check::{Check, Problem};
pub use create::new_uuid;
pub use deadline::Canceller;
pub use folder::{BUILDER_LOCK, StoreFolder, TruthId};
#[cfg(feature = "fuzzing")]
pub use graph::read_cells;
pub use graph::{AdjacencySource, GraphLists};
pub use holder::{HolderState, LockHolder, write_lock_holder};
pub use lock::lock_holders;
pub use log::{LogRecovery, LogState, LostPart, MarkState, MissingCommits};
pub use memory::passages;
pub use migrations::schema_version;
pub use open::{Truth, WriterOptions};
pub use pragmas::Durability;
pub use read::{
    ChunkStart, ChunkText, EachChunk, EachDocument, EachFileText, EachPassage, EachVector,
    FileText, PassageText, Reader, Scope, Snapshot,
};
pub use salvage::{Embedder, Extent, Loss, SalvageReport, SavedReport};
pub use write::{Checkpoint, CheckpointResult, Writer};
