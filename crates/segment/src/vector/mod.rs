//! Vector segments: vectors quantized to bytes, with a bound on the error, and codes of one bit
//! per dimension that quickly exclude most vectors.

mod build;
mod parameters;
mod query;
mod rotation;
mod rows;
mod search;
mod segment;
mod shortlist;

#[cfg(test)]
mod tests;

pub use build::{VectorBuilder, VectorSpec, VectorSum};
pub use query::SearchBuffers;
pub use search::VectorCandidate;
pub use segment::VectorSegment;
