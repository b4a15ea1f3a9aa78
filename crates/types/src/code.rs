//! Code as it is indexed and found: files, chunks, symbols.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{FileGraph, Unknown};

/// What a chunk mostly is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkKind {
    /// A function outside of any type, or several of them.
    Function,
    /// A function of a type, or several of them.
    Method,
    /// A type: class, struct, enum, trait, interface and the like, with its head or as
    /// a whole.
    Class,
    /// What stands between definitions: imports, constants, statements.
    Module,
    /// A section of a document, under its heading.
    Section,
    /// A piece of anything else.
    Text,
}

impl ChunkKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Function, Self::Method, Self::Class, Self::Module, Self::Section, Self::Text];

    /// The name in the truth, in flags and in JSON.
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

/// What a definition defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// A function outside of any type.
    Function,
    /// A function of a type.
    Method,
    /// A class, or what comes nearest to one in the language.
    Class,
    /// A struct or record.
    Struct,
    /// An enum or union of cases.
    Enum,
    /// A trait, interface or protocol.
    Interface,
    /// Another name for a type.
    Type,
    /// A module, namespace or package.
    Module,
    /// A macro.
    Macro,
    /// A constant or variable at the level of the file or type.
    Constant,
    /// A heading of a document.
    Heading,
}

impl SymbolKind {
    /// Whether it is a type, which names are looked up for first.
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
    /// As it is written, without the names around it.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The line in the file where its definition starts, from 1.
    pub line: u32,
}

/// A piece of a file that is found as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its first line in the file, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// What it mostly is.
    pub kind: ChunkKind,
    /// What it defines, in the order of lines.
    pub symbols: Vec<Symbol>,
    /// The name of the definition around it: its class, its module.
    pub parent: Option<String>,
    /// How its first definition is declared, on one line, without its body.
    pub signature: Option<String>,
    /// The beginning of the comment that documents its first definition.
    pub doc: Option<String>,
    /// Its text, as it is in the file.
    pub text: String,
}

/// A file with its chunks, ready to be stored. Vectors travel beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedFile {
    /// Relative to the root, with slashes.
    pub path: String,
    /// Its content and age when it was read.
    pub version: FileVersion,
    /// The language, as docs/languages.md names it.
    pub language: String,
    /// Whether it says of itself that a program wrote it.
    pub generated: bool,
    /// Why it is indexed as plain text, if its language has a parser.
    pub problem: Option<String>,
    /// Its chunks, in order.
    pub chunks: Vec<Chunk>,
    /// What it defines, imports and refers to.
    pub graph: FileGraph,
    /// The version of the parser that made all this of it.
    pub parser: u32,
}

/// What tells one content of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FileVersion {
    /// BLAKE3 of the bytes.
    pub hash: [u8; 32],
    /// How many bytes there are.
    pub size: u64,
    /// When the file was changed: nanoseconds since 1970.
    pub modified: i64,
}
