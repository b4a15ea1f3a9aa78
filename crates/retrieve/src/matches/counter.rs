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
        self.rows.as_ref().is_none_or(|rows| {
            chunks.row_at(offset).is_some_and(|row| rows.binary_search(&row).is_ok())
        })
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

/// Counts, and collects the files with matches.
pub(super) struct Counter<'a> {
    matcher: &'a Matcher,
    searchable: &'a Searchable,
    context: &'a Context<'a>,
    reserved: Duration,
    unchecked_bytes: usize,
    pub(super) found: Vec<MatchingFile>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        matcher: &'a Matcher,
        searchable: &'a Searchable,
        context: &'a Context<'a>,
    ) -> Self {
        let reserved = context.remaining() / RESERVED;
        Self { matcher, searchable, context, reserved, unchecked_bytes: 0, found: Vec::new() }
    }

    /// Whether a file is searched.
    pub(super) fn wants(&self, id: u64) -> bool {
        self.searchable.has_file(id)
    }

    /// Adds the matches in a file from the database.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    pub(super) fn add_stored(&mut self, file: &FileText) -> Result<(), StoreError> {
        if !self.wants(file.id) {
            return Ok(());
        }
        let place = (file.id, file.root, file.path.as_str());
        self.add(place, file.text.as_bytes(), Chunks::Stored(&file.chunks))
    }

    /// Adds the matches in a file, given by number, root and path.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    pub(super) fn add(
        &mut self,
        (id, root, path): (u64, u64, &str),
        text: &[u8],
        chunks: Chunks<'_>,
    ) -> Result<(), StoreError> {
        self.check_time(text.len())?;
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

    fn check_time(&mut self, bytes: usize) -> Result<(), StoreError> {
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
