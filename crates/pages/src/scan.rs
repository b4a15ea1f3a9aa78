#![allow(unsafe_code)]

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use rusqlite::{Connection, ffi};

use crate::checksum::is_sealed;
use crate::damage::{DamageKind, DatabasePart, PageDamage};
use crate::file::{self, RealFile, damage_kind_of};
use crate::log::{FRAME_HEADER_BYTES, LOG_HEADER_BYTES, big_endian, read_header};
use crate::shim::file_of;

/// The number of bytes read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// SQLite never uses the page that contains this byte: its locks are there.
const LOCK_BYTE: u64 = 1 << 30;

/// Reads every page of the database file, used or free, and calls `found` with those that do
/// not match their checksums. Pages that are also in the log are skipped: they may be partly
/// written, and the log has the current version. The caller must hold a read transaction. Stops
/// when `go_on` returns false, which is called before each block.
///
/// Returns the number of verified pages; `None` if the file has no checksums.
///
/// # Errors
/// SQLite's, if the file cannot be read.
pub fn scan(
    db: &Connection,
    go_on: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(PageDamage) -> ControlFlow<()>,
) -> rusqlite::Result<Option<u64>> {
    let file = file_of(db, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    // SAFETY: the connection is borrowed, so nothing else uses its file now.
    let Some(state) = (unsafe { file::state(file) }) else { return Ok(None) };
    let (real, Some(page_size)) = (state.real, state.page_size()) else { return Ok(None) };
    let log = file_of(db, ffi::SQLITE_FCNTL_JOURNAL_POINTER)?;
    // SAFETY: as above; this is a different file.
    let log = unsafe { file::state(log) }.map(|state| state.real);
    let length = real.length().ok_or_else(|| failure(ffi::SQLITE_IOERR_FSTAT))?;
    let mut scan = Scan { real, log, page_size, length, verified: 0, in_log: OnceCell::new() };
    scan.run(go_on, found)?;
    Ok(Some(scan.verified))
}

struct Scan {
    real: RealFile,
    log: Option<RealFile>,
    page_size: usize,
    length: u64,
    verified: u64,
    /// The pages in the log, read when the first page does not match. One read is enough: while
    /// the caller holds its read transaction, only pages that were in the log before are copied
    /// into the file.
    in_log: OnceCell<HashSet<u32>>,
}

impl Scan {
    fn run(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
        found: &mut dyn FnMut(PageDamage) -> ControlFlow<()>,
    ) -> rusqlite::Result<()> {
        let mut block = vec![0; BLOCK_BYTES.max(self.page_size)];
        let mut at = 0;
        while at < self.length && go_on() {
            let rest = usize::try_from(self.length - at).unwrap_or(usize::MAX);
            let size = block.len().min(rest);
            let block = &mut block[..size];
            match self.real.read(block, i64::try_from(at).unwrap_or(i64::MAX)) {
                // Another process truncated the file: these pages are not in use.
                ffi::SQLITE_IOERR_SHORT_READ => return Ok(()),
                ffi::SQLITE_OK => {}
                code => return Err(failure(code)),
            }
            for page in block.chunks(self.page_size) {
                if let Some(damage) = self.check_page(page, at)
                    && found(damage).is_break()
                {
                    return Ok(());
                }
                at += page.len() as u64;
            }
        }
        Ok(())
    }

    fn check_page(&mut self, page: &[u8], at: u64) -> Option<PageDamage> {
        let number = u32::try_from(at / self.page_size as u64 + 1).unwrap_or(u32::MAX);
        if LOCK_BYTE / self.page_size as u64 + 1 == u64::from(number) {
            return None;
        }
        self.verified += 1;
        if is_sealed(page, number) || self.is_in_log(number) {
            return None;
        }
        // It may have been written back from the log just now.
        let mut again = vec![0; self.page_size];
        let code = self.real.read(&mut again, i64::try_from(at).unwrap_or(i64::MAX));
        if code == ffi::SQLITE_OK && is_sealed(&again, number) {
            return None;
        }
        let is_short = page.len() < self.page_size;
        let fault = if is_short { DamageKind::Missing } else { damage_kind_of(page) };
        Some(PageDamage { page: number, part: DatabasePart::File, fault })
    }

    fn is_in_log(&self, page: u32) -> bool {
        self.in_log.get_or_init(|| self.pages_in_log()).contains(&page)
    }

    /// The pages that committed transactions have left in the log.
    fn pages_in_log(&self) -> HashSet<u32> {
        let (mut pages, mut committed) = (Vec::new(), 0);
        let Some((log, salt)) = self.log.and_then(|log| Some((log, salt_of(log)?))) else {
            return HashSet::new();
        };
        let mut at = LOG_HEADER_BYTES;
        while let Some(header) = read_header(log, at).filter(|header| header[8..16] == salt) {
            pages.push(big_endian(&header[0..4]));
            if big_endian(&header[4..8]) != 0 {
                committed = pages.len();
            }
            at += FRAME_HEADER_BYTES + self.page_size as u64;
        }
        pages.truncate(committed);
        pages.into_iter().collect()
    }
}

/// The salt that all frames of the current log share.
fn salt_of(log: RealFile) -> Option<[u8; 8]> {
    let mut header = [0; LOG_HEADER_BYTES as usize];
    (log.read(&mut header, 0) == ffi::SQLITE_OK).then_some(())?;
    header[16..24].try_into().ok()
}

fn failure(code: std::ffi::c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}
