//! Opening the damaged file in whatever way still works.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use isolith_pages::{Checking, seal};
use isolith_protocol::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::create::{self, Aside, copy_content};
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, io_failure, is_missing};
use crate::identity::with_suffix;
use crate::migrations::{MIGRATIONS, migrate};
use crate::pragmas::{self, PAGE_SIZE};
use crate::sqlite::explain;

/// A truth with unreadable pages.
pub(super) struct Damaged {
    pub(super) db: Connection,
    // Must live as long as the connection.
    _copy: Option<Aside>,
}

impl Damaged {
    /// Opens the file itself or, if its first page is lost, a copy with the first page of a new
    /// store. With incremental vacuum, SQLite places the roots of tables on the first pages in
    /// order of creation, whenever that was, so they are on the same pages in a new store.
    pub(super) fn open(
        folder: &StoreFolder,
        truth: &Path,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        match open(truth, deadline) {
            Ok(db) => Ok(Self { db, _copy: None }),
            Err(StoreError::Corrupt { reason, .. }) => {
                tracing::warn!(reason, "the first page is damaged; trying a new one");
                let copy = copy_with_new_head(folder, truth, deadline)?;
                let db = open(copy.path(), deadline)?;
                Ok(Self { db, _copy: Some(copy) })
            }
            Err(error) => Err(error),
        }
    }
}

/// Opens a file that may not be a database; reading the schema is the test.
fn open(path: &Path, deadline: &Deadline) -> Result<Connection, StoreError> {
    let length = path.metadata().map_err(|error| io_failure(path, "look at", &error))?.len();
    if length == 0 {
        let reason = "it is empty".to_owned();
        return Err(StoreError::Corrupt { path: path.to_path_buf(), reason });
    }
    let try_open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        // Many pages below a damaged inner page are intact.
        let mut db = isolith_pages::open(path, flags, Checking::Leaves)?;
        pragmas::for_every_connection(&mut db, deadline)?;
        // Skip bad cells instead of giving up on their page.
        db.pragma_update(None, "cell_size_check", false)?;
        db.pragma_update(None, "query_only", true)?;
        let tables: i64 = db.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name IN ('record', 'vector', 'collection')",
            [],
            |row| row.get(0),
        )?;
        if tables == 3 {
            return Ok(db);
        }
        Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some("it does not have the tables of a store".to_owned()),
        ))
    };
    try_open().map_err(|error| explain(error, path, "open the damaged file"))
}

fn page(file: &[u8], number: u32) -> std::io::Result<&[u8]> {
    let found = file.chunks_exact(PAGE_SIZE as usize).nth(number.saturating_sub(1) as usize);
    found.ok_or(std::io::ErrorKind::InvalidData.into())
}

/// Offsets in a first page of the page numbers where the schema table continues; empty if it fits
/// on the page.
fn children(head: &[u8]) -> Vec<usize> {
    const INTERIOR: u8 = 5;
    // The database header precedes the page header.
    let short = |at: usize| usize::from(u16::from_be_bytes([head[at], head[at + 1]]));
    if head[100] != INTERIOR {
        return Vec::new();
    }
    let cells = (0..short(103)).map(|cell| short(112 + 2 * cell));
    cells.chain([108]).filter(|place| place + 4 <= head.len()).collect()
}

fn copy_with_new_head(
    folder: &StoreFolder,
    truth: &Path,
    deadline: &Deadline,
) -> Result<Aside, StoreError> {
    let model = Aside::new(&folder.run(), "model")?;
    let mut new = create::new_truth(model.path(), deadline)?;
    migrate(&mut new, MIGRATIONS)?;
    create::close_completely(new, model.path())?;
    let copy = Aside::new(&folder.run(), "copy")?;
    let graft = || {
        copy_content(truth, copy.path())?;
        let log = with_suffix(truth, "-wal");
        match copy_content(&log, &with_suffix(copy.path(), "-wal")) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
        let model = std::fs::read(model.path())?;
        let mut head = page(&model, 1)?.to_vec();
        let mut file = File::options().read(true).write(true).open(copy.path())?;
        let pages = file.metadata()?.len() / u64::from(PAGE_SIZE);
        let mut pages = u32::try_from(pages).unwrap_or(u32::MAX);
        // The schema table continues on other pages, which are appended.
        file.seek(SeekFrom::Start(u64::from(pages) * u64::from(PAGE_SIZE)))?;
        for place in children(&head) {
            let number = u32::from_be_bytes([0, 1, 2, 3].map(|at| head[place + at]));
            let mut page = page(&model, number)?.to_vec();
            pages = pages.saturating_add(1);
            seal(&mut page, pages);
            file.write_all(&page)?;
            head[place..place + 4].copy_from_slice(&pages.to_be_bytes());
        }
        head[28..32].copy_from_slice(&pages.to_be_bytes());
        // Drop the free list: its pages are unknown, and nothing will be written.
        head[32..40].fill(0);
        seal(&mut head, 1);
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head)
    };
    graft().map_err(|error| io_failure(copy.path(), "copy the damaged file to", &error))?;
    Ok(copy)
}
