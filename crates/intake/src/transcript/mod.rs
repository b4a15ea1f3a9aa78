//! Reads conversation exports and files of drawers, turn by turn and in bounded memory.
//!
//! [`Transcript::open`] detects the [`Format`] of a file. [`Transcript::next`] returns its turns
//! as drawers, in the order of the conversation, together with the problems: an unusable turn is
//! reported with its row and does not affect the others. A [`TranscriptCursor`] between two
//! batches is plain data, so that another process can resume there.
//!
//! One turn becomes one drawer, verbatim, with the speaker as its author. Its source identifies
//! the message, so that reading the same export again gives the same drawers. Thinking, tool calls
//! and their results, hidden and empty messages are not turns; they are counted by reason.

mod batch;
mod chatgpt;
mod claude;
mod claude_code;
mod codex;
mod conversation;
mod drawers;
mod error;
mod gemini;
mod json;
mod options;
mod prose;
mod recognize;
mod session;
mod turn;

#[cfg(test)]
mod tests;

pub use batch::{DrawerBatch, Problem, Transcript, TranscriptCursor};
pub use error::TranscriptError;
pub use options::{Format, TranscriptOptions};
pub use turn::SkippedItems;

/// The maximum size of a line, and of one conversation in an export.
pub const MAX_ITEM_BYTES: usize = 64 << 20;

/// The maximum number of messages in a conversation.
pub const MAX_MESSAGES: usize = 100_000;

/// The maximum size of a drawer's metadata.
pub const MAX_METADATA_BYTES: usize = 1 << 20;
