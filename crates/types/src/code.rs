//! Indexed code: files, chunks, symbols.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{FileGraph, Unknown};

/// The kind of most of a chunk's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkKind {
    /// One or more functions outside of any type.
    Function,
    /// One or more methods of a type.
    Method,
    /// A type (class, struct, enum, trait, interface and so on): all of it, or its head.
    Class,
    /// Code between definitions: imports, constants, statements.
    Module,
    /// A section of a document, under its heading.
    Section,
    /// Any other text.
    Text,
}

impl ChunkKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Function, Self::Method, Self::Class, Self::Module, Self::Section, Self::Text];

    /// The name in the database, in flags and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Class => "class",
            Self::Module => "module",
            Self::Section => "section",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for ChunkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ChunkKind {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// The kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// A function outside of any type.
    Function,
    /// A function of a type.
    Method,
    /// A class, or the language's closest equivalent.
    Class,
    /// A struct or record.
    Struct,
    /// An enum or tagged union.
    Enum,
    /// A trait, interface or protocol.
    Interface,
    /// A type alias.
    Type,
    /// A module, namespace or package.
    Module,
    /// A macro.
    Macro,
    /// A constant or variable of a file or type.
    Constant,
    /// A heading of a document.
    Heading,
}

impl SymbolKind {
    /// Whether it is a type or module, which ranks first when a name is looked up.
    pub fn is_type(self) -> bool {
        matches!(
            self,
            Self::Class | Self::Struct | Self::Enum | Self::Interface | Self::Type | Self::Module
        )
    }

    /// Whether it can be called.
    pub fn is_callable(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Macro)
    }
}

/// A name that a chunk defines.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbol {
    /// The unqualified name, as written.
    pub name: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// The first line of its definition, from 1.
    pub line: u32,
}

/// A piece of a file that searches return as a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its first line in the file, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// The kind of most of its content.
    pub kind: ChunkKind,
    /// The symbols that it defines, in line order.
    pub symbols: Vec<Symbol>,
    /// The name of the enclosing definition, such as a class or module.
    pub parent: Option<String>,
    /// The signature of its first definition, on one line.
    pub signature: Option<String>,
    /// The start of the doc comment of its first definition.
    pub doc: Option<String>,
    /// Its text, verbatim. When stored, it includes the blank space up to the next chunk, and the
    /// first chunk of a file that before it, so that the texts of all chunks are the file's text.
    pub text: String,
}

/// The lines of a stored chunk: its text without the blank lines around it, and without the line
/// end. The first line keeps its indentation.
pub fn trim_blank_ends(text: &str) -> &str {
    let end = text.trim_end().len();
    let first = text.len() - text.trim_start().len();
    let start = text[..first.min(end)].rfind('\n').map_or(0, |at| at + 1);
    &text[start..end]
}

/// A file with its chunks, ready to be stored. Vectors are sent separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedFile {
    /// Relative to the root, with slashes.
    pub path: String,
    /// Its content and modification time when it was read.
    pub version: FileVersion,
    /// The language, as docs/languages.md names it.
    pub language: String,
    /// Whether it is marked as generated code.
    pub generated: bool,
    /// Why it is indexed as plain text although its language has a parser.
    pub problem: Option<String>,
    /// Its chunks, in order.
    pub chunks: Vec<Chunk>,
    /// Its definitions, imports and references.
    pub graph: FileGraph,
    /// The version of the parser that produced this.
    pub parser: u32,
}

/// Identifies a version of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FileVersion {
    /// The BLAKE3 hash of the content.
    pub hash: [u8; 32],
    /// The size in bytes.
    pub size: u64,
    /// The modification time, in nanoseconds since the Unix epoch.
    pub modified: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_around_a_chunk_are_trimmed() {
        for (text, expected) in [
            ("", ""),
            (" \n\t\n", ""),
            ("a", "a"),
            ("  a\n\n  b \r\n\n", "  a\n\n  b"),
            ("\n \n\ta\n", "\ta"),
            ("\u{a0}\n x", " x"),
        ] {
            assert_eq!(trim_blank_ends(text), expected, "{text:?}");
        }
    }
}
