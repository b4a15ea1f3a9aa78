//! The code index: a file is saved with all its chunks or not at all. The next run reindexes a
//! lost file, but would skip one that only seems complete.

use isolith_protocol::StoreError;
use isolith_sql::Connection;
use isolith_sql::Value;

use super::indexes::Index;
use super::rebuild::{Rescue, text};
use super::report::Extent;
use super::table::{Completed, TableCopy};
use crate::read::code::makes_sense;
use crate::sqlite::During;

const ROOT: TableCopy = TableCopy {
    table: "root",
    select: "SELECT id, path, created_at, indexed_at, worktree \
             FROM root WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO root (id, path, created_at, indexed_at, worktree) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
    columns: 5,
    key: "id",
    name: "path",
    indexes: &[Index {
        from: "root INDEXED BY sqlite_autoindex_root_1",
        row: "id",
        columns: &["path"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

const FILE: TableCopy = TableCopy {
    table: "file",
    select: "SELECT id, root, path, hash, size, modified, language, generated, problem, chunks, \
             author, changed_at, parser FROM file WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO file (id, root, path, hash, size, modified, language, generated, \
             problem, chunks, author, changed_at, parser) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    columns: 13,
    key: "id",
    name: "path",
    indexes: &[Index {
        from: "file INDEXED BY sqlite_autoindex_file_1",
        row: "id",
        columns: &["root", "path"],
        unique: true,
        has_all: true,
    }],
    is_derived: true,
};

/// Versions before 12 did not record worktrees.
const ROOT_WITHOUT_WORKTREE: &str = "SELECT id, path, created_at, indexed_at, NULL \
     FROM root WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

/// Versions before 11 did not record the parser, so those files are parsed again.
const FILE_WITHOUT_PARSER: &str = "SELECT id, root, path, hash, size, modified, language, generated, problem, chunks, \
     author, changed_at, 0 FROM file WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

const CHUNK: TableCopy = TableCopy {
    table: "chunk",
    select: "SELECT row, file, start_line, end_line, kind, symbols, parent, signature, doc \
             FROM chunk WHERE row BETWEEN ?1 AND ?2 ORDER BY row",
    insert: "INSERT INTO chunk \
             (row, file, start_line, end_line, kind, symbols, parent, signature, doc) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    columns: 9,
    key: "row",
    name: "row",
    indexes: &[Index {
        from: "chunk INDEXED BY chunk_file",
        row: "row",
        columns: &["file", "kind"],
        unique: false,
        has_all: true,
    }],
    is_derived: true,
};

/// A file that is to be reindexed keeps its remaining chunks until then.
const COUNT_CHUNKS: &str = "UPDATE file SET \
    chunks = (SELECT count(*) FROM chunk WHERE file = file.id) WHERE hash = zeroblob(32)";

/// Incomplete files: chunks are missing, or belong to a record that is not in the code index or
/// was not made for them.
const FIND_BROKEN: &str = "
INSERT INTO temp.broken SELECT id FROM main.file
WHERE length(hash) <> 32 OR generated NOT IN (0, 1)
OR chunks <> (SELECT count(*) FROM main.chunk k WHERE k.file = file.id)
OR chunks <> (SELECT count(*) FROM main.chunk k
  JOIN main.record r ON r.row = k.row
  JOIN main.collection c ON c.id = r.collection AND c.kind = 'code'
  WHERE k.file = file.id AND r.document IS NOT NULL
  AND substr(r.id, 1, instr(r.id, ':')) = printf('%08x:', file.id));
";

/// Records without a chunk. If the index's own row was lost, they are in a collection that
/// salvage created.
const DROP_BROKEN: &str = "
CREATE TEMP TABLE loose AS SELECT r.row, r.collection FROM main.chunk k
  JOIN main.record r ON r.row = k.row JOIN main.collection c ON c.id = r.collection
  WHERE c.kind <> 'code' AND c.name LIKE 'recovered-%'
  AND substr(r.id, 1, instr(r.id, ':')) = printf('%08x:', k.file);
DELETE FROM main.chunk WHERE file IN (SELECT id FROM temp.broken);
DELETE FROM main.file WHERE id IN (SELECT id FROM temp.broken);
INSERT INTO temp.loose SELECT r.row, r.collection FROM main.collection c
  JOIN main.record r ON r.collection = c.id LEFT JOIN main.chunk k ON k.row = r.row
  WHERE c.kind = 'code' AND k.row IS NULL;
DELETE FROM main.vector WHERE row IN (SELECT row FROM temp.loose);
DELETE FROM main.record WHERE row IN (SELECT row FROM temp.loose);
DELETE FROM main.collection WHERE kind <> 'code' AND id IN (SELECT collection FROM temp.loose)
  AND NOT EXISTS (SELECT 1 FROM main.record r WHERE r.collection = collection.id);
";

impl Rescue<'_> {
    /// Saves roots, files and chunks that are complete.
    pub(super) fn code(&mut self) -> Result<(), StoreError> {
        let before = self.report.lost.len();
        self.roots_and_files()?;
        self.table(&CHUNK)?;
        let db = self.work.db;
        db.execute_batch(COUNT_CHUNKS).during(db, "save files")?;
        let (broken, loose) = drop_broken(db).during(db, "look for complete files")?;
        let reason = "not all of their chunks could be saved".to_owned();
        self.lose_named("file", Extent::Derived, broken, reason);
        if loose > 0 {
            let reason = "their files will be indexed again";
            self.lose("chunk", Extent::Derived, loose, reason.to_owned());
        }
        if self.report.lost.len() > before {
            db.execute("UPDATE root SET indexed_at = NULL", []).during(db, "save roots")?;
        }
        Ok(())
    }
}

impl Rescue<'_> {
    /// A path is enough to index a root or a file again.
    fn roots_and_files(&mut self) -> Result<(), StoreError> {
        let now = self.work.now;
        let select = match self.knows("SELECT worktree FROM root") {
            true => ROOT.select,
            false => ROOT_WITHOUT_WORKTREE,
        };
        self.table_with(&TableCopy { select, ..ROOT }, &mut |id, known| {
            let Some(path) = known.get("path") else { return Ok(Completed::Nothing) };
            let row = vec![id.into(), path.clone(), now.into(), Value::Null, Value::Null];
            Ok(Completed::Row(row, "when they were created and indexed is lost"))
        })?;
        let select = match self.knows("SELECT parser FROM file") {
            true => FILE.select,
            false => FILE_WITHOUT_PARSER,
        };
        self.table_with(&TableCopy { select, ..FILE }, &mut |id, known| {
            let (Some(root), Some(path)) = (known.get("root"), known.get("path")) else {
                return Ok(Completed::Nothing);
            };
            let mut row = vec![id.into(), root.clone(), path.clone(), Value::Blob(vec![0; 32])];
            row.extend([0.into(), 0.into(), text(""), 0.into(), Value::Null, 0.into()]);
            row.extend([Value::Null, Value::Null, 0.into()]);
            Ok(Completed::Row(row, "only their paths could be saved"))
        })?;
        Ok(())
    }
}

/// Deletes what cannot be used. Returns the paths of files and the number of chunks deleted.
fn drop_broken(db: &dyn Connection) -> isolith_sql::Result<(Vec<String>, u64)> {
    db.execute_batch("CREATE TEMP TABLE broken (id INTEGER)")?;
    {
        let mut insert = db.prepare("INSERT INTO temp.broken VALUES (?1)")?;
        let mut statement =
            db.prepare("SELECT file, kind, symbols, start_line, end_line FROM main.chunk")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if !makes_sense(&row, 1)? {
                insert.execute([row.get::<_, i64>(0)?])?;
            }
        }
    }
    db.execute_batch(FIND_BROKEN)?;
    let broken = db
        .prepare("SELECT path FROM main.file WHERE id IN (SELECT id FROM temp.broken)")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    db.execute_batch(DROP_BROKEN)?;
    let count = "SELECT count(DISTINCT row) FROM temp.loose";
    let loose = db.query_row(count, [], |row| row.get(0))?;
    db.execute_batch("DROP TABLE temp.broken; DROP TABLE temp.loose;")?;
    Ok((broken, loose))
}
