//! What ranking needs to know about chunks, found by row.

use std::ops::Range;

use isolith_types::{Symbol, SymbolKind};

use super::{SourceChunk, SourceSegment, end_at, section};
use crate::{Container, SegmentError};

/// The kinds of symbols by their numbers in segments. New ones are added at the end.
const KINDS: [SymbolKind; 11] = [
    SymbolKind::Function,
    SymbolKind::Method,
    SymbolKind::Class,
    SymbolKind::Struct,
    SymbolKind::Enum,
    SymbolKind::Interface,
    SymbolKind::Type,
    SymbolKind::Module,
    SymbolKind::Macro,
    SymbolKind::Constant,
    SymbolKind::Heading,
];

/// A chunk as ranking sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFacts {
    /// The change number of its record.
    pub change: u64,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// The symbols that it defines.
    pub symbols: Vec<Symbol>,
    /// The name of the enclosing definition.
    pub parent: Option<String>,
}

/// Where the facts are. The blocks of `lines` and `names` are verified when they are first read.
#[derive(Debug)]
pub(super) struct FactSections {
    pub(super) generated: Range<usize>,
    pub(super) by_row: Range<usize>,
    pub(super) name_ends: Range<usize>,
    lines: Range<usize>,
    names: Range<usize>,
}

impl FactSections {
    pub(super) fn of(container: &Container) -> Result<Self, SegmentError> {
        Ok(Self {
            generated: container.section(section::GENERATED)?,
            by_row: container.section(section::BY_ROW)?,
            lines: container.section(section::LINES)?,
            names: container.section(section::NAMES)?,
            name_ends: container.section(section::NAME_ENDS)?,
        })
    }
}

impl SourceSegment {
    /// The position of the chunk with this row, if there is one.
    pub fn chunk_of(&self, row: u64) -> Option<usize> {
        let rows: &[u64] = self.numbers(&self.rows);
        let order: &[u32] = self.numbers(&self.facts.by_row);
        let row_at = |at: &u32| rows.get(*at as usize).copied().unwrap_or(u64::MAX);
        // Rows are mostly consecutive, and no two are equal.
        let last = usize::try_from(row.checked_sub(row_at(order.first()?))?).ok()?;
        if order.get(last).is_some_and(|at| row_at(at) == row) {
            return Some(order[last] as usize);
        }
        let order = &order[..order.len().min(last)];
        let found = order.binary_search_by_key(&row, row_at).ok()?;
        Some(order[found] as usize)
    }

    /// The position of the file that has the chunk at a position.
    pub fn file_of(&self, chunk: usize) -> usize {
        let ends: &[u32] = self.numbers(&self.chunk_ends);
        ends.partition_point(|end| *end as usize <= chunk)
    }

    /// The facts about the chunk at a position below [`Self::len`], except for its file.
    ///
    /// # Errors
    /// If there is none, or a block that they are in is damaged.
    pub fn facts(&self, chunk: usize) -> Result<ChunkFacts, SegmentError> {
        let changes: &[u64] = self.numbers(&self.changes);
        let change = *changes.get(chunk).ok_or_else(|| self.no_chunk())?;
        let [start_line, end_line] = [2 * chunk, 2 * chunk + 1].map(|at| self.line(at));
        let range = self.part::<u32>(&self.facts.name_ends, chunk)?;
        let names = self.facts.names.start;
        let bytes = self.container.bytes(names + range.start..names + range.end)?;
        let (parent, symbols) = decode(bytes)
            .ok_or_else(|| self.container.damaged("the names of a chunk cannot be read"))?;
        let (start_line, end_line) = (start_line?, end_line?);
        Ok(ChunkFacts { change, start_line, end_line, symbols, parent })
    }

    /// The text of the chunk at a position below [`Self::len`], up to the next one.
    ///
    /// # Errors
    /// If there is none, or a block that it is in is damaged.
    pub fn chunk_text(&self, chunk: usize) -> Result<&str, SegmentError> {
        let file = self.file_of(chunk);
        let all = self.part::<u64>(&self.text_ends, file)?;
        let starts: &[u32] = self.numbers(&self.starts);
        let start = *starts.get(chunk).ok_or_else(|| self.no_chunk())? as usize;
        let is_last = self.part::<u32>(&self.chunk_ends, file)?.end == chunk + 1;
        let end = if is_last { None } else { starts.get(chunk + 1) };
        let end = end.map_or(all.len(), |end| *end as usize);
        if start > end || end > all.len() {
            return Err(self.container.damaged("a chunk is not in its file"));
        }
        let from = self.texts.start + all.start;
        let text = self.container.bytes(from + start..from + end)?;
        std::str::from_utf8(text).map_err(|_| self.container.damaged("a text is not UTF-8"))
    }

    pub(super) fn is_generated(&self, file: usize) -> bool {
        let flags = self.container.unchecked(self.facts.generated.clone());
        flags.get(file).is_some_and(|flag| *flag != 0)
    }

    /// Whether there are as many facts as there are files and chunks.
    pub(super) fn facts_fit(&self, files: usize, chunks: usize) -> bool {
        let FactSections { generated, by_row, lines, names, name_ends } = &self.facts;
        generated.len() == files
            && self.numbers::<u32>(by_row).len() == chunks
            && lines.len() == 8 * chunks
            && end_at(self.numbers::<u32>(name_ends), chunks, names.len())
            && self.numbers::<u32>(by_row).iter().all(|at| (*at as usize) < chunks)
    }

    fn line(&self, at: usize) -> Result<u32, SegmentError> {
        let start = self.facts.lines.start + 4 * at;
        let bytes = self.container.bytes(start..start + 4)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    fn no_chunk(&self) -> SegmentError {
        SegmentError::invalid("read", self.container.path(), "it has no such chunk")
    }
}

/// Collects the facts about chunks.
#[derive(Debug, Default)]
pub(super) struct FactsBuilder {
    pub(super) generated: Vec<u8>,
    pub(super) lines: Vec<u32>,
    pub(super) names: Vec<u8>,
    pub(super) name_ends: Vec<u32>,
}

impl FactsBuilder {
    pub(super) fn push(&mut self, chunk: &SourceChunk<'_>) {
        let (start, end) = chunk.lines;
        self.lines.extend([start, end]);
        encode(chunk.parent, chunk.symbols, &mut self.names);
        // With more than 4 GB of names, the segment is refused when it is opened.
        self.name_ends.push(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
    }
}

/// The positions of chunks, by row.
pub(super) fn by_row(rows: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_unstable_by_key(|at| rows[*at as usize]);
    order
}

/// The length of the parent's name plus one, or 0 without a parent, and the name; then for each
/// symbol the number of its kind, its line, the length of its name, and the name. Lengths and
/// lines are u32.
fn encode(parent: Option<&str>, symbols: &[Symbol], names: &mut Vec<u8>) {
    if parent.is_none() && symbols.is_empty() {
        return;
    }
    let length = |name: &str| u32::try_from(name.len()).unwrap_or(u32::MAX - 1);
    names.extend(parent.map_or(0, |name| length(name) + 1).to_le_bytes());
    names.extend(parent.unwrap_or_default().as_bytes());
    for symbol in symbols {
        let kind = KINDS.iter().position(|kind| *kind == symbol.kind).unwrap_or(KINDS.len());
        names.push(kind as u8);
        names.extend(symbol.line.to_le_bytes());
        names.extend(length(&symbol.name).to_le_bytes());
        names.extend(symbol.name.as_bytes());
    }
}

fn decode(mut bytes: &[u8]) -> Option<(Option<String>, Vec<Symbol>)> {
    if bytes.is_empty() {
        return Some((None, Vec::new()));
    }
    let parent = match number(&mut bytes)?.checked_sub(1) {
        Some(length) => Some(text(&mut bytes, length)?),
        None => None,
    };
    let mut symbols = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        let kind = *KINDS.get(*kind as usize)?;
        let line = number(&mut bytes)?;
        let length = number(&mut bytes)?;
        symbols.push(Symbol { name: text(&mut bytes, length)?, kind, line });
    }
    Some((parent, symbols))
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn text(bytes: &mut &[u8], length: u32) -> Option<String> {
    let (text, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_symbol_has_a_number() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            // A new kind does not compile until it is listed here, and so in `KINDS`.
            let expected = match kind {
                SymbolKind::Function => 0,
                SymbolKind::Method => 1,
                SymbolKind::Class => 2,
                SymbolKind::Struct => 3,
                SymbolKind::Enum => 4,
                SymbolKind::Interface => 5,
                SymbolKind::Type => 6,
                SymbolKind::Module => 7,
                SymbolKind::Macro => 8,
                SymbolKind::Constant => 9,
                SymbolKind::Heading => 10,
            };
            assert_eq!(number, expected);
        }
    }

    #[test]
    fn names_are_read_as_they_were_written() {
        let symbol = |name: &str, kind, line| Symbol { name: name.to_owned(), kind, line };
        let all = KINDS.map(|kind| symbol("Änne", kind, 7));
        let table: [(Option<&str>, &[Symbol]); 4] = [
            (None, &[]),
            (Some(""), &[]),
            (Some("Köln"), &[symbol("", SymbolKind::Macro, u32::MAX)]),
            (None, &all),
        ];
        for (parent, symbols) in table {
            let mut bytes = Vec::new();
            encode(parent, symbols, &mut bytes);
            let expected = (parent.map(str::to_owned), symbols.to_vec());
            assert_eq!(decode(&bytes), Some(expected));
            for end in 1..bytes.len().min(4) {
                assert_eq!(decode(&bytes[..end]), None);
            }
        }
    }
}
