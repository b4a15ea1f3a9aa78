//! Registers the MCP server and hooks with agents: locates each agent's configuration files and edits
//! their text.
//!
//! Pure functions from text to text; the caller reads and writes the files and asks for consent.
//! An edit touches only the server's entry and preserves every other byte. Unregistering restores
//! the text from before registration.

mod agent;
mod change;
mod diff;
mod entry;
mod error;
mod hooks;
mod json;
mod splice;
#[cfg(test)]
mod tests;
mod toml;

pub use agent::{Agent, AgentConfig, BaseFolders, ConfigFormat};
pub use change::{ConfigChange, EntryAction, register, unregister};
pub use diff::diff;
use entry::ENTRY_NAME;
pub use entry::ServerEntry;
pub use error::EditError;
pub use hooks::{HookProgram, register_hooks, unregister_hooks};
