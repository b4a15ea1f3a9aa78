//! The code index: roots, files and what they define.

use isolate_types::Bulk;
use isolith_types::{CollectionSpec, FileVersion};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};
use crate::code::RootState;

/// Adds a root, or returns it if it exists. Creates the code index if there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddRoot {
    /// The folder's path.
    pub path: String,
    /// The spec of the code index: see [`code_spec`](crate::code_spec).
    pub spec: CollectionSpec,
    /// For a linked worktree: the folder that git keeps for it.
    pub worktree: Option<String>,
}

/// The reply to [`AddRoot`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootAdded {
    /// Whether the root is new.
    pub created: bool,
    /// Its state.
    pub root: RootState,
}

/// Stores files with their chunks. Each replaces what is stored under its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutFiles {
    /// The root's number.
    pub root: u64,
    /// A `Vec<ParsedFile>` in postcard.
    pub files: Bulk,
    /// The modification time of each file, in nanoseconds; if empty, those in `files` count.
    /// They are separate because the parser sees only contents.
    pub ages: Vec<i64>,
    /// The length of every vector.
    pub dimension: u32,
    /// A vector for each chunk of each file, in order: f32, little-endian.
    pub vectors: Bulk,
    /// The embedding model.
    pub model: String,
}

/// The reply to [`PutFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesPut {
    /// Files that were stored.
    pub files: u64,
    /// New chunks.
    pub inserted: u64,
    /// Chunks of the previous versions.
    pub deleted: u64,
}

/// Records the modification time of files whose content is unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TouchFiles {
    /// The root's number.
    pub root: u64,
    /// Path, time in nanoseconds, and size.
    pub files: Vec<(String, i64, u64)>,
}

/// The reply to [`TouchFiles`] and [`NoteGitFacts`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesNoted {
    /// Files that were updated.
    pub files: u64,
    /// Files that are not in the index.
    pub missing: u64,
}

/// Changes the path of a file (it may stay the same) and the vectors of its chunks. Another
/// file at the new path is removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveFile {
    /// The root's number.
    pub root: u64,
    /// Its present path.
    pub from: String,
    /// Its new path.
    pub to: String,
    /// Its modification time; the content is unchanged.
    pub version: FileVersion,
    /// The length of every vector.
    pub dimension: u32,
    /// A vector for each of its chunks, in order: f32, little-endian.
    pub vectors: Bulk,
    /// The embedding model.
    pub model: String,
}

/// The reply to [`MoveFile`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileMoved {
    /// 1 if it was moved.
    pub files: u64,
    /// Updated chunks.
    pub updated: u64,
    /// Chunks of the file that was at the new path.
    pub deleted: u64,
    /// 1 if there is no such file.
    pub missing: u64,
}

/// Removes files with their chunks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveFiles {
    /// The root's number.
    pub root: u64,
    /// Their paths.
    pub paths: Vec<String>,
}

/// The reply to [`RemoveFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesRemoved {
    /// Files that were removed.
    pub files: u64,
    /// Deleted chunks.
    pub deleted: u64,
    /// Files that are not in the index.
    pub missing: u64,
}

/// Removes all files, a batch at a time. Roots stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClearFiles {
    /// Of this root only, if given.
    pub root: Option<u64>,
    /// The maximum number of files.
    pub limit_files: u32,
}

/// The reply to [`ClearFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesCleared {
    /// Files that were removed.
    pub files: u64,
    /// Deleted chunks.
    pub deleted: u64,
    /// Whether files remain.
    pub more: bool,
}

/// Replaces the code index, which must be empty, with one for another model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetCodeModel {
    /// The new spec: see [`code_spec`](crate::code_spec).
    pub spec: CollectionSpec,
}

/// The reply to [`SetCodeModel`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeModelSet {
    /// Whether a new index was created.
    pub created: bool,
    /// Files in `segments/` that are no longer used.
    pub obsolete_files: Vec<String>,
    /// Whether rows remain to be purged.
    pub more: bool,
}

/// Removes a root, which must have no files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveRoot {
    /// The root's number.
    pub root: u64,
}

/// Records that a root has been indexed completely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishIndex {
    /// The root's number.
    pub root: u64,
}

/// Resolves the references in files that need it, a batch at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkFiles {
    /// The root's number.
    pub root: u64,
}

/// The reply to [`LinkFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesLinked {
    /// Files whose references were resolved.
    pub files: u64,
    /// Whether files remain.
    pub more: bool,
}

/// Records the last author and change of files, from git.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteGitFacts {
    /// The root's number.
    pub root: u64,
    /// Path, author and time in milliseconds of the last change.
    pub facts: Vec<(String, Option<String>, i64)>,
}

/// Stores files that other roots have under the same path and with the same content, with the
/// chunks, vectors and definitions from there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyFiles {
    /// The root's number.
    pub root: u64,
    /// The other roots, by preference.
    pub from: Vec<u64>,
    /// Only what this version of the parser made is used.
    pub parser: u32,
    /// Path and version of each file.
    pub files: Vec<(String, FileVersion)>,
}

/// The reply to [`CopyFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesCopied {
    /// The positions in the request of the files that were stored.
    pub copied: Vec<u32>,
    /// New chunks.
    pub inserted: u64,
    /// Chunks of the previous versions.
    pub deleted: u64,
}

impl Handled for AddRoot {
    fn handling(&self) -> Handling<'_> {
        Handling::of_code()
    }
}

/// The number of vectors.
fn count(vectors: &Bulk, dimension: u32) -> usize {
    vectors.len() / (dimension as usize * 4).max(4)
}

impl Handled for PutFiles {
    fn handling(&self) -> Handling<'_> {
        let rows = count(&self.vectors, self.dimension);
        Handling::of_code().sized(rows, self.files.len() + self.vectors.len()).alone()
    }
}

impl Handled for CopyFiles {
    fn handling(&self) -> Handling<'_> {
        let bytes = self.files.iter().map(|file| file.0.len() + 48).sum();
        Handling::of_code().sized(self.files.len(), bytes).alone()
    }
}

impl Handled for TouchFiles {
    fn handling(&self) -> Handling<'_> {
        let bytes = self.files.iter().map(|file| file.0.len() + 16).sum();
        Handling::of_nothing().sized(self.files.len(), bytes).alone()
    }
}

impl Handled for MoveFile {
    fn handling(&self) -> Handling<'_> {
        let rows = count(&self.vectors, self.dimension);
        Handling::of_code().sized(rows, self.vectors.len()).alone()
    }
}

impl Handled for RemoveFiles {
    fn handling(&self) -> Handling<'_> {
        let bytes = self.paths.iter().map(String::len).sum();
        Handling::of_code().sized(self.paths.len(), bytes).alone()
    }
}

impl Handled for ClearFiles {
    fn handling(&self) -> Handling<'_> {
        Handling::of_code().alone()
    }
}

impl Handled for SetCodeModel {
    fn handling(&self) -> Handling<'_> {
        Handling::of_code().alone()
    }
}

impl Handled for RemoveRoot {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for FinishIndex {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for LinkFiles {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}

impl Handled for NoteGitFacts {
    fn handling(&self) -> Handling<'_> {
        let bytes = self.facts.iter().map(|fact| fact.0.len() + 32).sum();
        Handling::of_nothing().sized(self.facts.len(), bytes).alone()
    }
}
