//! The texts of indexed files, complete, for searches that look at every line, and what ranking
//! needs to know about chunks.

mod facts;

use std::ops::Range;
use std::path::Path;

use isolate_types::InWorker;
use isolith_types::Symbol;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::storage::Storage;
use crate::{Bits, Container, ContainerWriter, PublishedSegment, SegmentError, SegmentKind};
pub use facts::ChunkFacts;
use facts::{FactSections, FactsBuilder};

/// The version of this layout.
const LAYOUT: u32 = 2;

// Numbers are used as they are in the file, which is the same on all machines.
const _: () = assert!(cfg!(target_endian = "little"), "source segments are little-endian");

/// The names of sections.
mod section {
    pub(super) const TEXTS: &str = "texts";
    pub(super) const TEXT_ENDS: &str = "text.ends";
    pub(super) const IDS: &str = "ids";
    pub(super) const ROOTS: &str = "roots";
    pub(super) const PATHS: &str = "paths";
    pub(super) const PATH_ENDS: &str = "path.ends";
    pub(super) const CHUNK_ENDS: &str = "chunk.ends";
    pub(super) const ROWS: &str = "rows";
    pub(super) const CHANGES: &str = "changes";
    pub(super) const STARTS: &str = "starts";
    pub(super) const GENERATED: &str = "generated";
    pub(super) const LINES: &str = "lines";
    pub(super) const NAMES: &str = "names";
    pub(super) const NAME_ENDS: &str = "name.ends";
    pub(super) const BY_ROW: &str = "by.row";
}

/// A file with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// Its number in the database.
    pub id: u64,
    /// The number of its root.
    pub root: u64,
    /// Relative to the root.
    pub path: &'a str,
    /// Whether it is marked as generated code.
    pub generated: bool,
    /// Its chunks, in order.
    pub chunks: &'a [SourceChunk<'a>],
    /// Its text.
    pub text: &'a str,
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceChunk<'a> {
    /// The row of its record.
    pub row: u64,
    /// The change number of the record.
    pub change: u64,
    /// Where it begins in the file's text.
    pub start: u32,
    /// Its first and last line, from 1.
    pub lines: (u32, u32),
    /// The name of the enclosing definition.
    pub parent: Option<&'a str>,
    /// The symbols that it defines.
    pub symbols: &'a [Symbol],
}

/// An open source segment. Share it behind an `Arc`.
#[derive(Debug)]
pub struct SourceSegment {
    container: Container,
    texts: Range<usize>,
    paths: Range<usize>,
    text_ends: Range<usize>,
    path_ends: Range<usize>,
    chunk_ends: Range<usize>,
    ids: Range<usize>,
    roots: Range<usize>,
    rows: Range<usize>,
    changes: Range<usize>,
    starts: Range<usize>,
    facts: FactSections,
}

/// What a segment knows of a file besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceEntry<'a> {
    /// Its number in the database.
    pub id: u64,
    /// The number of its root.
    pub root: u64,
    /// Relative to the root.
    pub path: &'a str,
    /// Whether it is marked as generated code.
    pub generated: bool,
    /// The rows of its chunks, in order.
    pub rows: &'a [u64],
    /// Where its chunks begin in its text.
    pub starts: &'a [u32],
}

impl SourceSegment {
    /// Opens a segment and checks all of it but the texts, whose blocks are checked when they are
    /// first read. `checksum` is the one in the database.
    ///
    /// # Errors
    /// If it cannot be mapped, is damaged, or is another file.
    pub fn open(path: &Path, checksum: Option<u32>, token: InWorker) -> Result<Self, SegmentError> {
        let container = Container::open(path, SegmentKind::Source, checksum, token)?;
        if container.version() != LAYOUT {
            let (path, found) = (path.into(), container.version());
            return Err(SegmentError::UnsupportedVersion { path, found, known: LAYOUT });
        }
        let segment = Self {
            texts: container.section(section::TEXTS)?,
            paths: container.section(section::PATHS)?,
            text_ends: container.section(section::TEXT_ENDS)?,
            path_ends: container.section(section::PATH_ENDS)?,
            chunk_ends: container.section(section::CHUNK_ENDS)?,
            ids: container.section(section::IDS)?,
            roots: container.section(section::ROOTS)?,
            rows: container.section(section::ROWS)?,
            changes: container.section(section::CHANGES)?,
            starts: container.section(section::STARTS)?,
            facts: FactSections::of(&container)?,
            container,
        };
        segment.check_numbers()?;
        match segment.is_consistent() {
            true => Ok(segment),
            false => Err(segment.container.damaged("its sections do not fit together")),
        }
    }

    /// The number of chunks.
    pub fn len(&self) -> usize {
        self.rows.len() / size_of::<u64>()
    }

    /// Whether it has no chunks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.ids.len() / size_of::<u64>()
    }

    /// The file at a position below [`Self::files`].
    ///
    /// # Errors
    /// If there is none, or its path is not UTF-8.
    pub fn file(&self, position: usize) -> Result<SourceEntry<'_>, SegmentError> {
        let chunks = self.part::<u32>(&self.chunk_ends, position)?;
        let path = self.part::<u32>(&self.path_ends, position)?;
        let path = self.container.unchecked(self.paths.clone()).get(path).unwrap_or_default();
        let path =
            std::str::from_utf8(path).map_err(|_| self.container.damaged("a path is not UTF-8"))?;
        let number = |section| self.numbers::<u64>(section).get(position).copied();
        Ok(SourceEntry {
            id: number(&self.ids).ok_or_else(|| self.no_file())?,
            root: number(&self.roots).ok_or_else(|| self.no_file())?,
            path,
            generated: self.is_generated(position),
            rows: self.numbers(&self.rows).get(chunks.clone()).unwrap_or_default(),
            starts: self.numbers(&self.starts).get(chunks).unwrap_or_default(),
        })
    }

    /// The text of the file at a position below [`Self::files`].
    ///
    /// # Errors
    /// If there is none, or a block that it is in is damaged.
    pub fn text(&self, position: usize) -> Result<&[u8], SegmentError> {
        let text = self.part::<u64>(&self.text_ends, position)?;
        self.container.bytes(self.texts.start + text.start..self.texts.start + text.end)
    }

    /// The positions of files that have a chunk with one of these rows and change numbers.
    pub fn files_with(&self, versions: &[(u64, u64)]) -> Bits {
        let mut found = Bits::new(self.files());
        if versions.is_empty() {
            return found;
        }
        let mut versions = versions.to_vec();
        versions.sort_unstable();
        let [rows, changes] =
            [&self.rows, &self.changes].map(|section| self.numbers::<u64>(section));
        let ends: &[u32] = self.numbers(&self.chunk_ends);
        for (chunk, version) in rows.iter().copied().zip(changes.iter().copied()).enumerate() {
            if versions.binary_search(&version).is_ok() {
                found.insert(ends.partition_point(|end| *end as usize <= chunk));
            }
        }
        found
    }

    /// Checks the whole file again.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }

    /// Checks the blocks of all sections but the texts.
    fn check_numbers(&self) -> Result<(), SegmentError> {
        let Self { paths, text_ends, path_ends, chunk_ends, .. } = self;
        let Self { ids, roots, rows, changes, starts, .. } = self;
        for section in [paths, text_ends, path_ends, chunk_ends, ids, roots, rows, changes, starts]
        {
            self.container.bytes(section.clone())?;
        }
        let FactSections { generated, by_row, name_ends, .. } = &self.facts;
        for section in [generated, by_row, name_ends] {
            self.container.bytes(section.clone())?;
        }
        Ok(())
    }

    /// Whether the sections are as long as they have to be, and lists end where they should.
    fn is_consistent(&self) -> bool {
        let files = self.files();
        let (texts, paths, chunks) = (self.texts.len(), self.paths.len(), self.len());
        self.numbers::<u64>(&self.ids).len() == files
            && self.numbers::<u64>(&self.roots).len() == files
            && end_at(self.numbers::<u64>(&self.text_ends), files, texts)
            && end_at(self.numbers::<u32>(&self.path_ends), files, paths)
            && end_at(self.numbers::<u32>(&self.chunk_ends), files, chunks)
            && self.numbers::<u64>(&self.rows).len() == chunks
            && self.numbers::<u64>(&self.changes).len() == chunks
            && self.numbers::<u32>(&self.starts).len() == chunks
            && self.facts_fit(files, chunks)
    }

    /// A section as numbers; none if its length is not a multiple of theirs, which then fits
    /// nothing else. Sections begin where numbers may, and opening has checked them.
    fn numbers<T: FromBytes + Immutable>(&self, section: &Range<usize>) -> &[T] {
        <[T]>::ref_from_bytes(self.container.unchecked(section.clone())).unwrap_or_default()
    }

    /// Where the list of a file is, of those that end at these numbers.
    fn part<T>(&self, ends: &Range<usize>, position: usize) -> Result<Range<usize>, SegmentError>
    where
        T: FromBytes + Immutable + Copy + TryInto<usize>,
    {
        let ends: &[T] = self.numbers(ends);
        let at = |position: usize| ends.get(position).and_then(|end| (*end).try_into().ok());
        let start = position.checked_sub(1).map_or(Some(0), at);
        start.zip(at(position)).map(|(start, end)| start..end).ok_or_else(|| self.no_file())
    }

    fn no_file(&self) -> SegmentError {
        SegmentError::invalid("read", self.container.path(), "it has no such file")
    }
}

/// Whether there is an end for each file, ends do not decrease, and the last is `total`.
fn end_at<T: Copy + Ord + TryInto<usize>>(ends: &[T], files: usize, total: usize) -> bool {
    let last = ends.last().map_or(Some(0), |last| (*last).try_into().ok());
    ends.len() == files && ends.is_sorted() && last == Some(total)
}

/// Writes a source segment, file by file.
#[derive(Debug)]
pub struct SourceBuilder<'a> {
    writer: ContainerWriter<'a>,
    text_end: u64,
    text_ends: Vec<u64>,
    ids: Vec<u64>,
    roots: Vec<u64>,
    paths: Vec<u8>,
    path_ends: Vec<u32>,
    chunk_ends: Vec<u32>,
    rows: Vec<u64>,
    changes: Vec<u64>,
    starts: Vec<u32>,
    facts: FactsBuilder,
}

impl<'a> SourceBuilder<'a> {
    /// Starts a segment with this name.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(
        storage: &'a dyn Storage,
        name: &str,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        let mut writer = ContainerWriter::create(storage, name, SegmentKind::Source, LAYOUT)?;
        writer.begin_section(section::TEXTS)?;
        Ok(Self {
            writer,
            text_end: 0,
            text_ends: Vec::new(),
            ids: Vec::new(),
            roots: Vec::new(),
            paths: Vec::new(),
            path_ends: Vec::new(),
            chunk_ends: Vec::new(),
            rows: Vec::new(),
            changes: Vec::new(),
            starts: Vec::new(),
            facts: FactsBuilder::default(),
        })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If there are too many, or writing fails.
    pub fn push(&mut self, file: &SourceFile<'_>) -> Result<(), SegmentError> {
        self.paths.extend_from_slice(file.path.as_bytes());
        for chunk in file.chunks {
            self.rows.push(chunk.row);
            self.changes.push(chunk.change);
            self.starts.push(chunk.start);
            self.facts.push(chunk);
        }
        self.facts.generated.push(u8::from(file.generated));
        let ends = (u32::try_from(self.paths.len()), u32::try_from(self.rows.len()));
        let (Ok(path_end), Ok(chunk_end)) = ends else {
            return Err(self.writer.invalid("it has too many files".to_owned()));
        };
        self.path_ends.push(path_end);
        self.chunk_ends.push(chunk_end);
        self.ids.push(file.id);
        self.roots.push(file.root);
        self.writer.write(file.text.as_bytes())?;
        self.text_end += file.text.len() as u64;
        self.text_ends.push(self.text_end);
        Ok(())
    }

    /// Publishes the segment. Returns its number of chunks as well.
    ///
    /// # Errors
    /// If writing fails, or what was read back is not what was written.
    pub fn finish(mut self) -> Result<(PublishedSegment, u64), SegmentError> {
        let by_row = facts::by_row(&self.rows);
        for (name, bytes) in [
            (section::TEXT_ENDS, self.text_ends.as_bytes()),
            (section::IDS, self.ids.as_bytes()),
            (section::ROOTS, self.roots.as_bytes()),
            (section::PATHS, self.paths.as_slice()),
            (section::PATH_ENDS, self.path_ends.as_bytes()),
            (section::CHUNK_ENDS, self.chunk_ends.as_bytes()),
            (section::ROWS, self.rows.as_bytes()),
            (section::CHANGES, self.changes.as_bytes()),
            (section::STARTS, self.starts.as_bytes()),
            (section::GENERATED, self.facts.generated.as_slice()),
            (section::LINES, self.facts.lines.as_bytes()),
            (section::NAMES, self.facts.names.as_slice()),
            (section::NAME_ENDS, self.facts.name_ends.as_bytes()),
            (section::BY_ROW, by_row.as_bytes()),
        ] {
            self.writer.begin_section(name)?;
            self.writer.write(bytes)?;
        }
        Ok((self.writer.finish()?, self.rows.len() as u64))
    }
}

#[cfg(test)]
mod tests;
