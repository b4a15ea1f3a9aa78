//! Who changed each file of a git repository last, and when.
//!
//! [`repository_of`] finds a repository with plain looks at files and is fit for the
//! front. [`last_changes`] reads its commits and trees, which somebody else may have
//! made up, and asks for a worker's token.
//!
//! Only objects and references are read, with the parts of gitoxide that do just that.
//! The configuration of the repository or of the user is never looked at, so nothing in
//! it can start a program; replacement objects and grafts are ignored with it. Nothing
//! here starts a process, writes or prints.
//!
//! Memory grows with the files of the newest commit, not with the commits. Damage costs
//! facts, never the answer, unless it is in the newest commit itself. References and lists
//! that are larger than they have a reason to be, or pipes, are not read.

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

/// The most files of a newest commit that are looked after.
pub const MAX_FILES: usize = 1 << 19;

/// How long their paths may be, all together.
pub const MAX_PATH_BYTES: usize = 64 << 20;

/// Folders may be this deep inside each other; what is deeper is left out.
pub const MAX_DEPTH: usize = 128;
