//! The plain types that every part of Isolith shares.
//!
//! What the outside sees of an error is the same everywhere (command line, MCP,
//! HTTP, Python): a [`Failure`] with a stable code, a message and a hint. Nothing
//! here does input or output.

mod failure;

pub use failure::{Code, Failure};
