//! Walks along the edges of the code: callers, callees, ways, and what a change may break.

use std::collections::{HashMap, HashSet};

use isolith_search::{Role, roles};
use isolith_types::Failure;
use serde::Serialize;

use super::row::{Symbol, certainties, numbers};
use crate::open::Engine;

/// A walk ends when it has seen this many symbols.
const MOST_SEEN: usize = 50_000;

/// Along these, one definition needs another.
const NEEDS: &str = "CALLS|REFERENCES|INHERITS|IMPLEMENTS|IMPORTS";

/// How far a question goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphWalk {
    /// This many steps; none for as far as there is anything.
    pub depth: Option<u32>,
    /// Along edges that are only likely, too.
    pub candidates: bool,
    /// This many answers.
    pub limit: usize,
}

/// A symbol, and how it was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// What was reached.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// In this many steps.
    pub depth: u32,
    /// The type of the edge of the last step.
    #[serde(rename = "type")]
    pub kind: String,
    /// How sure that edge is.
    pub certainty: String,
    /// The id of the symbol at its other end.
    pub via: String,
    /// The line that says so, in the file where the edge begins.
    pub via_line: Option<u32>,
}

/// Answers, and whether these are all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// The first ones.
    pub items: Vec<T>,
    /// How many were found.
    pub total: usize,
    /// Whether there are more than are listed here.
    pub more: bool,
}

impl<T> Listed<T> {
    /// The first `limit` of all; `ended` says whether nothing more was looked for.
    pub(super) fn cut(mut items: Vec<T>, limit: usize, ended: bool) -> Self {
        let total = items.len();
        items.truncate(limit);
        Self { more: ended || total > items.len(), items, total }
    }
}

/// What is around a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// What was asked for.
    pub symbol: Symbol,
    /// The nearest first.
    pub found: Listed<Reached>,
    /// How many more are likely, one step away; none if those were followed.
    pub likely: u64,
}

/// What may break if a symbol changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impact {
    /// What would change.
    pub symbol: Symbol,
    /// What needs it, the nearest first.
    pub code: Listed<Reached>,
    /// Tests among them.
    pub tests: Listed<Reached>,
}

/// How one symbol leads to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolPath {
    /// Where it begins.
    pub from: Symbol,
    /// Where it ends.
    pub to: Symbol,
    /// The part of `from` where it begins, and the steps from there; none if there is no way.
    pub steps: Option<(Symbol, Vec<Reached>)>,
}

impl Engine {
    /// What calls a symbol. A type or file stands for all that is in it.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn callers(&self, symbol: &str, walk: &GraphWalk) -> Result<Neighbours, Failure> {
        self.neighbours(symbol, &CALLERS, walk).await
    }

    /// What a symbol calls. A type or file stands for all that is in it.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn callees(&self, symbol: &str, walk: &GraphWalk) -> Result<Neighbours, Failure> {
        self.neighbours(symbol, &CALLEES, walk).await
    }

    /// What may break if a symbol or a file changes: all that calls, names, extends or
    /// imports it, and all that needs those in turn; tests apart.
    ///
    /// # Errors
    /// As [`Engine::symbol`].
    pub async fn impact(&self, symbol: &str, walk: &GraphWalk) -> Result<Impact, Failure> {
        let symbol = self.symbol(symbol).await?;
        // Whoever imports a file needs what that file imports; whoever needs a definition
        // need not need what else is in the files around it.
        let edges = if symbol.is_file() { &NEEDED_BY } else { &NEEDED_BY_CODE };
        let reach = self.reach(&self.whole(&symbol).await?, edges, walk, None).await?;
        let is_test = |it: &Reached| {
            let by_path = roles(&it.symbol.path).has(Role::Test);
            it.symbol.test || it.kind == "TESTS" || by_path
        };
        let (tests, code) = reach.found.into_iter().partition(is_test);
        let cut = |found| Listed::cut(found, walk.limit, reach.ended);
        Ok(Impact { symbol, code: cut(code), tests: cut(tests) })
    }

    /// A shortest way from one symbol to another along what needs what.
    ///
    /// # Errors
    /// As [`Engine::symbol`], for either.
    pub async fn symbol_path(
        &self,
        from: &str,
        to: &str,
        walk: &GraphWalk,
    ) -> Result<SymbolPath, Failure> {
        let (from, to) = (self.symbol(from).await?, self.symbol(to).await?);
        let starts = self.whole(&from).await?;
        let ends: HashSet<i64> = self.whole(&to).await?.iter().map(|it| it.number).collect();
        let reach = self.reach(&starts, &NEEDED, walk, Some(&ends)).await?;
        let steps = reach.way_to(&starts, &ends);
        Ok(SymbolPath { from, to, steps })
    }

    async fn neighbours(
        &self,
        symbol: &str,
        edges: &Edges,
        walk: &GraphWalk,
    ) -> Result<Neighbours, Failure> {
        let symbol = self.symbol(symbol).await?;
        let whole = self.whole(&symbol).await?;
        let reach = self.reach(&whole, edges, walk, None).await?;
        let likely = if walk.candidates { 0 } else { self.likely(&whole, edges).await? };
        let found = Listed::cut(reach.found, walk.limit, reach.ended);
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

    /// All that can be reached, a step at a time; no further than any of `ends`.
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
            if seen.len() > MOST_SEEN {
                reach.ended = true;
                break;
            }
            depth += 1;
            let found = self.step(&level, edges, walk.candidates, depth, &seen).await?;
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

    /// What one step leads to, with where it began: what is sure and near to the top first.
    async fn step(
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
        // TESTS says more than the CALLS beside it.
        found.sort_by_cached_key(|(from, it)| {
            let rank = (it.certainty != "resolved", it.symbol.path.clone(), it.symbol.line);
            (rank, it.kind != "TESTS", it.kind.clone(), it.via_line, *from)
        });
        Ok(found)
    }
}

/// Which edges are followed.
struct Edges {
    types: &'static str,
    /// From where they end to where they begin.
    backwards: bool,
    /// Whether a file that is reached leads on.
    past_files: bool,
}

impl Edges {
    /// A step from `s` along `r` to `n`.
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
const NEEDED: Edges = Edges { types: NEEDS, backwards: false, past_files: true };
const NEEDED_BY: Edges = Edges {
    types: "CALLS|REFERENCES|INHERITS|IMPLEMENTS|IMPORTS|TESTS",
    backwards: true,
    past_files: true,
};
const NEEDED_BY_CODE: Edges = Edges { past_files: false, ..NEEDED_BY };

/// What was reached.
#[derive(Default)]
struct Reach {
    found: Vec<Reached>,
    /// For each number where its step began, and its place in `found`.
    before: HashMap<i64, (i64, usize)>,
    /// Whether there were too many to go on.
    ended: bool,
}

impl Reach {
    /// The steps to the first of `ends`.
    fn way_to(&self, starts: &[Symbol], ends: &HashSet<i64>) -> Option<(Symbol, Vec<Reached>)> {
        if let Some(both) = starts.iter().find(|it| ends.contains(&it.number)) {
            return Some((both.clone(), Vec::new()));
        }
        let mut at = self.found.iter().map(|it| it.symbol.number).find(|it| ends.contains(it))?;
        let mut steps = Vec::new();
        while let Some((from, place)) = self.before.get(&at) {
            steps.push(self.found[*place].clone());
            at = *from;
        }
        steps.reverse();
        let start = starts.iter().find(|it| it.number == at)?;
        Some((start.clone(), steps))
    }
}
