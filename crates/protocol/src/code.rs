//! What the truth knows about indexed code, as plain values.

use isolith_types::{ChunkKind, CollectionSpec, FileVersion, Metric, Symbol};
use serde::{Deserialize, Serialize};

use crate::state::CODE_COLLECTION;

/// What the code index of a model is.
pub fn code_spec(dimension: u32, model: impl Into<String>) -> CollectionSpec {
    CollectionSpec {
        name: CODE_COLLECTION.to_owned(),
        dimension: Some(dimension),
        metric: Metric::Cosine,
        model: Some(model.into()),
    }
}

/// A folder whose code is indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootState {
    /// Its number, never used again.
    pub id: u64,
    /// Where it is.
    pub path: String,
    /// When it was last indexed completely, in milliseconds since 1970.
    pub indexed_at: Option<i64>,
    /// How many files it has.
    pub files: u64,
    /// How many chunks they have together.
    pub chunks: u64,
}

/// Where a root is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootPlace {
    /// Its number, never used again.
    pub id: u64,
    /// Where it is.
    pub path: String,
    /// When it was last indexed completely, in milliseconds since 1970.
    pub indexed_at: Option<i64>,
}

/// A file as it was when it was indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its number, never used again; it stays when the content or the path changes.
    pub id: u64,
    /// The number of its root.
    pub root: u64,
    /// Relative to the root, with slashes.
    pub path: String,
    /// Its content and age. A hash of zeros belongs to no file: it is to be indexed again.
    pub version: FileVersion,
    /// The language.
    pub language: String,
    /// Whether it says of itself that a program wrote it.
    pub generated: bool,
    /// Why it is indexed as plain text, if its language has a parser.
    pub problem: Option<String>,
    /// How many chunks it has.
    pub chunks: u64,
    /// Who changed it last, if git has told.
    pub author: Option<String>,
    /// When that was, in milliseconds since 1970.
    pub changed_at: Option<i64>,
    /// The version of the parser that made its chunks.
    pub parser: u32,
}

/// A chunk as the truth has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChunk {
    /// The row of its record.
    pub row: u64,
    /// The number of the record's last change.
    pub change: u64,
    /// The number of its file.
    pub file: u64,
    /// Its first line in the file, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// What it mostly is.
    pub kind: ChunkKind,
    /// What it defines, in the order of lines.
    pub symbols: Vec<Symbol>,
    /// The name of the definition around it.
    pub parent: Option<String>,
    /// How its first definition is declared.
    pub signature: Option<String>,
    /// The beginning of the comment that documents it.
    pub doc: Option<String>,
    /// Its text, if it was asked for.
    pub text: Option<String>,
}

/// Which chunks are wanted. An empty list allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkFilter {
    /// Of these roots.
    pub roots: Vec<u64>,
    /// In these languages.
    pub languages: Vec<String>,
    /// Of these kinds.
    pub kinds: Vec<ChunkKind>,
    /// In files that changed at this time or later, in milliseconds since 1970: as git
    /// says, or as the file does where git has said nothing.
    pub changed_since: Option<i64>,
}
