//! Pages in the write-ahead log.
//!
//! A frame is a header of 24 bytes and a page. Its checksum goes on from that of the frame
//! before it, and covers the first 8 bytes of the header and the page. SQLite compares it
//! when it recovers a log, and not when it reads a page of one that is in use.

use rusqlite::ffi::{self, sqlite3_int64};

use crate::file::Real;

pub(crate) const LOG_HEADER: u64 = 32;
pub(crate) const FRAME_HEADER: u64 = 24;

/// What was written to the log through this file.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    /// Where the header of a frame ended that was written last.
    header_end: Option<u64>,
    /// From this frame on, checksums are not those of the pages: the transaction that is
    /// being written has replaced a page in its own frames, and will write the headers of
    /// these again before it is committed.
    unsettled: Option<u64>,
}

impl LogState {
    pub(crate) fn note_write(&mut self, length: usize, offset: sqlite3_int64) {
        let (Ok(length), Ok(offset)) = (u64::try_from(length), u64::try_from(offset)) else {
            return;
        };
        if offset == 0 {
            *self = Self::default();
        } else if length == FRAME_HEADER {
            // Frames are written in order, so that all from here on will match.
            self.unsettled = self.unsettled.filter(|from| *from < offset);
            self.header_end = Some(offset + FRAME_HEADER);
        } else if self.header_end.take() != Some(offset) {
            let frame = offset.saturating_sub(FRAME_HEADER);
            self.unsettled = Some(self.unsettled.map_or(frame, |from| from.min(frame)));
        }
    }

    /// Compares a page with the checksum of its frame.
    ///
    /// # Errors
    /// The number of the page that does not match; 0 if even that cannot be read.
    pub(crate) fn verify(&self, log: Real, page: &[u8], offset: sqlite3_int64) -> Result<(), u32> {
        let Some(frame) = u64::try_from(offset).ok().and_then(|at| at.checked_sub(FRAME_HEADER))
        else {
            return Err(0);
        };
        if self.unsettled.is_some_and(|from| from <= frame) {
            return Ok(());
        }
        let header = read_header(log, frame).ok_or(0_u32)?;
        let number = big(&header[0..4]);
        let before = match frame.checked_sub(FRAME_HEADER + page.len() as u64) {
            Some(before) if before >= LOG_HEADER => read_header(log, before),
            // The header of the log ends with a checksum at the same distance from its end.
            _ if frame == LOG_HEADER => read_header(log, LOG_HEADER - FRAME_HEADER),
            _ => None,
        };
        let before = before.ok_or(number)?;
        let start = (big(&before[16..20]), big(&before[20..24]));
        let expected = (big(&header[16..20]), big(&header[20..24]));
        // Nearly always written on a machine like this one.
        if add::<false>(add::<false>(start, &header[..8]), page) == expected
            || add::<true>(add::<true>(start, &header[..8]), page) == expected
        {
            return Ok(());
        }
        Err(number)
    }
}

/// The header of the frame at this place.
pub(crate) fn read_header(log: Real, at: u64) -> Option<[u8; FRAME_HEADER as usize]> {
    let mut header = [0; FRAME_HEADER as usize];
    let code = log.read(&mut header, sqlite3_int64::try_from(at).ok()?);
    (code == ffi::SQLITE_OK).then_some(header)
}

pub(crate) fn big(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// SQLite's checksum of the log, over whole pairs of words.
fn add<const BIG: bool>(start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |bytes| if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    bytes.chunks_exact(8).fold(start, |(one, two), pair| {
        let one = one.wrapping_add(word([pair[0], pair[1], pair[2], pair[3]])).wrapping_add(two);
        let two = two.wrapping_add(word([pair[4], pair[5], pair[6], pair[7]])).wrapping_add(one);
        (one, two)
    })
}
