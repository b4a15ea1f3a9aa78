//! Splits source code and prose into chunks.
//!
//! [`Language`] detects a file's language from its name and first bytes; it uses no parser,
//! so the front may call it. [`Chunker`] splits the text: at the start of definitions if the
//! language has a grammar, at headings in Markdown, otherwise at blank lines. Grammars are
//! native code that a hostile file may crash, so a chunker runs in a worker.
//!
//! [`walk`] finds the files of a folder, in a worker, and reads them; [`watch`] reports
//! changes. [`secrets`] recognises names and texts that must not be indexed. Nothing else
//! opens a file.

mod chunk;
mod graph;
mod language;
pub mod secrets;
pub mod walk;
pub mod watch;

pub use chunk::{Chunked, Chunker, Mode, WorkLimit};
pub use language::Language;

/// Version of the parser's output: chunks, symbols, definitions, references, and whether a
/// file holds a secret. The index stores it with every file and parses files of earlier
/// versions again. Raise it whenever the output changes enough to justify parsing every file
/// of every user again: a grammar, a rule, a fix. A change to the encoding of `FileGraph` also
/// needs a new schema version of the store, because stored graphs are read before files are
/// parsed again.
pub const PARSER_VERSION: u32 = 3;
