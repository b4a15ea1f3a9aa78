#![allow(unsafe_code)]

use std::collections::HashSet;
use std::ops::ControlFlow;

use rusqlite::{Connection, ffi};

use crate::checksum::is_sealed;
use crate::damage::{Damage, Fault, Part};
use crate::file::{self, Real, fault_of};
use crate::log::{FRAME_HEADER, LOG_HEADER, big, read_header};
use crate::shim::file_of;

/// This many bytes are read at once.
const BLOCK: usize = 1 << 20;

/// SQLite never uses the page that this byte would be in: its locks are there.
const LOCK_BYTE: u64 = 1 << 30;

/// Reads every page of the database file, whether it is in use or free, and hands over
/// those that do not match their checksums. A page that is also in the log is left out: it
/// may just be being written, and what counts is read from the log. The caller reads within
/// a transaction. `go_on` is asked now and then.
///
/// Returns the number of pages that were verified; none if the file has no checksums.
///
/// # Errors
/// SQLite's, if the file cannot be read.
pub fn scan(
    db: &Connection,
    go_on: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(Damage) -> ControlFlow<()>,
) -> rusqlite::Result<Option<u64>> {
    let file = file_of(db, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    // SAFETY: the file of a connection that is borrowed, so that nothing else uses it now.
    let Some(state) = (unsafe { file::state(file) }) else { return Ok(None) };
    let (real, Some(page_size)) = (state.real, state.page_size()) else { return Ok(None) };
    let log = file_of(db, ffi::SQLITE_FCNTL_JOURNAL_POINTER)?;
    // SAFETY: as above; another file than the one before.
    let log = unsafe { file::state(log) }.map(|state| state.real);
    let length = real.length().ok_or_else(|| failure(ffi::SQLITE_IOERR_FSTAT))?;
    let mut scan = Scan { real, log, page_size, length, verified: 0 };
    scan.run(go_on, found)?;
    Ok(Some(scan.verified))
}

struct Scan {
    real: Real,
    log: Option<Real>,
    page_size: usize,
    length: u64,
    verified: u64,
}

impl Scan {
    fn run(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
        found: &mut dyn FnMut(Damage) -> ControlFlow<()>,
    ) -> rusqlite::Result<()> {
        let mut block = vec![0; BLOCK.max(self.page_size)];
        let mut at = 0;
        while at < self.length && go_on() {
            let rest = usize::try_from(self.length - at).unwrap_or(usize::MAX);
            let size = block.len().min(rest);
            let block = &mut block[..size];
            match self.real.read(block, i64::try_from(at).unwrap_or(i64::MAX)) {
                // Cut back by another process in the meantime: these pages are not in use.
                ffi::SQLITE_IOERR_SHORT_READ => return Ok(()),
                ffi::SQLITE_OK => {}
                code => return Err(failure(code)),
            }
            for page in block.chunks(self.page_size) {
                if let Some(damage) = self.look_at(page, at)
                    && found(damage).is_break()
                {
                    return Ok(());
                }
                at += page.len() as u64;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, page: &[u8], at: u64) -> Option<Damage> {
        let number = u32::try_from(at / self.page_size as u64 + 1).unwrap_or(u32::MAX);
        if LOCK_BYTE / self.page_size as u64 + 1 == u64::from(number) {
            return None;
        }
        self.verified += 1;
        if is_sealed(page, number) || self.in_log().contains(&number) {
            return None;
        }
        // It may have been in the log a moment ago, and be complete by now.
        let mut again = vec![0; self.page_size];
        let code = self.real.read(&mut again, i64::try_from(at).unwrap_or(i64::MAX));
        if code == ffi::SQLITE_OK && is_sealed(&again, number) {
            return None;
        }
        let is_short = page.len() < self.page_size;
        let fault = if is_short { Fault::Missing } else { fault_of(page) };
        Some(Damage { page: number, part: Part::File, fault })
    }

    /// The pages that committed transactions have left in the log. Asked for a page that
    /// does not match, hence seldom.
    fn in_log(&self) -> HashSet<u32> {
        let (mut pages, mut committed) = (Vec::new(), 0);
        let Some((log, salt)) = self.log.and_then(|log| Some((log, salt_of(log)?))) else {
            return HashSet::new();
        };
        let mut at = LOG_HEADER;
        while let Some(header) = read_header(log, at).filter(|header| header[8..16] == salt) {
            pages.push(big(&header[0..4]));
            if big(&header[4..8]) != 0 {
                committed = pages.len();
            }
            at += FRAME_HEADER + self.page_size as u64;
        }
        pages.truncate(committed);
        pages.into_iter().collect()
    }
}

/// What the frames of the current log have in common.
fn salt_of(log: Real) -> Option<[u8; 8]> {
    let mut header = [0; LOG_HEADER as usize];
    (log.read(&mut header, 0) == ffi::SQLITE_OK).then_some(())?;
    header[16..24].try_into().ok()
}

fn failure(code: std::ffi::c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}
