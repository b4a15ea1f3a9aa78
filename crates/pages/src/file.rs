//! Database files and logs, as SQLite sees them.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64};

use crate::checksum::{RESERVED, is_sealed, is_unsealed, seal, unseal};
use crate::damage::{DamageKind, DatabasePart, PageDamage, note};
use crate::log::{LogWrites, big_endian};
use crate::shim::Checking;

/// The size of the header of a database file.
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const MIN_PAGE_SIZE: usize = 512;

/// The file that SQLite sees; the real VFS's file follows it in the same allocation.
#[repr(C)]
pub(crate) struct ShimFile {
    base: sqlite3_file,
    state: *mut FileState,
}

/// The state of an open file.
pub(crate) struct FileState {
    pub(crate) real: RealFile,
    part: DatabasePart,
    checking: Checking,
    sealing: Sealing,
    log: LogWrites,
    /// The number of pages in the database when this connection last read or wrote the first
    /// page. Shared by the file and its log.
    pages: Arc<AtomicU32>,
    /// Buffer for pages that are read partially, and for pages to be sealed.
    scratch: Vec<u8>,
}

/// Whether the pages of the database file have checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealing {
    /// The file is empty. `assumed`: pages were sealed on the assumption that it will have
    /// checksums.
    Undecided {
        assumed: bool,
    },
    Off,
    On {
        page_size: usize,
    },
}

/// An open file of the real VFS.
#[derive(Clone, Copy)]
pub(crate) struct RealFile(*mut sqlite3_file);

impl RealFile {
    /// Calls a method of the real file, if it has it.
    fn call<M>(
        self,
        which: impl FnOnce(&ffi::sqlite3_io_methods) -> Option<M>,
        call: impl FnOnce(M, *mut sqlite3_file) -> c_int,
    ) -> c_int {
        // SAFETY: the file is open for as long as this value exists, so it has methods.
        let method = unsafe { (*self.0).pMethods.as_ref() }.and_then(which);
        method.map_or(ffi::SQLITE_IOERR, |method| call(method, self.0))
    }

    pub(crate) fn read(self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let Ok(length) = c_int::try_from(into.len()) else { return ffi::SQLITE_IOERR_READ };
        // SAFETY: the buffer has the given length.
        self.call(
            |it| it.xRead,
            |read, file| unsafe { read(file, into.as_mut_ptr().cast(), length, offset) },
        )
    }

    fn write(self, from: &[u8], offset: sqlite3_int64) -> c_int {
        let Ok(length) = c_int::try_from(from.len()) else { return ffi::SQLITE_IOERR_WRITE };
        // SAFETY: the buffer has the given length.
        self.call(
            |it| it.xWrite,
            |write, file| unsafe { write(file, from.as_ptr().cast(), length, offset) },
        )
    }

    /// The file's length; `None` if it cannot be determined.
    pub(crate) fn length(self) -> Option<u64> {
        let mut length: sqlite3_int64 = 0;
        // SAFETY: the number outlives the call.
        let code =
            self.call(|it| it.xFileSize, |size, file| unsafe { size(file, &raw mut length) });
        if code == ffi::SQLITE_OK { u64::try_from(length).ok() } else { None }
    }
}

impl FileState {
    /// The page size, if pages have checksums.
    pub(crate) fn page_size(&self) -> Option<usize> {
        match self.sealing {
            Sealing::On { page_size } => Some(page_size),
            Sealing::Undecided { .. } | Sealing::Off => None,
        }
    }

    fn read(&mut self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let code = match (self.checking, self.part) {
            (Checking::Nothing, _) => self.real.read(into, offset),
            (_, DatabasePart::File) => self.read_file(into, offset),
            (_, DatabasePart::Log) => self.read_log(into, offset),
        };
        if code == ffi::SQLITE_OK {
            self.note_pages(into);
        }
        code
    }

    /// Stores the number of pages from the header in the first page.
    fn note_pages(&self, page: &[u8]) {
        if page.len() >= MIN_PAGE_SIZE && page.starts_with(MAGIC) {
            self.pages.store(big_endian(&page[28..32]), Ordering::Relaxed);
        }
    }

    fn write(&mut self, from: &[u8], offset: sqlite3_int64) -> c_int {
        self.note_pages(from);
        match self.part {
            DatabasePart::File => self.write_file(from, offset),
            DatabasePart::Log => {
                self.log.note_write(from.len(), offset);
                self.real.write(from, offset)
            }
        }
    }

    pub(crate) fn pages(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.pages)
    }

    fn read_file(&mut self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        if self.sealing == (Sealing::Undecided { assumed: false }) {
            self.sealing = sealing_of(self.real);
        }
        // SQLite reads parts of the header without a lock, so the page may be partly written.
        // It does not rely on them before it has read the whole page.
        let peek = usize::try_from(offset).is_ok_and(|at| at + into.len() <= HEADER_BYTES);
        let (Sealing::On { page_size }, false) = (self.sealing, peek) else {
            return self.real.read(into, offset);
        };
        let Some(position) = PagePosition::of(offset, page_size) else {
            return ffi::SQLITE_IOERR_READ;
        };
        if position.within == 0 && into.len() == page_size {
            let code = self.real.read(into, offset);
            let code = self.check_page(code, into, position.number);
            unseal(into);
            return code;
        }
        // A partial read of a page. If it crosses the end of the page, the header has the wrong
        // page size: it is damaged.
        let Some(end) = position.within.checked_add(into.len()).filter(|end| *end <= page_size)
        else {
            return self.fail(position.number, DamageKind::Mismatch);
        };
        let mut page = std::mem::take(&mut self.scratch);
        page.resize(page_size, 0);
        let code = self.real.read(&mut page, position.start);
        let code = self.check_page(code, &page, position.number);
        if code == ffi::SQLITE_OK || code == ffi::SQLITE_IOERR_SHORT_READ {
            into.copy_from_slice(&page[position.within..end]);
        }
        self.scratch = page;
        code
    }

    /// The result code of reading a whole page.
    fn check_page(&self, code: c_int, page: &[u8], number: u32) -> c_int {
        match code {
            ffi::SQLITE_OK if is_sealed(page, number) => ffi::SQLITE_OK,
            ffi::SQLITE_OK if self.may_skip_check(page, number) => ffi::SQLITE_OK,
            ffi::SQLITE_OK => self.fail(number, damage_kind_of(page)),
            // SQLite continues with zeros. That is correct for a page that is being added.
            ffi::SQLITE_IOERR_SHORT_READ if number > self.pages.load(Ordering::Relaxed) => code,
            ffi::SQLITE_IOERR_SHORT_READ => self.fail(number, DamageKind::Missing),
            code => code,
        }
    }

    fn read_log(&mut self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let code = self.real.read(into, offset);
        // SQLite itself verifies everything else in the log.
        let is_page = into.len() >= MIN_PAGE_SIZE && into.len().is_power_of_two();
        match code {
            ffi::SQLITE_OK if is_page => {}
            ffi::SQLITE_IOERR_SHORT_READ if is_page => return self.fail(0, DamageKind::Missing),
            code => return code,
        }
        match self.log.verify(self.real, into, offset) {
            Ok(()) => ffi::SQLITE_OK,
            // Interior pages may be read for salvage, even if they do not match.
            Err(number) if self.checking == Checking::Leaves && is_interior(into, number) => {
                ffi::SQLITE_OK
            }
            Err(number) => self.fail(number, DamageKind::Mismatch),
        }
    }

    fn may_skip_check(&self, page: &[u8], number: u32) -> bool {
        self.checking == Checking::Leaves
            && (is_interior(page, number) || damage_kind_of(page) == DamageKind::Unsealed)
    }

    fn fail(&self, page: u32, fault: DamageKind) -> c_int {
        note(PageDamage { page, part: self.part, fault });
        ffi::SQLITE_IOERR_DATA
    }

    fn write_file(&mut self, from: &[u8], offset: sqlite3_int64) -> c_int {
        if let Sealing::Undecided { assumed } = self.sealing {
            self.sealing = match (offset, assumed) {
                (0, _) => header_of(from),
                (_, false) => sealing_of(self.real),
                (_, true) => self.sealing,
            };
            if assumed && self.sealing == Sealing::Off {
                return ffi::SQLITE_IOERR_WRITE;
            }
        } else if offset == 0 && header_of(from) != self.sealing {
            // A file keeps the layout it was created with: others that have it open rely on it.
            return ffi::SQLITE_IOERR_WRITE;
        }
        let page_size = match self.sealing {
            Sealing::Off => return self.real.write(from, offset),
            Sealing::On { page_size } => page_size,
            // SQLite may write a page out of its cache before it writes the first one. If the
            // first page then has no room for checksums, writing it fails.
            Sealing::Undecided { .. } => {
                self.sealing = Sealing::Undecided { assumed: true };
                from.len()
            }
        };
        let position = PagePosition::of(offset, page_size).filter(|position| position.within == 0);
        let (Some(position), true) = (position, from.len() == page_size) else {
            return ffi::SQLITE_IOERR_WRITE;
        };
        // Seal a copy: the buffer belongs to SQLite and must not be changed.
        self.scratch.clear();
        self.scratch.extend_from_slice(from);
        seal(&mut self.scratch, position.number);
        self.real.write(&self.scratch, offset)
    }
}

/// The position of a read or write within the pages of the file.
struct PagePosition {
    number: u32,
    start: sqlite3_int64,
    within: usize,
}

impl PagePosition {
    fn of(offset: sqlite3_int64, page_size: usize) -> Option<Self> {
        let size = sqlite3_int64::try_from(page_size).ok().filter(|size| *size > 0)?;
        let number = u32::try_from(offset.checked_div_euclid(size)?).ok()?.checked_add(1)?;
        let within = usize::try_from(offset.checked_rem_euclid(size)?).ok()?;
        Some(Self { number, start: offset - offset % size, within })
    }
}

/// Reads the header of a file that may be empty.
fn sealing_of(real: RealFile) -> Sealing {
    let mut header = [0; HEADER_BYTES];
    match real.read(&mut header, 0) {
        ffi::SQLITE_OK => header_of(&header),
        _ if real.length() == Some(0) => Sealing::Undecided { assumed: false },
        // SQLite reports by itself that the file is not a database.
        _ => Sealing::Off,
    }
}

fn header_of(bytes: &[u8]) -> Sealing {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Sealing::Off };
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => usize::from(size),
    };
    let is_database =
        header.starts_with(MAGIC) && page_size >= MIN_PAGE_SIZE && page_size.is_power_of_two();
    // Any number but 0 is either ours or damaged; the checksum of the page tells which.
    match header[20] {
        1.. if is_database => Sealing::On { page_size },
        _ => Sealing::Off,
    }
}

/// What is wrong with a page that does not match. SQLite never writes a page of only zeros.
pub(crate) fn damage_kind_of(page: &[u8]) -> DamageKind {
    match is_unsealed(page) && page.iter().any(|byte| *byte != 0) {
        true => DamageKind::Unsealed,
        false => DamageKind::Mismatch,
    }
}

/// Whether a page contains only references to other pages: interior pages of B-trees and
/// pointer-map pages.
fn is_interior(page: &[u8], number: u32) -> bool {
    const INTERIOR_INDEX: u8 = 2;
    const INTERIOR_TABLE: u8 = 5;
    let kind = page.get(if number == 1 { HEADER_BYTES } else { 0 });
    matches!(kind, Some(&INTERIOR_INDEX | &INTERIOR_TABLE)) || is_pointer_map(page.len(), number)
}

fn is_pointer_map(page_size: usize, number: u32) -> bool {
    let Some(mapped) = page_size.checked_sub(usize::from(RESERVED)).map(|usable| usable / 5) else {
        return false;
    };
    let lock_page = (1 << 30) / page_size + 1;
    let number = number as usize;
    number >= 2
        && match (number - 2) % (mapped + 1) {
            0 => number != lock_page,
            1 => number - 1 == lock_page,
            _ => false,
        }
}

/// Prepares the memory of a file; returns where the real VFS places its own.
///
/// # Safety
/// There must be room for a [`ShimFile`] followed by a file of the real VFS.
pub(crate) unsafe fn begin(file: *mut ShimFile) -> *mut sqlite3_file {
    // SAFETY: guaranteed by the caller; both addresses are aligned for pointers.
    unsafe {
        file.write(ShimFile {
            base: sqlite3_file { pMethods: ptr::null() },
            state: ptr::null_mut(),
        });
        let inner = file.add(1).cast::<sqlite3_file>();
        inner.write(sqlite3_file { pMethods: ptr::null() });
        inner
    }
}

/// Completes a file that the real VFS opened, or closes it if opening failed.
///
/// # Safety
/// [`begin`] must have prepared the file, and nobody else may use it.
pub(crate) unsafe fn finish(
    file: *mut ShimFile,
    code: c_int,
    part: DatabasePart,
    checking: Checking,
    pages: Arc<AtomicU32>,
) -> c_int {
    // SAFETY: `begin` prepared it, and the real VFS may have opened it since.
    let real = unsafe { RealFile(file.add(1).cast::<sqlite3_file>()) };
    if code != ffi::SQLITE_OK {
        // SAFETY: `begin` set the methods to null; if they are set, the file must be closed.
        real.call(|it| it.xClose, |close, file| unsafe { close(file) });
        return code;
    }
    let sealing = match part {
        DatabasePart::File => sealing_of(real),
        DatabasePart::Log => Sealing::Off,
    };
    let (log, scratch) = (LogWrites::default(), Vec::new());
    let state = Box::new(FileState { real, part, checking, sealing, log, pages, scratch });
    // SAFETY: nobody else uses the file yet.
    unsafe {
        file.write(ShimFile {
            base: sqlite3_file { pMethods: &raw const METHODS },
            state: Box::into_raw(state),
        });
    }
    ffi::SQLITE_OK
}

/// The state of a file, if it belongs to the shim.
///
/// # Safety
/// The pointer must be null or point to a file of SQLite's that nobody else uses while the
/// reference lives.
pub(crate) unsafe fn state<'a>(file: *mut sqlite3_file) -> Option<&'a mut FileState> {
    // SAFETY: guaranteed by the caller. Only files of the shim have these methods and this
    // layout.
    unsafe {
        if file.is_null() || !ptr::eq((*file).pMethods, &raw const METHODS) {
            return None;
        }
        (*file.cast::<ShimFile>()).state.as_mut()
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without xFetch: memory-mapped pages would not be verified.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The real file behind a file of the shim.
///
/// # Safety
/// The file must be an open file of the shim.
unsafe fn real(file: *mut sqlite3_file) -> RealFile {
    // SAFETY: guaranteed by the caller; `begin` placed it there.
    unsafe { RealFile(file.cast::<ShimFile>().add(1).cast()) }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once and does not use it afterwards; `finish` created
    // the state from a box.
    unsafe {
        let code = real(file).call(|it| it.xClose, |close, file| close(file));
        let shim = file.cast::<ShimFile>();
        let state = std::mem::replace(&mut (*shim).state, ptr::null_mut());
        (*shim).base.pMethods = ptr::null();
        if !state.is_null() {
            drop(Box::from_raw(state));
        }
        code
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    let Ok(length) = usize::try_from(length) else { return ffi::SQLITE_IOERR_READ };
    // SAFETY: arguments from SQLite: an open file, used by one thread at a time, and an
    // exclusive buffer of this length.
    let (state, into) =
        unsafe { (state(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), length)) };
    state.map_or(ffi::SQLITE_IOERR_READ, |state| state.read(into, offset))
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    let Ok(length) = usize::try_from(length) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: as in `read`.
    let (state, from) =
        unsafe { (state(file), std::slice::from_raw_parts(from.cast::<u8>(), length)) };
    state.map_or(ffi::SQLITE_IOERR_WRITE, |state| state.write(from, offset))
}

/// Methods that are forwarded to the real file.
macro_rules! pass_on {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: arguments from SQLite, forwarded to the real file behind the shim's.
            unsafe { real(file).call(|it| it.$method, |call, file| call(file $(, $argument)*)) }
        }
    )*};
}

pass_on! {
    truncate = xTruncate(length: sqlite3_int64);
    sync = xSync(flags: c_int);
    file_size = xFileSize(length: *mut sqlite3_int64);
    lock = xLock(level: c_int);
    unlock = xUnlock(level: c_int);
    check_reserved_lock = xCheckReservedLock(result: *mut c_int);
    file_control = xFileControl(operation: c_int, argument: *mut c_void);
    sector_size = xSectorSize();
    device_characteristics = xDeviceCharacteristics();
    shm_map = xShmMap(region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap = xShmUnmap(delete: c_int);
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: an argument from SQLite.
    let real = unsafe { real(file) };
    real.call(
        |it| it.xShmBarrier,
        |barrier, file| {
            // SAFETY: as above.
            unsafe { barrier(file) };
            ffi::SQLITE_OK
        },
    );
}
