use std::ops::Range;

use isolith_types::{ChunkKind, SymbolKind};

/// What a file defines, and where it may be cut. Places are bytes.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// In the order in which they start; one inside another comes after it.
    pub(super) definitions: Vec<Definition>,
    /// In no particular order.
    pub(super) cuts: Vec<Cut>,
    /// What is not code, and the kind of its chunks. In order.
    pub(super) parts: Vec<(Range<usize>, ChunkKind)>,
    /// Starts of lines that no chunk reaches across. In order.
    pub(super) walls: Vec<usize>,
}

impl Outline {
    /// Takes over what another outline found in other parts of the same text.
    pub(super) fn join(&mut self, other: Self) {
        let before = self.definitions.len();
        let shifted = other.definitions.into_iter().map(|mut definition| {
            definition.parent = definition.parent.map(|parent| parent + before);
            definition
        });
        self.definitions.extend(shifted);
        let mut order: Vec<usize> = (0..self.definitions.len()).collect();
        // Of two that start at one place the outer one was found first.
        order.sort_by_key(|index| self.definitions[*index].extent.start);
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, index)| places[*index] = place);
        let mut sorted: Vec<(usize, Definition)> =
            places.iter().copied().zip(std::mem::take(&mut self.definitions)).collect();
        sorted.sort_by_key(|(place, _)| *place);
        self.definitions = sorted
            .into_iter()
            .map(|(_, mut definition)| {
                definition.parent = definition.parent.map(|parent| places[parent]);
                definition
            })
            .collect();
        self.cuts.extend(other.cuts);
        self.parts.extend(other.parts);
        self.parts.sort_by_key(|(range, _)| range.start);
        self.walls.extend(other.walls);
        self.walls.sort_unstable();
    }
}

/// Something with a name, or a block such as `impl` whose members have it as parent.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// Nothing for a block that defines no name itself.
    pub(super) symbol: Option<SymbolKind>,
    /// Where the comments and decorators before it begin.
    pub(super) lead: usize,
    /// From its first character to its end, without those before it.
    pub(super) extent: Range<usize>,
    /// The definition around it, by its index.
    pub(super) parent: Option<usize>,
    /// The type that it is a member of, where that is said by its name alone.
    pub(super) owner: Option<String>,
    /// Its declaration up to the body.
    pub(super) head: Range<usize>,
    /// The comment that documents it; empty if there is none.
    pub(super) doc: Range<usize>,
}

/// The start of a line where a chunk may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cut {
    pub(super) at: usize,
    /// How many definitions are around it.
    pub(super) depth: usize,
    /// What is between definitions is cut off only if it is long enough by itself.
    pub(super) loose: bool,
}
