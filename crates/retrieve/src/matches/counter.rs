//! Counts the matches in files.

use std::ops::ControlFlow;
use std::time::Duration;

use isolate::Context;
use isolith_protocol::{MatchCounts, StoreError};
use isolith_store::{ChunkStart, FileText};

use super::matcher::Matcher;

/// The clock is read after this many bytes.
const BYTES_BETWEEN_CHECKS: usize = 1 << 20;

/// The share of the job's time that is left for the reply.
const RESERVED: u32 = 10;

/// Which files and chunks are searched; `None` is all of them. Both lists ascend.
#[derive(Debug, Default)]
pub(super) struct Searchable {
    pub(super) files: Option<Vec<u64>>,
    pub(super) rows: Option<Vec<u64>>,
}

impl Searchable {
    pub(super) fn has_file(&self, id: u64) -> bool {
        self.files.as_ref().is_none_or(|files| files.binary_search(&id).is_ok())
    }

    /// Whether the chunk at an offset is searched.
    pub(super) fn has_chunk_at(&self, chunks: &Chunks<'_>, offset: usize) -> bool {
        self.rows.is_none() || self.chunk_at(chunks, offset).is_some()
    }

    /// The row of the chunk at an offset, if it is searched.
    pub(super) fn chunk_at(&self, chunks: &Chunks<'_>, offset: usize) -> Option<u64> {
        let is_searched =
            |row: &u64| self.rows.as_ref().is_none_or(|rows| rows.binary_search(row).is_ok());
        chunks.row_at(offset).filter(is_searched)
    }
}

/// Rows and starts of the chunks of a file.
pub(super) enum Chunks<'a> {
    Segment { rows: &'a [u64], starts: &'a [u32] },
    Stored(&'a [ChunkStart]),
}

impl Chunks<'_> {
    fn row_at(&self, offset: usize) -> Option<u64> {
        match self {
            Self::Segment { rows, starts } => {
                let next = starts.partition_point(|start| *start as usize <= offset);
                rows.get(next.checked_sub(1)?).copied()
            }
            Self::Stored(chunks) => chunk_at(chunks, offset).map(|chunk| chunk.row),
        }
    }
}

/// The chunk at an offset.
pub(super) fn chunk_at(chunks: &[ChunkStart], offset: usize) -> Option<&ChunkStart> {
    let next = chunks.partition_point(|chunk| chunk.start as usize <= offset);
    chunks.get(next.checked_sub(1)?)
}

/// A file with matches.
#[derive(Debug)]
pub(super) struct MatchingFile {
    pub(super) id: u64,
    pub(super) root: u64,
    pub(super) path: String,
    pub(super) counts: MatchCounts,
}

/// Receives the texts of files.
pub(super) trait EachText {
    /// Whether it wants a file, by its number.
    fn wants(&self, id: u64) -> bool;

    /// Receives a file, given by number, root and path.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    fn add(
        &mut self,
        place: (u64, u64, &str),
        text: &[u8],
        chunks: Chunks<'_>,
    ) -> Result<(), StoreError>;

    /// Receives a file from the database.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    fn add_stored(&mut self, file: &FileText) -> Result<(), StoreError> {
        if !self.wants(file.id) {
            return Ok(());
        }
        let place = (file.id, file.root, file.path.as_str());
        self.add(place, file.text.as_bytes(), Chunks::Stored(&file.chunks))
    }
}

/// Ends a search before its job does.
pub(super) struct Clock<'a> {
    context: &'a Context<'a>,
    reserved: Duration,
    unchecked_bytes: usize,
}

impl<'a> Clock<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        let reserved = context.remaining() / RESERVED;
        Self { context, reserved, unchecked_bytes: 0 }
    }

    /// Call it for each file.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    pub(super) fn check(&mut self, bytes: usize) -> Result<(), StoreError> {
        self.unchecked_bytes += bytes;
        if self.unchecked_bytes < BYTES_BETWEEN_CHECKS {
            return Ok(());
        }
        self.unchecked_bytes = 0;
        if self.context.cancelled() || self.context.remaining() < self.reserved {
            return Err(StoreError::Deadline { operation: "look for matches".to_owned() });
        }
        Ok(())
    }
}

/// Counts, and collects the files with matches.
pub(super) struct Counter<'a> {
    matcher: &'a Matcher,
    searchable: &'a Searchable,
    clock: Clock<'a>,
    pub(super) found: Vec<MatchingFile>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        matcher: &'a Matcher,
        searchable: &'a Searchable,
        context: &'a Context<'a>,
    ) -> Self {
        Self { matcher, searchable, clock: Clock::new(context), found: Vec::new() }
    }
}

impl EachText for Counter<'_> {
    fn wants(&self, id: u64) -> bool {
        self.searchable.has_file(id)
    }

    fn add(
        &mut self,
        (id, root, path): (u64, u64, &str),
        text: &[u8],
        chunks: Chunks<'_>,
    ) -> Result<(), StoreError> {
        self.clock.check(text.len())?;
        let mut counts = MatchCounts { files: 1, ..MatchCounts::default() };
        let mut line = None;
        let _ = self.matcher.for_each(text, &mut |found| {
            if self.searchable.has_chunk_at(&chunks, found.span.start) {
                counts.matches += 1;
                counts.lines += u64::from(line.replace(found.line.start) != Some(found.line.start));
            }
            ControlFlow::Continue(())
        });
        if counts.matches > 0 {
            self.found.push(MatchingFile { id, root, path: path.to_owned(), counts });
        }
        Ok(())
    }
}
