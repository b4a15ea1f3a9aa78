use std::ops::Range;

/// A text and where its lines begin. Lines end at `\n` alone, as they do for parsers.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// How many there are. One that is empty after the last line end counts.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Where a row begins; the end of the text for rows beyond.
    pub(super) fn start(&self, row: usize) -> usize {
        self.starts.get(row).copied().unwrap_or(self.text.len())
    }

    /// A row with its line end.
    pub(super) fn row(&self, row: usize) -> &'t str {
        &self.text[self.start(row)..self.start(row + 1)]
    }

    /// The row that a byte is in, from 0.
    pub(super) fn row_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// A part of the text as parsers know it.
    pub(super) fn range_of(&self, part: &Range<usize>) -> tree_sitter::Range {
        let point = |at: usize| {
            let row = self.row_of(at);
            tree_sitter::Point { row, column: at - self.start(row) }
        };
        tree_sitter::Range {
            start_byte: part.start,
            end_byte: part.end,
            start_point: point(part.start),
            end_point: point(part.end),
        }
    }

    /// The number of the line that a byte is in, from 1.
    pub(super) fn number_of(&self, at: usize) -> u32 {
        u32::try_from(self.row_of(at) + 1).unwrap_or(u32::MAX)
    }

    /// Without the blank lines at both ends, and without the last line end. A first line
    /// keeps its indentation. Nothing if all of it is blank.
    pub(super) fn without_blank_ends(&self, range: Range<usize>) -> Option<Range<usize>> {
        let part = &self.text[range.clone()];
        let end = range.start + part.trim_end().len();
        let first = range.start + (part.len() - part.trim_start().len());
        if first >= end {
            return None;
        }
        let start = self.start(self.row_of(first)).max(range.start);
        Some(start..end)
    }
}

/// How many characters a part of a text has.
pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}
