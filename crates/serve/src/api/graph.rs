//! Endpoints for the graph.

use isolith_engine::{Impact, Listed, Neighbours, Reached, Side, Symbol, SymbolPath};
use isolith_types::Failure;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::{Endpoint, Verb};
use crate::tool::Call;
use crate::tools::graph::graph_query;
use crate::tools::graph_schema::graph_schema;
use crate::tools::reports::{graph_cycles, graph_hotspots, graph_stats, graph_unused};
use crate::tools::symbols::{
    Around, GraphImpact, GraphPath, find_impact, find_neighbours, find_path,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Post, "/graph/query"),
            "graph_query",
            "Run a Cypher query, or get the next page of its rows",
            graph_query,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/graph/callers"),
            "graph_callers",
            "List what calls a symbol",
            callers,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/callees"),
            "graph_callees",
            "List what a symbol calls",
            callees,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/path"),
            "graph_path",
            "Find a shortest path of dependencies between two symbols",
            path,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/impact"),
            "graph_impact",
            "List what may break if a symbol or file changes, and the tests to run",
            impact,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/cycles"),
            "graph_cycles",
            "List import cycles",
            graph_cycles,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/unused"),
            "graph_unused",
            "List functions, methods and types that seem unused",
            graph_unused,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/hotspots"),
            "graph_hotspots",
            "List the symbols with the most edges",
            graph_hotspots,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/stats"),
            "graph_stats",
            "Count nodes by label, and edges by type and certainty",
            graph_stats,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/schema"),
            "graph_schema",
            "List labels, relationship types and properties, with counts and examples",
            graph_schema,
        ),
    ]
}

async fn callers(call: Call, arguments: Around) -> Result<NeighbourAnswer, Failure> {
    find_neighbours(&call, Side::Before, arguments).await.map(NeighbourAnswer::from)
}

async fn callees(call: Call, arguments: Around) -> Result<NeighbourAnswer, Failure> {
    find_neighbours(&call, Side::After, arguments).await.map(NeighbourAnswer::from)
}

async fn path(call: Call, arguments: GraphPath) -> Result<PathAnswer, Failure> {
    find_path(&call, arguments).await.map(PathAnswer::from)
}

async fn impact(call: Call, arguments: GraphImpact) -> Result<ImpactAnswer, Failure> {
    find_impact(&call, arguments).await.map(ImpactAnswer::from)
}

/// A file or a definition in one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Symbol")]
pub(crate) struct SymbolAnswer {
    /// `path#Qualified.name`, or the path of a file.
    id: String,
    name: String,
    qualified_name: String,
    /// The label of its node.
    label: String,
    kind: String,
    path: String,
    line: Option<u32>,
    end_line: Option<u32>,
    language: String,
    signature: Option<String>,
    exported: bool,
    test: bool,
}

impl SymbolAnswer {
    /// Its id, and where it is.
    pub(crate) fn line_of_text(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{} ({}{line})", self.id, self.path)
    }
}

impl From<Symbol> for SymbolAnswer {
    fn from(symbol: Symbol) -> Self {
        Self {
            id: symbol.id,
            name: symbol.name,
            qualified_name: symbol.qualified_name,
            label: symbol.label,
            kind: symbol.kind,
            path: symbol.path,
            line: symbol.line,
            end_line: symbol.end_line,
            language: symbol.language,
            signature: symbol.signature,
            exported: symbol.exported,
            test: symbol.test,
        }
    }
}

/// A symbol, and the edge through which it was reached.
#[derive(Serialize, JsonSchema)]
struct Step {
    #[serde(flatten)]
    symbol: SymbolAnswer,
    /// The distance in hops.
    depth: u32,
    /// The type of the edge.
    #[serde(rename = "type")]
    edge: String,
    certainty: String,
    /// The id of the symbol at the other end of the edge.
    via: String,
    /// The line of the reference.
    via_line: Option<u32>,
}

impl From<Reached> for Step {
    fn from(reached: Reached) -> Self {
        let Reached { symbol, depth, kind, certainty, via, via_line } = reached;
        Self { symbol: symbol.into(), depth, edge: kind, certainty, via, via_line }
    }
}

#[derive(Serialize, JsonSchema)]
struct NeighbourAnswer {
    symbol: SymbolAnswer,
    /// The nearest first.
    found: Vec<Step>,
    /// Number of uncertain edges that were not followed.
    likely: u64,
    /// Whether there are more.
    more: bool,
}

impl From<Neighbours> for NeighbourAnswer {
    fn from(Neighbours { symbol, found, likely }: Neighbours) -> Self {
        let more = found.more;
        let found = found.items.into_iter().map(Step::from).collect();
        Self { symbol: symbol.into(), found, likely, more }
    }
}

#[derive(Serialize, JsonSchema)]
struct PathAnswer {
    from: SymbolAnswer,
    to: SymbolAnswer,
    /// The hops; null if there is no path.
    path: Option<Vec<Step>>,
}

impl From<SymbolPath> for PathAnswer {
    fn from(SymbolPath { from, to, steps }: SymbolPath) -> Self {
        let path = steps.map(|(_, steps)| steps.into_iter().map(Step::from).collect());
        Self { from: from.into(), to: to.into(), path }
    }
}

#[derive(Serialize, JsonSchema)]
struct ImpactAnswer {
    symbol: SymbolAnswer,
    /// What depends on it except for tests, the nearest first.
    impact: Vec<Step>,
    tests: Vec<Step>,
    more: bool,
}

impl From<Impact> for ImpactAnswer {
    fn from(Impact { symbol, code, tests }: Impact) -> Self {
        let more = code.more || tests.more;
        let steps = |found: Listed<Reached>| found.items.into_iter().map(Step::from).collect();
        Self { symbol: symbol.into(), impact: steps(code), tests: steps(tests), more }
    }
}
