//! Conversation exports and files of drawers, read turn by turn in bounded memory.
//!
//! [`Transcript::open`] looks at a file and says which [`Format`] it has;
//! [`Transcript::next`] hands out what is in it as drawers, in the order in which it was
//! said, beside the problems: what cannot be used is told with its place and costs
//! nothing else. A [`Place`] between two batches is plain data, from which another
//! process can go on.
//!
//! One turn is one drawer, verbatim, with the speaker as its author. Its source names the
//! message, so that the same export read again gives the same drawers. Thoughts, calls of
//! tools and their results, hidden and empty messages are no turns and are counted as
//! skipped.

mod batch;
mod chatgpt;
mod claude;
mod claude_code;
mod conversation;
mod drawers;
mod error;
mod json;
mod plan;
mod prose;
mod recognize;
mod turn;

#[cfg(test)]
mod tests;

pub use batch::{Batch, Place, Problem, Transcript};
pub use error::TranscriptError;
pub use plan::{Format, Plan};

/// The longest line, and the longest conversation of an export.
pub const MAX_PART_BYTES: usize = 64 << 20;

/// The most messages that one conversation may have.
pub const MAX_MESSAGES: usize = 100_000;

/// The longest metadata of one drawer.
pub const MAX_METADATA_BYTES: usize = 1 << 20;
