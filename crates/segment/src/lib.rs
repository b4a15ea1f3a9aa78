//! Segments: immutable, checksummed files derived from the database, which index vectors, text
//! and the graph.
//!
//! A segment is built from the database, published by one rename, memory-mapped by readers and
//! never changed. `docs/format.md` specifies the bytes. Damage is reported as a typed error and
//! never leads to a wrong answer. This crate does not use SQLite: the database knows which
//! segments are current and which rows are deleted.

mod bits;
mod container;
mod error;
pub mod exact;
mod graph;
mod kernel;
mod source;
pub mod storage;
pub mod text;
pub mod vector;

pub use bits::Bits;
pub use container::{
    Container, ContainerWriter, PublishedSegment, SegmentKind, is_temporary, remove_leftovers,
};
pub use error::SegmentError;
pub use graph::{GraphSegment, write_graph};
pub use source::{ChunkFacts, SourceBuilder, SourceChunk, SourceEntry, SourceFile, SourceSegment};
pub use vector::{
    SearchBuffers, VectorBuilder, VectorCandidate, VectorSegment, VectorSpec, VectorSum,
};
