use std::ops::Range;

use isolith_types::SymbolKind;

/// What a file defines, and where it may be cut. Places are bytes.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// In the order in which they start; one inside another comes after it.
    pub(super) definitions: Vec<Definition>,
    /// In no particular order.
    pub(super) cuts: Vec<Cut>,
    /// Whether it is a document with headings rather than code.
    pub(super) prose: bool,
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
