//! Files of source code and prose, cut into chunks.
//!
//! [`Language`] tells by a file's name and first bytes what it is written in; no parser
//! is involved, so the front may ask. [`Chunker`] cuts the text: where a grammar is at
//! hand at the starts of definitions, in Markdown at headings, otherwise at blank lines.
//! Grammars are native code that a hostile file may crash, which is why a chunker lives
//! in a worker.
//!
//! [`walk`] finds the files of a folder, in a worker, and reads them; [`watch`] tells when
//! they change. [`secrets`] knows names and texts that do not belong into an index. The rest
//! opens no file.

mod chunk;
mod graph;
mod language;
pub mod secrets;
pub mod walk;
pub mod watch;

pub use chunk::{Chunked, Chunker, Mode};
pub use language::Language;

/// The version of what a file becomes here: chunks, symbols, definitions and references, and
/// whether it holds a secret. The index keeps it with every file, and a run parses files of
/// earlier versions again. Raise it whenever the same file gives something else that is worth
/// parsing every file of every user for: a grammar, a rule, a fix. A change of the encoding of
/// `FileGraph` needs a new version of the store's schema as well, because what is stored could
/// not be read until then.
pub const PARSER_VERSION: u32 = 1;
