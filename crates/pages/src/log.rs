//! Pages in the write-ahead log.
//!
//! A frame is a header of 24 bytes and a page. Its checksum continues that of the previous
//! frame, and covers the first 8 bytes of the header and the page. SQLite checks it when it
//! recovers a log, but not when it reads a page from a log in use.

use rusqlite::ffi::{self, sqlite3_int64};

use crate::file::RealFile;

pub(crate) const LOG_HEADER_BYTES: u64 = 32;
pub(crate) const FRAME_HEADER_BYTES: u64 = 24;

/// The writes to the log through this file.
#[derive(Debug, Default)]
pub(crate) struct LogWrites {
    /// The end of the frame header that was written last.
    header_end: Option<u64>,
    /// From this frame on, checksums do not match the pages: the current transaction has
    /// replaced a page in its own frames, and will rewrite their headers before it commits.
    mismatched_from: Option<u64>,
}

impl LogWrites {
    pub(crate) fn note_write(&mut self, length: usize, offset: sqlite3_int64) {
        let (Ok(length), Ok(offset)) = (u64::try_from(length), u64::try_from(offset)) else {
            return;
        };
        if offset == 0 {
            *self = Self::default();
        } else if length == FRAME_HEADER_BYTES {
            // Frames are written in order, so all from here on will match.
            self.mismatched_from = self.mismatched_from.filter(|from| *from < offset);
            self.header_end = Some(offset + FRAME_HEADER_BYTES);
        } else if self.header_end.take() != Some(offset) {
            let frame = offset.saturating_sub(FRAME_HEADER_BYTES);
            self.mismatched_from = Some(self.mismatched_from.map_or(frame, |from| from.min(frame)));
        }
    }

    /// Verifies a page against the checksum of its frame.
    ///
    /// # Errors
    /// The number of the page that does not match; 0 if it cannot be read.
    pub(crate) fn verify(
        &self,
        log: RealFile,
        page: &[u8],
        offset: sqlite3_int64,
    ) -> Result<(), u32> {
        let Some(frame) =
            u64::try_from(offset).ok().and_then(|at| at.checked_sub(FRAME_HEADER_BYTES))
        else {
            return Err(0);
        };
        if self.mismatched_from.is_some_and(|from| from <= frame) {
            return Ok(());
        }
        let header = read_header(log, frame).ok_or(0_u32)?;
        let number = big_endian(&header[0..4]);
        let before = match frame.checked_sub(FRAME_HEADER_BYTES + page.len() as u64) {
            Some(before) if before >= LOG_HEADER_BYTES => read_header(log, before),
            // The log's header ends with a checksum in the same position as a frame header's.
            _ if frame == LOG_HEADER_BYTES => {
                read_header(log, LOG_HEADER_BYTES - FRAME_HEADER_BYTES)
            }
            _ => None,
        };
        let before = before.ok_or(number)?;
        let start = (big_endian(&before[16..20]), big_endian(&before[20..24]));
        let expected = (big_endian(&header[16..20]), big_endian(&header[20..24]));
        // Try little-endian first: nearly all logs have it.
        if add::<false>(add::<false>(start, &header[..8]), page) == expected
            || add::<true>(add::<true>(start, &header[..8]), page) == expected
        {
            return Ok(());
        }
        Err(number)
    }
}

/// Reads the frame header at this offset.
pub(crate) fn read_header(log: RealFile, at: u64) -> Option<[u8; FRAME_HEADER_BYTES as usize]> {
    let mut header = [0; FRAME_HEADER_BYTES as usize];
    let code = log.read(&mut header, sqlite3_int64::try_from(at).ok()?);
    (code == ffi::SQLITE_OK).then_some(header)
}

pub(crate) fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// SQLite's checksum of the log, over pairs of 32-bit words.
fn add<const BIG: bool>(start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |bytes| if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    bytes.chunks_exact(8).fold(start, |(one, two), pair| {
        let one = one.wrapping_add(word([pair[0], pair[1], pair[2], pair[3]])).wrapping_add(two);
        let two = two.wrapping_add(word([pair[4], pair[5], pair[6], pair[7]])).wrapping_add(one);
        (one, two)
    })
}
