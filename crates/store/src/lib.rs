//! The truth: one SQLite file with collections, records and receipts.
//!
//! docs/format.md describes the file. A [`Writer`] applies groups of [`Write`]s, each
//! of them exactly once; a [`Reader`] takes [`Snapshot`]s. Both take an
//! [`InWorker`](isolate::InWorker) token: SQLite runs in workers only. [`StoreFolder`]
//! and the plain values that cross between processes need no token. Nothing here
//! searches: segments are made from what this crate hands out.

mod acknowledged;
mod adopt;
mod check;
mod code;
mod create;
mod deadline;
mod error;
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
mod state;
mod write;

pub use acknowledged::Progress;
pub use check::{Check, Problem};
pub use code::{CodeFilter, FileState, RootPlace, RootState, StoredChunk, code_spec};
pub use create::new_uuid;
pub use deadline::Canceller;
pub use error::StoreError;
pub use facts::FactWrite;
pub use folder::{BUILDER_LOCK, StoreFolder, TruthId};
pub use graph::{
    AdjacencySource, CypherQuery, GraphAnswer, GraphLists, GraphSegmentEntry, GraphState,
    GraphTable, Rows, TableEnd, TableHolds, TableTaken, first_row,
};
pub use holder::{HolderState, LockHolder, write_lock_holder};
pub use lock::lock_holders;
pub use log::{LogRecovery, LogState, MarkState, Missing, Part};
pub use memory::{DrawerVectors, StoredPassage, WhichDrawers, memory_spec, passages};
pub use migrations::schema_version;
pub use open::{Truth, WriterOptions};
pub use pragmas::Durability;
pub use read::{
    ChunkText, EachChunk, EachDocument, EachPassage, EachVector, Page, PassageText, Reader,
    Receipt, Scope, Selection, Snapshot,
};
pub use salvage::{Embedder, Extent, Loss, SalvageReport, SavedReport};
pub use state::{
    CODE_COLLECTION, CollectionState, Generation, Kind, Level, LoadProgress, MEMORY_COLLECTION,
    PoisonedJob, SegmentEntry, StoredRecord,
};
pub use write::{
    Action, Checkpoint, CheckpointResult, Key, LoadStep, Outcome, Patch, PutMode, Records,
    SwapPlan, Which, Write, Writer,
};
