use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::SegmentError;

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Vectors.
    Vector,
    /// Words.
    Text,
    /// The relationships of a graph.
    Graph,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Vector => "vector",
            Kind::Text => "text",
            Kind::Graph => "graph",
        })
    }
}

/// How much of a file is under one checksum.
pub(super) const BLOCK: usize = 64 * 1024;
/// Sections start at its multiples.
pub(super) const ALIGNMENT: usize = 64;
/// Of header and trailer.
pub(super) const EDGE: usize = 64;

const VERSION: u32 = 1;
const HEADER_MAGIC: &[u8; 8] = b"ISLTSEG\0";
const TRAILER_MAGIC: &[u8; 8] = b"ISLTEND\0";
const CRC_AT: usize = EDGE - 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) version: u32,
}

impl Header {
    pub(super) fn encode(self) -> [u8; EDGE] {
        let kind: u32 = match self.kind {
            Kind::Vector => 1,
            Kind::Text => 2,
            Kind::Graph => 3,
        };
        let mut edge = Edge::new(HEADER_MAGIC);
        edge.u32(8, VERSION);
        edge.u32(12, kind);
        edge.u32(16, self.version);
        edge.u32(20, BLOCK as u32);
        edge.seal()
    }

    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self, SegmentError> {
        let edge = Edge::check(bytes, HEADER_MAGIC, "header", path)?;
        let found = edge.get_u32(8);
        if found != VERSION {
            return Err(SegmentError::Version { path: path.into(), found, known: VERSION });
        }
        let kind = match edge.get_u32(12) {
            1 => Kind::Vector,
            2 => Kind::Text,
            3 => Kind::Graph,
            other => return Err(SegmentError::damaged(path, format!("unknown kind {other}"))),
        };
        if edge.get_u32(20) as usize != BLOCK {
            return Err(SegmentError::damaged(path, "unknown block size"));
        }
        Ok(Self { kind, version: edge.get_u32(16) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) directory_at: u64,
    pub(super) directory_bytes: u64,
    pub(super) checksum: u32,
}

impl Trailer {
    /// Where the table of checksums starts: right behind the directory.
    pub(super) fn table_at(&self) -> u64 {
        self.directory_at + self.directory_bytes
    }

    pub(super) fn blocks(&self) -> u64 {
        self.table_at().div_ceil(BLOCK as u64)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.table_at() + 4 * self.blocks() + EDGE as u64
    }

    pub(super) fn encode(&self) -> [u8; EDGE] {
        let mut edge = Edge::new(TRAILER_MAGIC);
        edge.u64(8, self.directory_at);
        edge.u64(16, self.directory_bytes);
        edge.u64(24, self.table_at());
        edge.u64(32, self.blocks());
        edge.u64(40, self.file_bytes());
        edge.u32(48, self.checksum);
        edge.seal()
    }

    /// Reads the trailer of a file of this length. What it says then adds up to that
    /// length, so that no part it names lies outside.
    pub(super) fn decode(bytes: &[u8], file_bytes: u64, path: &Path) -> Result<Self, SegmentError> {
        let edge = Edge::check(bytes, TRAILER_MAGIC, "trailer", path)?;
        let trailer = Self {
            directory_at: edge.get_u64(8),
            directory_bytes: edge.get_u64(16),
            checksum: edge.get_u32(48),
        };
        let sound = trailer
            .directory_at
            .checked_add(trailer.directory_bytes)
            .is_some_and(|end| end <= file_bytes)
            && trailer.directory_at >= EDGE as u64
            && edge.get_u64(24) == trailer.table_at()
            && edge.get_u64(32) == trailer.blocks()
            && edge.get_u64(40) == trailer.file_bytes()
            && trailer.file_bytes() == file_bytes;
        if !sound {
            return Err(SegmentError::damaged(path, "trailer and length do not fit"));
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

/// Reads a directory; sections lie between the header and `end`.
pub(super) fn decode_directory(mut bytes: &[u8], end: usize) -> Option<Vec<Section>> {
    let count = u32::from_le_bytes(*take(&mut bytes)?);
    // The count is not trusted with an allocation: entries are read while they last.
    let mut sections = Vec::new();
    for _ in 0..count {
        let length = u16::from_le_bytes(*take(&mut bytes)?);
        let (name, rest) = bytes.split_at_checked(length as usize)?;
        bytes = rest;
        let start = usize::try_from(u64::from_le_bytes(*take(&mut bytes)?)).ok()?;
        let length = usize::try_from(u64::from_le_bytes(*take(&mut bytes)?)).ok()?;
        let range = start..start.checked_add(length)?;
        if range.start < EDGE || range.end > end || range.start % ALIGNMENT != 0 {
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

/// Header or trailer: magic in front, checksum at the end.
struct Edge([u8; EDGE]);

impl Edge {
    fn new(magic: &[u8; 8]) -> Self {
        let mut bytes = [0; EDGE];
        bytes[..8].copy_from_slice(magic);
        Self(bytes)
    }

    fn check(bytes: &[u8], magic: &[u8; 8], name: &str, path: &Path) -> Result<Self, SegmentError> {
        let bytes: &[u8; EDGE] =
            bytes.try_into().map_err(|_| SegmentError::Foreign { path: path.into() })?;
        let edge = Self(*bytes);
        let crc_holds = crc32c::crc32c(&bytes[..CRC_AT]) == edge.get_u32(CRC_AT);
        match (bytes.starts_with(magic), crc_holds) {
            (true, true) => Ok(edge),
            (false, false) if magic == HEADER_MAGIC => {
                Err(SegmentError::Foreign { path: path.into() })
            }
            _ => Err(SegmentError::damaged(path, format!("{name} fails its check"))),
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

    fn seal(mut self) -> [u8; EDGE] {
        self.u32(CRC_AT, crc32c::crc32c(&self.0[..CRC_AT]));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_survive_and_refuse_what_lies_outside() {
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
    fn trailers_must_add_up() {
        let path = Path::new("x");
        let trailer = Trailer { directory_at: 64, directory_bytes: 4, checksum: 7 };
        let bytes = trailer.encode();
        assert_eq!(Trailer::decode(&bytes, 136, path).unwrap(), trailer);
        for length in [0, 64, 135, 137, u64::MAX] {
            assert!(Trailer::decode(&bytes, length, path).is_err(), "{length}");
        }
    }
}
