use isolith_types::SymbolKind;

use crate::chunk::lines::Lines;
use crate::chunk::outline::{Cut, Definition, Outline};

/// The definitions of a file, row by row: each begins with the comment right before it, and
/// reaches to the last row that was said to belong to it.
pub(super) struct Blocks<'t> {
    lines: &'t Lines<'t>,
    outline: Outline,
    /// The first and the last row of the comment before the current row.
    comment: Option<(usize, usize)>,
    /// Whether nothing loose came after the last definition.
    after_definition: bool,
    /// How many definitions are open: the last ones.
    open: usize,
}

impl<'t> Blocks<'t> {
    pub(super) fn new(lines: &'t Lines<'t>) -> Self {
        let outline = Outline::default();
        Self { lines, outline, comment: None, after_definition: false, open: 0 }
    }

    /// A row that is a comment.
    pub(super) fn comment(&mut self, row: usize) {
        self.comment = match self.comment {
            Some((first, last)) if last + 1 == row => Some((first, row)),
            _ => Some((row, row)),
        };
    }

    /// Begins a chunk with a definition, or several of the same kind. It stays open.
    pub(super) fn begin<'n>(
        &mut self,
        row: usize,
        names: impl IntoIterator<Item = &'n str>,
        symbol: Option<SymbolKind>,
    ) {
        let lead = self.lead(row);
        self.open = 0;
        for name in names {
            self.push(row, lead, name, symbol);
            self.open += 1;
        }
        let at = self.lines.start(lead);
        self.outline.cuts.push(Cut { at, depth: 0, loose: false });
        self.after_definition = true;
        self.comment = None;
    }

    /// A small definition that begins no chunk.
    pub(super) fn line(&mut self, row: usize, name: &str, symbol: SymbolKind) {
        let lead = self.lead(row);
        self.loose(row);
        self.push(row, lead, name, Some(symbol));
    }

    /// The open definitions reach to the end of a row.
    pub(super) fn extend(&mut self, row: usize) {
        let end = self.lines.start(row + 1);
        let first = self.outline.definitions.len() - self.open;
        self.outline.definitions[first..].iter_mut().for_each(|it| it.extent.end = end);
    }

    /// A row outside of all definitions.
    pub(super) fn loose(&mut self, row: usize) {
        let at = self.lines.start(self.lead(row));
        self.open = 0;
        self.comment = None;
        if std::mem::take(&mut self.after_definition) {
            self.outline.cuts.push(Cut { at, depth: 0, loose: true });
        }
    }

    pub(super) fn finish(self) -> Outline {
        self.outline
    }

    /// The first row of the comment right before a row, or the row itself.
    fn lead(&self, row: usize) -> usize {
        self.comment.filter(|(_, last)| last + 1 == row).map_or(row, |(first, _)| first)
    }

    fn push(&mut self, row: usize, lead: usize, name: &str, symbol: Option<SymbolKind>) {
        let (start, end) = (self.lines.start(row), self.lines.start(row + 1));
        let lead = self.lines.start(lead);
        self.outline.definitions.push(Definition {
            name: name.to_owned(),
            symbol,
            lead,
            extent: start..end,
            parent: None,
            owner: None,
            head: start..end,
            doc: lead..start,
        });
    }
}
