//! The types of `isolate` that libraries need whose code runs inside workers: the token that
//! proves it, and bytes that travel beside a message. Such a library depends on this crate
//! and links no runtime and no sandbox. Programs use `isolate`, which re-exports both types.

#![forbid(unsafe_code)]

mod bulk;
mod token;

pub use bulk::Bulk;
pub use token::InWorker;

/// What `isolate` alone may call; no part of the interface, and free to change. A test
/// (`xtask/tests/dependencies.rs`) fails if another crate names this module.
#[doc(hidden)]
pub mod for_isolate {
    pub use crate::bulk::{collect_slabs, with_slabs};
    pub use crate::token::issue;
}
