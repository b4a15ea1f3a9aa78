use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use isolate_types::InWorker;
use memmap2::Mmap;

use super::layout::{BLOCK, EDGE, Header, Kind, Section, Trailer, decode_directory};
use crate::SegmentError;

/// A segment that is open for reading: mapped, its blocks checked before their first
/// use. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Container {
    path: PathBuf,
    map: Mmap,
    version: u32,
    checksum: u32,
    sections: Vec<Section>,
    /// All before the table of checksums.
    content: Range<usize>,
    /// One bit for each block that was found sound.
    checked: Vec<AtomicU64>,
}

impl Container {
    /// Maps a segment and checks its frame: header, trailer, table of checksums,
    /// directory. `expected_checksum` is the truth's.
    ///
    /// # Errors
    /// If the file cannot be mapped, is damaged, or is another one.
    pub fn open(
        path: &Path,
        kind: Kind,
        expected_checksum: Option<u32>,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        let map = map(path).map_err(SegmentError::io("open", path))?;
        let foreign = || SegmentError::Foreign { path: path.into() };
        let header = Header::decode(map.get(..EDGE).ok_or_else(foreign)?, path)?;
        if header.kind != kind {
            let (found, wanted) = (header.kind, kind);
            return Err(SegmentError::Kind { path: path.into(), found, wanted });
        }
        let end = map.len() - EDGE;
        let trailer = Trailer::decode(&map[end..], map.len() as u64, path)?;
        // The trailer's parts add up to the file's length, so they all fit a usize.
        let content = 0..trailer.table_at() as usize;
        let table = content.end..end;
        if crc32c::crc32c(&map[table]) != trailer.checksum {
            return Err(SegmentError::damaged(path, "table of checksums fails its check"));
        }
        if let Some(expected) = expected_checksum.filter(|sum| *sum != trailer.checksum) {
            let found = trailer.checksum;
            return Err(SegmentError::Other { path: path.into(), found, expected });
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
            .ok_or_else(|| SegmentError::damaged(path, "directory makes no sense"))?;
        Ok(container)
    }

    /// Where a section is.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn section(&self, name: &str) -> Result<Range<usize>, SegmentError> {
        let section = self.sections.iter().find(|section| section.name == name);
        section
            .map(|section| section.range.clone())
            .ok_or_else(|| self.damaged(format!("section {name:?} is missing")))
    }

    /// All sections: names and places.
    pub fn sections(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.sections.iter().map(|section| (section.name.as_str(), section.range.clone()))
    }

    /// Some bytes of the file, whose blocks are checked now if they were not before.
    ///
    /// # Errors
    /// If a block is not as it was written, or the range is not within the file.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> Result<&[u8], SegmentError> {
        if range.start > range.end || range.end > self.content.end {
            return Err(self.damaged(format!("{range:?} is not within it")));
        }
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            let known = self.checked[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1;
            if known == 0 {
                self.check(block)?;
            }
        }
        Ok(&self.map[range])
    }

    /// Bytes to be asked for ahead of their use, and to be read only after
    /// [`bytes`](Self::bytes) has checked them. Empty outside the file.
    pub(crate) fn unchecked(&self, range: Range<usize>) -> &[u8] {
        self.map.get(range).unwrap_or_default()
    }

    /// Checks every block, whether it was checked before or not.
    ///
    /// # Errors
    /// If one is not as it was written.
    pub fn verify(&self) -> Result<(), SegmentError> {
        (0..self.content.end.div_ceil(BLOCK)).try_for_each(|block| self.check(block))
    }

    /// The version of the kind's own layout.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What the truth knows it by.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error that blames this file.
    pub(crate) fn damaged(&self, what: impl Into<String>) -> SegmentError {
        SegmentError::damaged(&self.path, what)
    }

    #[cold]
    fn check(&self, block: usize) -> Result<(), SegmentError> {
        let start = block * BLOCK;
        let bytes = &self.map[start..self.content.end.min(start + BLOCK)];
        let entry = self.content.end + 4 * block;
        if crc32c::crc32c(bytes).to_le_bytes() != self.map[entry..entry + 4] {
            return Err(self.damaged(format!("the block at byte {start} fails its check")));
        }
        // The bytes never change, so other threads need no ordering with this.
        self.checked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }
}

#[allow(unsafe_code)]
fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = isolith_folder::open_file(path)?;
    // SAFETY: segments are never written to once they have their name, only unlinked,
    // which leaves mappings alone. Should something outside truncate one, the worker
    // dies of a signal, which its supervisor expects.
    unsafe { Mmap::map(&file) }
}
