//! The adjacency of a graph as flat slices (compressed sparse rows), for traversals that touch
//! many nodes.

use std::ops::Range;

use crate::graph::{Direction, Hop, TypeId};

/// The adjacency of all nodes. The slices may be mapped from a file, and are trusted only as
/// far as [`Adjacency::check`] verifies them.
#[derive(Debug, Clone, Copy)]
pub struct Adjacency<'a> {
    /// The ids of all nodes, ascending. A node's index here is its position elsewhere.
    pub nodes: &'a [i64],
    /// Outgoing relationships.
    pub out: Csr<'a>,
    /// Incoming relationships.
    pub incoming: Csr<'a>,
}

/// The relationships of every node, concatenated, each node's ordered by type. There is one
/// structure for all types, as there may be thousands of types.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a> {
    /// Where each position's list begins; one entry more than there are nodes.
    pub offsets: &'a [u32],
    /// The positions of the nodes at the other end.
    pub targets: &'a [u32],
    /// The type of each relationship, parallel to `targets`.
    pub kinds: &'a [u32],
    /// The id of each relationship, parallel to `targets`.
    pub edges: &'a [i64],
}

/// A selection of each node's relationships.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    csr: Csr<'a>,
    /// Only this type, or all.
    kind: Option<TypeId>,
    /// Whether to skip self-loops, because another list has them.
    skip_loops: bool,
}

impl Csr<'_> {
    /// The range of a position's list; empty if the offsets are invalid.
    fn range(&self, position: u32) -> Range<usize> {
        let at = position as usize;
        match (self.offsets.get(at), self.offsets.get(at + 1)) {
            (Some(&start), Some(&end)) if start <= end && end as usize <= self.targets.len() => {
                start as usize..end as usize
            }
            _ => 0..0,
        }
    }

    /// The part of a position's list with this type.
    fn range_of(&self, position: u32, kind: TypeId) -> Range<usize> {
        let range = self.range(position);
        let kinds = self.kinds.get(range.clone()).unwrap_or_default();
        match (kinds.first(), kinds.last()) {
            (Some(&first), Some(&last)) if first == kind.0 && last == kind.0 => range,
            _ => {
                let start = kinds.partition_point(|&it| it < kind.0);
                let length = kinds[start..].partition_point(|&it| it == kind.0);
                range.start + start..range.start + start + length
            }
        }
    }

    fn fits(&self, nodes: usize) -> bool {
        self.offsets.len() == nodes + 1
            && self.targets.len() == self.edges.len()
            && self.targets.len() == self.kinds.len()
            && self.offsets.last().is_some_and(|&end| end as usize == self.targets.len())
            && self.offsets.is_sorted()
            && self.targets.iter().all(|&target| (target as usize) < nodes)
    }
}

impl List<'_> {
    fn range(&self, position: u32) -> Range<usize> {
        match self.kind {
            None => self.csr.range(position),
            Some(kind) => self.csr.range_of(position, kind),
        }
    }
}

impl<'a> Adjacency<'a> {
    /// Whether the lengths of all slices agree and all positions are in range.
    pub fn check(&self) -> bool {
        let count = self.nodes.len();
        self.nodes.is_sorted() && self.out.fits(count) && self.incoming.fits(count)
    }

    /// The position of a node, or `None` if it is not in the graph.
    pub fn position(&self, node: i64) -> Option<u32> {
        position_of(self.nodes, node)
    }

    /// Selects the relationships of these types, or of all if none is named, in a direction.
    pub fn lists(&self, direction: Direction, kinds: &[TypeId]) -> Vec<List<'a>> {
        let mut wanted: Vec<Option<TypeId>> = kinds.iter().copied().map(Some).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            wanted.push(None);
        }
        let mut lists = Vec::new();
        for kind in wanted {
            if direction != Direction::In {
                lists.push(List { csr: self.out, kind, skip_loops: false });
            }
            if direction != Direction::Out {
                let skip_loops = direction == Direction::Both;
                lists.push(List { csr: self.incoming, kind, skip_loops });
            }
        }
        lists
    }

    /// Appends the relationships of a node, as [`crate::Graph::edges`] does.
    pub fn edges(&self, lists: &[List<'a>], position: u32, found: &mut Vec<Hop>) {
        for list in lists {
            let Csr { targets, kinds, edges, .. } = list.csr;
            for at in list.range(position) {
                let target = targets[at];
                if list.skip_loops && target == position {
                    continue;
                }
                let (Some(&kind), Some(&edge), Some(&node)) =
                    (kinds.get(at), edges.get(at), self.nodes.get(target as usize))
                else {
                    continue;
                };
                found.push(Hop { edge, node, kind: TypeId(kind) });
            }
        }
    }

    /// The number of relationships a node has in these lists.
    pub fn degree(&self, lists: &[List<'a>], position: u32) -> u64 {
        let count = |list: &List<'a>| {
            let targets = &list.csr.targets[list.range(position)];
            let loops = if list.skip_loops {
                targets.iter().filter(|&&target| target == position).count()
            } else {
                0
            };
            (targets.len() - loops) as u64
        };
        lists.iter().map(count).sum()
    }
}

/// The index of a node in a list of ascending ids.
pub fn position_of(nodes: &[i64], node: i64) -> Option<u32> {
    // Without gaps between the ids, no search is needed.
    let guess = usize::try_from(node.checked_sub(*nodes.first()?)?).ok()?;
    let at = match nodes.get(guess) {
        Some(&there) if there == node => guess,
        _ => nodes.binary_search(&node).ok()?,
    };
    u32::try_from(at).ok()
}

/// A relationship seen from one of its nodes. Links sort in the order of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The position of this node.
    pub from: u32,
    /// The type of the relationship.
    pub kind: u32,
    /// The position of the other node.
    pub to: u32,
    /// The id of the relationship.
    pub edge: i64,
}

/// The lists of one direction, owned.
#[derive(Debug, Clone, Default)]
pub struct CsrLists {
    /// Where each position's list begins, and where the last one ends.
    pub offsets: Vec<u32>,
    /// The positions of the nodes at the other end.
    pub targets: Vec<u32>,
    /// The type of each relationship.
    pub kinds: Vec<u32>,
    /// The id of each relationship.
    pub edges: Vec<i64>,
}

impl CsrLists {
    /// Builds the lists of this many nodes from sorted links.
    pub fn build(nodes: usize, links: impl IntoIterator<Item = Link>) -> Self {
        let mut lists = Self { offsets: Vec::with_capacity(nodes + 1), ..Self::default() };
        for link in links {
            lists.push(link);
        }
        lists.finish(nodes)
    }

    /// Appends a link, which must not sort before the previous one.
    pub fn push(&mut self, link: Link) {
        self.begin(link.from as usize);
        self.targets.push(link.to);
        self.kinds.push(link.kind);
        self.edges.push(link.edge);
    }

    /// Completes the lists for this many nodes; nodes without links get empty lists.
    #[must_use]
    pub fn finish(mut self, nodes: usize) -> Self {
        self.begin(nodes);
        self
    }

    /// Starts the lists up to and including this position's, if they are not yet started.
    fn begin(&mut self, position: usize) {
        debug_assert!(position + 1 >= self.offsets.len(), "links come in order");
        let here = self.targets.len() as u32;
        self.offsets.resize((position + 1).max(self.offsets.len()), here);
    }

    /// Borrows the lists as slices.
    pub fn as_csr(&self) -> Csr<'_> {
        let CsrLists { offsets, targets, kinds, edges } = self;
        Csr { offsets, targets, kinds, edges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_contain_the_links_they_were_built_from() {
        let nodes = [10, 20, 40];
        let link = |kind, from, to, edge| Link { kind, from, to, edge };
        let mut links = [
            link(3, 0, 2, 104),
            link(5, 0, 1, 100),
            link(5, 0, 0, 101),
            link(5, 2, 0, 102),
            link(5, 0, 1, 103),
            link(8, 1, 0, 105),
        ];
        links.sort_unstable();
        let out = CsrLists::build(3, links);
        let mut links = links.map(|it| Link { from: it.to, to: it.from, ..it });
        links.sort_unstable();
        let incoming = CsrLists::build(3, links);
        let adjacency = Adjacency { nodes: &nodes, out: out.as_csr(), incoming: incoming.as_csr() };
        assert!(adjacency.check());
        assert_eq!(adjacency.position(40), Some(2));
        assert_eq!(adjacency.position(30), None);
        use Direction::{Both, In, Out};
        for (direction, kinds, expected) in [
            (Out, vec![TypeId(5)], vec![100, 101, 103]),
            (In, vec![TypeId(5)], vec![101, 102]),
            (Both, vec![TypeId(5)], vec![100, 101, 102, 103]),
            (Out, vec![], vec![100, 101, 103, 104]),
            (Both, vec![], vec![100, 101, 102, 103, 104, 105]),
            (Both, vec![TypeId(8), TypeId(3), TypeId(8)], vec![104, 105]),
            (Both, vec![TypeId(4)], vec![]),
        ] {
            let lists = adjacency.lists(direction, &kinds);
            let mut found = Vec::new();
            adjacency.edges(&lists, 0, &mut found);
            assert_eq!(adjacency.degree(&lists, 0), found.len() as u64);
            let mut edges: Vec<i64> = found.iter().map(|hop| hop.edge).collect();
            edges.sort_unstable();
            assert_eq!(edges, expected, "{direction:?} {kinds:?}");
        }
    }

    #[test]
    fn inconsistent_slices_are_detected() {
        let lists = CsrLists {
            offsets: vec![0, 2],
            targets: vec![0, 7],
            kinds: vec![1, 1],
            edges: vec![1, 2],
        };
        let (out, incoming) = (lists.as_csr(), lists.as_csr());
        assert!(!Adjacency { nodes: &[1], out, incoming }.check());
        assert_eq!(lists.as_csr().range(9), 0..0);
    }
}
