//! The VFS: opens files through SQLite's default one and puts [`file`](crate::file)
//! between SQLite and those that hold pages.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::checksum::RESERVED;
use crate::damage::Part;
use crate::file::{self, ShimFile};

/// What is verified when pages are read. Pages are sealed in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// Everything.
    Every,
    /// For saving what can be saved: all pages but those that only lead to others, since behind
    /// a damaged inner page there are many that are not, and those that another program wrote.
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

/// Opens a database through the shim. A file with pages that have no room for checksums is
/// read and written without them: [`is_checked`] tells.
///
/// # Errors
/// SQLite's, as from [`Connection::open_with_flags`].
pub fn open(path: &Path, flags: OpenFlags, checking: Checking) -> rusqlite::Result<Connection> {
    register()?;
    Connection::open_with_flags_and_vfs(path, flags, checking.vfs_name())
}

/// Makes room for checksums in the pages of a database that has none yet.
///
/// # Errors
/// SQLite's.
pub fn reserve(db: &Connection) -> rusqlite::Result<()> {
    let mut bytes = c_int::from(RESERVED);
    // SAFETY: this operation reads and writes the integer that it is given.
    unsafe { control(db, ffi::SQLITE_FCNTL_RESERVE_BYTES, (&raw mut bytes).cast()) }
}

/// Whether the pages of the main database carry checksums. False before the first is
/// written.
///
/// # Errors
/// SQLite's.
pub fn is_checked(db: &Connection) -> rusqlite::Result<bool> {
    let file = file_of(db, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    // SAFETY: the pointer is that of the connection's open file.
    Ok(unsafe { file::state(file) }.is_some_and(|state| state.page_size().is_some()))
}

/// A file of the main database; null if it is not open.
pub(crate) fn file_of(db: &Connection, which: c_int) -> rusqlite::Result<*mut ffi::sqlite3_file> {
    let mut file = ptr::null_mut::<ffi::sqlite3_file>();
    // SAFETY: both operations that callers name write a pointer to where they are told.
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

/// What a registered VFS needs to know; SQLite keeps the pointer to it.
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
    // SAFETY: initializes SQLite if need be and returns a VFS that stays registered.
    let real = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: it is null or valid for as long as the process lives.
    let Some(model) = (unsafe { real.as_ref() }) else { return ffi::SQLITE_ERROR };
    let Ok(room) = c_int::try_from(size_of::<ShimFile>()) else { return ffi::SQLITE_ERROR };
    let registered = Box::new(Registered { real, checking });
    // All but opening is left to the methods of the real one, which on Unix do not look at
    // the VFS that they are called with.
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

/// `xOpen`. Only the database itself and its log hold pages that are read back as such.
unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls this with a VFS that `register_one` made.
    let registered = unsafe { &*(*vfs).pAppData.cast::<Registered>() };
    let real = registered.real;
    // SAFETY: the real VFS stays registered.
    let Some(open) = (unsafe { (*real).xOpen }) else { return ffi::SQLITE_CANTOPEN };
    let part = if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        Part::File
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        Part::Log
    } else {
        // SAFETY: SQLite's own arguments; `file` has more room than the real VFS needs.
        return unsafe { open(real, name, file, flags, flags_out) };
    };
    let pages = match part {
        Part::File => Arc::default(),
        // SAFETY: SQLite opens a log with the name that belongs to the open file of the
        // database, which it closes later than the log.
        Part::Log => unsafe { file::state(ffi::sqlite3_database_file_object(name)) }
            .map(|state| state.pages())
            .unwrap_or_default(),
    };
    // SAFETY: `file` has room for a `ShimFile` and, behind it, for a file of the real VFS.
    let inner = unsafe { file::begin(file.cast()) };
    // SAFETY: SQLite's own arguments, but for the place of the file.
    let code = unsafe { open(real, name, inner, flags, flags_out) };
    // SAFETY: `begin` prepared both, and the real VFS has opened the inner file or not.
    unsafe { file::finish(file.cast(), code, part, registered.checking, pages) }
}
