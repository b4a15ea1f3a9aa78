//! Roots, files and chunks of the code index.

use std::collections::HashSet;

use isolith_protocol::{
    ChunkFilter, CollectionState, FileState, RootPlace, RootState, StoreError, StoredChunk,
};
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, Row, Statement, params};
use isolith_types::{ChunkKind, FileVersion, Symbol, SymbolKind, trim_blank_ends};

use super::collections::{code, named};
use super::{Snapshot, unreadable};
use crate::sqlite::During;

const ROOT: &str = "SELECT id, path, indexed_at, worktree, \
    (SELECT count(*) FROM file WHERE root = root.id), \
    (SELECT coalesce(sum(chunks), 0) FROM file WHERE root = root.id) FROM root";

const FILE: &str = "SELECT id, root, path, hash, size, modified, language, generated, problem, \
    chunks, author, changed_at, parser FROM file";

impl Snapshot<'_> {
    /// The code index; `None` if nothing was ever indexed.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn code_state(&self) -> Result<Option<CollectionState>, StoreError> {
        code(self.connection())
    }

    /// All roots, by path.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn roots(&self) -> Result<Vec<RootState>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(&format!("{ROOT} ORDER BY path"))?
                .query_map([], root_of)?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "list roots")
    }

    /// Id, path and last complete run of all roots; cheaper than [`Self::roots`], which counts
    /// their contents.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn root_places(&self) -> Result<Vec<RootPlace>, StoreError> {
        let db = self.connection();
        let place = |row: &Row<'_>| {
            let (id, path) = (row.get(0)?, row.get(1)?);
            Ok(RootPlace { id, path, indexed_at: row.get(2)?, worktree: row.get(3)? })
        };
        let read = || {
            db.prepare_cached("SELECT id, path, indexed_at, worktree FROM root ORDER BY path")?
                .query_map([], place)?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "list roots")
    }

    /// Files of a root in order of path: those below the folder `under`, after the path
    /// `after`, at most `limit`.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn files(
        &self,
        root: u64,
        under: Option<&str>,
        after: Option<&str>,
        limit: u64,
    ) -> Result<Vec<FileState>, StoreError> {
        let db = self.connection();
        let folder = under.map(|under| under.trim_end_matches('/')).filter(|it| !it.is_empty());
        // The character after the slash ends the folder's range; SQLite sorts blobs after all
        // texts.
        let (first, end) = match folder {
            Some(folder) => (format!("{folder}/"), Value::Text(format!("{folder}0"))),
            None => (String::new(), Value::Blob(Vec::new())),
        };
        let first = after.map_or(first.as_str(), |after| after.max(&first));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = || {
            db.prepare_cached(&format!(
                "{FILE} WHERE root = ?1 AND path > ?2 AND path < ?3 ORDER BY path LIMIT ?4"
            ))?
            .query_map(params![root, first, end, limit], file_of)?
            .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "list files")
    }

    /// The last line that is in a chunk, for each file of a root that has chunks, by the file's id.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn lines_of_files(&self, root: u64) -> Result<Vec<(u64, u32)>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(
                "SELECT chunk.file, max(chunk.end_line) FROM file \
                 JOIN chunk ON chunk.file = file.id WHERE file.root = ?1 GROUP BY chunk.file",
            )?
            .query_map([root], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "count lines")
    }

    /// The files with these ids, in this order; `None` for one that does not exist.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn files_by_id(&self, ids: &[u64]) -> Result<Vec<Option<FileState>>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut find = db.prepare_cached(&format!("{FILE} WHERE id = ?1"))?;
            ids.iter().map(|id| find.query_row([id], file_of).optional()).collect::<Result<_, _>>()
        };
        read().during(db, "read files")
    }

    /// The chunks of these rows, in this order; `None` for one that does not exist. Texts are
    /// most of the cost.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn chunks(
        &self,
        rows: &[u64],
        with_text: bool,
    ) -> Result<Vec<Option<StoredChunk>>, StoreError> {
        let db = self.connection();
        self.db.deadline.check("read chunks")?;
        let read = || {
            let mut find = select_chunks(db, with_text, "chunk.row = ?1")?;
            rows.iter()
                .map(|row| Ok(find.query_row([row], chunk_of).optional()?.map(without_gaps)))
                .collect::<Result<_, _>>()
        };
        read().during(db, "read chunks")
    }

    /// A file with its chunks and their texts, if it exists.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn chunks_of_file(
        &self,
        root: u64,
        path: &str,
    ) -> Result<Option<(FileState, Vec<StoredChunk>)>, StoreError> {
        let db = self.connection();
        let read = || {
            let Some(file) = file_at(db, root, path)? else { return Ok(None) };
            let chunks = chunks_of(db, file.id)?.into_iter().map(without_gaps).collect();
            Ok(Some((file, chunks)))
        };
        read().during(db, "read the chunks of a file")
    }

    /// The rows of all chunks that match the filter, in ascending order. `paths` decides
    /// whether a file is included, from its path and whether it is generated.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn code_rows(
        &self,
        filter: &ChunkFilter,
        paths: &dyn Fn(&str, bool) -> bool,
    ) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let files = files_matching(db, filter, paths).during(db, "look for files")?;
        self.db.deadline.check("look for chunks")?;
        rows_of_files(db, &files, &filter.kinds).during(db, "look for chunks")
    }
}

/// The file at a path of a root.
pub(crate) fn file_at(
    db: &dyn Connection,
    root: u64,
    path: &str,
) -> isolith_sql::Result<Option<FileState>> {
    db.prepare_cached(&format!("{FILE} WHERE root = ?1 AND path = ?2"))?
        .query_row(params![root, path], file_of)
        .optional()
}

/// A chunk without the blank space that is stored with it.
fn without_gaps(chunk: StoredChunk) -> StoredChunk {
    let text = chunk.text.map(|text| match trim_blank_ends(&text) {
        own if own.len() == text.len() => text,
        own => own.to_owned(),
    });
    StoredChunk { text, ..chunk }
}

/// The chunks of a file with their texts as stored, which together are the file's text, in order.
pub(crate) fn chunks_of(db: &dyn Connection, file: u64) -> isolith_sql::Result<Vec<StoredChunk>> {
    select_chunks(db, true, "chunk.file = ?1 ORDER BY chunk.row")?
        .query_map([file], chunk_of)?
        .collect()
}

/// A root with its counts.
pub(crate) fn root_state(db: &dyn Connection, id: u64) -> Result<Option<RootState>, StoreError> {
    db.prepare_cached(&format!("{ROOT} WHERE id = ?1"))
        .and_then(|mut statement| statement.query_row([id], root_of).optional())
        .during(db, "read a root")
}

pub(crate) fn root_exists(db: &dyn Connection, id: u64) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM root WHERE id = ?1")
        .and_then(|mut statement| statement.exists([id]))
        .during(db, "look for a root")
}

/// Whether the kind, symbols, first and last line of a chunk, starting at this column, are valid.
pub(crate) fn makes_sense(row: &Row<'_>, column: usize) -> isolith_sql::Result<bool> {
    let kind = row.get_ref(column)?.as_str().ok().and_then(|name| name.parse::<ChunkKind>().ok());
    let symbols =
        row.get_ref(column + 1)?.as_str().ok().and_then(|text| symbols_of(text, column).ok());
    let (first, last): (i64, i64) = (row.get(column + 2)?, row.get(column + 3)?);
    let lines = (1..=last).contains(&first) && last <= i64::from(u32::MAX);
    Ok(kind.is_some() && symbols.is_some() && lines)
}

/// Appends the names of a chunk's stored symbols, separated by spaces.
pub(super) fn push_names(
    symbols: &str,
    column: usize,
    names: &mut String,
) -> isolith_sql::Result<()> {
    names.clear();
    if symbols == "[]" {
        return Ok(());
    }
    type Named<'a> = (std::borrow::Cow<'a, str>, serde::de::IgnoredAny, u32);
    let all: Vec<Named<'_>> =
        serde_json::from_str(symbols).map_err(|error| unreadable(column, error))?;
    for (name, _, _) in all {
        if !names.is_empty() {
            names.push(' ');
        }
        names.push_str(&name);
    }
    Ok(())
}

fn root_of(row: &Row<'_>) -> isolith_sql::Result<RootState> {
    Ok(RootState {
        id: row.get(0)?,
        path: row.get(1)?,
        indexed_at: row.get(2)?,
        worktree: row.get(3)?,
        files: row.get(4)?,
        chunks: row.get(5)?,
    })
}

fn file_of(row: &Row<'_>) -> isolith_sql::Result<FileState> {
    Ok(FileState {
        id: row.get(0)?,
        root: row.get(1)?,
        path: row.get(2)?,
        version: FileVersion { hash: row.get(3)?, size: row.get(4)?, modified: row.get(5)? },
        language: row.get(6)?,
        generated: row.get(7)?,
        problem: row.get(8)?,
        chunks: row.get(9)?,
        author: row.get(10)?,
        changed_at: row.get(11)?,
        parser: row.get(12)?,
    })
}

/// Selects chunks with or without their texts.
pub(super) fn select_chunks<'a>(
    db: &'a dyn Connection,
    with_text: bool,
    which: &str,
) -> isolith_sql::Result<Statement<'a>> {
    let text = if with_text { "record.document" } else { "NULL" };
    db.prepare_cached(&format!(
        "SELECT chunk.row, record.change, file, start_line, end_line, kind, symbols, parent, \
         signature, doc, {text} FROM chunk JOIN record ON record.row = chunk.row WHERE {which}"
    ))
}

pub(super) fn chunk_of(row: &Row<'_>) -> isolith_sql::Result<StoredChunk> {
    Ok(StoredChunk {
        row: row.get(0)?,
        change: row.get(1)?,
        file: row.get(2)?,
        start_line: row.get(3)?,
        end_line: row.get(4)?,
        kind: named(row, 5, |name| name.parse::<ChunkKind>().ok())?,
        symbols: symbols_of(row.get_ref(6)?.as_str()?, 6)?,
        parent: row.get(7)?,
        signature: row.get(8)?,
        doc: row.get(9)?,
        text: row.get(10)?,
    })
}

/// The stored symbols of a chunk, from this column.
pub(super) fn symbols_of(text: &str, column: usize) -> isolith_sql::Result<Vec<Symbol>> {
    if text == "[]" {
        return Ok(Vec::new());
    }
    let short: Vec<(String, SymbolKind, u32)> =
        serde_json::from_str(text).map_err(|error| unreadable(column, error))?;
    Ok(short.into_iter().map(|(name, kind, line)| Symbol { name, kind, line }).collect())
}

/// The ids of the files that match a filter, in ascending order.
pub(super) fn files_matching(
    db: &dyn Connection,
    filter: &ChunkFilter,
    paths: &dyn Fn(&str, bool) -> bool,
) -> isolith_sql::Result<Vec<u64>> {
    let roots: HashSet<u64> = filter.roots.iter().copied().collect();
    let languages: HashSet<&str> = filter.languages.iter().map(String::as_str).collect();
    let since = filter.changed_since.unwrap_or(i64::MIN);
    let mut statement = db.prepare_cached(
        // A file that was read at the very moment of its change has no age: it counts as new.
        "SELECT id, root, path, generated, language, \
         coalesce(changed_at, nullif(modified, 0) / 1000000, 9223372036854775807) \
         FROM file ORDER BY id",
    )?;
    let mut rows = statement.query([])?;
    let mut files = Vec::new();
    while let Some(row) = rows.next()? {
        let allowed = (roots.is_empty() || roots.contains(&row.get(1)?))
            && (languages.is_empty() || languages.contains(row.get_ref(4)?.as_str()?))
            && row.get::<_, i64>(5)? >= since
            && paths(row.get_ref(2)?.as_str()?, row.get(3)?);
        if allowed {
            files.push(row.get(0)?);
        }
    }
    Ok(files)
}

/// The rows of the chunks of these files, which must be in ascending order. Reads only an index.
fn rows_of_files(
    db: &dyn Connection,
    files: &[u64],
    kinds: &[ChunkKind],
) -> isolith_sql::Result<Vec<u64>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(Vec::new()) };
    let wanted = |name: &str| kinds.is_empty() || kinds.iter().any(|kind| kind.name() == name);
    let mut found = Vec::new();
    // Skipping a file costs a fraction of looking one up.
    if last - first < files.len() as u64 * 4 {
        let mut statement = db.prepare_cached(
            "SELECT file, kind, row FROM chunk WHERE file BETWEEN ?1 AND ?2 ORDER BY file",
        )?;
        let mut rows = statement.query([first, last])?;
        let mut files = files.iter().copied().peekable();
        while let Some(row) = rows.next()? {
            let file: u64 = row.get(0)?;
            while files.next_if(|wanted| *wanted < file).is_some() {}
            if files.peek() == Some(&file) && wanted(row.get_ref(1)?.as_str()?) {
                found.push(row.get(2)?);
            }
        }
    } else {
        let mut statement = db.prepare_cached("SELECT kind, row FROM chunk WHERE file = ?1")?;
        for file in files {
            let mut rows = statement.query([file])?;
            while let Some(row) = rows.next()? {
                if wanted(row.get_ref(0)?.as_str()?) {
                    found.push(row.get(1)?);
                }
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
