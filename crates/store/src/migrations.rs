use std::path::PathBuf;

use isolith_protocol::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::graph::{REBUILD_ENDS, sync_first_facts};
use crate::schema::{
    ADD_CODE, ADD_CONSTRAINTS, ADD_DATABASES, ADD_FACTS, ADD_GRAPH, ADD_MEMORY, ADD_RETRACTIONS,
    COUNT_COMMITS, EDGES_BY_ENDS, FIND_SECRETS, FIRST_VERSION, KEEP_PARSER, KEEP_WORKTREE,
    LOOKUPS_BY_FILE, PARSE_AGAIN,
};
use crate::sqlite::{SqliteDuring, explain};

/// Migrates from version n to n + 1.
pub(crate) type Migration = fn(&Connection) -> Result<(), StoreError>;

/// The migrations from version 1 to the current one, in order.
pub(crate) const MIGRATIONS: &[Migration] = &[
    |db| run(db, ADD_CODE),
    |db| run(db, ADD_FACTS),
    |db| run(db, ADD_MEMORY),
    |db| run(db, ADD_GRAPH),
    |db| run(db, PARSE_AGAIN),
    |db| {
        replace_first_lookups(db)?;
        run(db, EDGES_BY_ENDS)?;
        run(db, REBUILD_ENDS)?;
        // Facts may be older than the graph.
        sync_first_facts(db)
    },
    // Does not change tables: the file was rewritten before (`rewrite.rs`), or created with
    // checksums.
    require_checksums,
    |db| run(db, COUNT_COMMITS),
    |db| run(db, FIND_SECRETS),
    |db| run(db, KEEP_PARSER),
    |db| run(db, KEEP_WORKTREE),
    // Does not change tables: earlier programs do not know segments of the kind `source`.
    |_| Ok(()),
    |db| run(db, ADD_DATABASES),
    |db| run(db, ADD_CONSTRAINTS),
    // Does not change tables: earlier programs cannot read dates, times and durations.
    |_| Ok(()),
    |db| run(db, ADD_RETRACTIONS),
];

/// The first version whose pages have checksums.
pub(crate) const FIRST_WITH_CHECKSUMS: u32 = 8;

/// The migrations up to the last version without checksums, if there are later ones.
pub(crate) fn before_checksums(migrations: &'static [Migration]) -> Option<&'static [Migration]> {
    let steps = usize::try_from(FIRST_WITH_CHECKSUMS - FIRST_VERSION - 1).ok()?;
    (migrations.len() > steps).then(|| &migrations[..steps])
}

/// The schema version that this program writes.
pub fn schema_version() -> u32 {
    newest(MIGRATIONS)
}

/// The version after all migrations.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    FIRST_VERSION + u32::try_from(migrations.len()).unwrap_or(u32::MAX - FIRST_VERSION)
}

/// The version of the file.
pub(crate) fn version_of(db: &Connection) -> Result<u32, StoreError> {
    let version: i64 = db
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .during(db, "read the schema's version")?;
    u32::try_from(version).map_err(|_| StoreError::Corrupt {
        path: db.path().unwrap_or_default().into(),
        reason: format!("invalid schema version {version}"),
    })
}

/// Fails for a file that was written by a newer version of the program.
pub(crate) fn refuse_newer(db: &Connection, migrations: &[Migration]) -> Result<u32, StoreError> {
    let found = version_of(db)?;
    let supported = newest(migrations);
    if found > supported {
        return Err(StoreError::Newer { found, supported });
    }
    Ok(found)
}

/// Migrates the file to the newest version, with one transaction per step. The caller must hold
/// the store's lock exclusively.
pub(crate) fn migrate(db: &mut Connection, migrations: &[Migration]) -> Result<(), StoreError> {
    loop {
        let found = refuse_newer(db, migrations)?;
        let Some(step) = found
            .checked_sub(FIRST_VERSION)
            .and_then(|done| migrations.get(usize::try_from(done).ok()?))
        else {
            return if found < FIRST_VERSION { Err(unknown(db, found)) } else { Ok(()) };
        };
        take(db, *step, found + 1)?;
        tracing::info!(from = found, to = found + 1, "migrated the store");
    }
}

fn take(db: &mut Connection, step: Migration, to: u32) -> Result<(), StoreError> {
    let path = PathBuf::from(db.path().unwrap_or_default());
    let failed = |error| explain(error, &path, &format!("migrate to version {to}"));
    let transaction =
        db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    step(&transaction)?;
    transaction.pragma_update(None, "user_version", to).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn run(db: &Connection, sql: &str) -> Result<(), StoreError> {
    db.execute_batch(sql).during(db, "migrate")
}

/// The first builds of versions 5 and 6 had a row for each key. New stores never have that table,
/// so the earlier migrations stay unchanged.
fn replace_first_lookups(db: &Connection) -> Result<(), StoreError> {
    let is_first: bool = db
        .query_row("SELECT 1 FROM pragma_table_info('code_lookup') WHERE name = 'key'", [], |_| {
            Ok(true)
        })
        .optional()
        .during(db, "migrate")?
        .unwrap_or_default();
    if is_first { run(db, LOOKUPS_BY_FILE) } else { Ok(()) }
}

fn require_checksums(db: &Connection) -> Result<(), StoreError> {
    // An in-memory schema is created only for comparison.
    let is_in_memory = db.path().is_none_or(str::is_empty);
    if is_in_memory || isolith_pages::is_checked(db).during(db, "migrate")? {
        return Ok(());
    }
    let reason = "its pages have no checksums".to_owned();
    Err(StoreError::Corrupt { path: db.path().unwrap_or_default().into(), reason })
}

fn unknown(db: &Connection, found: u32) -> StoreError {
    StoreError::Corrupt {
        path: db.path().unwrap_or_default().into(),
        reason: format!("unknown schema version {found}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::deadline::Deadline;
    use crate::folder::StoreFolder;
    use crate::open::{Db, WriterOptions, open_for_reading, open_for_writing};
    use crate::pragmas::Durability;

    const TO_VERSION_2: &[Migration] =
        &[|db| run(db, "ALTER TABLE store ADD COLUMN motto TEXT; UPDATE store SET motto = 'two';")];
    const TO_VERSION_3: &[Migration] =
        &[TO_VERSION_2[0], |db| run(db, "UPDATE store SET motto = motto || ' three'")];
    const BROKEN: &[Migration] = &[TO_VERSION_2[0], |db| {
        run(db, "UPDATE store SET motto = 'half'; SELECT * FROM no_such_table;")
    }];
    const OPTIONS: WriterOptions = WriterOptions { durability: Durability::Normal, create: true };

    fn open(folder: &StoreFolder, migrations: &'static [Migration]) -> Result<Db, StoreError> {
        open_for_writing(folder, OPTIONS, migrations, &Deadline::at(Some(Instant::now())))
    }

    fn motto(db: &Db) -> String {
        db.connection.query_row("SELECT motto FROM store", [], |row| row.get(0)).unwrap()
    }

    fn folder() -> (tempfile::TempDir, StoreFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("store"));
        (place, folder)
    }

    #[test]
    fn every_earlier_version_is_migrated() {
        for from in [&[], TO_VERSION_2] {
            let (_place, folder) = folder();
            drop(open(&folder, from).unwrap());
            let db = open(&folder, TO_VERSION_3).unwrap();
            assert_eq!(version_of(&db.connection).unwrap(), 3);
            assert_eq!(motto(&db), "two three");
        }
        // A new store runs all migrations at once.
        let (_place, folder) = folder();
        assert_eq!(version_of(&open(&folder, TO_VERSION_3).unwrap().connection).unwrap(), 3);
    }

    #[test]
    fn a_reader_migrates_too() {
        let (_place, folder) = folder();
        drop(open(&folder, &[]).unwrap());
        let soon = Deadline::at(Some(Instant::now()));
        assert_eq!(motto(&open_for_reading(&folder, TO_VERSION_2, &soon, &soon).unwrap()), "two");
    }

    #[test]
    fn a_failed_migration_leaves_the_previous_version() {
        let (_place, folder) = folder();
        drop(open(&folder, &[]).unwrap());
        assert!(matches!(open(&folder, BROKEN), Err(StoreError::Sqlite { .. })));
        let db = open(&folder, TO_VERSION_2).unwrap();
        assert_eq!((version_of(&db.connection).unwrap(), motto(&db).as_str()), (2, "two"));
    }

    #[test]
    fn a_store_in_use_is_not_migrated() {
        let (_place, folder) = folder();
        let old = open(&folder, &[]).unwrap();
        let held = open(&folder, TO_VERSION_2).unwrap_err();
        let StoreError::LockHeld { holders, .. } = held else { panic!("{held}") };
        assert_eq!(holders, [std::process::id()]);
        assert_eq!(version_of(&old.connection).unwrap(), 1);
        drop(old);
        drop(open(&folder, TO_VERSION_2).unwrap());
        let newer = open(&folder, &[]).unwrap_err();
        assert_eq!(newer, StoreError::Newer { found: 2, supported: 1 });
    }

    #[test]
    fn files_from_before_secret_detection_are_parsed_again() {
        // The migration from version 9 to 10.
        let at = 10 - FIRST_VERSION as usize - 1;
        let (_place, folder) = folder();
        drop(open(&folder, &MIGRATIONS[..at]).unwrap());
        let flags = rusqlite::OpenFlags::default();
        let db = isolith_pages::open(&folder.truth(), flags, isolith_pages::Checking::Every);
        let db = db.unwrap();
        db.execute_batch(
            "INSERT INTO root (id, path, created_at) VALUES (1, '/', 0);
             INSERT INTO file (id, root, path, hash, size, modified, language, generated, chunks)
             VALUES (1, 1, 'a', randomblob(32), 1, 5, 'rust', 0, 0);",
        )
        .unwrap();
        drop(db);
        let db = open(&folder, &MIGRATIONS[..=at]).unwrap();
        let known: (Vec<u8>, i64) = db
            .connection
            .query_row("SELECT hash, modified FROM file", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!(known, (vec![0; 32], 0));
    }

    /// Started by the next test as a separate process; does nothing otherwise.
    #[test]
    #[ignore = "runs inside another test"]
    fn die_in_mid_migration() {
        let Some(path) = std::env::var_os("ISOLITH_STORE_TEST_FOLDER") else { return };
        let deadly: &[Migration] = &[|db| {
            run(db, "ALTER TABLE store ADD COLUMN motto TEXT")?;
            std::process::abort()
        }];
        let _ = open(&StoreFolder::new(path), deadly);
    }

    #[test]
    fn a_crash_in_mid_migration_leaves_the_old_version() {
        let (_place, folder) = folder();
        drop(open(&folder, &[]).unwrap());
        let died = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "migrations::tests::die_in_mid_migration", "--ignored"])
            .env("ISOLITH_STORE_TEST_FOLDER", folder.path())
            .output()
            .unwrap();
        assert!(!died.status.success());
        assert_eq!(version_of(&open(&folder, &[]).unwrap().connection).unwrap(), 1);
        assert_eq!(motto(&open(&folder, TO_VERSION_2).unwrap()), "two");
    }
}
