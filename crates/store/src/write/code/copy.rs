//! Files that another root has in the same state: stored again without parsing and embedding.

use isolith_protocol::{CopyFiles, Done, FileState, FilesCopied, StoreError, StoredChunk};
use isolith_sql::{OptionalExtension, params};
use isolith_types::{Chunk, FileGraph, FileVersion, ParsedFile};

use super::super::change::Changes;
use super::super::{Perform, Work};
use super::chunks::{self, ChunkWriter};
use super::files::{check_path, index_of, put_file};
use super::graph::{CodeGraph, RootFile};
use super::link;
use crate::read::code::{chunks_of, file_at};
use crate::sqlite::During;

impl Perform for CopyFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let state = index_of(work, Some(self.root))?;
        let width = state.dimension.unwrap_or_default() as usize * 4;
        let mut changes = Changes::begin(work, &state)?;
        let mut writer = ChunkWriter::new(work, state.id)?;
        let mut graph = CodeGraph::begin(work)?;
        let mut reply = FilesCopied::default();
        for (at, asked) in (0..).zip(&self.files) {
            work.deadline.check("copy files")?;
            check_path(&asked.0)?;
            let Some((file, vectors)) = known(self, work, asked, width)? else { continue };
            let (id, is_new) = put_file(work, self.root, &file).during(work.db, "store a file")?;
            if !is_new {
                reply.deleted += chunks::remove(work, &mut changes, id)?;
            }
            writer.insert(&mut changes, id, &file.chunks, &vectors, width)?;
            let place = RootFile { root: self.root, file: id, path: &file.path };
            graph.put(place, file.graph)?;
            reply.inserted += file.chunks.len() as u64;
            reply.copied.push(at);
        }
        graph.finish()?;
        changes.finish(reply)
    }
}

/// A file as another root has it, with the vectors of its chunks.
fn known(
    asked: &CopyFiles,
    work: Work<'_>,
    (path, version): &(String, FileVersion),
    width: usize,
) -> Result<Option<(ParsedFile, Vec<u8>)>, StoreError> {
    let db = work.db;
    for root in &asked.from {
        let found = file_at(db, *root, path).during(db, "look for a file")?;
        let is_same = |it: &FileState| {
            it.version.hash == version.hash && it.parser == asked.parser && it.problem.is_none()
        };
        let Some(found) = found.filter(is_same) else { continue };
        let Some(mut graph) = link::outline(db, found.id)? else { continue };
        graph.references = link::uses(db, found.id)?;
        let stored = chunks_of(db, found.id).during(db, "read the chunks of a file")?;
        let Some(vectors) = vectors(work, &stored, width)? else { continue };
        if stored.len() as u64 == found.chunks {
            return Ok(Some((parsed(found, *version, stored, graph), vectors)));
        }
    }
    Ok(None)
}

/// The vectors of chunks, one after the other; `None` if one is missing.
fn vectors(
    work: Work<'_>,
    chunks: &[StoredChunk],
    width: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let read = || {
        let mut find = work.db.prepare_cached("SELECT data FROM vector WHERE row = ?1")?;
        let mut all = Vec::with_capacity(chunks.len() * width);
        for chunk in chunks {
            let data: Option<Vec<u8>> =
                find.query_row(params![chunk.row], |row| row.get(0)).optional()?;
            match data.filter(|data| data.len() == width) {
                Some(data) => all.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    };
    read().during(work.db, "read vectors")
}

/// A file as its parser returned it.
fn parsed(
    found: FileState,
    version: FileVersion,
    chunks: Vec<StoredChunk>,
    graph: FileGraph,
) -> ParsedFile {
    // Every field is named, so that a new one is not forgotten here.
    let FileState {
        id: _,
        root: _,
        path,
        version: _,
        language,
        generated,
        problem,
        chunks: _,
        author: _,
        changed_at: _,
        parser,
    } = found;
    let chunks = chunks.into_iter().map(chunk).collect();
    ParsedFile { path, version, language, generated, problem, chunks, graph, parser }
}

fn chunk(stored: StoredChunk) -> Chunk {
    let StoredChunk {
        row: _,
        change: _,
        file: _,
        start_line,
        end_line,
        kind,
        symbols,
        parent,
        signature,
        doc,
        text,
    } = stored;
    let text = text.unwrap_or_default();
    Chunk { start_line, end_line, kind, symbols, parent, signature, doc, text }
}
