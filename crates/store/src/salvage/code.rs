//! The code index: a file is saved with all of its chunks or not at all. One that is lost
//! is indexed again by the next run; one that only seems whole never would be.

use rusqlite::Connection;

use super::rebuild::{Copy, Rescue};
use crate::error::StoreError;
use crate::read::code::makes_sense;
use crate::sqlite::During;

const ROOT: Copy = Copy {
    table: "root",
    select: "SELECT id, path, created_at, indexed_at \
             FROM root WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO root (id, path, created_at, indexed_at) VALUES (?1, ?2, ?3, ?4)",
    columns: 4,
};

const FILE: Copy = Copy {
    table: "file",
    select: "SELECT id, root, path, hash, size, modified, language, generated, problem, chunks, \
             author, changed_at FROM file WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO file (id, root, path, hash, size, modified, language, generated, \
             problem, chunks, author, changed_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    columns: 12,
};

const CHUNK: Copy = Copy {
    table: "chunk",
    select: "SELECT row, file, start_line, end_line, kind, symbols, parent, signature, doc \
             FROM chunk WHERE row BETWEEN ?1 AND ?2 ORDER BY row",
    insert: "INSERT INTO chunk \
             (row, file, start_line, end_line, kind, symbols, parent, signature, doc) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    columns: 9,
};

/// Files that are not as they were: chunks are missing, or belong to a record that is not
/// in the code index or is not the one that was made for them.
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

/// Records that no chunk is left for. If the index's own row was lost, they are in a
/// collection that salvage has made up.
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
    /// Roots, files and chunks, as far as they are whole.
    pub(super) fn code(&mut self) -> Result<(), StoreError> {
        let before = self.report.lost.len();
        for copy in [&ROOT, &FILE, &CHUNK] {
            self.table(copy)?;
        }
        let db = self.work.db;
        let (broken, loose) = drop_broken(db).during(db, "look for files that are whole")?;
        if broken > 0 {
            let reason = "not all of their chunks were left; they are to be indexed again";
            self.lose("file", broken, reason.to_owned());
        }
        if loose > 0 {
            let reason = "chunks of files that are to be indexed again";
            self.lose("record", loose, reason.to_owned());
        }
        if self.report.lost.len() > before {
            db.execute("UPDATE root SET indexed_at = NULL", []).during(db, "save roots")?;
        }
        Ok(())
    }
}

/// Returns how many files and how many chunks went.
fn drop_broken(db: &Connection) -> rusqlite::Result<(u64, u64)> {
    db.execute_batch("CREATE TEMP TABLE broken (id INTEGER)")?;
    {
        let mut insert = db.prepare("INSERT INTO temp.broken VALUES (?1)")?;
        let mut statement =
            db.prepare("SELECT file, kind, symbols, start_line, end_line FROM main.chunk")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if !makes_sense(row, 1)? {
                insert.execute([row.get::<_, i64>(0)?])?;
            }
        }
    }
    db.execute_batch(FIND_BROKEN)?;
    db.execute_batch(DROP_BROKEN)?;
    let count = |what: &str| {
        db.query_row(&format!("SELECT count(DISTINCT {what}"), [], |row| row.get::<_, u64>(0))
    };
    let gone = (count("id) FROM temp.broken")?, count("row) FROM temp.loose")?);
    db.execute_batch("DROP TABLE temp.broken; DROP TABLE temp.loose;")?;
    Ok(gone)
}
