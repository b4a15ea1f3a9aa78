//! The interface of a store, as plain values: operations with their replies, states and errors.
//! Nothing here opens a file or links SQLite, so any process can use it.
//!
//! An operation is a struct, listed once, in `read` or `write`, beside the type of its reply.
//! The lists generate the enums that travel between processes and the dispatch to whoever
//! handles them; an operation that nobody handles does not compile.

mod code;
mod error;
mod graph;
mod memory;
mod read;
mod state;
mod write;

pub use code::{ChunkFilter, FileState, RootPlace, RootState, StoredChunk, code_spec};
pub use error::StoreError;
pub use graph::{
    CypherQuery, GraphAnswer, GraphSegmentEntry, GraphState, GraphTable, Rows, TableEnd,
    TableHolds, TableTaken, first_row,
};
pub use memory::{DrawerVectors, StoredPassage, WhichDrawers, memory_spec};
pub use read::*;
pub use state::{
    CODE_COLLECTION, CollectionState, Generation, IndexKind, Level, LoadProgress,
    MEMORY_COLLECTION, PoisonedJob, SegmentEntry, StoredRecord,
};
pub use write::*;
