//! The MCP server, on standard input and output or over HTTP.
//!
//! Tools check arguments, call the engine and format its answer. Code that can crash runs in the
//! engine's workers, not here.

mod arguments;
mod confine;
#[cfg(feature = "conformance")]
mod conformance;
mod fresh;
mod handler;
mod hints;
mod http;
mod lines;
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
mod untrusted;
mod watchers;

pub use http::{HttpOptions, HttpServer, Listen, Token};
pub use server::{DefaultLimits, Server, ServerOptions};
