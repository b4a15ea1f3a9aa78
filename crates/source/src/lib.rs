//! Files of source code and prose, cut into chunks.
//!
//! [`Language`] tells by a file's name and first bytes what it is written in; no parser
//! is involved, so the front may ask. [`Chunker`] cuts the text: where a grammar is at
//! hand at the starts of definitions, in Markdown at headings, otherwise at blank lines.
//! Grammars are native code that a hostile file may crash, which is why a chunker lives
//! in a worker.
//!
//! [`walk`] finds the files of a folder, in a worker, and reads them; [`watch`] tells when
//! they change. [`folder`] opens what lies below a folder and nothing else. [`secrets`] knows
//! names and texts that do not belong into an index. The rest opens no file.

mod chunk;
pub mod folder;
mod graph;
mod language;
pub mod secrets;
pub mod walk;
pub mod watch;

pub use chunk::{Chunked, Chunker, Mode};
pub use language::Language;
