use std::ops::Range;

use isolith_types::{ChunkKind, SymbolKind};

use crate::chunk::lines::Lines;
use crate::chunk::outline::{Cut, Definition, Outline};

/// The sections of a document, from its headings. A section reaches to the next heading of its
/// level or above.
pub(super) struct Sections<'t> {
    lines: &'t Lines<'t>,
    outline: Outline,
    /// Levels and indexes of the headings around the current line.
    open: Vec<(usize, usize)>,
    end: usize,
}

/// A heading of a document.
pub(super) struct Heading<'n> {
    pub(super) name: &'n str,
    /// Sections end at the next heading whose level is not higher.
    pub(super) level: usize,
    /// The row of its name.
    pub(super) row: usize,
    /// The row where it begins, with what decorates it.
    pub(super) first_row: usize,
}

impl<'t> Sections<'t> {
    /// A document in these rows.
    pub(super) fn new(lines: &'t Lines<'t>, rows: &Range<usize>) -> Self {
        let (start, end) = (lines.start(rows.start), lines.start(rows.end));
        let outline =
            Outline { parts: vec![(start..end, ChunkKind::Section)], ..Outline::default() };
        Self { lines, outline, open: Vec::new(), end }
    }

    /// A heading, where a chunk may begin.
    pub(super) fn heading(&mut self, heading: &Heading<'_>) {
        let at = self.lines.start(heading.first_row);
        self.close(heading.level, at);
        self.outline.cuts.push(Cut { at, depth: self.open.len(), loose: false });
        self.push(heading);
    }

    /// A heading that is no reason to begin a chunk.
    pub(super) fn minor_heading(&mut self, heading: &Heading<'_>) {
        self.close(heading.level, self.lines.start(heading.first_row));
        self.push(heading);
    }

    /// The sections down to a level end before a row.
    pub(super) fn close_at(&mut self, level: usize, row: usize) {
        self.close(level, self.lines.start(row));
    }

    /// A chunk may begin at a row.
    pub(super) fn cut(&mut self, row: usize) {
        let cut = Cut { at: self.lines.start(row), depth: self.open.len(), loose: false };
        self.outline.cuts.push(cut);
    }

    pub(super) fn finish(self) -> Outline {
        self.outline
    }

    fn push(&mut self, heading: &Heading<'_>) {
        let index = self.outline.definitions.len();
        let at = self.lines.start(heading.row);
        self.outline.definitions.push(Definition {
            name: heading.name.to_owned(),
            symbol: Some(SymbolKind::Heading),
            lead: self.lines.start(heading.first_row),
            extent: at..self.end,
            parent: self.open.last().map(|(_, index)| *index),
            owner: None,
            head: at..at,
            doc: at..at,
        });
        self.open.push((heading.level, index));
    }

    fn close(&mut self, level: usize, at: usize) {
        while let Some((_, index)) = self.open.pop_if(|(open, _)| *open >= level) {
            self.outline.definitions[index].extent.end = at;
        }
    }
}
