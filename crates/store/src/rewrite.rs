//! Rewrites a truth from before checksums, adding them.

use std::path::Path;
use std::time::{Duration, Instant};

use isolith_protocol::StoreError;
use isolith_types::counted;
use rusqlite::Connection;

use crate::create::{self, Aside, remove_if_there, sync_folder};
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, io_failure};
use crate::identity::with_suffix;
use crate::migrations::{Migration, migrate};
use crate::open::Db;
use crate::pragmas;
use crate::sqlite::SqliteDuring;

/// A worker that takes much longer is killed by its front, with nothing done.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

const OPERATION: &str = "add checksums to the store";

/// Replaces the truth with a copy whose pages have checksums. `steps` are the migrations to its
/// version. The caller must hold the store's lock exclusively and have no other connection. The
/// copy is built aside and moved into place atomically, so a crash leaves either the old or the
/// new file.
pub(crate) fn with_checksums(
    folder: &StoreFolder,
    old: Db,
    steps: &[Migration],
    deadline: &Deadline,
) -> Result<(), StoreError> {
    let began = Instant::now();
    let truth = folder.truth();
    empty_log(&old.connection)?;
    Aside::clear_leftovers(&folder.run(), "rewrite");
    let aside = Aside::new(&folder.run(), "rewrite")?;
    let mut new = create::new_truth(aside.path(), deadline)?;
    migrate(&mut new, steps).and_then(|()| copy(&new, &truth)).map_err(explain_time)?;
    verify(&new, aside.path())?;
    create::close_completely(new, aside.path())?;
    drop(old);
    // They are empty, and must not be paired with another file.
    for suffix in ["-wal", "-shm"] {
        remove_if_there(&with_suffix(&truth, suffix))?;
    }
    aside.replace(&truth)?;
    sync_folder(folder.path())?;
    tracing::info!(seconds = began.elapsed().as_secs_f32(), "added checksums to the store");
    Ok(())
}

/// Checkpoints the log completely.
fn empty_log(db: &Connection) -> Result<(), StoreError> {
    let busy: bool = db
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .during(db, "move the log into the file")?;
    if busy {
        return Err(StoreError::Busy { operation: OPERATION.to_owned() });
    }
    Ok(())
}

/// Copies all tables. Unlike `VACUUM INTO`, this creates tables and indexes in the same order as
/// in a new store, on which a salvage relies.
fn copy(new: &Connection, old: &Path) -> Result<(), StoreError> {
    let name = old.to_str().ok_or_else(|| StoreError::Invalid(format!("{old:?} is not UTF-8")))?;
    let set_up = || {
        // An unfinished copy is discarded anyway, and a log would double the space.
        new.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
        new.pragma_update(None, "synchronous", "OFF")?;
        // Tables are not copied in the order of their references.
        new.pragma_update(None, "foreign_keys", false)?;
        new.execute("ATTACH ?1 AS old", [name]).map(|_| ())
    };
    set_up().during(new, OPERATION)?;
    for (table, definition) in tables(new).during(new, OPERATION)? {
        copy_table(new, &table, definition.as_deref(), old)?;
    }
    let finish = || {
        new.execute("DETACH old", [])?;
        pragmas::set_journal_to_wal(new)
    };
    finish().during(new, OPERATION)
}

/// The tables of a new store. Sequences of row numbers come last, since inserting changes them.
fn tables(new: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    new.prepare(
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' \
         ORDER BY name = 'sqlite_sequence', rowid",
    )?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

fn copy_table(
    new: &Connection,
    table: &str,
    definition: Option<&str>,
    old: &Path,
) -> Result<(), StoreError> {
    let corrupt = |reason: String| Err(StoreError::Corrupt { path: old.to_path_buf(), reason });
    let (found, rows): (Option<String>, usize) = new
        .query_row(
            &format!(
                "SELECT (SELECT sql FROM old.sqlite_schema WHERE type = 'table' AND name = ?1), \
                 (SELECT count(*) FROM old.{table})"
            ),
            [table],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .during(new, OPERATION)?;
    if found.as_deref() != definition {
        return corrupt(format!("table {table} differs from the schema"));
    }
    let copied = new
        .execute(&format!("DELETE FROM main.{table}"), [])
        .and_then(|_| {
            new.execute(&format!("INSERT INTO main.{table} SELECT * FROM old.{table}"), [])
        })
        .during(new, OPERATION)?;
    if copied != rows {
        return corrupt(format!(
            "only {copied} of {} of table {table} could be copied",
            counted(rows, "row")
        ));
    }
    Ok(())
}

/// Reads the copy back from disk.
fn verify(new: &Connection, path: &Path) -> Result<(), StoreError> {
    let mut damaged = None;
    isolith_pages::scan(new, &mut || true, &mut |damage| {
        damaged = Some(damage);
        std::ops::ControlFlow::Break(())
    })
    .during(new, OPERATION)?;
    match damaged {
        None => Ok(()),
        Some(damage) => {
            let reason = format!("verifying the copy failed: {damage}");
            Err(StoreError::Io {
                path: path.to_path_buf(),
                operation: OPERATION.to_owned(),
                reason,
            })
        }
    }
}

/// `isolith doctor` allows minutes, and more for a large store.
fn explain_time(error: StoreError) -> StoreError {
    match error {
        StoreError::Deadline { .. } => StoreError::Deadline {
            operation: format!("{OPERATION}; it is large: `isolith doctor` takes the time"),
        },
        error => error,
    }
}

impl Aside {
    /// Replaces another file atomically.
    fn replace(self, path: &Path) -> Result<(), StoreError> {
        std::fs::rename(self.path(), path).map_err(|error| io_failure(path, "replace", &error))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::migrations::{FIRST_WITH_CHECKSUMS, MIGRATIONS, schema_version, version_of};
    use crate::open::{WriterOptions, open_for_reading, open_for_writing};
    use crate::pragmas::Durability;
    use crate::schema::{APPLICATION_ID, CREATE, FIRST_VERSION};

    const BEFORE: &[Migration] = MIGRATIONS.split_at(FIRST_WITH_CHECKSUMS as usize - 2).0;

    const OPTIONS: WriterOptions = WriterOptions { durability: Durability::Normal, create: true };

    /// A store of version 7 as an earlier program left it, with its last changes in the log.
    fn old_store() -> (tempfile::TempDir, StoreFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("store"));
        folder.create().unwrap();
        let mut db = Connection::open(folder.truth()).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        pragmas::before_the_first_table(&db).unwrap();
        db.execute_batch(CREATE).unwrap();
        db.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        db.pragma_update(None, "user_version", FIRST_VERSION).unwrap();
        migrate(&mut db, BEFORE).unwrap();
        db.execute_batch(
            "INSERT INTO store (only, uuid, created_at, last_change) VALUES (1, 'u', 1, 300);
             INSERT INTO collection (id, name, dimension, metric, created_at, updated_at, records,
               unfolded, kind) VALUES (7, 'c', 2, 'cosine', 1, 1, 300, 300, 'records');
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO record
               (row, collection, id, change, document, metadata, created_at, updated_at)
               SELECT i, 7, 'id-' || i, i, hex(zeroblob(i * 50)), '{}', 1, 1 FROM n;
             INSERT INTO vector SELECT row, zeroblob(8) FROM record;
             UPDATE sqlite_sequence SET seq = 41 WHERE name = 'collection';",
        )
        .unwrap();
        drop(db);
        assert!(std::fs::metadata(with_suffix(&folder.truth(), "-wal")).unwrap().len() > 0);
        (place, folder)
    }

    fn forever() -> Deadline {
        Deadline::at(None)
    }

    fn open(folder: &StoreFolder, steps: &'static [Migration]) -> Result<Db, StoreError> {
        open_for_reading(folder, steps, &forever(), &forever())
    }

    fn content(db: &Connection) -> (i64, i64, i64) {
        let sql = "SELECT sum(length(document) * row), sum(length(data)), \
                   (SELECT seq FROM sqlite_sequence WHERE name = 'collection') \
                   FROM record JOIN vector USING (row)";
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    }

    /// Bypasses the program and changes nothing.
    fn content_on_disk(folder: &StoreFolder) -> (i64, i64, i64) {
        let db = Connection::open(folder.truth()).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        content(&db)
    }

    fn roots(db: &Connection) -> Vec<(String, i64)> {
        db.prepare("SELECT name, rootpage FROM sqlite_schema ORDER BY name")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[test]
    fn a_store_without_checksums_is_rewritten_with_them() {
        let (_place, folder) = old_store();
        let before = content_on_disk(&folder);
        let db = open(&folder, MIGRATIONS).unwrap();
        assert!(isolith_pages::is_checked(&db.connection).unwrap());
        assert_eq!(version_of(&db.connection).unwrap(), schema_version());
        assert_eq!(content(&db.connection), before);
        assert_eq!(before.2, 41);
        verify(&db.connection, &folder.truth()).unwrap();
        assert_eq!(std::fs::read_dir(folder.run()).unwrap().count(), 0);
        // A salvage expects the tables where a new store has them.
        let place = tempfile::tempdir().unwrap();
        let other = StoreFolder::new(place.path().join("store"));
        let options = crate::open::WriterOptions { durability: Durability::Normal, create: true };
        let new = open_for_writing(&other, options, MIGRATIONS, &forever()).unwrap();
        assert_eq!(roots(&db.connection), roots(&new.connection));
    }

    /// Started by the next test as a separate process; does nothing otherwise.
    #[test]
    #[ignore = "runs inside another test"]
    fn die_while_rewriting_the_store() {
        let Some(path) = std::env::var_os("ISOLITH_STORE_TEST_FOLDER") else { return };
        const DEADLY: &[Migration] = &[
            BEFORE[0],
            BEFORE[1],
            BEFORE[2],
            BEFORE[3],
            BEFORE[4],
            |db| {
                BEFORE[5](db)?;
                std::process::abort()
            },
            MIGRATIONS[6],
        ];
        let _ = open(&StoreFolder::new(path), DEADLY);
    }

    #[test]
    fn a_crash_while_rewriting_leaves_the_old_store() {
        let (_place, folder) = old_store();
        let before = content_on_disk(&folder);
        for _ in 0..2 {
            let died = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "rewrite::tests::die_while_rewriting_the_store", "--ignored"])
                .env("ISOLITH_STORE_TEST_FOLDER", folder.path())
                .output()
                .unwrap();
            assert!(!died.status.success());
            // The next attempt removes its leftovers.
            let left = std::fs::read_dir(folder.run()).unwrap().flatten();
            let left = left.filter(|file| file.file_name().to_string_lossy().ends_with(".sqlite"));
            assert_eq!(left.count(), 1);
            assert_eq!(content_on_disk(&folder), before);
        }
        let db = open(&folder, MIGRATIONS).unwrap();
        assert_eq!(content(&db.connection), before);
        assert_eq!(std::fs::read_dir(folder.run()).unwrap().count(), 0);
    }

    #[test]
    fn a_crash_after_the_swap_leaves_only_the_version_to_update() {
        let (_place, folder) = old_store();
        let before = content_on_disk(&folder);
        let db = open_for_writing(&folder, OPTIONS, BEFORE, &forever()).unwrap();
        with_checksums(&folder, db, BEFORE, &forever()).unwrap();
        let rewritten = std::fs::metadata(folder.truth()).unwrap();
        let db = open(&folder, MIGRATIONS).unwrap();
        assert_eq!(content(&db.connection), before);
        let now = std::fs::metadata(folder.truth()).unwrap();
        assert_eq!(now.ino(), rewritten.ino());
    }

    #[test]
    fn a_store_that_cannot_be_copied_is_left_unchanged() {
        let (_place, folder) = old_store();
        let before = content_on_disk(&folder);
        let soon = Deadline::at(Some(Instant::now()));
        let late = open_for_reading(&folder, MIGRATIONS, &forever(), &soon).unwrap_err();
        assert!(
            matches!(&late, StoreError::Deadline { operation }
            if operation.contains("isolith doctor")),
            "{late}"
        );
        assert_eq!(content_on_disk(&folder), before);

        let db = Connection::open(folder.truth()).unwrap();
        db.execute_batch("DROP TABLE fact_source").unwrap();
        drop(db);
        let bad = open(&folder, MIGRATIONS).unwrap_err();
        assert!(matches!(bad, StoreError::Sqlite { .. } | StoreError::Corrupt { .. }), "{bad}");
        assert_eq!(content_on_disk(&folder), before);
        let left = std::fs::read_dir(folder.run()).unwrap().flatten();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn missing_checksums_are_reported_as_damage() {
        let (_place, folder) = old_store();
        drop(open(&folder, MIGRATIONS).unwrap());
        let mut bytes = std::fs::read(folder.truth()).unwrap();
        assert_eq!(bytes[20], isolith_pages::RESERVED);
        bytes[20] = 0;
        std::fs::write(folder.truth(), bytes).unwrap();
        assert!(matches!(open(&folder, MIGRATIONS), Err(StoreError::Corrupt { .. })));
    }
}
