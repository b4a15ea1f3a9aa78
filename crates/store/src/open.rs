use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use isolate::InWorker;
use isolith_pages::Checking;
use isolith_protocol::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::acknowledged::{self, MarkFile};
use crate::create;
use crate::deadline::{Canceller, Deadline};
use crate::folder::{StoreFolder, TruthId, io_failure, is_missing};
use crate::graph::{GraphCache, QueryCache};
use crate::identity::{FileId, Identity, with_suffix};
use crate::lock::Lock;
use crate::migrations::{
    FIRST_WITH_CHECKSUMS, MIGRATIONS, Migration, before_checksums, migrate, newest, refuse_newer,
    version_of,
};
use crate::pragmas::{self, Durability};
use crate::read::Reader;
use crate::rewrite;
use crate::salvage;
use crate::schema::APPLICATION_ID;
use crate::sqlite::{SqliteDuring, explain};
use crate::write::Writer;

/// Opens the truth, from which everything else can be rebuilt.
#[derive(Debug)]
pub struct Truth;

/// How to open the truth for writing.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// When a commit counts as done.
    pub durability: Durability,
    /// Whether to create the store if there is none.
    pub create: bool,
}

/// How long opening waits for other processes by default.
const PATIENCE: Duration = Duration::from_secs(10);

impl Truth {
    /// Opens the truth for writing; creates or migrates it if necessary.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store and `create` is false, or the reason why it
    /// cannot be opened.
    pub fn open_writer(
        folder: &StoreFolder,
        options: WriterOptions,
        _token: InWorker,
    ) -> Result<Writer, StoreError> {
        let deadline = Deadline::at(Some(Instant::now() + PATIENCE));
        let db = open_for_writing(folder, options, MIGRATIONS, &deadline)?;
        let (uuid, _) = acknowledged::progress_of(&db.connection)?;
        let mark = MarkFile::open(folder, &uuid)?;
        Ok(Writer::new(db, mark, options.durability))
    }

    /// Opens the truth for reading only.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store, or the reason why it cannot be opened.
    pub fn open_reader(folder: &StoreFolder, token: InWorker) -> Result<Reader, StoreError> {
        let until = Instant::now() + rewrite::PATIENCE;
        Self::open_reader_until(folder, until, token)
    }

    /// Like [`Self::open_reader`], with a deadline for rewriting a large file of a version
    /// without checksums.
    ///
    /// # Errors
    /// As [`Self::open_reader`].
    pub fn open_reader_until(
        folder: &StoreFolder,
        until: Instant,
        _token: InWorker,
    ) -> Result<Reader, StoreError> {
        let deadline = Deadline::at(Some(Instant::now() + PATIENCE));
        let until = Deadline::at(Some(until));
        open_for_reading(folder, MIGRATIONS, &deadline, &until).map(Reader::new)
    }
}

/// An open truth: the connection, what must be released with it, and how to detect that it was
/// replaced.
#[derive(Debug)]
pub(crate) struct Db {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) deadline: Deadline,
    /// Cache of the graph, kept between queries.
    pub(crate) graph_cache: RefCell<GraphCache>,
    pub(crate) queries: QueryCache,
    identity: Identity,
    supported: &'static [Migration],
    /// SQLite's `data_version` for which the schema is known to be supported.
    pub(crate) supported_in: Cell<Option<i64>>,
    // Dropped last: the lock must outlive the connection.
    _lock: Option<Lock>,
}

impl Db {
    /// The connection, for statements that any database can run.
    pub(crate) fn sql(&self) -> &dyn isolith_sql::Connection {
        &self.connection
    }

    pub(crate) fn refuse_if_moved(&self) -> Result<(), StoreError> {
        if self.has_moved() {
            return Err(StoreError::Replaced { path: self.path.clone() });
        }
        Ok(())
    }

    /// Like [`Self::refuse_if_moved`], for callers that check often and write nothing.
    pub(crate) fn refuse_to_read_if_moved(&self) -> Result<(), StoreError> {
        if self.identity.has_moved_with_folder(SystemTime::now) {
            return Err(StoreError::Replaced { path: self.path.clone() });
        }
        Ok(())
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.identity.has_moved()
    }

    /// Fails if a newer program has migrated the file in the meantime.
    pub(crate) fn refuse_newer(&self) -> Result<(), StoreError> {
        refuse_newer(&self.connection, self.supported).map(|_| ())
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.deadline.canceller()
    }
}

pub(crate) fn open_for_writing(
    folder: &StoreFolder,
    options: WriterOptions,
    migrations: &'static [Migration],
    deadline: &Deadline,
) -> Result<Db, StoreError> {
    folder.check()?;
    // The front creates the folder of a sealed store, together with its seal.
    let may_create = *folder.truth_id() == TruthId::Any || folder.path().exists();
    if !(options.create && may_create || folder.holds_store()) {
        return Err(StoreError::Missing { folder: folder.path().to_path_buf() });
    }
    // A backup may contain only the database.
    folder.create()?;
    loop {
        salvage::finish(folder, deadline)?;
        let lock = Lock::shared(&folder.lock_file(), deadline)?;
        if folder.salvaged().exists() {
            // A salvage died while we waited for it.
            continue;
        }
        if options.create {
            create::unless_there(folder, migrations, deadline)?;
        }
        let db = connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, migrations, lock, deadline)?;
        let connection = &db.connection;
        refuse_unwritable(&db)?;
        // The writer itself syncs what must be on disk.
        pragmas::for_writers(connection, Durability::Normal).during(connection, "set up")?;
        let is_current = refuse_newer(connection, migrations)? == newest(migrations);
        refuse_foreign(folder, &db)?;
        if is_current && is_in_wal_mode(connection)? {
            if let id @ TruthId::Becomes(uuid) = folder.truth_id()
                && uuid_of(&db)? != *uuid
            {
                create::take_identity(connection, id)?;
            }
            return Ok(db);
        }
        drop(db);
        let rewriting = Deadline::at(Some(Instant::now() + rewrite::PATIENCE));
        bring_up_to_date(folder, migrations, deadline, &rewriting)?;
    }
}

pub(crate) fn open_for_reading(
    folder: &StoreFolder,
    migrations: &'static [Migration],
    deadline: &Deadline,
    rewriting: &Deadline,
) -> Result<Db, StoreError> {
    folder.check()?;
    if !folder.holds_store() {
        return Err(StoreError::Missing { folder: folder.path().to_path_buf() });
    }
    loop {
        salvage::finish(folder, deadline)?;
        let lock = Lock::shared(&folder.lock_file(), deadline)?;
        if folder.salvaged().exists() {
            continue;
        }
        let db = connect(folder, OpenFlags::SQLITE_OPEN_READ_ONLY, migrations, lock, deadline)?;
        let connection = &db.connection;
        pragmas::for_readers(connection).during(connection, "set up")?;
        refuse_foreign(folder, &db)?;
        if refuse_newer(connection, migrations)? == newest(migrations) {
            return Ok(db);
        }
        drop(db);
        bring_up_to_date(folder, migrations, deadline, rewriting)?;
    }
}

/// Opens the file without changing it. Only SQLite ever opens it; everything else uses `stat`.
fn connect(
    folder: &StoreFolder,
    flags: OpenFlags,
    migrations: &'static [Migration],
    lock: Option<Lock>,
    deadline: &Deadline,
) -> Result<Db, StoreError> {
    let path = folder.truth();
    loop {
        let before = look_at(folder, &path)?;
        let (connection, lasting) = match open_file(&path, flags, deadline) {
            Err(StoreError::ReadOnly { reason, .. })
                if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) =>
            {
                (open_unchanging(&path, reason, deadline)?, false)
            }
            opened => (opened?, true),
        };
        // Replaced while it was opened: we cannot know which file this is.
        if look_at(folder, &path)? != before {
            deadline.check("open the store")?;
            continue;
        }
        acknowledged::refuse_if_behind(folder, &connection)?;
        let identity =
            if lasting { Identity::of(&path, before) } else { Identity::of_one(&path, before) };
        let deadline = deadline.clone();
        return Ok(Db {
            connection,
            path,
            deadline,
            graph_cache: RefCell::default(),
            queries: QueryCache::default(),
            identity,
            supported: migrations,
            supported_in: Cell::new(None),
            _lock: lock,
        });
    }
}

fn look_at(folder: &StoreFolder, path: &Path) -> Result<FileId, StoreError> {
    let metadata = std::fs::symlink_metadata(path).map_err(|error| {
        if is_missing(&error) {
            StoreError::Missing { folder: folder.path().to_path_buf() }
        } else {
            io_failure(path, "look at", &error)
        }
    })?;
    let not_a_store = |reason: &str| {
        Err(StoreError::NotAStore { path: path.to_path_buf(), reason: reason.to_owned() })
    };
    if metadata.is_symlink() {
        return not_a_store("it is a symbolic link");
    }
    if !metadata.is_file() {
        return not_a_store("it is not a file");
    }
    if metadata.len() == 0 {
        let reason = "it is empty".to_owned();
        return Err(StoreError::Corrupt { path: path.to_path_buf(), reason });
    }
    Ok(FileId::from(&metadata))
}

fn open_file(path: &Path, flags: OpenFlags, deadline: &Deadline) -> Result<Connection, StoreError> {
    // Never open a file through a link that somebody put there.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = isolith_pages::open(path, flags, Checking::Every)
        .map_err(|error| explain(error, path, "open"))?;
    pragmas::for_every_connection(&mut connection, deadline).during(&connection, "set up")?;
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .during(&connection, "read the header")?;
    if application != APPLICATION_ID {
        let reason = "it belongs to another program".to_owned();
        return Err(StoreError::NotAStore { path: path.to_path_buf(), reason });
    }
    refuse_unchecked(&connection, path)?;
    // The first real read: opens the log, and recovers it if a process was killed.
    connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        .during(&connection, "read the schema")?;
    Ok(connection)
}

/// A file of this version without checksums has lost them: the byte that says how much space is
/// reserved for them has changed.
fn refuse_unchecked(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let is_checked = isolith_pages::is_checked(connection).during(connection, "set up")?;
    if is_checked || version_of(connection)? < FIRST_WITH_CHECKSUMS {
        return Ok(());
    }
    let reason = "page 1 does not declare checksums".to_owned();
    Err(StoreError::Corrupt { path: path.to_path_buf(), reason })
}

/// Opens a file on a read-only filesystem, where SQLite cannot create the index that it shares
/// with writers. That is only safe if no log has to be read.
fn open_unchanging(
    path: &Path,
    reason: String,
    deadline: &Deadline,
) -> Result<Connection, StoreError> {
    let log = with_suffix(path, "-wal");
    if std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0) {
        let reason =
            format!("its log has changes that cannot be read from a read-only location: {reason}");
        return Err(StoreError::ReadOnly { path: path.to_path_buf(), reason });
    }
    let uri = format!("file:{}?immutable=1", percent_encoded(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open_file(Path::new(&uri), flags, deadline)
}

fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// SQLite silently opens a file that it may not write as read-only.
fn refuse_unwritable(db: &Db) -> Result<(), StoreError> {
    let connection = &db.connection;
    match connection.is_readonly(rusqlite::MAIN_DB).during(connection, "set up")? {
        true => {
            let reason = "the file may only be read".to_owned();
            Err(StoreError::ReadOnly { path: db.path.clone(), reason })
        }
        false => Ok(()),
    }
}

/// Fails if the truth is not the one that the store was sealed with.
fn refuse_foreign(folder: &StoreFolder, db: &Db) -> Result<(), StoreError> {
    let TruthId::Only(expected) = folder.truth_id() else { return Ok(()) };
    match uuid_of(db)? == *expected {
        true => Ok(()),
        false => Err(StoreError::Foreign { path: db.path.clone() }),
    }
}

fn uuid_of(db: &Db) -> Result<String, StoreError> {
    let connection = &db.connection;
    connection
        .query_row("SELECT uuid FROM store WHERE only = 1", [], |row| row.get(0))
        .during(connection, "read the store's id")
}

fn is_in_wal_mode(db: &Connection) -> Result<bool, StoreError> {
    let mode: String = db
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .during(db, "read the journal's mode")?;
    Ok(mode == "wal")
}

/// Migrates while holding the store exclusively.
fn bring_up_to_date(
    folder: &StoreFolder,
    migrations: &'static [Migration],
    deadline: &Deadline,
    rewriting: &Deadline,
) -> Result<(), StoreError> {
    let _alone = match Lock::exclusive_now(&folder.lock_file()) {
        // Processes that started at the same moment may be about to migrate, or just did.
        Err(StoreError::LockHeld { .. }) => deadline.within(Duration::from_millis(500), || {
            Lock::exclusive(&folder.lock_file(), deadline)
        })?,
        lock => lock?,
    };
    let mut db = connect_alone(folder, migrations, deadline)?;
    if let Some(before) = before_checksums(migrations)
        && !isolith_pages::is_checked(&db.connection).during(&db.connection, "set up")?
    {
        migrate(&mut db.connection, before)?;
        rewrite::with_checksums(folder, db, before, rewriting)?;
        db = connect_alone(folder, migrations, deadline)?;
    }
    migrate(&mut db.connection, migrations)
}

fn connect_alone(
    folder: &StoreFolder,
    migrations: &'static [Migration],
    deadline: &Deadline,
) -> Result<Db, StoreError> {
    let db = connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, migrations, None, deadline)?;
    refuse_unwritable(&db)?;
    pragmas::for_writers(&db.connection, Durability::Full).during(&db.connection, "set up")?;
    // A copy made by `VACUUM INTO` is not in WAL mode.
    if !is_in_wal_mode(&db.connection)? {
        pragmas::set_journal_to_wal(&db.connection).during(&db.connection, "set up the log")?;
    }
    Ok(db)
}
