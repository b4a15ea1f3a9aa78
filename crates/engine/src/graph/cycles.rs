//! Cycles in a directed graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of nodes of a component from which a shortest cycle is searched.
const MAX_STARTS: usize = 200;

/// The successors of each node.
pub(super) type Links = BTreeMap<i64, BTreeSet<i64>>;

/// The strongly connected components of two nodes or more, by Tarjan's algorithm without
/// recursion.
pub(super) fn strongly_connected(links: &Links) -> Vec<Vec<i64>> {
    let mut search = Search::default();
    for node in links.keys() {
        if !search.order.contains_key(node) {
            search.visit(*node, links);
        }
    }
    search.found
}

/// A shortest cycle within a component, starting at its smallest node.
pub(super) fn shortest_cycle(component: &[i64], links: &Links) -> Vec<i64> {
    let inside: BTreeSet<i64> = component.iter().copied().collect();
    let starts = inside.iter().take(MAX_STARTS);
    let cycles = starts.filter_map(|start| shortest_cycle_from(*start, &inside, links));
    cycles.min_by_key(Vec::len).unwrap_or_default()
}

#[derive(Default)]
struct Search {
    order: BTreeMap<i64, usize>,
    low: BTreeMap<i64, usize>,
    open: Vec<i64>,
    is_open: BTreeSet<i64>,
    found: Vec<Vec<i64>>,
}

impl Search {
    fn visit(&mut self, start: i64, links: &Links) {
        let next = |node: i64| links.get(&node).into_iter().flatten().copied();
        let mut calls = vec![(self.enter(start), next(start))];
        while let Some((node, rest)) = calls.last_mut() {
            let node = *node;
            match rest.next() {
                Some(to) if !self.order.contains_key(&to) => {
                    calls.push((self.enter(to), next(to)));
                }
                Some(to) if self.is_open.contains(&to) => self.lower(node, self.order[&to]),
                Some(_) => {}
                None => {
                    calls.pop();
                    self.leave(node);
                    if let Some((around, _)) = calls.last() {
                        self.lower(*around, self.low[&node]);
                    }
                }
            }
        }
    }

    fn enter(&mut self, node: i64) -> i64 {
        let number = self.order.len();
        self.order.insert(node, number);
        self.low.insert(node, number);
        self.open.push(node);
        self.is_open.insert(node);
        node
    }

    fn lower(&mut self, node: i64, to: usize) {
        let low = self.low.entry(node).or_insert(to);
        *low = (*low).min(to);
    }

    fn leave(&mut self, node: i64) {
        if self.low[&node] != self.order[&node] {
            return;
        }
        let at = self.open.iter().rposition(|it| *it == node).unwrap_or(0);
        let mut component = self.open.split_off(at);
        for node in &component {
            self.is_open.remove(node);
        }
        if component.len() > 1 {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

fn shortest_cycle_from(start: i64, inside: &BTreeSet<i64>, links: &Links) -> Option<Vec<i64>> {
    let mut before = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for to in links.get(&node).into_iter().flatten() {
            if *to == start && node != start {
                let mut path = vec![node];
                while let Some(earlier) = before.get(path.last().unwrap_or(&start)) {
                    path.push(*earlier);
                }
                path.reverse();
                return Some(path);
            }
            if *to != start && inside.contains(to) && !before.contains_key(to) {
                before.insert(*to, node);
                queue.push_back(*to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pairs: &[(i64, i64)]) -> Links {
        let mut links = Links::new();
        for (from, to) in pairs {
            links.entry(*from).or_default().insert(*to);
        }
        links
    }

    #[test]
    fn nodes_that_reach_each_other_are_a_component() {
        for (pairs, expected) in [
            (&[][..], vec![]),
            (&[(1, 2), (2, 3)], vec![]),
            (&[(1, 1), (1, 2)], vec![]),
            (&[(1, 2), (2, 1)], vec![vec![1, 2]]),
            (&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4)], vec![vec![4, 5], vec![1, 2, 3]]),
            (&[(5, 1), (1, 3), (3, 5), (1, 2), (2, 1)], vec![vec![1, 2, 3, 5]]),
        ] {
            assert_eq!(strongly_connected(&links(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn long_cycles_need_no_deep_stack() {
        let ring: Vec<(i64, i64)> = (0..100_000).map(|n| (n, (n + 1) % 100_000)).collect();
        assert_eq!(strongly_connected(&links(&ring))[0].len(), 100_000);
    }

    #[test]
    fn the_shortest_cycle_is_returned() {
        let links = links(&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 3)]);
        assert_eq!(shortest_cycle(&[1, 2, 3, 4], &links), [3, 4]);
        assert_eq!(shortest_cycle(&[1, 2, 3], &links), [1, 2, 3]);
    }

    /// Compares with a search that tries every pair.
    #[test]
    fn components_of_random_graphs_are_right() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let nodes = random.i64(2..9);
            let count = random.usize(0..20);
            let pairs: Vec<(i64, i64)> =
                (0..count).map(|_| (random.i64(0..nodes), random.i64(0..nodes))).collect();
            let links = links(&pairs);
            let mut leads = vec![vec![false; nodes as usize]; nodes as usize];
            for (from, to) in &pairs {
                leads[*from as usize][*to as usize] = true;
            }
            for middle in 0..nodes as usize {
                for from in 0..nodes as usize {
                    for to in 0..nodes as usize {
                        leads[from][to] |= leads[from][middle] && leads[middle][to];
                    }
                }
            }
            let mut expected: BTreeSet<Vec<i64>> = BTreeSet::new();
            for node in 0..nodes {
                let both = |other: &i64| {
                    *other == node
                        || leads[node as usize][*other as usize]
                            && leads[*other as usize][node as usize]
                };
                let component: Vec<i64> = (0..nodes).filter(both).collect();
                if component.len() > 1 {
                    expected.insert(component);
                }
            }
            let found: BTreeSet<Vec<i64>> = strongly_connected(&links).into_iter().collect();
            assert_eq!(found, expected, "{pairs:?}");
        }
    }
}
