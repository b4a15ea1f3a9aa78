//! Indexed code as stored: roots, files and chunks.

use isolith_types::{ChunkKind, CollectionSpec, FileVersion, Metric, Symbol};
use serde::{Deserialize, Serialize};

use crate::state::CODE_COLLECTION;

/// The spec of the code index for a model.
pub fn code_spec(dimension: u32, model: impl Into<String>) -> CollectionSpec {
    CollectionSpec {
        name: CODE_COLLECTION.to_owned(),
        dimension: Some(dimension),
        metric: Metric::Cosine,
        model: Some(model.into()),
    }
}

/// An indexed folder, with counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootState {
    /// Its number, never reused.
    pub id: u64,
    /// Its absolute path.
    pub path: String,
    /// When it was last indexed completely, in milliseconds since the Unix epoch.
    pub indexed_at: Option<i64>,
    /// For a linked worktree: the folder that git keeps for it.
    pub worktree: Option<String>,
    /// The number of files.
    pub files: u64,
    /// The number of chunks in all files.
    pub chunks: u64,
}

/// An indexed folder, without counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootPlace {
    /// Its number, never reused.
    pub id: u64,
    /// Its absolute path.
    pub path: String,
    /// When it was last indexed completely, in milliseconds since the Unix epoch.
    pub indexed_at: Option<i64>,
    /// For a linked worktree: the folder that git keeps for it.
    pub worktree: Option<String>,
}

/// A file as it was when it was indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its number, never reused; it survives changes of content and path.
    pub id: u64,
    /// The number of its root.
    pub root: u64,
    /// Relative to the root, with slashes.
    pub path: String,
    /// Its content and modification time. A hash of zeros means: index it again.
    pub version: FileVersion,
    /// The language.
    pub language: String,
    /// Whether it is marked as generated code.
    pub generated: bool,
    /// Why it is indexed as plain text although its language has a parser.
    pub problem: Option<String>,
    /// The number of chunks.
    pub chunks: u64,
    /// The author of the last change, if known from git.
    pub author: Option<String>,
    /// The time of that change, in milliseconds since the Unix epoch.
    pub changed_at: Option<i64>,
    /// The version of the parser that made its chunks.
    pub parser: u32,
}

/// A chunk as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChunk {
    /// The row of its record.
    pub row: u64,
    /// The change number of the record.
    pub change: u64,
    /// The number of its file.
    pub file: u64,
    /// Its first line in the file, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// The kind of most of its content.
    pub kind: ChunkKind,
    /// The symbols that it defines, in line order.
    pub symbols: Vec<Symbol>,
    /// The name of the enclosing definition.
    pub parent: Option<String>,
    /// The signature of its first definition.
    pub signature: Option<String>,
    /// The start of its doc comment.
    pub doc: Option<String>,
    /// Its lines, if requested, without blank ones at both ends.
    pub text: Option<String>,
}

/// Selects chunks. An empty list allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkFilter {
    /// Of these roots.
    pub roots: Vec<u64>,
    /// In these languages.
    pub languages: Vec<String>,
    /// Of these kinds.
    pub kinds: Vec<ChunkKind>,
    /// In files that changed at this time or later, in milliseconds since the Unix epoch,
    /// according to git, or to the modification time if git does not know.
    pub changed_since: Option<i64>,
}
