//! The bodies of the fuzz targets in `fuzz/`, as functions that tests call as well.
//!
//! Each reads bytes as the product would read them from outside, and panics where the reader
//! breaks a promise: that it returns at all, and that the way the bytes are cut into pieces
//! changes nothing. It returns whether the bytes were accepted.

// A broken promise is a finding, and a panic is how a fuzzer hears of it.
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

/// A target: its name in `fuzz/fuzz_targets` and `fuzz/corpus`, and its function.
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
