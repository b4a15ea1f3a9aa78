//! Lines and JSON values of large files, cut out in bounded memory.
//!
//! A [`Source`] holds a window of a file. The functions that take lines and values move
//! the window on, make it longer for a long value, and pass over what is longer than the
//! caller allows, without keeping it. Of JSON they know quotes and brackets: what is
//! between them is for whoever takes the value.
//!
//! Nothing here knows what the files are about.

mod content;
mod lex;
mod source;

#[cfg(test)]
mod tests;

pub use content::Content;
pub use lex::{Taken, is_blank, next_member, peek, skip_value, take_key, take_line, take_value};
pub use source::{Blocks, Cut, Fault, Feed, Source, name_byte};
