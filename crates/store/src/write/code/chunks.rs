use std::fmt::Write as _;

use isolith_protocol::StoreError;
use isolith_sql::{Statement, params};
use isolith_types::{Chunk, Symbol, SymbolKind};

use super::super::Work;
use super::super::change::Changes;
use crate::sqlite::During;

/// Writes the chunks of files, each as a record with a vector.
pub(super) struct ChunkWriter<'a> {
    work: Work<'a>,
    collection: u64,
    record: Statement<'a>,
    vector: Statement<'a>,
    chunk: Statement<'a>,
    id: String,
}

impl<'a> ChunkWriter<'a> {
    pub(super) fn new(work: Work<'a>, collection: u64) -> Result<Self, StoreError> {
        let prepare = |sql| work.db.prepare_cached(sql).during(work.db, "prepare to put chunks");
        Ok(Self {
            work,
            collection,
            record: prepare(
                "INSERT INTO record \
                 (row, collection, id, change, created_at, updated_at, metadata, document) \
                 VALUES (?1, ?2, ?3, ?1, ?4, ?4, '{}', ?5)",
            )?,
            vector: prepare("INSERT INTO vector (row, data) VALUES (?1, ?2)")?,
            chunk: prepare(
                "INSERT INTO chunk \
                 (row, file, start_line, end_line, kind, symbols, parent, signature, doc) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            id: String::new(),
        })
    }

    /// Inserts all chunks of a file that has none, each with a vector of `width` bytes.
    pub(super) fn insert(
        &mut self,
        changes: &mut Changes<'_>,
        file: u64,
        chunks: &[Chunk],
        vectors: &[u8],
        width: usize,
    ) -> Result<(), StoreError> {
        for (position, (chunk, vector)) in chunks.iter().zip(vectors.chunks(width)).enumerate() {
            self.one(changes.inserted(), file, position, chunk, vector)
                .during(self.work.db, "insert a chunk")?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        row: u64,
        file: u64,
        position: usize,
        chunk: &Chunk,
        vector: &[u8],
    ) -> isolith_sql::Result<()> {
        self.id.clear();
        // Fixed width, so that ids sort in order of creation. Writing to a string cannot fail.
        let _ = write!(self.id, "{file:08x}:{position:04x}");
        self.record.execute(params![row, self.collection, self.id, self.work.now, chunk.text])?;
        self.vector.execute(params![row, vector])?;
        self.chunk.execute(params![
            row,
            file,
            chunk.start_line,
            chunk.end_line,
            chunk.kind.name(),
            symbols(&chunk.symbols),
            chunk.parent,
            chunk.signature,
            chunk.doc
        ])?;
        Ok(())
    }
}

/// Rows and change numbers of a file's chunks, in order.
pub(super) fn versions(work: Work<'_>, file: u64) -> Result<Vec<(u64, u64)>, StoreError> {
    let read = || {
        let mut versions: Vec<(u64, u64)> = work
            .db
            .prepare_cached(
                "SELECT record.row, record.change FROM chunk \
                 JOIN record ON record.row = chunk.row WHERE chunk.file = ?1",
            )?
            .query_map([file], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        versions.sort_unstable();
        Ok(versions)
    };
    read().during(work.db, "look for chunks")
}

/// Removes all chunks of a file and returns their number.
pub(super) fn remove(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    file: u64,
) -> Result<u64, StoreError> {
    let versions = versions(work, file)?;
    let take = || {
        work.db.prepare_cached("DELETE FROM chunk WHERE file = ?1")?.execute([file])?;
        let mut vector = work.db.prepare_cached("DELETE FROM vector WHERE row = ?1")?;
        let mut record = work.db.prepare_cached("DELETE FROM record WHERE row = ?1")?;
        for (row, _) in &versions {
            vector.execute([row])?;
            record.execute([row])?;
        }
        Ok(())
    };
    take().during(work.db, "remove chunks")?;
    for &(row, change) in &versions {
        changes.removed(row, change)?;
    }
    Ok(versions.len() as u64)
}

/// Replaces the vectors of a file's chunks, which gives each a new version.
pub(super) fn replace_vectors(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    versions: &[(u64, u64)],
    vectors: &[u8],
    width: usize,
) -> Result<(), StoreError> {
    let prepare = |sql| work.db.prepare_cached(sql).during(work.db, "prepare to replace vectors");
    let mut record = prepare("UPDATE record SET change = ?2, updated_at = ?3 WHERE row = ?1")?;
    let mut data = prepare("UPDATE vector SET data = ?2 WHERE row = ?1")?;
    for (&(row, old), vector) in versions.iter().zip(vectors.chunks(width)) {
        let change = changes.replaced(row, old)?;
        let mut write = || {
            record.execute(params![row, change, work.now])?;
            data.execute(params![row, vector])
        };
        write().during(work.db, "replace a vector")?;
    }
    Ok(())
}

/// Stored form of symbols; short, because every row has it.
fn symbols(symbols: &[Symbol]) -> String {
    if symbols.is_empty() {
        return "[]".to_owned();
    }
    let short: Vec<(&str, SymbolKind, u32)> =
        symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.kind, symbol.line)).collect();
    serde_json::to_string(&short).expect("strings and numbers can always be encoded as JSON")
}
