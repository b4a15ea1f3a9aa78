//! Reads indexed files, chunk by chunk.

use std::path::Path;

use isolith_protocol::{GetChunks, StoredChunk};
use isolith_types::{ChunkKind, Code, Failure};
use serde::Serialize;

use crate::code::{is_fresh, nothing_indexed};
use crate::index::root_around;
use crate::open::Engine;

/// A file in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedFile {
    /// The root's folder.
    pub root: String,
    /// Relative to the root.
    pub path: String,
    /// The file's language.
    pub language: String,
    /// Its chunks, in line order.
    pub chunks: Vec<IndexedChunk>,
    /// Whether the file has changed since it was indexed.
    pub stale: bool,
}

/// A chunk of an indexed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedChunk {
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The kind of most of its code.
    pub kind: ChunkKind,
    /// The first symbol that it defines.
    pub symbol: Option<String>,
    /// The code.
    pub text: String,
}

impl Engine {
    /// Reads a file from the index. `file` must be absolute and free of `.` and `..`; the
    /// file itself need not exist any more.
    ///
    /// # Errors
    /// `not_found` if the file is not in the index; any error of a read.
    pub async fn indexed_file(&self, file: &Path) -> Result<IndexedFile, Failure> {
        let roots = self.root_folders().await?;
        if roots.is_empty() {
            return Err(nothing_indexed());
        }
        let unknown = || {
            let message = format!("{} is not in the index", file.display());
            Failure::new(Code::NotFound, message).with_hint(
                "it may be ignored, too large or no text; or name a file that a search found",
            )
        };
        let root = root_around(&roots, file).ok_or_else(unknown)?;
        let path = file.strip_prefix(&root.folder).ok().and_then(Path::to_str);
        let path = path.ok_or_else(unknown)?.to_owned();
        let found = self.ask(GetChunks { root: root.id, path }).await?;
        let (state, chunks) = found.ok_or_else(unknown)?;
        let folder = self.open_root(&root.folder);
        let fresh = folder.is_ok_and(|folder| is_fresh(&folder, &state.path, &state.version));
        Ok(IndexedFile {
            root: root.folder.to_string_lossy().into_owned(),
            path: state.path,
            language: state.language,
            chunks: chunks.into_iter().map(IndexedChunk::from).collect(),
            stale: !fresh,
        })
    }
}

impl From<StoredChunk> for IndexedChunk {
    fn from(chunk: StoredChunk) -> Self {
        Self {
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            kind: chunk.kind,
            symbol: chunk.symbols.into_iter().next().map(|symbol| symbol.name),
            text: chunk.text.unwrap_or_default(),
        }
    }
}
