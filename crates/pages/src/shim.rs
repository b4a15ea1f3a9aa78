//! The VFS: opens files through SQLite's default VFS and puts [`file`](crate::file) between
//! SQLite and those that contain pages.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::checksum::RESERVED;
use crate::damage::DatabasePart;
use crate::file::{self, ShimFile};

/// What is verified when pages are read. Pages are always sealed when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// All pages.
    Every,
    /// For salvage: all pages except interior ones, since a damaged interior page leads to many
    /// intact ones, and except those that another program wrote.
    Leaves,
    /// Nothing.
    Nothing,
}

impl Checking {
    const ALL: [Self; 3] = [Self::Every, Self::Leaves, Self::Nothing];

    fn vfs_name(self) -> &'static CStr {
        match self {
            Self::Every => c"isolith-pages",
            Self::Leaves => c"isolith-pages-leaves",
            Self::Nothing => c"isolith-pages-unchecked",
        }
    }
}

/// Opens a database through the shim. A file whose pages have no room for checksums is read and
/// written without them; see [`is_checked`].
///
/// # Errors
/// SQLite's, as from [`Connection::open_with_flags`].
pub fn open(path: &Path, flags: OpenFlags, checking: Checking) -> rusqlite::Result<Connection> {
    register()?;
    Connection::open_with_flags_and_vfs(path, flags, checking.vfs_name())
}

/// Reserves room for checksums in the pages of a new database.
///
/// # Errors
/// SQLite's.
pub fn reserve(db: &Connection) -> rusqlite::Result<()> {
    let mut bytes = c_int::from(RESERVED);
    // SAFETY: this operation reads and writes the integer that it is given.
    unsafe { control(db, ffi::SQLITE_FCNTL_RESERVE_BYTES, (&raw mut bytes).cast()) }
}

/// Whether the pages of the main database have checksums. False before the first page is
/// written.
///
/// # Errors
/// SQLite's.
pub fn is_checked(db: &Connection) -> rusqlite::Result<bool> {
    let file = file_of(db, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    // SAFETY: the pointer is the connection's open file.
    Ok(unsafe { file::state(file) }.is_some_and(|state| state.page_size().is_some()))
}

/// A file of the main database; null if it is not open.
pub(crate) fn file_of(db: &Connection, which: c_int) -> rusqlite::Result<*mut ffi::sqlite3_file> {
    let mut file = ptr::null_mut::<ffi::sqlite3_file>();
    // SAFETY: both operations used by callers write a pointer to this address.
    unsafe { control(db, which, (&raw mut file).cast()) }?;
    Ok(file)
}

/// # Safety
/// `argument` must be what the operation expects.
unsafe fn control(
    db: &Connection,
    operation: c_int,
    argument: *mut c_void,
) -> rusqlite::Result<()> {
    // SAFETY: the handle is used while the connection is borrowed, and not kept.
    let code =
        unsafe { ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), operation, argument) };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(failure(code)) }
}

fn failure(code: c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

/// The data of a registered VFS; SQLite keeps the pointer to it.
struct Registered {
    real: *mut ffi::sqlite3_vfs,
    checking: Checking,
}

fn register() -> rusqlite::Result<()> {
    static DONE: OnceLock<c_int> = OnceLock::new();
    let code = *DONE.get_or_init(|| {
        let codes = Checking::ALL.into_iter().map(register_one);
        codes.into_iter().find(|code| *code != ffi::SQLITE_OK).unwrap_or(ffi::SQLITE_OK)
    });
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(failure(code)) }
}

fn register_one(checking: Checking) -> c_int {
    // SAFETY: initialises SQLite if necessary and returns a VFS that stays registered.
    let real = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: null or valid for the life of the process.
    let Some(model) = (unsafe { real.as_ref() }) else { return ffi::SQLITE_ERROR };
    let Ok(room) = c_int::try_from(size_of::<ShimFile>()) else { return ffi::SQLITE_ERROR };
    let registered = Box::new(Registered { real, checking });
    // Everything but opening uses the methods of the real VFS, which on Unix ignore the VFS
    // they are called with.
    let vfs = Box::new(ffi::sqlite3_vfs {
        szOsFile: model.szOsFile.saturating_add(room),
        pNext: ptr::null_mut(),
        zName: checking.vfs_name().as_ptr(),
        pAppData: Box::into_raw(registered).cast(),
        xOpen: Some(open_file),
        ..*model
    });
    // SAFETY: SQLite keeps the VFS, which is never freed, and does not make it the default.
    unsafe { ffi::sqlite3_vfs_register(Box::into_raw(vfs), 0) }
}

/// `xOpen`. Only the database file and its log contain pages that are verified.
unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls this with a VFS from `register_one`.
    let registered = unsafe { &*(*vfs).pAppData.cast::<Registered>() };
    let real = registered.real;
    // SAFETY: the real VFS stays registered.
    let Some(open) = (unsafe { (*real).xOpen }) else { return ffi::SQLITE_CANTOPEN };
    let part = if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        DatabasePart::File
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        DatabasePart::Log
    } else {
        // SAFETY: arguments from SQLite; `file` has more room than the real VFS needs.
        return unsafe { open(real, name, file, flags, flags_out) };
    };
    let pages = match part {
        DatabasePart::File => Arc::default(),
        // SAFETY: SQLite opens a log under the name of the open database file, which it closes
        // after the log.
        DatabasePart::Log => unsafe { file::state(ffi::sqlite3_database_file_object(name)) }
            .map(|state| state.pages())
            .unwrap_or_default(),
    };
    // SAFETY: `file` has room for a `ShimFile` followed by a file of the real VFS.
    let inner = unsafe { file::begin(file.cast()) };
    // SAFETY: arguments from SQLite, except for the address of the file.
    let code = unsafe { open(real, name, inner, flags, flags_out) };
    // SAFETY: `begin` prepared both, and the real VFS has tried to open the inner file.
    unsafe { file::finish(file.cast(), code, part, registered.checking, pages) }
}
