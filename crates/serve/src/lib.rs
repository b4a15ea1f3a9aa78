//! Isolith for agents: the MCP server, on standard input and output or over HTTP.
//!
//! Tools are thin: they check their arguments, call the engine, and show what it
//! answered. What may crash runs in the engine's workers, never here.

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
