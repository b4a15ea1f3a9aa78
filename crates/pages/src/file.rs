//! Files that hold pages, as SQLite sees them.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64};

use crate::checksum::{RESERVED, is_sealed, is_unsealed, seal, unseal};
use crate::damage::{Damage, Fault, Part, note};
use crate::log::{LogState, big};
use crate::shim::Checking;

/// The header at the beginning of a database file.
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const SMALLEST_PAGE: usize = 512;

/// What SQLite sees; the file of the real VFS lies behind it in the same memory.
#[repr(C)]
pub(crate) struct ShimFile {
    base: sqlite3_file,
    state: *mut State,
}

/// What is known about an open file.
pub(crate) struct State {
    pub(crate) real: Real,
    part: Part,
    checking: Checking,
    sealing: Sealing,
    log: LogState,
    /// How many pages the database had when the connection last read or wrote its first one.
    /// The file and its log share this.
    pages: Arc<AtomicU32>,
    /// For pages that are read in part, and for those that are sealed.
    scratch: Vec<u8>,
}

/// Whether the pages of the database file carry checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealing {
    /// It is empty. Whether pages were sealed on the assumption that it will be so.
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
pub(crate) struct Real(*mut sqlite3_file);

impl Real {
    /// Calls one of its methods, if it has it.
    fn call<M>(
        self,
        which: impl FnOnce(&ffi::sqlite3_io_methods) -> Option<M>,
        call: impl FnOnce(M, *mut sqlite3_file) -> c_int,
    ) -> c_int {
        // SAFETY: it is open for as long as this exists, so it has methods.
        let method = unsafe { (*self.0).pMethods.as_ref() }.and_then(which);
        method.map_or(ffi::SQLITE_IOERR, |method| call(method, self.0))
    }

    pub(crate) fn read(self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let Ok(length) = c_int::try_from(into.len()) else { return ffi::SQLITE_IOERR_READ };
        // SAFETY: the buffer is as long as is said.
        self.call(
            |it| it.xRead,
            |read, file| unsafe { read(file, into.as_mut_ptr().cast(), length, offset) },
        )
    }

    fn write(self, from: &[u8], offset: sqlite3_int64) -> c_int {
        let Ok(length) = c_int::try_from(from.len()) else { return ffi::SQLITE_IOERR_WRITE };
        // SAFETY: the buffer is as long as is said.
        self.call(
            |it| it.xWrite,
            |write, file| unsafe { write(file, from.as_ptr().cast(), length, offset) },
        )
    }

    /// Its length; none if that cannot be told.
    pub(crate) fn length(self) -> Option<u64> {
        let mut length: sqlite3_int64 = 0;
        // SAFETY: the number lives as long as the call.
        let code =
            self.call(|it| it.xFileSize, |size, file| unsafe { size(file, &raw mut length) });
        if code == ffi::SQLITE_OK { u64::try_from(length).ok() } else { None }
    }
}

impl State {
    /// The size of the pages, if they carry checksums.
    pub(crate) fn page_size(&self) -> Option<usize> {
        match self.sealing {
            Sealing::On { page_size } => Some(page_size),
            Sealing::Undecided { .. } | Sealing::Off => None,
        }
    }

    fn read(&mut self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let code = match (self.checking, self.part) {
            (Checking::Nothing, _) => self.real.read(into, offset),
            (_, Part::File) => self.read_file(into, offset),
            (_, Part::Log) => self.read_log(into, offset),
        };
        if code == ffi::SQLITE_OK {
            self.note_pages(into);
        }
        code
    }

    /// Notes what the first page says.
    fn note_pages(&self, page: &[u8]) {
        if page.len() >= SMALLEST_PAGE && page.starts_with(MAGIC) {
            self.pages.store(big(&page[28..32]), Ordering::Relaxed);
        }
    }

    fn write(&mut self, from: &[u8], offset: sqlite3_int64) -> c_int {
        self.note_pages(from);
        match self.part {
            Part::File => self.write_file(from, offset),
            Part::Log => {
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
        // SQLite looks at parts of the header without holding a lock, so that the page may
        // just be being written. It believes nothing of that before it has read the page.
        let peek = usize::try_from(offset).is_ok_and(|at| at + into.len() <= HEADER);
        let (Sealing::On { page_size }, false) = (self.sealing, peek) else {
            return self.real.read(into, offset);
        };
        let Some(place) = Place::of(offset, page_size) else { return ffi::SQLITE_IOERR_READ };
        if place.within == 0 && into.len() == page_size {
            let code = self.real.read(into, offset);
            let code = self.judge(code, into, place.number);
            unseal(into);
            return code;
        }
        // The first bytes of a page with a part of a long value, or pages of a size that
        // does not fit: the header was damaged.
        let Some(end) = place.within.checked_add(into.len()).filter(|end| *end <= page_size) else {
            return self.fail(place.number, Fault::Mismatch);
        };
        let mut page = std::mem::take(&mut self.scratch);
        page.resize(page_size, 0);
        let code = self.real.read(&mut page, place.start);
        let code = self.judge(code, &page, place.number);
        if code == ffi::SQLITE_OK || code == ffi::SQLITE_IOERR_SHORT_READ {
            into.copy_from_slice(&page[place.within..end]);
        }
        self.scratch = page;
        code
    }

    /// What reading a whole page comes to.
    fn judge(&self, code: c_int, page: &[u8], number: u32) -> c_int {
        match code {
            ffi::SQLITE_OK if is_sealed(page, number) => ffi::SQLITE_OK,
            ffi::SQLITE_OK if self.lets_pass(page, number) => ffi::SQLITE_OK,
            ffi::SQLITE_OK => self.fail(number, fault_of(page)),
            // SQLite goes on with zeros. That is right for a page that is just being added.
            ffi::SQLITE_IOERR_SHORT_READ if number > self.pages.load(Ordering::Relaxed) => code,
            ffi::SQLITE_IOERR_SHORT_READ => self.fail(number, Fault::Missing),
            code => code,
        }
    }

    fn read_log(&mut self, into: &mut [u8], offset: sqlite3_int64) -> c_int {
        let code = self.real.read(into, offset);
        // All else that is read there is compared with its checksums by SQLite.
        let is_page = into.len() >= SMALLEST_PAGE && into.len().is_power_of_two();
        match code {
            ffi::SQLITE_OK if is_page => {}
            ffi::SQLITE_IOERR_SHORT_READ if is_page => return self.fail(0, Fault::Missing),
            code => return code,
        }
        match self.log.verify(self.real, into, offset) {
            Ok(()) => ffi::SQLITE_OK,
            // Their reserved bytes say nothing.
            Err(number) if self.checking == Checking::Leaves && leads_to_others(into, number) => {
                ffi::SQLITE_OK
            }
            Err(number) => self.fail(number, Fault::Mismatch),
        }
    }

    fn lets_pass(&self, page: &[u8], number: u32) -> bool {
        self.checking == Checking::Leaves
            && (leads_to_others(page, number) || fault_of(page) == Fault::Unsealed)
    }

    fn fail(&self, page: u32, fault: Fault) -> c_int {
        note(Damage { page, part: self.part, fault });
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
            // A file keeps what it was created with: others that have it open rely on it.
            return ffi::SQLITE_IOERR_WRITE;
        }
        let page_size = match self.sealing {
            Sealing::Off => return self.real.write(from, offset),
            Sealing::On { page_size } => page_size,
            // A page that did not fit into memory is written before the first one. If that
            // turns out to have no room for checksums, writing it fails.
            Sealing::Undecided { .. } => {
                self.sealing = Sealing::Undecided { assumed: true };
                from.len()
            }
        };
        let place = Place::of(offset, page_size).filter(|place| place.within == 0);
        let (Some(place), true) = (place, from.len() == page_size) else {
            return ffi::SQLITE_IOERR_WRITE;
        };
        // A copy: the memory is SQLite's, and not to be changed.
        self.scratch.clear();
        self.scratch.extend_from_slice(from);
        seal(&mut self.scratch, place.number);
        self.real.write(&self.scratch, offset)
    }
}

/// Where in the file a read or write begins.
struct Place {
    number: u32,
    start: sqlite3_int64,
    within: usize,
}

impl Place {
    fn of(offset: sqlite3_int64, page_size: usize) -> Option<Self> {
        let size = sqlite3_int64::try_from(page_size).ok().filter(|size| *size > 0)?;
        let number = u32::try_from(offset.checked_div_euclid(size)?).ok()?.checked_add(1)?;
        let within = usize::try_from(offset.checked_rem_euclid(size)?).ok()?;
        Some(Self { number, start: offset - offset % size, within })
    }
}

/// What the header of a file that may be empty says.
fn sealing_of(real: Real) -> Sealing {
    let mut header = [0; HEADER];
    match real.read(&mut header, 0) {
        ffi::SQLITE_OK => header_of(&header),
        _ if real.length() == Some(0) => Sealing::Undecided { assumed: false },
        // SQLite has its own words for what is not a database.
        _ => Sealing::Off,
    }
}

fn header_of(bytes: &[u8]) -> Sealing {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Sealing::Off };
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => usize::from(size),
    };
    let is_database =
        header.starts_with(MAGIC) && page_size >= SMALLEST_PAGE && page_size.is_power_of_two();
    // Any number but 0 is either ours or damaged, which the checksum of the page will tell.
    match header[20] {
        1.. if is_database => Sealing::On { page_size },
        _ => Sealing::Off,
    }
}

/// What is wrong with a page that does not match. One of zeros alone was not written by SQLite.
pub(crate) fn fault_of(page: &[u8]) -> Fault {
    match is_unsealed(page) && page.iter().any(|byte| *byte != 0) {
        true => Fault::Unsealed,
        false => Fault::Mismatch,
    }
}

/// Whether a page holds nothing but ways to other pages: inner pages of trees, and the maps
/// by which a file is made shorter.
fn leads_to_others(page: &[u8], number: u32) -> bool {
    const INNER_INDEX: u8 = 2;
    const INNER_TABLE: u8 = 5;
    let kind = page.get(if number == 1 { HEADER } else { 0 });
    matches!(kind, Some(&INNER_INDEX | &INNER_TABLE)) || is_map(page.len(), number)
}

fn is_map(page_size: usize, number: u32) -> bool {
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

/// Prepares the memory of a file, and says where the real VFS has its own.
///
/// # Safety
/// There must be room for a [`ShimFile`] and a file of the real VFS behind it.
pub(crate) unsafe fn begin(file: *mut ShimFile) -> *mut sqlite3_file {
    // SAFETY: the caller's; both begin at an address that is good for pointers.
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

/// Makes an open file of what the real VFS opened, or closes it again.
///
/// # Safety
/// [`begin`] must have prepared the file, and nobody else may use it.
pub(crate) unsafe fn finish(
    file: *mut ShimFile,
    code: c_int,
    part: Part,
    checking: Checking,
    pages: Arc<AtomicU32>,
) -> c_int {
    // SAFETY: as `begin` left it, or opened by the real VFS since.
    let real = unsafe { Real(file.add(1).cast::<sqlite3_file>()) };
    if code != ffi::SQLITE_OK {
        // SAFETY: `begin` set the methods to null; if they are there, the file wants closing.
        real.call(|it| it.xClose, |close, file| unsafe { close(file) });
        return code;
    }
    let sealing = match part {
        Part::File => sealing_of(real),
        Part::Log => Sealing::Off,
    };
    let (log, scratch) = (LogState::default(), Vec::new());
    let state = Box::new(State { real, part, checking, sealing, log, pages, scratch });
    // SAFETY: the file is still the caller's alone.
    unsafe {
        file.write(ShimFile {
            base: sqlite3_file { pMethods: &raw const METHODS },
            state: Box::into_raw(state),
        });
    }
    ffi::SQLITE_OK
}

/// What is known about a file, if it is one of the shim's.
///
/// # Safety
/// The pointer must be null or lead to a file of SQLite's, which nobody else uses while the
/// reference lives.
pub(crate) unsafe fn state<'a>(file: *mut sqlite3_file) -> Option<&'a mut State> {
    // SAFETY: the caller's. Only files of the shim have these methods and this layout.
    unsafe {
        if file.is_null() || !ptr::eq((*file).pMethods, &raw const METHODS) {
            return None;
        }
        (*file.cast::<ShimFile>()).state.as_mut()
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without xFetch: mapped pages would not be verified.
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

/// The real file behind one of the shim's.
///
/// # Safety
/// The file must be an open one of the shim's.
unsafe fn real(file: *mut sqlite3_file) -> Real {
    // SAFETY: the caller's; `begin` put it there.
    unsafe { Real(file.cast::<ShimFile>().add(1).cast()) }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once and does not use it afterwards; the state was
    // made by `finish` from a box.
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
    // SAFETY: SQLite's own arguments: an open file, which one thread uses at a time, and a
    // buffer of this length, which nothing else refers to.
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

/// Methods that are those of the real file.
macro_rules! pass_on {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: SQLite's own arguments, for the file that the shim's stands before.
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
    // SAFETY: SQLite's own argument.
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
