//! The vector segment: vectors as bytes with a bound on what that loses, and a bit for
//! each dimension to find out quickly which of them are worth looking at.

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
pub use query::Scratch;
pub use search::Candidate;
pub use segment::VectorSegment;
