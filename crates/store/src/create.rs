use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use isolith_folder::Folder;
use isolith_pages::Checking;
use isolith_protocol::StoreError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::acknowledged;
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, TruthId, io_failure, is_missing};
use crate::identity::with_suffix;
use crate::lock::Lock;
use crate::migrations::{Migration, migrate, newest, schema_version};
use crate::names::is_aside;
use crate::pragmas;
use crate::schema::{APPLICATION_ID, CREATE, FIRST_VERSION};
use crate::sqlite::{SqliteDuring, explain};

/// Creates the truth if there is none. It is built aside under a lock and then renamed, so any
/// number of processes may try this at once.
pub(crate) fn unless_there(
    folder: &StoreFolder,
    migrations: &[Migration],
    deadline: &Deadline,
) -> Result<(), StoreError> {
    let truth = folder.truth();
    if truth.symlink_metadata().is_ok() {
        return Ok(());
    }
    let _creating = Lock::exclusive(&folder.creation_lock(), deadline)?;
    if truth.symlink_metadata().is_ok() {
        return Ok(());
    }
    Aside::clear_leftovers(&folder.run(), "new");
    let aside = Aside::new(&folder.run(), "new")?;
    let mut db = new_truth(aside.path(), deadline)?;
    migrate(&mut db, migrations)?;
    take_identity(&db, folder.truth_id())?;
    if newest(migrations) == schema_version() {
        // The mark of a deleted truth does not apply to this one.
        acknowledged::outrank(folder, &db)?;
    }
    close_completely(db, aside.path())?;
    // The log of a deleted truth would be replayed into the new one.
    for suffix in ["-wal", "-shm"] {
        remove_if_there(&with_suffix(&truth, suffix))?;
    }
    aside.become_file(&truth)?;
    sync_folder(folder.path())
}

/// Creates an empty store of version 1 in an existing, empty file. Its pages have checksums,
/// although that version did not require them.
pub(crate) fn new_truth(path: &Path, deadline: &Deadline) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut db = isolith_pages::open(path, flags, Checking::Every)
        .map_err(|error| explain(error, path, "make"))?;
    isolith_pages::reserve(&db).during(&db, "set up")?;
    pragmas::before_the_first_table(&db).during(&db, "set up")?;
    pragmas::for_every_connection(&mut db, deadline).during(&db, "set up")?;
    pragmas::for_writers(&db, pragmas::Durability::Full).during(&db, "set up")?;
    make_tables(&mut db).during(&db, "make the tables")?;
    Ok(db)
}

/// Gives a truth the identity that its store was sealed with.
pub(crate) fn take_identity(db: &Connection, id: &TruthId) -> Result<(), StoreError> {
    if let TruthId::Only(uuid) | TruthId::Becomes(uuid) = id {
        db.execute("UPDATE store SET uuid = ?1", [uuid]).during(db, "set the store's id")?;
    }
    Ok(())
}

/// Checkpoints and syncs the database before closing it.
pub(crate) fn close_completely(db: Connection, path: &Path) -> Result<(), StoreError> {
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .during(&db, "set up")?;
    db.close().map_err(|(_, error)| explain(error, path, "close"))?;
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_failure(path, "sync", &error))
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Syncs a folder, so that a rename survives a power loss.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| io_failure(folder, "sync", &error))
}

/// Like `std::fs::copy` without the permissions, which a worker may not set.
pub(crate) fn copy_content(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = isolith_folder::open_file(from)?;
    let mut to = File::options().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(|_| ())
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if !is_missing(&error) => Err(io_failure(path, "remove", &error)),
        _ => Ok(()),
    }
}

/// A database file under construction; deleted on drop, with its log, unless it was moved into
/// place.
#[derive(Debug)]
pub(crate) struct Aside {
    path: PathBuf,
}

impl Aside {
    /// Creates an empty file under a unique name.
    pub(crate) fn new(folder: &Path, what: &str) -> Result<Self, StoreError> {
        let name = format!("{what}-{}-{:08x}.sqlite", std::process::id(), fastrand::u32(..));
        let path = folder.join(&name);
        Folder::open(folder)
            .and_then(|folder| folder.create(&name))
            .map_err(|error| io_failure(&path, "create", &error))?;
        Ok(Self { path })
    }

    /// Removes files left by killed processes. The caller must hold the lock that they held.
    pub(crate) fn clear_leftovers(folder: &Path, what: &str) {
        let Ok(folder) = Folder::open(folder) else { return };
        for entry in folder.entries().unwrap_or_default() {
            if is_aside(&entry.name, what) {
                // A leftover is harmless; it only takes up space.
                let _ = folder.remove(&entry.name);
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file to its final name, which must not exist.
    pub(crate) fn become_file(self, path: &Path) -> Result<(), StoreError> {
        use rustix::io::Errno;
        let renamed = match renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
            // Not every filesystem supports this flag; the caller also holds a lock.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                std::fs::rename(&self.path, path)
            }
            renamed => renamed.map_err(Into::into),
        };
        renamed.map_err(|error| io_failure(path, "make", &error))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            // Errors are harmless: leftovers have unique names.
            let _ = std::fs::remove_file(with_suffix(&self.path, suffix));
        }
    }
}

fn make_tables(db: &mut Connection) -> rusqlite::Result<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(CREATE)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FIRST_VERSION)?;
    transaction.execute(
        "INSERT INTO store (only, uuid, created_at, last_change) VALUES (1, ?1, ?2, 0)",
        (new_uuid(), now()),
    )?;
    transaction.commit()
}

/// A random uuid for a new store.
pub fn new_uuid() -> String {
    let mut seed = blake3::Hasher::new();
    seed.update(&fastrand::u128(..).to_le_bytes());
    seed.update(&std::process::id().to_le_bytes());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    seed.update(&since.as_nanos().to_le_bytes());
    let hex = seed.finalize().to_hex();
    let digits = hex.as_str();
    format!(
        "{}-{}-4{}-a{}-{}",
        &digits[0..8],
        &digits[8..12],
        &digits[13..16],
        &digits[17..20],
        &digits[20..32]
    )
}
