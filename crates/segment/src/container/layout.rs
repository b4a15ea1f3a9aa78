use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::SegmentError;

/// What a segment indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// Vectors, for nearest-neighbor search.
    Vector,
    /// Text, for keyword search.
    Text,
    /// The graph's edges, for traversal.
    Graph,
    /// The texts of files.
    Source,
}

impl fmt::Display for SegmentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SegmentKind::Vector => "vector",
            SegmentKind::Text => "text",
            SegmentKind::Graph => "graph",
            SegmentKind::Source => "source",
        })
    }
}

/// Number of bytes covered by one checksum.
pub(super) const BLOCK: usize = 64 * 1024;
/// Sections start at multiples of this.
pub(super) const ALIGNMENT: usize = 64;
/// Size of the header, and of the trailer.
pub(super) const HEADER_BYTES: usize = 64;

const VERSION: u32 = 1;
const HEADER_MAGIC: &[u8; 8] = b"ISLTSEG\0";
const TRAILER_MAGIC: &[u8; 8] = b"ISLTEND\0";
const CRC_AT: usize = HEADER_BYTES - 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: SegmentKind,
    pub(super) version: u32,
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        let kind: u32 = match self.kind {
            SegmentKind::Vector => 1,
            SegmentKind::Text => 2,
            SegmentKind::Graph => 3,
            SegmentKind::Source => 4,
        };
        let mut bytes = HeaderBytes::new(HEADER_MAGIC);
        bytes.u32(8, VERSION);
        bytes.u32(12, kind);
        bytes.u32(16, self.version);
        bytes.u32(20, BLOCK as u32);
        bytes.seal()
    }

    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self, SegmentError> {
        let bytes = HeaderBytes::check(bytes, HEADER_MAGIC, "header", path)?;
        let found = bytes.get_u32(8);
        if found != VERSION {
            return Err(SegmentError::UnsupportedVersion {
                path: path.into(),
                found,
                known: VERSION,
            });
        }
        let kind = match bytes.get_u32(12) {
            1 => SegmentKind::Vector,
            2 => SegmentKind::Text,
            3 => SegmentKind::Graph,
            4 => SegmentKind::Source,
            other => return Err(SegmentError::damaged(path, format!("unknown kind {other}"))),
        };
        if bytes.get_u32(20) as usize != BLOCK {
            return Err(SegmentError::damaged(path, "unknown block size"));
        }
        Ok(Self { kind, version: bytes.get_u32(16) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) directory_at: u64,
    pub(super) directory_bytes: u64,
    pub(super) checksum: u32,
}

impl Trailer {
    /// Offset of the checksum table, which follows the directory.
    pub(super) fn table_at(&self) -> u64 {
        self.directory_at + self.directory_bytes
    }

    pub(super) fn blocks(&self) -> u64 {
        self.table_at().div_ceil(BLOCK as u64)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.table_at() + 4 * self.blocks() + HEADER_BYTES as u64
    }

    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = HeaderBytes::new(TRAILER_MAGIC);
        bytes.u64(8, self.directory_at);
        bytes.u64(16, self.directory_bytes);
        bytes.u64(24, self.table_at());
        bytes.u64(32, self.blocks());
        bytes.u64(40, self.file_bytes());
        bytes.u32(48, self.checksum);
        bytes.seal()
    }

    /// Decodes the trailer of a file of `file_bytes` bytes. All offsets of a decoded trailer lie
    /// within the file.
    pub(super) fn decode(bytes: &[u8], file_bytes: u64, path: &Path) -> Result<Self, SegmentError> {
        let bytes = HeaderBytes::check(bytes, TRAILER_MAGIC, "trailer", path)?;
        let trailer = Self {
            directory_at: bytes.get_u64(8),
            directory_bytes: bytes.get_u64(16),
            checksum: bytes.get_u32(48),
        };
        let consistent = trailer
            .directory_at
            .checked_add(trailer.directory_bytes)
            .is_some_and(|end| end <= file_bytes)
            && trailer.directory_at >= HEADER_BYTES as u64
            && bytes.get_u64(24) == trailer.table_at()
            && bytes.get_u64(32) == trailer.blocks()
            && bytes.get_u64(40) == trailer.file_bytes()
            && trailer.file_bytes() == file_bytes;
        if !consistent {
            return Err(SegmentError::damaged(path, "trailer does not match the file size"));
        }
        Ok(trailer)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) range: Range<usize>,
}

pub(super) fn encode_directory(sections: &[Section]) -> Vec<u8> {
    let mut bytes = (sections.len() as u32).to_le_bytes().to_vec();
    for section in sections {
        bytes.extend((section.name.len() as u16).to_le_bytes());
        bytes.extend(section.name.as_bytes());
        bytes.extend((section.range.start as u64).to_le_bytes());
        bytes.extend((section.range.len() as u64).to_le_bytes());
    }
    bytes
}

/// Decodes a directory; `None` if it is malformed or a section is not between the header and
/// `end`.
pub(super) fn decode_directory(mut bytes: &[u8], end: usize) -> Option<Vec<Section>> {
    let count = u32::from_le_bytes(*take(&mut bytes)?);
    // The count is untrusted, so nothing is allocated from it.
    let mut sections = Vec::new();
    for _ in 0..count {
        let length = u16::from_le_bytes(*take(&mut bytes)?);
        let (name, rest) = bytes.split_at_checked(length as usize)?;
        bytes = rest;
        let start = usize::try_from(u64::from_le_bytes(*take(&mut bytes)?)).ok()?;
        let length = usize::try_from(u64::from_le_bytes(*take(&mut bytes)?)).ok()?;
        let range = start..start.checked_add(length)?;
        if range.start < HEADER_BYTES || range.end > end || range.start % ALIGNMENT != 0 {
            return None;
        }
        sections.push(Section { name: std::str::from_utf8(name).ok()?.to_owned(), range });
    }
    bytes.is_empty().then_some(sections)
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

/// The bytes of a header or trailer, which start with a magic number and end with a CRC.
struct HeaderBytes([u8; HEADER_BYTES]);

impl HeaderBytes {
    fn new(magic: &[u8; 8]) -> Self {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(magic);
        Self(bytes)
    }

    fn check(bytes: &[u8], magic: &[u8; 8], name: &str, path: &Path) -> Result<Self, SegmentError> {
        let bytes =
            bytes.try_into().map_err(|_| SegmentError::NotASegment { path: path.into() })?;
        let bytes = Self(bytes);
        let crc_matches = crc32c::crc32c(&bytes.0[..CRC_AT]) == bytes.get_u32(CRC_AT);
        match (bytes.0.starts_with(magic), crc_matches) {
            (true, true) => Ok(bytes),
            (false, false) if magic == HEADER_MAGIC => {
                Err(SegmentError::NotASegment { path: path.into() })
            }
            _ => Err(SegmentError::damaged(path, format!("{name} does not match its checksum"))),
        }
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn get_u32(&self, at: usize) -> u32 {
        let mut value = [0; 4];
        value.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(value)
    }

    fn get_u64(&self, at: usize) -> u64 {
        let mut value = [0; 8];
        value.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(value)
    }

    fn seal(mut self) -> [u8; HEADER_BYTES] {
        self.u32(CRC_AT, crc32c::crc32c(&self.0[..CRC_AT]));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_round_trips_and_rejects_sections_outside_the_file() {
        let sections = vec![
            Section { name: "rows".into(), range: 64..100 },
            Section { name: "ü".into(), range: 128..128 },
        ];
        let bytes = encode_directory(&sections);
        assert_eq!(decode_directory(&bytes, 200).unwrap(), sections);
        assert!(decode_directory(&bytes, 127).is_none());
        for end in 0..bytes.len() {
            assert!(decode_directory(&bytes[..end], 200).is_none(), "cut at {end}");
        }
        let huge = [u32::MAX.to_le_bytes().as_slice(), &[0; 8]].concat();
        assert!(decode_directory(&huge, 200).is_none());
    }

    #[test]
    fn trailer_must_match_the_file_size() {
        let path = Path::new("x");
        let trailer = Trailer { directory_at: 64, directory_bytes: 4, checksum: 7 };
        let bytes = trailer.encode();
        assert_eq!(Trailer::decode(&bytes, 136, path).unwrap(), trailer);
        for length in [0, 64, 135, 137, u64::MAX] {
            assert!(Trailer::decode(&bytes, length, path).is_err(), "{length}");
        }
    }
}
