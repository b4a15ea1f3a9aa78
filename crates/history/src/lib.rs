//! Who changed each file of a git repository last, and when.
//!
//! [`repository_of`] finds a repository by checking a few files and may run in the front.
//! [`last_changes`] reads commits and trees, which may be malicious, and requires a worker's
//! token.
//!
//! Only objects and references are read, with the parts of gitoxide that do just that. The
//! configuration of the repository and of the user is never read, so it cannot start a program;
//! replacement objects and grafts are ignored, too. This crate starts no process, and neither
//! writes nor prints.
//!
//! Memory use grows with the files of the newest commit, not with the number of commits. Damage
//! makes the answer incomplete; it is an error only in the newest commit itself. Oversized
//! references and lists, and pipes, are not read.

mod bounds;
mod clock;
mod compare;
mod error;
mod listing;
mod objects;
mod repository;
mod walk;

#[cfg(test)]
mod tests;

pub use error::HistoryError;
pub use repository::{Repository, repository_of};
pub use walk::{FileChange, History, last_changes};

/// The maximum number of files in the newest commit.
pub const MAX_FILES: usize = 1 << 19;

/// The maximum total length of their paths.
pub const MAX_PATH_BYTES: usize = 64 << 20;

/// The maximum depth of folders; deeper files are ignored.
pub const MAX_DEPTH: usize = 128;
