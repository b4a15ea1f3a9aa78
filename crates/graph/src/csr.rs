//! The adjacency of a graph as flat slices, for walks that touch many nodes.

use crate::graph::{Direction, Hop, TypeId};

/// The adjacency of all nodes, type by type. The slices may lie in a mapped file: they are
/// trusted as far as [`Adjacency::check`] goes.
#[derive(Debug, Clone)]
pub struct Adjacency<'a> {
    /// The numbers of all nodes, ascending; a node's place here is its position elsewhere.
    pub nodes: &'a [i64],
    /// The relationships, type by type.
    pub kinds: Vec<KindAdjacency<'a>>,
}

/// The relationships of one type, both ways.
#[derive(Debug, Clone, Copy)]
pub struct KindAdjacency<'a> {
    /// The type.
    pub kind: TypeId,
    /// From the nodes where they begin.
    pub out: Csr<'a>,
    /// From the nodes where they end.
    pub incoming: Csr<'a>,
}

/// A list for every node, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a> {
    /// Where each position's list begins; one more than there are nodes.
    pub offsets: &'a [u32],
    /// The positions of the nodes at the other ends.
    pub targets: &'a [u32],
    /// The numbers of the relationships, as long as `targets`.
    pub edges: &'a [i64],
}

/// One of the lists that hold a node's relationships.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    kind: TypeId,
    csr: Csr<'a>,
    /// Whether to pass over what begins and ends at one node: another list has it.
    skip_loops: bool,
}

impl<'a> Csr<'a> {
    /// The range of a position's list; empty if the slices make no sense there.
    pub fn range(&self, position: u32) -> std::ops::Range<usize> {
        let at = position as usize;
        match (self.offsets.get(at), self.offsets.get(at + 1)) {
            (Some(&start), Some(&end)) if start <= end && end as usize <= self.targets.len() => {
                start as usize..end as usize
            }
            _ => 0..0,
        }
    }

    /// The positions at the other ends.
    pub fn targets(&self, position: u32) -> &'a [u32] {
        &self.targets[self.range(position)]
    }
}

impl<'a> Adjacency<'a> {
    /// Whether all slices have lengths that fit each other, and all positions are within.
    pub fn check(&self) -> bool {
        let count = self.nodes.len();
        let fits = |csr: &Csr<'_>| {
            csr.offsets.len() == count + 1
                && csr.targets.len() == csr.edges.len()
                && csr.offsets.last().is_some_and(|&end| end as usize == csr.targets.len())
                && csr.offsets.is_sorted()
                && csr.targets.iter().all(|&target| (target as usize) < count)
        };
        self.nodes.is_sorted()
            && self.kinds.iter().all(|kind| fits(&kind.out) && fits(&kind.incoming))
    }

    /// The position of a node.
    pub fn position(&self, node: i64) -> Option<u32> {
        let first = *self.nodes.first()?;
        // Numbers without gaps need no search.
        let guess = usize::try_from(node.checked_sub(first)?).ok()?;
        if self.nodes.get(guess) == Some(&node) {
            return Some(guess as u32);
        }
        self.nodes.binary_search(&node).ok().map(|at| at as u32)
    }

    /// The lists that hold the relationships of these types, or all, in a direction.
    pub fn lists(&self, direction: Direction, kinds: &[TypeId]) -> Vec<List<'a>> {
        let mut lists = Vec::new();
        for &KindAdjacency { kind, out, incoming } in &self.kinds {
            if !kinds.is_empty() && !kinds.contains(&kind) {
                continue;
            }
            if direction != Direction::In {
                lists.push(List { kind, csr: out, skip_loops: false });
            }
            if direction != Direction::Out {
                let skip_loops = direction == Direction::Both;
                lists.push(List { kind, csr: incoming, skip_loops });
            }
        }
        lists
    }

    /// Appends the relationships of a node, as [`crate::Graph::edges`] does.
    pub fn edges(&self, lists: &[List<'a>], position: u32, found: &mut Vec<Hop>) {
        for List { kind, csr, skip_loops } in lists {
            for at in csr.range(position) {
                let target = csr.targets[at];
                if *skip_loops && target == position {
                    continue;
                }
                let (Some(&edge), Some(&node)) =
                    (csr.edges.get(at), self.nodes.get(target as usize))
                else {
                    continue;
                };
                found.push(Hop { edge, node, kind: *kind });
            }
        }
    }

    /// How many relationships a node has in these lists.
    pub fn degree(&self, lists: &[List<'a>], position: u32) -> u64 {
        let count = |list: &List<'a>| {
            let targets = list.csr.targets(position);
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

/// The lists of one direction, in memory.
#[derive(Debug, Clone, Default)]
pub struct CsrLists {
    /// Where each position's list begins.
    pub offsets: Vec<u32>,
    /// The positions at the other ends.
    pub targets: Vec<u32>,
    /// The numbers of the relationships.
    pub edges: Vec<i64>,
}

impl CsrLists {
    /// The lists of edges given as (from, to, number) by position, for so many nodes. The
    /// edges of a node stay in the order given.
    pub fn build(count: usize, edges: impl Iterator<Item = (u32, u32, i64)> + Clone) -> Self {
        let mut offsets = vec![0_u32; count + 1];
        for (from, _, _) in edges.clone() {
            offsets[from as usize + 1] += 1;
        }
        for at in 0..count {
            offsets[at + 1] += offsets[at];
        }
        let total = offsets[count] as usize;
        let mut next = offsets.clone();
        let (mut targets, mut numbers) = (vec![0; total], vec![0; total]);
        for (from, to, number) in edges {
            let at = next[from as usize] as usize;
            next[from as usize] += 1;
            targets[at] = to;
            numbers[at] = number;
        }
        CsrLists { offsets, targets, edges: numbers }
    }

    /// The lists as slices.
    pub fn as_csr(&self) -> Csr<'_> {
        Csr { offsets: &self.offsets, targets: &self.targets, edges: &self.edges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_what_was_put_in() {
        let nodes = [10, 20, 40];
        let edges = [(0, 1, 100), (0, 0, 101), (2, 0, 102), (0, 1, 103)];
        let out = CsrLists::build(3, edges.iter().copied());
        let back = edges.iter().map(|&(from, to, edge)| (to, from, edge));
        let incoming = CsrLists::build(3, back);
        let kinds =
            vec![KindAdjacency { kind: TypeId(5), out: out.as_csr(), incoming: incoming.as_csr() }];
        let adjacency = Adjacency { nodes: &nodes, kinds };
        assert!(adjacency.check());
        assert_eq!(adjacency.position(40), Some(2));
        assert_eq!(adjacency.position(30), None);
        for (direction, degree) in [(Direction::Out, 3), (Direction::In, 2), (Direction::Both, 4)] {
            let lists = adjacency.lists(direction, &[]);
            assert_eq!(adjacency.degree(&lists, 0), degree, "{direction:?}");
            let mut found = Vec::new();
            adjacency.edges(&lists, 0, &mut found);
            assert_eq!(found.len() as u64, degree, "{direction:?}");
        }
        assert!(adjacency.lists(Direction::Both, &[TypeId(6)]).is_empty());
    }

    #[test]
    fn slices_that_do_not_fit_are_seen() {
        let lists = CsrLists { offsets: vec![0, 2], targets: vec![0, 7], edges: vec![1, 2] };
        let kinds =
            vec![KindAdjacency { kind: TypeId(0), out: lists.as_csr(), incoming: lists.as_csr() }];
        assert!(!Adjacency { nodes: &[1], kinds }.check());
        assert_eq!(lists.as_csr().range(9), 0..0);
    }
}
