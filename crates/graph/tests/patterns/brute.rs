//! Brute-force pattern matching: no index and no planning.

use std::collections::BTreeMap;

/// A small graph. Nodes and edges are identified by their indexes.
#[derive(Debug, Clone)]
pub(crate) struct Small {
    /// The label and the property `k` of each node.
    pub(crate) nodes: Vec<(Option<char>, i64)>,
    /// Start, end and type of each edge.
    pub(crate) edges: Vec<(usize, usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    Out,
    In,
    Both,
}

#[derive(Debug, Clone)]
pub(crate) struct NodeP {
    pub(crate) name: Option<String>,
    pub(crate) label: Option<char>,
    pub(crate) k: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct RelP {
    pub(crate) name: Option<String>,
    pub(crate) types: Vec<usize>,
    pub(crate) way: Way,
    pub(crate) length: Option<(usize, Option<usize>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct PathP {
    pub(crate) name: Option<String>,
    pub(crate) start: NodeP,
    pub(crate) steps: Vec<(RelP, NodeP)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Filter {
    /// `a.k = b.k`
    Same(String, String),
    /// `a.k <> n`
    Not(String, i64),
    /// `a.k IN [m, n]`
    In(String, i64, i64),
    /// `(a)-[:T0]->(b)`, with or without `NOT`
    Edge(String, String, bool),
    /// `(a)-[:T1*1..2]-()`
    Walk(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Clause {
    pub(crate) optional: bool,
    pub(crate) paths: Vec<PathP>,
    pub(crate) filter: Option<Filter>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Null,
    Node(usize),
    Edge(usize),
    Edges(Vec<usize>),
    Path(Vec<usize>, Vec<usize>),
}

pub(crate) type Binding = BTreeMap<String, Bound>;

/// The maximum number of rows and walks that are tried for a query.
const MAX_TRIED: usize = 20_000;

/// All bindings of a chain of clauses; `None` if there are too many to try.
pub(crate) fn answer(graph: &Small, clauses: &[Clause]) -> Option<Vec<Binding>> {
    let mut rows = vec![Binding::new()];
    let mut tried = 0;
    for clause in clauses {
        let mut next = Vec::new();
        for row in rows {
            let mut found = Vec::new();
            let mut search = Search { graph, clause, found: &mut found, tried };
            search.path(0, &row, &mut Vec::new());
            tried = search.tried;
            if tried > MAX_TRIED {
                return None;
            }
            found.retain(|row| clause.filter.as_ref().is_none_or(|it| holds(graph, it, row)));
            if found.is_empty() && clause.optional {
                let mut row = row;
                for name in names(clause) {
                    row.entry(name).or_insert(Bound::Null);
                }
                found.push(row);
            }
            next.extend(found);
        }
        rows = next;
    }
    Some(rows)
}

/// The variables that a clause binds.
pub(crate) fn names(clause: &Clause) -> Vec<String> {
    let mut names = Vec::new();
    for path in &clause.paths {
        names.extend(path.name.clone());
        names.extend(path.start.name.clone());
        for (rel, node) in &path.steps {
            names.extend(rel.name.clone());
            names.extend(node.name.clone());
        }
    }
    names
}

fn k(graph: &Small, row: &Binding, name: &str) -> Option<i64> {
    match row.get(name) {
        Some(Bound::Node(node)) => Some(graph.nodes[*node].1),
        _ => None,
    }
}

fn holds(graph: &Small, filter: &Filter, row: &Binding) -> bool {
    match filter {
        Filter::Same(a, b) => k(graph, row, a).is_some_and(|a| Some(a) == k(graph, row, b)),
        Filter::Not(a, n) => k(graph, row, a).is_some_and(|a| a != *n),
        Filter::In(a, m, n) => k(graph, row, a).is_some_and(|a| a == *m || a == *n),
        Filter::Edge(a, b, there) => {
            let (a, b) = (row.get(a), row.get(b));
            let found = graph.edges.iter().any(|(from, to, kind)| {
                *kind == 0 && a == Some(&Bound::Node(*from)) && b == Some(&Bound::Node(*to))
            });
            found == *there
        }
        Filter::Walk(a) => graph.edges.iter().any(|(from, to, kind)| {
            *kind == 1 && [Some(&Bound::Node(*from)), Some(&Bound::Node(*to))].contains(&row.get(a))
        }),
    }
}

struct Search<'a> {
    graph: &'a Small,
    clause: &'a Clause,
    found: &'a mut Vec<Binding>,
    /// The number of rows and walks tried.
    tried: usize,
}

impl Search<'_> {
    fn path(&mut self, at: usize, row: &Binding, used: &mut Vec<usize>) {
        let Some(path) = self.clause.paths.get(at) else {
            self.tried += 1;
            self.found.push(row.clone());
            return;
        };
        for node in 0..self.graph.nodes.len() {
            if self.tried > MAX_TRIED {
                return;
            }
            if let Some(row) = self.node(&path.start, node, row) {
                self.step(at, 0, &row, used, &mut (vec![node], Vec::new()));
            }
        }
    }

    fn node(&self, pattern: &NodeP, node: usize, row: &Binding) -> Option<Binding> {
        let (label, k) = self.graph.nodes[node];
        if pattern.label.is_some() && pattern.label != label {
            return None;
        }
        if pattern.k.is_some_and(|wanted| wanted != k) {
            return None;
        }
        bind(&pattern.name, Bound::Node(node), row)
    }

    /// Extends a path by one relationship; `walk` has its nodes and edges so far.
    fn step(
        &mut self,
        at: usize,
        step: usize,
        row: &Binding,
        used: &mut Vec<usize>,
        walk: &mut (Vec<usize>, Vec<usize>),
    ) {
        let path = &self.clause.paths[at];
        let Some((rel, node)) = path.steps.get(step) else {
            let bound = Bound::Path(walk.0.clone(), walk.1.clone());
            if let Some(row) = bind(&path.name, bound, row) {
                self.path(at + 1, &row, used);
            }
            return;
        };
        let (rel, node) = (rel.clone(), node.clone());
        let mut trails = Vec::new();
        let start = walk.0[walk.0.len() - 1];
        let (min, max) = rel.length.unwrap_or((1, Some(1)));
        self.trails(&rel, start, max, used, &mut vec![], &mut vec![], &mut trails);
        for (nodes, edges) in trails.into_iter().filter(|(_, edges)| edges.len() >= min) {
            let bound = match rel.length {
                Some(_) => Bound::Edges(edges.clone()),
                None if edges.is_empty() => continue,
                None => Bound::Edge(edges[0]),
            };
            let Some(row) = bind(&rel.name, bound, row) else { continue };
            let end = nodes.last().copied().unwrap_or(start);
            let Some(row) = self.node(&node, end, &row) else { continue };
            let (nodes_before, edges_before) = (walk.0.len(), walk.1.len());
            let used_before = used.len();
            walk.0.extend(&nodes);
            walk.1.extend(&edges);
            used.extend(&edges);
            self.step(at, step + 1, &row, used, walk);
            walk.0.truncate(nodes_before);
            walk.1.truncate(edges_before);
            used.truncate(used_before);
        }
    }

    /// All walks from a node that use no edge twice, including the empty one.
    #[allow(clippy::too_many_arguments)]
    fn trails(
        &mut self,
        rel: &RelP,
        node: usize,
        max: Option<usize>,
        used: &[usize],
        nodes: &mut Vec<usize>,
        edges: &mut Vec<usize>,
        trails: &mut Vec<(Vec<usize>, Vec<usize>)>,
    ) {
        self.tried += 1;
        if self.tried > MAX_TRIED {
            return;
        }
        trails.push((nodes.clone(), edges.clone()));
        if max.is_some_and(|max| edges.len() >= max) {
            return;
        }
        let graph = self.graph;
        for (edge, &(from, to, kind)) in graph.edges.iter().enumerate() {
            if used.contains(&edge) || edges.contains(&edge) {
                continue;
            }
            if !rel.types.is_empty() && !rel.types.contains(&kind) {
                continue;
            }
            let next = match rel.way {
                Way::Out if from == node => to,
                Way::In if to == node => from,
                Way::Both if from == node => to,
                Way::Both if to == node => from,
                _ => continue,
            };
            nodes.push(next);
            edges.push(edge);
            self.trails(rel, next, max, used, nodes, edges, trails);
            nodes.pop();
            edges.pop();
        }
    }
}

fn bind(name: &Option<String>, bound: Bound, row: &Binding) -> Option<Binding> {
    let mut row = row.clone();
    if let Some(name) = name {
        match row.get(name) {
            Some(known) if *known != bound => return None,
            _ => row.insert(name.clone(), bound),
        };
    }
    Some(row)
}

/// The length of the shortest walk between two nodes and the number of such walks; the outer
/// `Option` is `None` if there are too many walks to try.
pub(crate) fn shortest(
    graph: &Small,
    rel: &RelP,
    from: usize,
    to: usize,
) -> Option<Option<(usize, usize)>> {
    let clause = Clause { optional: false, paths: Vec::new(), filter: None };
    let mut trails = Vec::new();
    let mut search = Search { graph, clause: &clause, found: &mut Vec::new(), tried: 0 };
    let (min, max) = rel.length.unwrap_or((1, Some(1)));
    search.trails(rel, from, max, &[], &mut vec![], &mut vec![], &mut trails);
    if search.tried > MAX_TRIED {
        return None;
    }
    let ends = |nodes: &Vec<usize>| nodes.last().copied().unwrap_or(from) == to;
    let lengths: Vec<usize> = trails
        .iter()
        .filter(|(nodes, edges)| ends(nodes) && edges.len() >= min)
        .map(|(_, edges)| edges.len())
        .collect();
    let least = lengths.iter().min().copied();
    let count = |least: usize| lengths.iter().filter(|length| **length == least).count();
    Some(least.map(|least| (least, count(least))))
}
