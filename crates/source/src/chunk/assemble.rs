use std::ops::Range;

use isolith_types::{Chunk, ChunkKind, Symbol, SymbolKind};

use super::doc;
use super::lines::Lines;
use super::outline::{Definition, Outline};
use super::pieces;

/// The longest signature, in characters.
const SIGNATURE_CHARS: usize = 200;

/// Chunks along an outline.
pub(super) fn chunks(lines: &Lines<'_>, outline: Outline) -> Vec<Chunk> {
    let Outline { definitions, cuts, parts, walls } = outline;
    let pieces = pieces::pieces(lines, cuts, &walls);
    let mut view = View { lines, definitions: &definitions, parts: &parts, next: 0, around: None };
    pieces.into_iter().filter_map(|piece| view.chunk(piece)).collect()
}

/// Chunks of a text that has no outline.
pub(super) fn text_chunks(lines: &Lines<'_>) -> Vec<Chunk> {
    let pieces = pieces::text_pieces(lines);
    let ranges = pieces.into_iter().filter_map(|piece| lines.without_blank_ends(piece));
    ranges.map(|range| bare_chunk(lines, range, ChunkKind::Text)).collect()
}

fn bare_chunk(lines: &Lines<'_>, range: Range<usize>, kind: ChunkKind) -> Chunk {
    Chunk {
        start_line: lines.number_of(range.start),
        end_line: lines.number_of(range.end.saturating_sub(1).max(range.start)),
        kind,
        symbols: Vec::new(),
        parent: None,
        signature: None,
        doc: None,
        text: lines.text()[range].to_owned(),
    }
}

/// What a definition counts for in a chunk.
struct Weight {
    index: usize,
    kind: ChunkKind,
    bytes: usize,
}

/// Pieces come in order, and so do definitions: both are gone through once.
struct View<'t> {
    lines: &'t Lines<'t>,
    definitions: &'t [Definition],
    /// What is not code, and what its chunks are.
    parts: &'t [(Range<usize>, ChunkKind)],
    /// The first definition that starts in no piece so far.
    next: usize,
    /// The innermost definition that is open where the next piece starts.
    around: Option<usize>,
}

impl View<'_> {
    fn chunk(&mut self, piece: Range<usize>) -> Option<Chunk> {
        let around = self.close(self.around, piece.start);
        let first = self.next;
        while self.definitions.get(self.next).is_some_and(|next| next.extent.start < piece.end) {
            self.next += 1;
        }
        let own = first..self.next;
        self.around = if own.is_empty() { around } else { Some(self.next - 1) };

        let range = self.lines.without_blank_ends(piece)?;
        let weights = self.weigh(&range, own.clone());
        let outside = self.documented(&range).filter(|_| own.is_empty()).or(around);
        let kind = self.kind(&range, &weights, outside);
        let mut chunk = bare_chunk(self.lines, range.clone(), kind);
        chunk.symbols =
            self.definitions[own.clone()].iter().filter_map(|d| self.symbol(d)).collect();
        match self.main(own, &weights, kind) {
            Some(main) => self.describe(&mut chunk, main),
            None => {
                let index = self.documented(&range).or(around);
                chunk.parent = index.map(|index| self.definitions[index].name.clone());
            }
        }
        Some(chunk)
    }

    /// The next definition, if its documentation is so long that most of a chunk is part of
    /// it.
    fn documented(&self, range: &Range<usize>) -> Option<usize> {
        let next = self.definitions.get(self.next)?;
        let lead = range.end.saturating_sub(next.lead.max(range.start));
        (lead * 2 > range.len()).then_some(self.next)
    }

    /// The innermost of a definition and those around it that is still open at a place.
    fn close(&self, mut innermost: Option<usize>, at: usize) -> Option<usize> {
        while let Some(index) = innermost {
            if self.definitions[index].extent.end > at {
                break;
            }
            innermost = self.definitions[index].parent;
        }
        innermost
    }

    fn symbol(&self, definition: &Definition) -> Option<Symbol> {
        let kind = definition.symbol?;
        let line = self.lines.number_of(definition.extent.start);
        Some(Symbol { name: definition.name.clone(), kind, line })
    }

    /// The definition that stands for the chunk: the first of its kind that is not dwarfed
    /// by another. In a chunk that is mostly loose lines any definition will do.
    fn main(&self, own: Range<usize>, weights: &[Weight], kind: ChunkKind) -> Option<&Definition> {
        let wanted = |weight: &&Weight| match kind {
            ChunkKind::Module => weight.kind != kind,
            _ => weight.kind == kind,
        };
        let heaviest = weights.iter().filter(wanted).map(|weight| weight.bytes).max();
        let ample = |weight: &&Weight| heaviest.is_some_and(|most| weight.bytes * 2 >= most);
        let best = weights.iter().filter(wanted).find(ample).or_else(|| weights.first());
        let definitions = &self.definitions[own];
        best.map(|weight| &self.definitions[weight.index])
            .or_else(|| definitions.iter().find(|definition| definition.symbol.is_some()))
            .or_else(|| definitions.first())
    }

    fn describe(&self, chunk: &mut Chunk, main: &Definition) {
        let text = self.lines.text();
        let parent = main.parent.map(|index| self.definitions[index].name.clone());
        chunk.parent = main.owner.clone().or(parent).filter(|name| !name.is_empty());
        if main.symbol != Some(SymbolKind::Heading) {
            chunk.signature = signature(&text[main.head.clone()]);
            chunk.doc = doc::begin(&text[main.doc.clone()]);
        }
    }

    /// How much of a chunk each of its outermost definitions takes.
    fn weigh(&self, range: &Range<usize>, own: Range<usize>) -> Vec<Weight> {
        let mut weights = Vec::new();
        let mut covered = range.start;
        for index in own {
            let definition = &self.definitions[index];
            let Some(kind) = definition.symbol.and_then(weighed_as) else { continue };
            let start = definition.lead.max(range.start);
            let end = definition.extent.end.min(range.end);
            if covered <= definition.extent.start && covered.max(start) < end {
                let start = covered.max(start);
                weights.push(Weight { index, kind, bytes: end - start });
                covered = end;
            }
        }
        weights
    }

    /// What most of a chunk is. What is not defined in it counts for the definition around.
    fn kind(&self, range: &Range<usize>, weights: &[Weight], around: Option<usize>) -> ChunkKind {
        let code = weights.iter().any(|weight| weight.kind != ChunkKind::Section);
        if let Some(kind) = self.part(range.start).filter(|_| !code) {
            return kind;
        }
        let outside =
            around.and_then(|index| self.enclosing_kind(index)).unwrap_or(ChunkKind::Module);
        let defined: usize = weights.iter().map(|weight| weight.bytes).sum();
        let loose = range.len().saturating_sub(defined);
        let total = |kind: ChunkKind| -> usize {
            let own = weights.iter().filter(|weight| weight.kind == kind);
            let own: usize = own.map(|weight| weight.bytes).sum();
            own + if kind == outside { loose } else { 0 }
        };
        let heaviest = ChunkKind::ALL.into_iter().max_by_key(|kind| total(*kind));
        heaviest.filter(|kind| total(*kind) > 0).unwrap_or(outside)
    }

    /// The kind of chunks that begin here, if this is not code.
    fn part(&self, at: usize) -> Option<ChunkKind> {
        let next = self.parts.partition_point(|(part, _)| part.start <= at);
        let (part, kind) = self.parts.get(next.checked_sub(1)?)?;
        part.contains(&at).then_some(*kind)
    }

    fn enclosing_kind(&self, index: usize) -> Option<ChunkKind> {
        let definition = &self.definitions[index];
        match definition.symbol {
            Some(symbol) => weighed_as(symbol),
            None => Some(ChunkKind::Class),
        }
    }
}

/// Modules are weighed by what is in them.
fn weighed_as(symbol: SymbolKind) -> Option<ChunkKind> {
    match symbol {
        SymbolKind::Function | SymbolKind::Macro => Some(ChunkKind::Function),
        SymbolKind::Method => Some(ChunkKind::Method),
        SymbolKind::Class
        | SymbolKind::Struct
        | SymbolKind::Enum
        | SymbolKind::Interface
        | SymbolKind::Type => Some(ChunkKind::Class),
        SymbolKind::Module => None,
        SymbolKind::Constant => Some(ChunkKind::Module),
        SymbolKind::Heading => Some(ChunkKind::Section),
    }
}

/// What may stand between a declaration and its body.
const BODY_OPENINGS: [&str; 8] = ["{", ";", ":", "=>", "=", "\\", ",", " where"];

/// A declaration on one line, without what opens its body.
fn signature(head: &str) -> Option<String> {
    let mut line = doc::on_one_line(head.split_whitespace(), SIGNATURE_CHARS);
    let mut bare = line.as_str();
    for opening in BODY_OPENINGS {
        bare = bare.strip_suffix(opening).map_or(bare, str::trim_end);
    }
    line.truncate(bare.len());
    (!line.is_empty()).then_some(line)
}
