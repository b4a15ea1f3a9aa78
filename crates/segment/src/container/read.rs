use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use isolate_types::InWorker;
use memmap2::Mmap;

use super::layout::{BLOCK, HEADER_BYTES, Header, Section, SegmentKind, Trailer, decode_directory};
use crate::SegmentError;

/// A memory-mapped segment. Each block is verified before its first use.
#[derive(Debug)]
pub struct Container {
    path: PathBuf,
    map: Mmap,
    version: u32,
    checksum: u32,
    sections: Vec<Section>,
    /// Everything before the checksum table.
    content: Range<usize>,
    /// One bit per block: whether it has been verified.
    checked: Vec<AtomicU64>,
}

impl Container {
    /// Maps a segment and verifies its header, trailer, checksum table and directory.
    /// `expected_checksum` is the one recorded in the database.
    ///
    /// # Errors
    /// If the file cannot be mapped, is damaged, or has another kind or checksum.
    pub fn open(
        path: &Path,
        kind: SegmentKind,
        expected_checksum: Option<u32>,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        let map = map(path).map_err(SegmentError::io("open", path))?;
        let foreign = || SegmentError::NotASegment { path: path.into() };
        let header = Header::decode(map.get(..HEADER_BYTES).ok_or_else(foreign)?, path)?;
        if header.kind != kind {
            let (found, expected) = (header.kind, kind);
            return Err(SegmentError::WrongKind { path: path.into(), found, expected });
        }
        let end = map.len() - HEADER_BYTES;
        let trailer = Trailer::decode(&map[end..], map.len() as u64, path)?;
        // The trailer's parts add up to the file's length, so they all fit a usize.
        let content = 0..trailer.table_at() as usize;
        let table = content.end..end;
        if crc32c::crc32c(&map[table]) != trailer.checksum {
            return Err(SegmentError::damaged(path, "checksum table does not match its checksum"));
        }
        if let Some(expected) = expected_checksum.filter(|sum| *sum != trailer.checksum) {
            let found = trailer.checksum;
            return Err(SegmentError::WrongChecksum { path: path.into(), found, expected });
        }
        let blocks = content.end.div_ceil(BLOCK);
        let mut container = Self {
            path: path.into(),
            map,
            version: header.version,
            checksum: trailer.checksum,
            sections: Vec::new(),
            content,
            checked: (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        };
        let directory_at = trailer.directory_at as usize;
        let directory = container.bytes(directory_at..container.content.end)?;
        container.sections = decode_directory(directory, directory_at)
            .ok_or_else(|| SegmentError::damaged(path, "malformed directory"))?;
        Ok(container)
    }

    /// The byte range of a section.
    ///
    /// # Errors
    /// If there is no section with this name.
    pub fn section(&self, name: &str) -> Result<Range<usize>, SegmentError> {
        let section = self.sections.iter().find(|section| section.name == name);
        section
            .map(|section| section.range.clone())
            .ok_or_else(|| self.damaged(format!("section {name:?} is missing")))
    }

    /// The names and byte ranges of all sections.
    pub fn sections(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.sections.iter().map(|section| (section.name.as_str(), section.range.clone()))
    }

    /// Bytes of the file. Blocks that have not been verified yet are verified first.
    ///
    /// # Errors
    /// If a block does not match its checksum, or the range is out of bounds.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> Result<&[u8], SegmentError> {
        if range.start > range.end || range.end > self.content.end {
            return Err(self.damaged(format!("bytes {range:?} are out of bounds")));
        }
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            let known = self.checked[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1;
            if known == 0 {
                self.check(block)?;
            }
        }
        Ok(&self.map[range])
    }

    /// Unverified bytes, for prefetching: read them only after [`bytes`](Self::bytes) has
    /// verified them. Empty if the range is out of bounds.
    pub(crate) fn unchecked(&self, range: Range<usize>) -> &[u8] {
        self.map.get(range).unwrap_or_default()
    }

    /// Verifies every block, even those that were verified before.
    ///
    /// # Errors
    /// If a block does not match its checksum.
    pub fn verify(&self) -> Result<(), SegmentError> {
        (0..self.content.end.div_ceil(BLOCK)).try_for_each(|block| self.check(block))
    }

    /// The layout version of the segment's kind.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The checksum that identifies the segment in the database.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> SegmentError {
        SegmentError::damaged(&self.path, detail)
    }

    #[cold]
    fn check(&self, block: usize) -> Result<(), SegmentError> {
        let start = block * BLOCK;
        let bytes = &self.map[start..self.content.end.min(start + BLOCK)];
        let entry = self.content.end + 4 * block;
        if crc32c::crc32c(bytes).to_le_bytes() != self.map[entry..entry + 4] {
            return Err(self.damaged(format!("block at byte {start} does not match its checksum")));
        }
        // Relaxed is enough, because the bytes never change.
        self.checked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }
}

#[allow(unsafe_code)]
fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = isolith_folder::open_file(path)?;
    // SAFETY: a published segment is never written to, only unlinked, which does not affect
    // mappings. If another program truncates it, the worker is killed by SIGBUS, which its
    // supervisor handles.
    unsafe { Mmap::map(&file) }
}
