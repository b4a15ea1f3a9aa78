//! The complete texts of indexed files, put together from their chunks.

use std::mem;
use std::ops::ControlFlow;

use isolith_protocol::{ChunkFilter, StoreError, StoredChunk};
use isolith_sql::{Connection, OptionalExtension, Row, params};
use isolith_types::{Definition, Symbol};

use super::code::{chunk_of, files_matching, select_chunks, symbols_of};
use super::scan::{Columns, RUN};
use super::{Scope, Snapshot};
use crate::sqlite::During;
use crate::write::outline;

/// Receives a file with its text.
pub type EachFileText<'a> = dyn FnMut(&FileText) -> ControlFlow<()> + 'a;

/// An indexed file with its complete text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileText {
    /// The file's number.
    pub id: u64,
    /// The number of its root.
    pub root: u64,
    /// Relative to the root, with slashes.
    pub path: String,
    /// Whether it is marked as generated code.
    pub generated: bool,
    /// Its chunks, in order.
    pub chunks: Vec<ChunkStart>,
    /// The text as it was indexed. In files that an earlier version of the parser indexed, blank
    /// lines between chunks are empty, and the end of a chunk has no trailing blanks. Of a
    /// notebook, it has only the cells; all other lines are empty.
    pub text: String,
}

/// A chunk, and where it begins in the text of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkStart {
    /// The chunk's row.
    pub row: u64,
    /// The change number of its record.
    pub change: u64,
    /// The offset in the text, in bytes.
    pub start: u32,
    /// Its first and last line, from 1.
    pub lines: (u32, u32),
    /// The name of the enclosing definition.
    pub parent: Option<String>,
    /// The symbols that it defines.
    pub symbols: Vec<Symbol>,
}

impl Snapshot<'_> {
    /// Calls `each` with every file that has a chunk in scope, by ascending number, until it
    /// breaks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn for_each_file_text(
        &self,
        collection: u64,
        scope: Scope,
        each: &mut EachFileText<'_>,
    ) -> Result<(), StoreError> {
        let db = self.connection();
        let rows = match scope {
            Scope::All => all_rows(db).during(db, "list chunks")?,
            Scope::ChangedAfter(change) => {
                let files = self.files_changed_after(collection, change)?;
                rows_of(db, &files).during(db, "list chunks")?
            }
        };
        self.read_texts(&rows, each)
    }

    /// The numbers of the files that have a chunk with a higher change number, ascending.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn files_changed_after(
        &self,
        collection: u64,
        change: u64,
    ) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let change = i64::try_from(change).unwrap_or(i64::MAX);
        let read = || {
            let mut files: Vec<u64> = db
                .prepare_cached(
                    "SELECT chunk.file FROM record JOIN chunk ON chunk.row = record.row \
                     WHERE record.collection = ?1 AND record.change > ?2",
                )?
                .query_map(params![collection, change], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            files.sort_unstable();
            files.dedup();
            Ok(files)
        };
        read().during(db, "list changed files")
    }

    /// Calls `each` with these files, which must be in ascending order, as far as they exist and
    /// have chunks.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn file_texts(&self, files: &[u64], each: &mut EachFileText<'_>) -> Result<(), StoreError> {
        let db = self.connection();
        let rows = rows_of(db, files).during(db, "list chunks")?;
        self.read_texts(&rows, each)
    }

    /// The chunks of a file, without their texts.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn chunk_places(&self, file: u64) -> Result<Vec<StoredChunk>, StoreError> {
        let db = self.connection();
        let read = || {
            select_chunks(db, false, "chunk.file = ?1 ORDER BY chunk.row")?
                .query_map([file], chunk_of)?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "read the chunks of a file")
    }

    /// The definitions in a file, in order of their start; none if the graph does not know its
    /// language.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn definitions(&self, file: u64) -> Result<Vec<Definition>, StoreError> {
        let graph = outline(self.connection(), file)?;
        Ok(graph.map(|graph| graph.definitions).unwrap_or_default())
    }

    /// The numbers of all files that match the filter, except for its kinds of chunks, ascending.
    /// `paths` decides about a file by its path and whether it is generated.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn code_files(
        &self,
        filter: &ChunkFilter,
        paths: &dyn Fn(&str, bool) -> bool,
    ) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        files_matching(db, filter, paths).during(db, "look for files")
    }

    /// Reads chunks, whose rows ascend within a file and are together, and joins those of a file.
    fn read_texts(&self, rows: &[u64], each: &mut EachFileText<'_>) -> Result<(), StoreError> {
        let db = self.connection();
        let mut joined = Joined::default();
        let ascending = rows.chunk_by(|one, next| one < next);
        for run in ascending.flat_map(|ascending| ascending.chunks(RUN)) {
            self.db.deadline.check(CHUNK.operation)?;
            let run: Vec<(u64, u64)> = run.iter().map(|row| (*row, 0)).collect();
            let flow = CHUNK.read(db, &run, &mut |_, row| joined.add(db, row, each));
            if flow.during(db, CHUNK.operation)?.is_break() {
                return Ok(());
            }
        }
        let _ = joined.hand_out(each);
        Ok(())
    }
}

const CHUNK: Columns = Columns {
    by_row: "SELECT chunk.row, file, change, start_line, document, end_line, parent, symbols FROM chunk \
             JOIN record ON record.row = chunk.row WHERE chunk.row = ?1",
    by_range: "SELECT chunk.row, file, change, start_line, document, end_line, parent, symbols FROM chunk \
               JOIN record ON record.row = chunk.row \
               WHERE chunk.row BETWEEN ?1 AND ?2 ORDER BY chunk.row",
    operation: "read the texts of files",
};

/// A file that is being put together.
#[derive(Default)]
struct Joined {
    file: FileText,
    size: u64,
    /// The number of the line at the end of the text, from 0.
    line: u64,
}

impl Joined {
    /// Adds a chunk; before the first one of another file, `each` gets the file.
    fn add(
        &mut self,
        db: &dyn Connection,
        row: &Row<'_>,
        each: &mut EachFileText<'_>,
    ) -> isolith_sql::Result<ControlFlow<()>> {
        let id: u64 = row.get(1)?;
        if self.file.chunks.is_empty() || self.file.id != id {
            if self.hand_out(each).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.begin(db, id)?;
        }
        let document = row.get_ref(4)?.as_str_or_null()?.unwrap_or_default();
        let lines: (u32, u32) = (row.get(3)?, row.get(5)?);
        self.pad(u64::from(lines.0), document);
        self.file.chunks.push(ChunkStart {
            row: row.get(0)?,
            change: row.get(2)?,
            start: u32::try_from(self.file.text.len()).unwrap_or(u32::MAX),
            lines,
            parent: row.get(6)?,
            symbols: symbols_of(row.get_ref(7)?.as_str()?, 7)?,
        });
        self.file.text.push_str(document);
        self.line += line_ends(document);
        Ok(ControlFlow::Continue(()))
    }

    /// Passes the file on, if there is one.
    fn hand_out(&self, each: &mut EachFileText<'_>) -> ControlFlow<()> {
        if self.file.chunks.is_empty() { ControlFlow::Continue(()) } else { each(&self.file) }
    }

    fn begin(&mut self, db: &dyn Connection, id: u64) -> isolith_sql::Result<()> {
        let mut text = mem::take(&mut self.file.text);
        text.clear();
        let mut find =
            db.prepare_cached("SELECT root, path, generated, size FROM file WHERE id = ?1")?;
        let file = |row: &Row<'_>| {
            let (root, path, generated) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((root, path, generated, row.get(3)?))
        };
        let found = find.query_row([id], file).optional()?;
        let (root, path, generated, size) = found.unwrap_or_default();
        self.file = FileText { id, root, path, generated, chunks: Vec::new(), text };
        (self.size, self.line) = (size, 0);
        Ok(())
    }

    /// Adds line ends until the text has as many lines as there are before the next chunk. Only
    /// the cells of notebooks and chunks of earlier parsers need that. No text has more lines than the file has bytes.
    fn pad(&mut self, start_line: u64, document: &str) {
        let leading = line_ends(&document[..document.len() - document.trim_start().len()]);
        let first = start_line.saturating_sub(1 + leading).min(self.size);
        while self.line < first {
            self.file.text.push('\n');
            self.line += 1;
        }
    }
}

fn line_ends(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// The rows of all chunks, by file. Reads only an index.
fn all_rows(db: &dyn Connection) -> isolith_sql::Result<Vec<u64>> {
    let mut rows: Vec<(u64, u64)> = db
        .prepare_cached("SELECT file, row FROM chunk ORDER BY file")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    rows.sort_unstable();
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The rows of the chunks of these files, file by file.
fn rows_of(db: &dyn Connection, files: &[u64]) -> isolith_sql::Result<Vec<u64>> {
    let mut statement = db.prepare_cached("SELECT row FROM chunk WHERE file = ?1")?;
    let mut all = Vec::new();
    for file in files {
        let from = all.len();
        let mut rows = statement.query([file])?;
        while let Some(row) = rows.next()? {
            all.push(row.get(0)?);
        }
        all[from..].sort_unstable();
    }
    Ok(all)
}
