//! Every setting of SQLite, in one place, with its reason.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::{Deserialize, Serialize};

use crate::deadline::Deadline;

/// When a commit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Durability {
    /// When it is on the disk.
    #[default]
    Full,
    /// When the operating system has it: a power loss can take the last commits, in
    /// order, but never breaks the file. A crash of the program takes nothing.
    Normal,
}

/// Five vectors of 384 numbers fill a page of 8 kB to 94 %, two fill one of 4 kB to
/// 75 %: 100,000 of them take 177 MB instead of 216, and a third less time. Pages of
/// 16 kB save no more, and small commits would write twice as much.
pub(crate) const PAGE_SIZE: u32 = 8192;

/// The write-ahead log is copied into the file after this many pages (16 MB): often
/// enough to stay small, seldom enough that pages changed by many commits are copied
/// once.
const CHECKPOINT_PAGES: u32 = 2048;

/// A log that grew beyond this is cut back.
pub(crate) const LOG_LIMIT: u64 = 64 << 20;

/// How long cutting the log back may wait for readers.
pub(crate) const TRUNCATE_WAIT: Duration = Duration::from_millis(50);

/// How many instructions SQLite runs between two looks at the deadline: well under a
/// millisecond of work.
const PROGRESS_STEPS: i32 = 2000;

/// Enough for every statement of this crate.
const STATEMENTS: usize = 128;

/// What can only be chosen before the first table is made.
pub(crate) fn before_the_first_table(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "page_size", PAGE_SIZE)?;
    // Deleted collections give their space back in slices, without a full VACUUM.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    set_journal_to_wal(db)
}

/// Readers and writers do not block each other. Set at creation only: setting it needs
/// the whole file to itself.
pub(crate) fn set_journal_to_wal(db: &Connection) -> rusqlite::Result<()> {
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(format!("the journal stays in mode {mode}")),
    ))
}

/// What every connection gets.
pub(crate) fn for_every_connection(
    db: &mut Connection,
    deadline: &Deadline,
) -> rusqlite::Result<()> {
    // Waiters that sleep random moments take turns; `busy_timeout` backs off to 100 ms
    // steps and starves some of them for seconds.
    let waiting = deadline.clone();
    db.busy_handler(Some(move |_| waiting.wait_a_moment()))?;
    let running = deadline.clone();
    db.progress_handler(PROGRESS_STEPS, Some(move || running.interrupts()))?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // No statistics are kept that could make another plan better for other values. Without
    // this, SQLite compiles many statements anew after their values were cleared, which
    // happens each time that one goes back to the cache.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;

    // A cloned repository may carry a hostile store: its schema runs nothing of its own.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    // The last one to leave would copy and delete the log, which costs a short command
    // its time and races with those that come.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Damaged pages are noticed when they are read, not when they have spread.
    db.pragma_update(None, "cell_size_check", true)?;
    // A mapped file that is cut short or lies on a failing disk kills the process.
    db.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).or_else(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        error => Err(error),
    })?;
    // SQLite notes the old pages of every statement that may fail half-way; in a file
    // that costs a large delete most of its time. And no file is left anywhere.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    rusqlite::vtab::array::load_module(db)
}

/// What a writer gets besides.
pub(crate) fn for_writers(db: &Connection, durability: Durability) -> rusqlite::Result<()> {
    db.pragma_update(None, "foreign_keys", true)?;
    set_durability(db, durability)?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT as i64, |_| Ok(()))?;
    // A batch of a thousand vectors fits, so that nothing is written twice.
    db.pragma_update(None, "cache_size", -32_768)
}

/// What a reader gets besides.
pub(crate) fn for_readers(db: &Connection) -> rusqlite::Result<()> {
    // A search of code reads 3 MB of pages, many of them again in the next one. The system
    // keeps pages too, but copies and checksums are made each time.
    db.pragma_update(None, "cache_size", -32_768)
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
    fn a_cached_statement_is_compiled_once_whatever_its_values() {
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
