//! The MCP server, on standard input and output or over HTTP, the API for programs, and the pages
//! for people.
//!
//! Tools and endpoints check arguments, call the engine and format its answer. Code that can crash
//! runs in the engine's workers, not here.

mod alerts;
mod api;
mod arguments;
mod chroma;
mod confine;
#[cfg(feature = "conformance")]
mod conformance;
mod fresh;
mod handler;
mod hints;
mod http;
mod lines;
mod metrics;
mod progress;
mod prompts;
mod resources;
mod schema;
mod server;
mod sessions;
mod stdio;
mod stores;
mod text;
mod tool;
mod tools;
mod ui;
mod untrusted;
mod vector;
mod wake_up;
mod watchers;

pub use alerts::{AlertCommand, AlertLimits, AlertOptions, Webhook};
pub use http::{HttpOptions, HttpServer, Listen, Token};
pub use server::{DefaultLimits, Server, ServerOptions};
pub use tool::{ToolGroup, ToolSelection};
pub use tools::session::{checkpoint_document, read_checkpoint};
pub use wake_up::{WAKE_UP_BUDGET, WakeUp, recalled, wake_up};
