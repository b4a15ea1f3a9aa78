//! Finding every match of a text or a regular expression in the code index.

use isolith_types::{ChunkKind, Degraded, FileVersion};
use serde::{Deserialize, Serialize};

use super::{CodeScope, SearchReply, Searched};
use crate::code::RootPlace;

/// Finds all matches of a pattern in indexed files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindMatches {
    /// What to look for.
    pub pattern: Pattern,
    /// Which chunks.
    pub filter: CodeScope,
    /// The maximum number of hits in the reply; all matches are counted.
    pub limit: u32,
    /// The number of lines before and after a match in its snippet.
    pub context: u32,
    /// Whether a file is one hit, with its first match.
    pub by_file: bool,
}

/// What matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// A text or a regular expression.
    pub text: String,
    /// Which of the two it is.
    pub syntax: PatternSyntax,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternSyntax {
    /// As it is.
    Literal,
    /// As a regular expression.
    Regex,
}

/// The reply to [`FindMatches`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchesFound {
    /// The first hits, by path and line.
    pub hits: Vec<FoundMatch>,
    /// How much there is in total.
    pub counts: MatchCounts,
    /// Why the answer took longer than it should.
    pub degraded: Option<Degraded>,
    /// Which segments the search used.
    pub searched: Searched,
    /// Whether the generation has no segment for this search, so that the database was read.
    pub unsegmented: bool,
    /// Whether any code is indexed.
    pub indexed: bool,
    /// All roots.
    pub roots: Vec<RootPlace>,
}

/// Numbers of matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCounts {
    /// Matches.
    pub matches: u64,
    /// Lines on which a match begins.
    pub lines: u64,
    /// Files with a match.
    pub files: u64,
}

/// A line on which a match begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMatch {
    /// The root's number.
    pub root: u64,
    /// The file's path, relative to the root.
    pub path: String,
    /// The file's language.
    pub language: String,
    /// The file's version when it was indexed.
    pub version: FileVersion,
    /// The first line of the chunk that it is in, from 1.
    pub start_line: u32,
    /// The chunk's last line.
    pub end_line: u32,
    /// The kind of most of the chunk's content.
    pub kind: ChunkKind,
    /// The innermost definition around it.
    pub symbol: Option<EnclosingSymbol>,
    /// The line, from 1.
    pub line: u32,
    /// The last line of matches that begin on it.
    pub last_line: u32,
    /// Where on the line matches begin and end, in bytes from 0. A match that goes on ends with
    /// the line. At most [`MAX_SPANS`].
    pub spans: Vec<(u32, u32)>,
    /// The number of matches that begin on the line, or in the file if a file is one hit.
    pub matches: u64,
    /// The lines of the match, and those around it.
    pub snippet: String,
    /// The first line of the snippet.
    pub snippet_line: u32,
    /// Whether lines of the snippet were shortened.
    pub shortened: bool,
}

/// The maximum number of spans of a hit.
pub const MAX_SPANS: usize = 100;

/// A definition that encloses a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnclosingSymbol {
    /// Its name.
    pub name: String,
    /// Its line, from 1.
    pub line: Option<u32>,
    /// The name of the definition around it.
    pub parent: Option<String>,
    /// Its signature.
    pub signature: Option<String>,
}

impl SearchReply for MatchesFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}
