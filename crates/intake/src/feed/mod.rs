//! Splits large files into lines and JSON values in bounded memory.
//!
//! A [`BufferedFeed`] holds a window of a file. The functions that take lines and values advance the
//! window, extend it for a long value, and skip values longer than the caller allows without
//! keeping them. They check only the quotes and brackets of JSON; the caller parses the value.
//!
//! Nothing here depends on what the files contain.

mod content;
mod lex;
mod source;

#[cfg(test)]
mod tests;

pub use content::Content;
pub use lex::{Taken, is_blank, next_member, peek, skip_value, take_key, take_line, take_value};
pub use source::{Blocks, BufferedFeed, Fault, Feed, SliceFeed, name_byte};
