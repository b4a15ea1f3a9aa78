//! The code index: roots, files and what they define.

use isolate_types::Bulk;
use isolith_types::{CollectionSpec, FileVersion};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};
use crate::code::RootState;

/// Adds a folder whose code is indexed, or finds it. Creates the code index if there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddRoot {
    /// The folder.
    pub path: String,
    /// What the code index is to be: see [`code_spec`](crate::code_spec).
    pub spec: CollectionSpec,
}

/// The reply to [`AddRoot`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootAdded {
    /// Whether it is new.
    pub created: bool,
    /// The root.
    pub root: RootState,
}

/// Stores files with their chunks. Each replaces what is stored under its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutFiles {
    /// The root's number.
    pub root: u64,
    /// A `Vec<ParsedFile>` in postcard.
    pub files: Bulk,
    /// When each file was changed, in nanoseconds; if not given, as the files say. They are
    /// apart, so that whoever parses knows contents alone.
    pub ages: Vec<i64>,
    /// The length of every vector.
    pub dimension: u32,
    /// A vector for each chunk of each file, in order: f32, little-endian.
    pub vectors: Bulk,
    /// The model that made them.
    pub model: String,
}

/// The reply to [`PutFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesPut {
    /// Files that were stored.
    pub files: u64,
    /// Chunks that are new.
    pub inserted: u64,
    /// Chunks that were replaced.
    pub deleted: u64,
}

/// Records the age of files whose content is unchanged.
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
    /// Files that it was recorded for.
    pub files: u64,
    /// Files that are not in the index.
    pub missing: u64,
}

/// Gives a file another path, or the same, and its chunks other vectors. A file that has the
/// path already is removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveFile {
    /// The root's number.
    pub root: u64,
    /// Its present path.
    pub from: String,
    /// Its new path.
    pub to: String,
    /// Its age; the content is unchanged.
    pub version: FileVersion,
    /// The length of every vector.
    pub dimension: u32,
    /// A vector for each of its chunks, in order: f32, little-endian.
    pub vectors: Bulk,
    /// The model that made them.
    pub model: String,
}

/// The reply to [`MoveFile`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileMoved {
    /// 1 if it was moved.
    pub files: u64,
    /// Its chunks.
    pub updated: u64,
    /// Chunks of a file that had the path before.
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
    /// Their chunks.
    pub deleted: u64,
    /// Files that are not in the index.
    pub missing: u64,
}

/// Removes all files, a slice at a time. Roots stay.
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
    /// Their chunks.
    pub deleted: u64,
    /// Whether files are left.
    pub more: bool,
}

/// Replaces the code index by one for another model. It must have no chunks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetCodeModel {
    /// What it is to be: see [`code_spec`](crate::code_spec).
    pub spec: CollectionSpec,
}

/// The reply to [`SetCodeModel`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeModelSet {
    /// Whether a new index was created.
    pub created: bool,
    /// Names in `segments/` that nothing refers to any more.
    pub obsolete_files: Vec<String>,
    /// Whether rows are left to purge.
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

/// Resolves the references in files that are due; a slice at a time.
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
    /// Whether files are left.
    pub more: bool,
}

/// Records what git says about files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteGitFacts {
    /// The root's number.
    pub root: u64,
    /// Path, author and time in milliseconds of the last change.
    pub facts: Vec<(String, Option<String>, i64)>,
}

impl Handled for AddRoot {
    fn handling(&self) -> Handling<'_> {
        Handling::of_code()
    }
}

/// How many vectors there are.
fn count(vectors: &Bulk, dimension: u32) -> usize {
    vectors.len() / (dimension as usize * 4).max(4)
}

impl Handled for PutFiles {
    fn handling(&self) -> Handling<'_> {
        let rows = count(&self.vectors, self.dimension);
        Handling::of_code().sized(rows, self.files.len() + self.vectors.len()).alone()
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
