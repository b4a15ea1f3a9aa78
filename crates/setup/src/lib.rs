//! Registers a server with agents: where each keeps its configuration, and how the text of
//! that file changes.
//!
//! Everything is pure: text in, text out. A change inserts, exchanges or cuts out the one
//! entry and leaves every other byte where it was; taking a registration back gives the text
//! that was there before. Reading and writing files, and asking people, is not done here.

mod agent;
mod change;
mod diff;
mod entry;
mod error;
mod json;
#[cfg(test)]
mod tests;
mod text;
mod toml;

pub use agent::{Agent, Config, Format, Places};
pub use change::{Action, Change, register, unregister};
pub use diff::diff;
pub use entry::{Entry, NAME};
pub use error::EditError;
