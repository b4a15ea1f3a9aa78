//! The types of `isolate` that libraries need if their code runs inside workers: the token that
//! proves it, and bytes that are sent beside a message. Such a library depends on this crate
//! and does not link the runtime or the sandbox. Programs use `isolate`, which re-exports both
//! types.

#![forbid(unsafe_code)]

mod bulk;
mod token;

pub use bulk::Bulk;
pub use token::InWorker;

/// For `isolate` only; not part of the interface, and free to change. A test
/// (`xtask/tests/dependencies.rs`) fails if another crate uses this module.
#[doc(hidden)]
pub mod for_isolate {
    pub use crate::bulk::{collect_slabs, with_slabs};
    pub use crate::token::issue;
}
