//! Endpoints for the graph.

use isolith_engine::{
    Engine, GraphSize, HotBy, Impact, ImportCycle, Listed, Neighbours, Reached, Side, Symbol,
    SymbolPath,
};
use isolith_types::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::arguments::NoArguments;
use crate::tool::{Call, Limits};
use crate::tools::graph::graph_query;
use crate::tools::symbols::{
    Around, GraphImpact, GraphPath, find_impact, find_neighbours, find_path,
};

/// Numbers of cycles and of unused definitions.
const MANY: Limits = Limits { default: 50, agent: 500, program: 10_000 };

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
        Endpoint::new((Verb::Get, "/graph/cycles"), "graph_cycles", "List import cycles", cycles),
        Endpoint::new(
            (Verb::Get, "/graph/unused"),
            "graph_unused",
            "List functions, methods and types that seem unused",
            unused,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/hotspots"),
            "graph_hotspots",
            "List the symbols with the most edges",
            hotspots,
        ),
        Endpoint::new(
            (Verb::Get, "/graph/stats"),
            "graph_stats",
            "Count nodes by label, and edges by type and certainty",
            stats,
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

async fn engine(call: &Call) -> Result<Engine, Failure> {
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    Ok(engine)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cycles {
    /// Follow uncertain edges, too.
    candidates: Option<bool>,
    /// Maximum number of cycles: 1 to 10000, by default 50.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

async fn cycles(call: Call, arguments: Cycles) -> Result<CycleAnswer, Failure> {
    let limit = call.limit(arguments.limit, MANY)? as usize;
    let engine = engine(&call).await?;
    let found = engine.import_cycles(arguments.candidates.unwrap_or(false), limit).await?;
    let Listed { items, total, more } = found;
    Ok(CycleAnswer { cycles: items.into_iter().map(Cycle::from).collect(), total, more })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unused {
    /// Include what other files can see but do not use.
    exported: Option<bool>,
    /// Maximum number of definitions: 1 to 10000, by default 50.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

async fn unused(call: Call, arguments: Unused) -> Result<UnusedAnswer, Failure> {
    let limit = call.limit(arguments.limit, MANY)? as usize;
    let engine = engine(&call).await?;
    let found = engine.unused(arguments.exported.unwrap_or(false), limit).await?;
    let Listed { items, total, more } = found;
    Ok(UnusedAnswer { unused: items.into_iter().map(SymbolAnswer::from).collect(), total, more })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Hotspots {
    /// Which edges to count, by default callers.
    by: Option<By>,
    /// Count uncertain edges, too.
    candidates: Option<bool>,
    /// Maximum number of symbols: 1 to 1000, by default 10.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    Callers,
    Callees,
    Links,
}

async fn hotspots(call: Call, arguments: Hotspots) -> Result<HotspotAnswer, Failure> {
    let limit = call.limit(arguments.limit, Limits::RESULTS)? as usize;
    let by = match arguments.by {
        None | Some(By::Callers) => HotBy::Callers,
        Some(By::Callees) => HotBy::Callees,
        Some(By::Links) => HotBy::Links,
    };
    let engine = engine(&call).await?;
    let found = engine.hotspots(by, arguments.candidates.unwrap_or(false), limit).await?;
    let hotspots = found.into_iter();
    let hotspots = hotspots.map(|it| Hotspot { symbol: it.symbol.into(), count: it.count });
    Ok(HotspotAnswer { hotspots: hotspots.collect() })
}

async fn stats(call: Call, _: NoArguments) -> Result<SizeAnswer, Failure> {
    let GraphSize { nodes, edges, labels, types } = engine(&call).await?.graph_size().await?;
    let label = |it: isolith_engine::LabelCount| Labelled { label: it.label, count: it.count };
    let edge = |it: isolith_engine::EdgeCount| {
        let isolith_engine::EdgeCount { kind, certainty, count } = it;
        Typed { kind, certainty, count }
    };
    let labels = labels.into_iter().map(label).collect();
    Ok(SizeAnswer { nodes, edges, labels, types: types.into_iter().map(edge).collect() })
}

/// A file or a definition in one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Symbol")]
struct SymbolAnswer {
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

#[derive(Serialize, JsonSchema)]
struct CycleAnswer {
    /// The smallest first.
    cycles: Vec<Cycle>,
    total: usize,
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Cycle {
    /// All files that import each other directly or indirectly.
    files: Vec<String>,
    /// A shortest cycle among them.
    ring: Vec<Import>,
}

#[derive(Serialize, JsonSchema)]
struct Import {
    from: String,
    to: String,
    line: Option<u32>,
}

impl From<ImportCycle> for Cycle {
    fn from(ImportCycle { files, ring }: ImportCycle) -> Self {
        let import = |it: isolith_engine::FileImport| {
            let isolith_engine::FileImport { from, to, line } = it;
            Import { from, to, line }
        };
        Self { files, ring: ring.into_iter().map(import).collect() }
    }
}

#[derive(Serialize, JsonSchema)]
struct UnusedAnswer {
    unused: Vec<SymbolAnswer>,
    total: usize,
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct HotspotAnswer {
    hotspots: Vec<Hotspot>,
}

#[derive(Serialize, JsonSchema)]
struct Hotspot {
    #[serde(flatten)]
    symbol: SymbolAnswer,
    /// The number of its edges.
    count: u64,
}

#[derive(Serialize, JsonSchema)]
struct SizeAnswer {
    nodes: u64,
    edges: u64,
    labels: Vec<Labelled>,
    types: Vec<Typed>,
}

#[derive(Serialize, JsonSchema)]
struct Labelled {
    label: Option<String>,
    count: u64,
}

#[derive(Serialize, JsonSchema)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
    certainty: Option<String>,
    count: u64,
}
