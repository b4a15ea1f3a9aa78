pub(crate) mod code;
pub(crate) mod collections;
pub(crate) mod databases;
pub(crate) mod facts;
mod file_texts;
pub(crate) mod filter;
pub(crate) mod memory;
mod names;
pub(crate) mod predicates;
mod records;
mod scan;
mod values;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use isolith_protocol::{CollectionState, Key, LoadProgress, PoisonedJob, StoreError};
use isolith_sql::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

pub use file_texts::{ChunkStart, EachFileText, FileText};
pub use scan::{ChunkText, EachChunk, EachDocument, EachPassage, EachVector, PassageText};

use crate::create::sync_folder;
use crate::deadline::Canceller;
use crate::folder::io_failure;
use crate::open::Db;
use crate::pragmas;
use crate::sqlite::During;
use crate::write::progress_of;
pub(crate) use collections::segment_file;

/// The truth, open for reading only.
#[derive(Debug)]
pub struct Reader {
    pub(crate) db: Db,
}

/// The truth at one point in time, until it is dropped. Keep it short-lived: the log cannot be
/// truncated while it exists.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub(crate) db: &'a Db,
    /// SQLite's `data_version`, which changes with every commit of another connection.
    pub(crate) version: i64,
}

/// Which records of a collection to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// All of them.
    All,
    /// Those with a higher change number.
    ChangedAfter(u64),
}

impl Reader {
    pub(crate) fn new(db: Db) -> Self {
        db.deadline.set(None);
        Self { db }
    }

    /// Sets the deadline of the following operations. Without one they wait forever.
    pub fn set_deadline(&self, deadline: impl Into<Option<Instant>>) {
        self.db.deadline.set(deadline.into());
    }

    /// Cancels operations from another thread.
    pub fn canceller(&self) -> Canceller {
        self.db.canceller()
    }

    /// Whether the store was deleted or replaced.
    pub fn has_moved(&self) -> bool {
        self.db.has_moved()
    }

    /// Keeps few pages in memory: for reading everything once.
    ///
    /// # Errors
    /// If SQLite refuses the setting.
    pub fn for_scans(self) -> Result<Self, StoreError> {
        let set_up = pragmas::for_scans(&self.db.connection).map_err(isolith_sql::Error::from);
        set_up.during(self.db.sql(), "set up a scan")?;
        Ok(self)
    }

    /// Takes a snapshot of the current state.
    ///
    /// # Errors
    /// [`StoreError::Replaced`], [`StoreError::Newer`], or if the truth cannot be read.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, StoreError> {
        let db = &self.db;
        db.refuse_to_read_if_moved()?;
        let version = loop {
            match begin(db).during(db.sql(), "begin to read") {
                // Some conflicts bypass the busy handler.
                Err(StoreError::Busy { .. }) if db.deadline.wait_a_moment() => {}
                begun => break begun?,
            }
        };
        let snapshot = Snapshot { db, version };
        // The schema version is part of the file.
        if db.supported_in.get() != Some(version) {
            db.refuse_newer()?;
            db.supported_in.set(Some(version));
        }
        Ok(snapshot)
    }

    /// Writes a compact copy of the truth to a file that must not exist.
    ///
    /// # Errors
    /// If reading or writing fails, or the file exists; then no new file is left.
    pub fn copy_to(&mut self, path: &Path) -> Result<(), StoreError> {
        let connection = self.db.sql();
        self.db.refuse_if_moved()?;
        let name = path
            .to_str()
            .ok_or_else(|| StoreError::Invalid("the copy's path is not UTF-8".to_owned()))?;
        // SQLite writes into an existing empty file and keeps its permissions.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                StoreError::Invalid(format!("{} already exists", path.display()))
            }
            _ => io_failure(path, "create", &error),
        })?;
        let copied = connection
            .execute("VACUUM INTO ?1", [name])
            .during(connection, "write a copy")
            .and_then(|_| finish_copy(path));
        if copied.is_err() {
            // An incomplete copy is worse than none.
            let _ = std::fs::remove_file(path);
        }
        copied
    }
}

impl Snapshot<'_> {
    /// All collections, by name.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn collections(&self) -> Result<Vec<CollectionState>, StoreError> {
        collections::all(self.connection())
    }

    /// The collection with this name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] with similar names, or if the truth cannot be read.
    pub fn collection(&self, name: &str) -> Result<CollectionState, StoreError> {
        collections::require(self.connection(), name)
    }

    /// The collection with this id, unless it was deleted.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn collection_by_id(&self, id: u64) -> Result<Option<CollectionState>, StoreError> {
        collections::by_id(self.connection(), id)
    }

    /// The last change number of the whole store.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn last_change(&self) -> Result<u64, StoreError> {
        collections::last_change(self.connection())
    }

    /// The store's uuid, assigned at creation.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn uuid(&self) -> Result<String, StoreError> {
        let db = self.connection();
        db.query_row("SELECT uuid FROM store", [], |row| row.get(0)).during(db, "read the store")
    }

    /// Whether a deleted collection still has rows to purge.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn purge_due(&self) -> Result<bool, StoreError> {
        let db = self.connection();
        db.prepare_cached("SELECT 1 FROM collection WHERE name IS NULL LIMIT 1")
            .and_then(|mut statement| statement.exists([]))
            .during(db, "look for deleted collections")
    }

    /// The progress of a load, if it was started.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn load_progress(&self, source: &str) -> Result<Option<LoadProgress>, StoreError> {
        let db = self.connection();
        db.prepare_cached(
            "SELECT rows, inserted, updated, unchanged, rejected, finished \
             FROM load WHERE source = ?1",
        )
        .and_then(|mut statement| statement.query_row([source], progress_of).optional())
        .during(db, "read the progress of a load")
    }

    /// All jobs known to kill workers.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn poisons(&self) -> Result<Vec<PoisonedJob>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached("SELECT role, input, poison, at FROM quarantined_job")?
                .query_map([], |row| {
                    Ok(PoisonedJob {
                        role: row.get(0)?,
                        input: row.get(1)?,
                        poison: row.get(2)?,
                        at: row.get(3)?,
                    })
                })?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(db, "read quarantined jobs")
    }

    /// The stored reply to the write with this key, if there is one.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn receipt(&self, key: Key) -> Result<Option<String>, StoreError> {
        let db = self.connection();
        db.prepare_cached("SELECT result FROM receipt WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([key.0], |row| row.get(0)).optional())
            .during(db, "look for a receipt")
    }

    pub(crate) fn connection(&self) -> &dyn Connection {
        self.db.sql()
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        end(self.db);
    }
}

/// A text in the truth that cannot be decoded.
fn unreadable(column: usize, reason: impl std::fmt::Display) -> isolith_sql::Error {
    isolith_sql::Error::Value(format!("column {column}: {reason}"))
}

/// A transaction takes its snapshot with the first read; this one returns its version.
fn begin(db: &Db) -> isolith_sql::Result<i64> {
    end(db);
    db.sql().transact(Transaction::BeginReading)?;
    let version = db
        .sql()
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
    if version.is_err() {
        end(db);
    }
    version
}

/// Ends the transaction, if one is open, even after the deadline.
fn end(db: &Db) {
    if db.sql().is_in_transaction() {
        // If this fails, it is repeated before the next transaction begins.
        let _ = db.deadline.uninterrupted(|| db.sql().transact(Transaction::RollBack));
    }
}

/// Syncs what SQLite leaves to the operating system.
fn finish_copy(path: &Path) -> Result<(), StoreError> {
    let file = std::fs::File::open(path).map_err(|error| io_failure(path, "open", &error))?;
    file.sync_all().map_err(|error| io_failure(path, "sync", &error))?;
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        _ => sync_folder(Path::new(".")),
    }
}

#[cfg(test)]
mod tests {
    use isolate::InWorker;

    use super::*;
    use crate::folder::StoreFolder;
    use crate::open::{Truth, WriterOptions};
    use crate::pragmas::Durability;

    #[test]
    fn a_snapshot_ends_even_after_the_deadline() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("store"));
        let options = WriterOptions { durability: Durability::Normal, create: true };
        drop(Truth::open_writer(&folder, options, InWorker::in_process()).unwrap());
        let mut reader = Truth::open_reader(&folder, InWorker::in_process()).unwrap();
        // SQLite checks the deadline once in thousands of steps, over all runs of a statement.
        for _ in 0..5000 {
            reader.set_deadline(None);
            let snapshot = reader.snapshot().unwrap();
            snapshot.db.deadline.set(Some(Instant::now()));
            drop(snapshot);
            assert!(reader.db.connection.is_autocommit());
        }
    }
}
