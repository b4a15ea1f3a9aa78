//! Reading the code index.

use isolate_types::Bulk;
use isolith_search::{Mode, Weights, Why};
use isolith_types::{ChunkKind, Degraded, FileVersion, Symbol};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};
use crate::code::RootPlace;

/// Lists the folders whose code is indexed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListRoots;

/// Lists where these folders are, without counting what they have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocateRoots;

/// Lists the files of a root, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListFiles {
    /// The root's number.
    pub root: u64,
    /// Below this folder only.
    pub under: Option<String>,
    /// After this path.
    pub after: Option<String>,
    /// The maximum number of files.
    pub limit: u32,
}

/// Gets the chunks of a file; nothing if it is not in the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetChunks {
    /// The root's number.
    pub root: u64,
    /// The file's path, relative to the root.
    pub path: String,
}

/// Computes new vectors for the chunks of a file that gets another path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedMovedFile {
    /// The root's number.
    pub root: u64,
    /// The file's present path.
    pub path: String,
    /// Its new path.
    pub as_path: String,
}

/// Finds the code that answers a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchCode {
    /// A question, words or a name.
    pub text: String,
    /// A vector in the place of the text's own: f32, little-endian.
    pub vector: Option<Bulk>,
    /// What ranks.
    pub mode: Mode,
    /// How many hits.
    pub limit: u32,
    /// Which chunks.
    pub filter: CodeScope,
    /// What signals are worth.
    pub weights: Weights,
}

/// Which chunks are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeScope {
    /// Of these roots; of all if there are none.
    pub roots: Vec<u64>,
    /// In these languages.
    pub languages: Vec<String>,
    /// Whose paths match one of these patterns.
    pub paths: Vec<String>,
    /// Of these kinds.
    pub kinds: Vec<ChunkKind>,
    /// That define this name.
    pub symbol: Option<String>,
    /// Tests alone, or all but tests.
    pub tests: Option<bool>,
    /// Whose files changed since: milliseconds since 1970.
    pub since: Option<i64>,
    /// But not the chunk at a line of a file of a root.
    pub except: Option<(u64, String, u32)>,
}

impl CodeScope {
    /// Whether rows have to be picked before the search.
    pub fn picks(&self) -> bool {
        *self != Self { except: self.except.clone(), ..Self::default() }
    }
}

/// Code that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeFound {
    /// The best first.
    pub hits: Vec<FoundChunk>,
    /// Why the answer is incomplete.
    pub degraded: Option<Degraded>,
    /// What it was found with.
    pub searched: Searched,
    /// Whether there is any code to be found.
    pub indexed: bool,
    /// Where the roots are.
    pub roots: Vec<RootPlace>,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundChunk {
    /// The root's number.
    pub root: u64,
    /// The file's path, relative to the root.
    pub path: String,
    /// The file's language.
    pub language: String,
    /// The file's content when it was indexed.
    pub version: FileVersion,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// What it mostly is.
    pub kind: ChunkKind,
    /// The definition in it that fits best.
    pub symbol: Option<Symbol>,
    /// The definition around it.
    pub parent: Option<String>,
    /// How its first definition is declared.
    pub signature: Option<String>,
    /// Its text.
    pub text: String,
    /// From 0 upward; larger is better.
    pub score: f32,
    /// What put it here.
    pub why: Why,
}

impl SearchReply for CodeFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}
