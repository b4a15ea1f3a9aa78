//! Traverses the code graph: callers, callees, paths, and the impact of a change.

use std::collections::{HashMap, HashSet};

use isolith_search::{FileRole, file_roles};
use isolith_types::Failure;
use serde::Serialize;

use super::row::{Symbol, certainties, numbers};
use crate::open::Engine;

/// Maximum number of symbols that a traversal visits.
const MAX_VISITED: usize = 50_000;

/// Edges by which one definition depends on another.
const DEPENDS: &str = "CALLS|REFERENCES|INHERITS|IMPLEMENTS|IMPORTS";

/// The limits of a traversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphWalk {
    /// Maximum number of hops; `None` for no limit.
    pub depth: Option<u32>,
    /// Whether to follow edges that are only candidates.
    pub candidates: bool,
    /// Maximum number of results.
    pub limit: usize,
}

/// A symbol that a traversal reached, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// The symbol.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Its distance in hops.
    pub depth: u32,
    /// The type of the last edge.
    #[serde(rename = "type")]
    pub kind: String,
    /// The certainty of that edge.
    pub certainty: String,
    /// The id of the symbol at the other end of that edge.
    pub via: String,
    /// The line of the reference, in the file where the edge starts.
    pub via_line: Option<u32>,
}

/// Results, possibly truncated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// The first results.
    pub items: Vec<T>,
    /// The number of results found.
    pub total: usize,
    /// Whether there are more than `items`.
    pub more: bool,
}

impl<T> Listed<T> {
    /// The first `limit` items. `incomplete` states that the search stopped early.
    pub(super) fn truncated(mut items: Vec<T>, limit: usize, incomplete: bool) -> Self {
        let total = items.len();
        items.truncate(limit);
        Self { more: incomplete || total > items.len(), items, total }
    }
}

/// The callers or callees of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The symbol.
    pub symbol: Symbol,
    /// Its callers or callees, the nearest first.
    pub found: Listed<Reached>,
    /// The number of further candidates one hop away; 0 if candidates were followed.
    pub likely: u64,
}

/// What may break if a symbol changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impact {
    /// The symbol.
    pub symbol: Symbol,
    /// Its dependents except for tests, the nearest first.
    pub code: Listed<Reached>,
    /// Tests that depend on it.
    pub tests: Listed<Reached>,
}

/// A path between two symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolPath {
    /// The start.
    pub from: Symbol,
    /// The end.
    pub to: Symbol,
    /// The part of `from` where the path starts, and its hops; `None` if there is no path.
    pub steps: Option<(Symbol, Vec<Reached>)>,
}

impl Engine {
    /// The callers of a symbol. A type or file includes everything it contains.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn callers(&self, symbol: &str, walk: &GraphWalk) -> Result<Neighbours, Failure> {
        self.neighbours(symbol, &CALLERS, walk).await
    }

    /// What a symbol calls. A type or file includes everything it contains.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn callees(&self, symbol: &str, walk: &GraphWalk) -> Result<Neighbours, Failure> {
        self.neighbours(symbol, &CALLEES, walk).await
    }

    /// What may break if a symbol or a file changes: everything that calls, references, extends
    /// or imports it, directly or indirectly, with tests listed separately.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn impact(&self, symbol: &str, walk: &GraphWalk) -> Result<Impact, Failure> {
        let symbol = self.symbol(symbol).await?;
        // Importing a file also depends on what that file imports. Depending on a definition
        // does not imply depending on the rest of its file.
        let edges = if symbol.is_file() { &DEPENDENTS } else { &DEPENDENTS_OF_CODE };
        let reach = self.reach(&self.with_contents(&symbol).await?, edges, walk, None).await?;
        let is_test = |it: &Reached| {
            let by_path = file_roles(&it.symbol.path).contains(FileRole::Test);
            it.symbol.test || it.kind == "TESTS" || by_path
        };
        let (tests, code) = reach.found.into_iter().partition(is_test);
        let cut = |found| Listed::truncated(found, walk.limit, reach.incomplete);
        Ok(Impact { symbol, code: cut(code), tests: cut(tests) })
    }

    /// A shortest path of dependencies from one symbol to another.
    ///
    /// # Errors
    /// As [`Engine::symbol`], for either symbol.
    pub async fn symbol_path(
        &self,
        from: &str,
        to: &str,
        walk: &GraphWalk,
    ) -> Result<SymbolPath, Failure> {
        let (from, to) = (self.symbol(from).await?, self.symbol(to).await?);
        let starts = self.with_contents(&from).await?;
        let ends: HashSet<i64> =
            self.with_contents(&to).await?.iter().map(|it| it.number).collect();
        let reach = self.reach(&starts, &DEPENDENCIES, walk, Some(&ends)).await?;
        let steps = reach.path_to(&starts, &ends);
        Ok(SymbolPath { from, to, steps })
    }

    async fn neighbours(
        &self,
        symbol: &str,
        edges: &Edges,
        walk: &GraphWalk,
    ) -> Result<Neighbours, Failure> {
        let symbol = self.symbol(symbol).await?;
        let whole = self.with_contents(&symbol).await?;
        let reach = self.reach(&whole, edges, walk, None).await?;
        let likely = if walk.candidates { 0 } else { self.likely(&whole, edges).await? };
        let found = Listed::truncated(reach.found, walk.limit, reach.incomplete);
        Ok(Neighbours { symbol, found, likely })
    }

    async fn likely(&self, whole: &[Symbol], edges: &Edges) -> Result<u64, Failure> {
        let query = format!(
            "UNWIND $whole AS number MATCH {} WHERE id(s) = number \
             AND r.certainty = 'candidate' AND NOT id(n) IN $whole RETURN count(DISTINCT n)",
            edges.pattern()
        );
        let whole = numbers(whole.iter().map(|it| it.number));
        let rows = self.rows(query, [("whole", whole)]).await?;
        Ok(rows.into_iter().map(|mut row| u64::try_from(row.number()).unwrap_or(0)).sum())
    }

    /// Breadth-first traversal, which stops at the first of `ends`.
    async fn reach(
        &self,
        starts: &[Symbol],
        edges: &Edges,
        walk: &GraphWalk,
        ends: Option<&HashSet<i64>>,
    ) -> Result<Reach, Failure> {
        let mut seen: HashMap<i64, String> =
            starts.iter().map(|it| (it.number, it.id.clone())).collect();
        let mut level: Vec<i64> = starts.iter().map(|it| it.number).collect();
        let mut reach = Reach::default();
        let met = |level: &[i64]| ends.is_some_and(|ends| level.iter().any(|it| ends.contains(it)));
        let mut depth = 0;
        while !level.is_empty() && walk.depth.is_none_or(|most| depth < most) && !met(&level) {
            if seen.len() > MAX_VISITED {
                reach.incomplete = true;
                break;
            }
            depth += 1;
            let found = self.next_level(&level, edges, walk.candidates, depth, &seen).await?;
            level.clear();
            for (from, found) in found {
                let number = found.symbol.number;
                if seen.contains_key(&number) {
                    continue;
                }
                seen.insert(number, found.symbol.id.clone());
                if edges.past_files || !found.symbol.is_file() {
                    level.push(number);
                }
                reach.before.insert(number, (from, reach.found.len()));
                reach.found.push(found);
            }
        }
        Ok(reach)
    }

    /// All neighbours of a level, each with the node it was reached from: resolved edges first,
    /// then by path and line.
    async fn next_level(
        &self,
        level: &[i64],
        edges: &Edges,
        candidates: bool,
        depth: u32,
        seen: &HashMap<i64, String>,
    ) -> Result<Vec<(i64, Reached)>, Failure> {
        let query = format!(
            "UNWIND $level AS number MATCH {} \
             WHERE id(s) = number AND r.certainty IN $certainties \
             RETURN number, type(r), r.certainty, r.line, n",
            edges.pattern()
        );
        let parameters =
            [("level", numbers(level.iter().copied())), ("certainties", certainties(candidates))];
        let mut found = Vec::new();
        for mut row in self.rows(query, parameters).await? {
            let (from, kind) = (row.number(), row.text().unwrap_or_default());
            let (certainty, via_line) = (row.text().unwrap_or_default(), row.line());
            let Some(symbol) = row.symbol() else { continue };
            let via = seen.get(&from).cloned().unwrap_or_default();
            found.push((from, Reached { symbol, depth, kind, certainty, via, via_line }));
        }
        // A TESTS edge is more specific than the CALLS edge beside it.
        found.sort_by_cached_key(|(from, it)| {
            let rank = (it.certainty != "resolved", it.symbol.path.clone(), it.symbol.line);
            (rank, it.kind != "TESTS", it.kind.clone(), it.via_line, *from)
        });
        Ok(found)
    }
}

/// Which edges to follow.
struct Edges {
    types: &'static str,
    /// Whether to follow them from target to source.
    backwards: bool,
    /// Whether to continue from files.
    past_files: bool,
}

impl Edges {
    /// The pattern of a hop from `s` along `r` to `n`.
    fn pattern(&self) -> String {
        let types = self.types;
        match self.backwards {
            true => format!("(s)<-[r:{types}]-(n)"),
            false => format!("(s)-[r:{types}]->(n)"),
        }
    }
}

const CALLERS: Edges = Edges { types: "CALLS", backwards: true, past_files: true };
const CALLEES: Edges = Edges { types: "CALLS", backwards: false, past_files: true };
const DEPENDENCIES: Edges = Edges { types: DEPENDS, backwards: false, past_files: true };
const DEPENDENTS: Edges = Edges {
    types: "CALLS|REFERENCES|INHERITS|IMPLEMENTS|IMPORTS|TESTS",
    backwards: true,
    past_files: true,
};
const DEPENDENTS_OF_CODE: Edges = Edges { past_files: false, ..DEPENDENTS };

/// The result of a traversal.
#[derive(Default)]
struct Reach {
    found: Vec<Reached>,
    /// For each node, its predecessor and its index in `found`.
    before: HashMap<i64, (i64, usize)>,
    /// Whether it stopped because of [`MAX_VISITED`].
    incomplete: bool,
}

impl Reach {
    /// The path to the first of `ends`.
    fn path_to(&self, starts: &[Symbol], ends: &HashSet<i64>) -> Option<(Symbol, Vec<Reached>)> {
        if let Some(both) = starts.iter().find(|it| ends.contains(&it.number)) {
            return Some((both.clone(), Vec::new()));
        }
        let mut at = self.found.iter().map(|it| it.symbol.number).find(|it| ends.contains(it))?;
        let mut steps = Vec::new();
        while let Some((from, index)) = self.before.get(&at) {
            steps.push(self.found[*index].clone());
            at = *from;
        }
        steps.reverse();
        let start = starts.iter().find(|it| it.number == at)?;
        Some((start.clone(), steps))
    }
}
