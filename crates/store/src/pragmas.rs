//! Every SQLite setting, in one place, with its reason.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::{Deserialize, Serialize};

use crate::deadline::Deadline;

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Durability {
    /// Once it is on disk.
    #[default]
    Full,
    /// Once the operating system has it: a power loss can undo the last commits, in order, but
    /// never corrupts the file. A crash of the program loses nothing.
    Normal,
}

/// Five vectors of 384 numbers fill an 8 kB page to 94 %, two fill a 4 kB page to 75 %: 100,000
/// of them take 177 MB instead of 216, and a third less time. 16 kB pages save no more, and small
/// commits would write twice as much.
pub(crate) const PAGE_SIZE: u32 = 8192;

/// The log is checkpointed after this many pages (16 MB): often enough to stay small, rarely
/// enough that pages changed by many commits are copied once.
const CHECKPOINT_PAGES: u32 = 2048;

/// A longer log is truncated.
pub(crate) const LOG_LIMIT: u64 = 64 << 20;

/// How long truncating the log may wait for readers.
pub(crate) const TRUNCATE_WAIT: Duration = Duration::from_millis(50);

/// Number of SQLite instructions between two checks of the deadline: well under a millisecond of
/// work.
const PROGRESS_STEPS: i32 = 2000;

/// Enough for every statement of this crate.
const STATEMENTS: usize = 128;

/// Settings that only work before the first table is created.
pub(crate) fn before_the_first_table(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "page_size", PAGE_SIZE)?;
    // The space of deleted collections is returned in slices, without a full VACUUM.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    set_journal_to_wal(db)
}

/// With WAL, readers and writers do not block each other. Set only at creation: switching needs
/// exclusive access to the file.
pub(crate) fn set_journal_to_wal(db: &Connection) -> rusqlite::Result<()> {
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(format!("cannot leave journal mode {mode}")),
    ))
}

/// Settings of every connection.
pub(crate) fn for_every_connection(
    db: &mut Connection,
    deadline: &Deadline,
) -> rusqlite::Result<()> {
    // Waiters that sleep for random times take turns; `busy_timeout` backs off to 100 ms steps
    // and starves some of them for seconds.
    let waiting = deadline.clone();
    db.busy_handler(Some(move |_| waiting.wait_a_moment()))?;
    let running = deadline.clone();
    db.progress_handler(PROGRESS_STEPS, Some(move || running.interrupts()))?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // There are no statistics that could make another plan better for other values. Without
    // this setting, SQLite recompiles many statements after their parameters are cleared, which
    // happens whenever one returns to the cache.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;

    // A cloned repository may contain a hostile store: its schema must not run code of its own.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    // The last connection would checkpoint and delete the log, which slows down short commands
    // and races with new connections.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Detect damaged pages when they are read, not after the damage has spread.
    db.pragma_update(None, "cell_size_check", true)?;
    // With a mapped file, truncation or a failing disk would kill the process.
    db.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).or_else(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        error => Err(error),
    })?;
    // SQLite journals the old pages of every statement that may fail half-way; in a file, that
    // takes most of the time of a large delete. Also leaves no temporary files.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    rusqlite::vtab::array::load_module(db)
}

/// Additional settings of writers.
pub(crate) fn for_writers(db: &Connection, durability: Durability) -> rusqlite::Result<()> {
    db.pragma_update(None, "foreign_keys", true)?;
    set_durability(db, durability)?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT as i64, |_| Ok(()))?;
    // A batch of a thousand vectors fits, so no page is written twice.
    db.pragma_update(None, "cache_size", -32_768)
}

/// Additional settings of readers.
pub(crate) fn for_readers(db: &Connection) -> rusqlite::Result<()> {
    // A code search reads 3 MB of pages, many of them again in the next search. The system
    // caches pages, too, but each read copies and verifies them.
    db.pragma_update(None, "cache_size", -32_768)
}

/// Additional settings of readers that read everything once.
pub(crate) fn for_scans(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "cache_size", -4_096)
}

pub(crate) fn set_durability(db: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    db.pragma_update(None, "synchronous", level)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_cached_statement_is_compiled_only_once() {
        let mut db = Connection::open_in_memory().unwrap();
        for_every_connection(&mut db, &Deadline::at(None)).unwrap();
        db.execute_batch(
            "CREATE TABLE seat (hall TEXT, line TEXT, number INTEGER, UNIQUE (hall, line, number));
             INSERT INTO seat VALUES ('a', 'x', 1), ('a', 'x', 5), ('b', 'x', 3)",
        )
        .unwrap();
        for (bound, expected) in [(0, 1), (1, 5), (4, 5)] {
            let mut next = db
                .prepare_cached(
                    "SELECT number FROM seat WHERE hall = ?1 AND line = ?2 AND number > ?3 \
                     ORDER BY number LIMIT 1",
                )
                .unwrap();
            let found: i64 = next.query_row(("a", "x", bound), |row| row.get(0)).unwrap();
            assert_eq!(found, expected);
            assert_eq!(next.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
