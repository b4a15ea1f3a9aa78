//! Derived files: immutable, checksummed segments of vectors, texts and the graph.
//!
//! A segment is made from the truth, published by one rename, mapped by readers and
//! never changed. `docs/format.md` has the bytes. Damage is an error with a type, never
//! a wrong answer. What is current, and what is dead, is the truth's business: nothing
//! here knows of SQLite.

mod bits;
mod container;
mod error;
pub mod exact;
mod graph;
mod kernel;
pub mod storage;
pub mod text;
pub mod vector;

pub use bits::Bits;
pub use container::{Container, ContainerWriter, Kind, Published, is_temporary, remove_leftovers};
pub use error::SegmentError;
pub use graph::{GraphSegment, write_graph};
pub use vector::{Candidate, Scratch, VectorBuilder, VectorSegment, VectorSpec, VectorSum};
