//! The fuzz targets in `fuzz/`, as functions that tests can also call.
//!
//! Each parses untrusted bytes as the product does, and panics if an invariant is violated, for
//! example if the result depends on how the bytes are split. It returns whether they are valid.

// Fuzzers detect violated invariants as panics.
#![allow(clippy::panic)]

mod cypher;
mod feed;
mod jsonc;
mod segment;
mod transcript;
mod wire;

pub use cypher::cypher;
pub use feed::feed;
pub use jsonc::jsonc;
pub use segment::segment;
pub use transcript::transcript;
pub use wire::wire;

/// The name of a target in `fuzz/fuzz_targets` and `fuzz/corpus`, and its function.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All targets.
pub const TARGETS: [Target; 6] = [
    ("cypher", cypher),
    ("feed", feed),
    ("jsonc", jsonc),
    ("segment", segment),
    ("transcript", transcript),
    ("wire", wire),
];
