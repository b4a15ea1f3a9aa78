//! The hits of a search for matches, from the database.

use std::ops::{ControlFlow, Range};

use isolith_protocol::{FileState, FindMatches, FoundMatch, MAX_SPANS, StoreError, StoredChunk};
use isolith_store::{FileText, Snapshot};
use isolith_types::{ChunkKind, Definition};
use memchr::memchr_iter;

use super::counter::{Chunks, MatchingFile, Searchable, chunk_at};
use super::enclosing::enclosing;
use super::matcher::Matcher;

/// Maximum number of lines before and after a match.
const MAX_CONTEXT: u32 = 100;

/// Longer lines are shortened, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// The part of a shortened line that is before its first match, in bytes.
const BEFORE_MATCH: usize = 200;

/// Maximum number of lines of a match.
const MAX_MATCH_LINES: u32 = 100;

/// No more hits follow once snippets have this many bytes.
const MAX_SNIPPET_BYTES: usize = 8 << 20;

pub(super) struct Shown<'a, 's> {
    pub(super) snapshot: &'a Snapshot<'s>,
    pub(super) matcher: &'a Matcher,
    pub(super) searchable: &'a Searchable,
    pub(super) query: &'a FindMatches,
}

/// A line with matches.
struct MatchingLine {
    line: Range<usize>,
    spans: Vec<Range<usize>>,
    matches: u64,
    /// Where the last match ends.
    end: usize,
}

impl Shown<'_, '_> {
    /// The hits in these files, in their order.
    pub(super) fn hits(&mut self, files: &[MatchingFile]) -> Result<Vec<FoundMatch>, StoreError> {
        let limit = self.query.limit as usize;
        let mut hits = Vec::new();
        let mut bytes = 0;
        for file in files {
            if hits.len() >= limit || bytes > MAX_SNIPPET_BYTES {
                break;
            }
            let from = hits.len();
            let want = if self.query.by_file { 1 } else { limit - from };
            self.add_hits(file, want, &mut hits)?;
            bytes += hits[from..].iter().map(|hit| hit.snippet.len()).sum::<usize>();
        }
        Ok(hits)
    }

    fn add_hits(
        &self,
        file: &MatchingFile,
        want: usize,
        hits: &mut Vec<FoundMatch>,
    ) -> Result<(), StoreError> {
        let mut text = FileText::default();
        self.snapshot.file_texts(&[file.id], &mut |file| {
            text = file.clone();
            ControlFlow::Break(())
        })?;
        let state = self.snapshot.files_by_id(&[file.id])?.pop().flatten();
        let Some(state) = state else { return Ok(()) };
        let lines = self.lines(&text, want);
        let chunks = self.snapshot.chunk_places(file.id)?;
        let definitions = self.snapshot.definitions(file.id)?;
        let text = NumberedText::of(&text);
        for line in lines {
            let mut hit = text.hit(&line, &state, &chunks, &definitions, self.query.context);
            if self.query.by_file {
                hit.matches = file.counts.matches;
            }
            hits.push(hit);
        }
        Ok(())
    }

    /// The first lines with matches.
    fn lines(&self, file: &FileText, want: usize) -> Vec<MatchingLine> {
        let mut lines: Vec<MatchingLine> = Vec::new();
        let chunks = Chunks::Stored(&file.chunks);
        let _ = self.matcher.for_each(file.text.as_bytes(), &mut |found| {
            if !self.searchable.has_chunk_at(&chunks, found.span.start) {
                return ControlFlow::Continue(());
            }
            let same = lines.last_mut().filter(|last| last.line.start == found.line.start);
            if let Some(last) = same {
                last.add(found.span);
            } else if lines.len() == want {
                return ControlFlow::Break(());
            } else {
                lines.push(MatchingLine::new(found.line, found.span));
            }
            ControlFlow::Continue(())
        });
        lines
    }
}

impl MatchingLine {
    fn new(line: Range<usize>, span: Range<usize>) -> Self {
        let end = span.end;
        Self { line, spans: vec![span], matches: 1, end }
    }

    fn add(&mut self, span: Range<usize>) {
        self.matches += 1;
        self.end = self.end.max(span.end);
        if self.spans.len() < MAX_SPANS {
            self.spans.push(span);
        }
    }
}

/// A text with the offsets of its lines.
struct NumberedText<'a> {
    file: &'a FileText,
    starts: Vec<usize>,
}

impl<'a> NumberedText<'a> {
    fn of(file: &'a FileText) -> Self {
        let ends = memchr_iter(b'\n', file.text.as_bytes());
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
        Self { file, starts }
    }

    /// The number of the line at an offset, from 1.
    fn number(&self, offset: usize) -> u32 {
        let before = self.starts.partition_point(|start| *start <= offset);
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// A line without its end; `None` if there is none with this number.
    fn line(&self, number: u32) -> Option<&'a str> {
        let at = number.checked_sub(1)? as usize;
        let start = *self.starts.get(at)?;
        let end = self.starts.get(at + 1).map_or(self.file.text.len(), |next| next - 1);
        let line = self.file.text.get(start..end)?;
        // After the last line end there is no line.
        let is_line = start < self.file.text.len() || at == 0;
        is_line.then(|| line.strip_suffix('\r').unwrap_or(line))
    }

    fn hit(
        &self,
        found: &MatchingLine,
        state: &FileState,
        chunks: &[StoredChunk],
        definitions: &[Definition],
        context: u32,
    ) -> FoundMatch {
        let number = self.number(found.line.start);
        // A match that ends with a line end does not reach the next line.
        let last = self.number(found.end.saturating_sub(1)).max(number);
        let row = chunk_at(&self.file.chunks, found.line.start).map(|chunk| chunk.row);
        let chunk = row.and_then(|row| chunks.iter().find(|chunk| chunk.row == row));
        let span = |span: &Range<usize>| {
            let end = span.end.min(found.line.end).max(span.start);
            let column = |at: usize| u32::try_from(at - found.line.start).unwrap_or(u32::MAX);
            (column(span.start), column(end))
        };
        let mut hit = FoundMatch {
            root: state.root,
            path: state.path.clone(),
            language: state.language.clone(),
            version: state.version,
            start_line: chunk.map_or(number, |chunk| chunk.start_line),
            end_line: chunk.map_or(number, |chunk| chunk.end_line),
            kind: chunk.map_or(ChunkKind::Text, |chunk| chunk.kind),
            symbol: enclosing(definitions, chunk, number),
            line: number,
            last_line: last,
            spans: found.spans.iter().map(span).collect(),
            matches: found.matches,
            snippet: String::new(),
            snippet_line: number,
            shortened: false,
        };
        self.fill_snippet(&mut hit, context.min(MAX_CONTEXT));
        hit
    }

    /// Adds the lines of a match and those around it.
    fn fill_snippet(&self, hit: &mut FoundMatch, context: u32) {
        let last = hit.last_line.min(hit.line.saturating_add(MAX_MATCH_LINES - 1));
        hit.shortened = last < hit.last_line;
        hit.snippet_line = hit.line.saturating_sub(context).max(1);
        for number in hit.snippet_line..=last.saturating_add(context) {
            let Some(line) = self.line(number) else { break };
            if number > hit.snippet_line {
                hit.snippet.push('\n');
            }
            let first_match = hit.spans.first().filter(|_| number == hit.line);
            let around = first_match.map_or(0, |(start, _)| *start as usize);
            let part = shortened(line, around);
            hit.shortened |= part.len() < line.len();
            hit.snippet.push_str(part);
        }
    }
}

/// The part of a long line around an offset.
fn shortened(line: &str, around: usize) -> &str {
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    let fits = line.len() - MAX_LINE_BYTES;
    let start = boundary(line, around.saturating_sub(BEFORE_MATCH).min(fits));
    let end = boundary(line, start + MAX_LINE_BYTES);
    &line[start..end]
}

/// The last boundary between characters up to this one.
fn boundary(line: &str, at: usize) -> usize {
    (0..=at.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}
