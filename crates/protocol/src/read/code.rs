//! Reading the code index.

use isolate_types::Bulk;
use isolith_search::{CodeWeights, Explanation, SearchMode};
use isolith_types::{ChunkKind, Degraded, FileVersion, Symbol};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};
use crate::code::RootPlace;

/// Lists the roots with their counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListRoots;

/// Lists the roots without counts, which is faster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocateRoots;

/// Lists the files of a root, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListFiles {
    /// The root's number.
    pub root: u64,
    /// Only files below this folder.
    pub under: Option<String>,
    /// Only files after this path: the last one of the previous page.
    pub after: Option<String>,
    /// The maximum number of files.
    pub limit: u32,
}

/// Counts the lines of a root's files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountLines {
    /// The root's number.
    pub root: u64,
}

/// Gets a file and its chunks; `None` if it is not in the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetChunks {
    /// The root's number.
    pub root: u64,
    /// The file's path, relative to the root.
    pub path: String,
}

/// Computes the vectors that a file's chunks get under a new path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedMovedFile {
    /// The root's number.
    pub root: u64,
    /// The file's current path.
    pub path: String,
    /// Its new path.
    pub as_path: String,
}

/// Finds the code that answers a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchCode {
    /// A question, words or a name.
    pub text: String,
    /// A vector to use instead of the text's: f32, little-endian.
    pub vector: Option<Bulk>,
    /// The search mode.
    pub mode: SearchMode,
    /// The maximum number of hits.
    pub limit: u32,
    /// Which chunks.
    pub filter: CodeScope,
    /// The ranking weights.
    pub weights: CodeWeights,
}

/// Which chunks are searched. Empty lists and `None` allow all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeScope {
    /// In these roots.
    pub roots: Vec<u64>,
    /// In these languages.
    pub languages: Vec<String>,
    /// In files whose path matches one of these patterns.
    pub paths: Vec<String>,
    /// Of these kinds.
    pub kinds: Vec<ChunkKind>,
    /// Defining this symbol.
    pub symbol: Option<String>,
    /// `true` for tests only, `false` for everything else.
    pub tests: Option<bool>,
    /// In files that changed since then, in milliseconds since the Unix epoch.
    pub since: Option<i64>,
    /// Except the chunk at this root, path and line.
    pub except: Option<(u64, String, u32)>,
}

impl CodeScope {
    /// Whether it restricts the search (`except` aside), so that rows must be selected first.
    pub fn picks(&self) -> bool {
        *self != Self { except: self.except.clone(), ..Self::default() }
    }
}

/// The reply to [`SearchCode`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CodeFound {
    /// The hits, best first.
    pub hits: Vec<FoundChunk>,
    /// Why the answer is incomplete.
    pub degraded: Option<Degraded>,
    /// Whether nothing fits the query well.
    pub weak: bool,
    /// Quoted parts of the query that nothing contains; all of them if no file contains them
    /// together.
    pub missing: Vec<String>,
    /// Which segments the search used.
    pub searched: Searched,
    /// Whether any code is indexed.
    pub indexed: bool,
    /// All roots.
    pub roots: Vec<RootPlace>,
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundChunk {
    /// The root's number.
    pub root: u64,
    /// The file's path, relative to the root.
    pub path: String,
    /// The file's language.
    pub language: String,
    /// The file's version when it was indexed.
    pub version: FileVersion,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The kind of most of its content.
    pub kind: ChunkKind,
    /// The symbol in it that matches best.
    pub symbol: Option<Symbol>,
    /// The name of the enclosing definition.
    pub parent: Option<String>,
    /// The signature of its first definition.
    pub signature: Option<String>,
    /// Its text.
    pub text: String,
    /// At least 0; higher is better.
    pub score: f32,
    /// What contributed to the score.
    pub why: Explanation,
    /// Further places in the same file, best first.
    pub also: Vec<FoundPlace>,
}

/// A further chunk of a file that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundPlace {
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first symbol that it defines.
    pub symbol: Option<String>,
}

impl SearchReply for CodeFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}
