//! Tools for the code graph without Cypher: callers, callees, paths and impact.

use std::fmt::Write as _;

use isolith_engine::{
    GraphWalk, Impact, Listed, Neighbours, Reached, Side, Symbol, SymbolPath as FoundPath,
};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::check_length;
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

/// Numbers of symbols.
const LIMITS: Limits = Limits { default: 30, agent: 500, program: 10_000 };

const MAX_SYMBOL_BYTES: usize = 2_048;

const MAX_DEPTH: u32 = 100;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "graph_neighbours",
            Effect::Read,
            "List who calls a function, or what it calls. Use it before changing a signature. For all that depends on it use graph_impact. Example: {\"symbol\":\"Model.save\"}",
            graph_neighbours,
        ),
        Tool::new(
            "graph_path",
            Effect::Read,
            "Find how one symbol leads to another: a shortest path along calls, references and imports. Use it to see why two parts depend on each other. For direct callers use graph_neighbours. Example: {\"from\":\"main\",\"to\":\"Model.save\"}",
            graph_path,
        ),
        Tool::new(
            "graph_impact",
            Effect::Read,
            "List what may break if a function, class or file changes, and tests to run. Use it before a refactoring. For direct callers use graph_neighbours. Example: {\"symbol\":\"src/retry.rs\"}",
            graph_impact,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GraphNeighbours {
    /// name, Type.name, path:line
    symbol: String,
    /// Default callers
    #[serde(default)]
    direction: Direction,
    /// Hops, default 1
    depth: Option<u32>,
    /// Also uncertain edges
    candidates: Option<bool>,
    /// Default 30
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    #[default]
    Callers,
    Callees,
}

async fn graph_neighbours(
    call: Call,
    arguments: GraphNeighbours,
) -> Result<NeighbourResult, Failure> {
    let GraphNeighbours { symbol, direction, depth, candidates, limit } = arguments;
    let side = match direction {
        Direction::Callers => Side::Before,
        Direction::Callees => Side::After,
    };
    let around = Around { symbol, depth, candidates, limit };
    let Neighbours { symbol, found, likely } = find_neighbours(&call, side, around).await?;
    let mut text = reached_text(&found, side);
    if likely > 0 {
        let _ = writeln!(text, "{likely} more likely: set candidates to true to include them");
    }
    Ok(NeighbourResult { symbol: symbol.id, found: steps(&found), likely, more: found.more, text })
}

/// A symbol, and which of its neighbours to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    /// A name, Type.name, path#Name, path:line, or the path of a file.
    pub(crate) symbol: String,
    /// Maximum distance in hops, by default 1.
    pub(crate) depth: Option<u32>,
    /// Follow uncertain edges, too.
    pub(crate) candidates: Option<bool>,
    /// Maximum number of symbols, by default 30.
    pub(crate) limit: Option<u32>,
}

/// Finds the callers of a symbol, or its callees.
pub(crate) async fn find_neighbours(
    call: &Call,
    side: Side,
    around: Around,
) -> Result<Neighbours, Failure> {
    let walk = walk(call, around.depth.or(Some(1)), around.candidates, around.limit)?;
    let symbol = check_symbol(&around.symbol)?;
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    match side {
        Side::Before => engine.callers(symbol, &walk).await,
        Side::After => engine.callees(symbol, &walk).await,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphPath {
    /// name, Type.name or path:line
    from: String,
    /// The same
    to: String,
    /// Also uncertain edges
    candidates: Option<bool>,
}

/// Finds a shortest path.
pub(crate) async fn find_path(call: &Call, arguments: GraphPath) -> Result<FoundPath, Failure> {
    let walk = walk(call, None, arguments.candidates, None)?;
    let (from, to) = (check_symbol(&arguments.from)?, check_symbol(&arguments.to)?);
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    engine.symbol_path(from, to, &walk).await
}

async fn graph_path(call: Call, arguments: GraphPath) -> Result<PathResult, Failure> {
    let found = find_path(&call, arguments).await?;
    let Some((start, steps)) = found.steps else {
        let text = format!("no path from {} to {}\n", found.from.id, found.to.id);
        return Ok(PathResult { path: Vec::new(), text });
    };
    let mut text = format!("{}\n", start.describe());
    steps.iter().for_each(|step| text += &(step.describe(Side::After) + "\n"));
    let path = [SymbolStep::from(&start)].into_iter().chain(steps.iter().map(SymbolStep::reached));
    Ok(PathResult { path: path.collect(), text })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphImpact {
    /// name, Type.name, path:line or file
    symbol: String,
    /// Hops, default any
    depth: Option<u32>,
    /// Also uncertain edges
    candidates: Option<bool>,
    /// Default 30
    limit: Option<u32>,
}

/// Finds what may break.
pub(crate) async fn find_impact(call: &Call, arguments: GraphImpact) -> Result<Impact, Failure> {
    let walk = walk(call, arguments.depth, arguments.candidates, arguments.limit)?;
    let symbol = check_symbol(&arguments.symbol)?;
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    engine.impact(symbol, &walk).await
}

async fn graph_impact(call: Call, arguments: GraphImpact) -> Result<ImpactResult, Failure> {
    let found = find_impact(&call, arguments).await?;
    let mut text = reached_text(&found.code, Side::Before);
    if found.tests.total > 0 {
        text += "tests:\n";
        text += &reached_text(&found.tests, Side::Before);
    }
    let more = found.code.more || found.tests.more;
    let (impact, tests) = (steps(&found.code), steps(&found.tests));
    Ok(ImpactResult { symbol: found.symbol.id, impact, tests, more, text })
}

fn walk(
    call: &Call,
    depth: Option<u32>,
    candidates: Option<bool>,
    limit: Option<u32>,
) -> Result<GraphWalk, Failure> {
    if let Some(depth) = depth.filter(|depth| !(1..=MAX_DEPTH).contains(depth)) {
        let message = format!("depth must be from 1 to {MAX_DEPTH}, not {depth}");
        return Err(Failure::new(Code::BadInput, message));
    }
    let limit = call.limit(limit, LIMITS)? as usize;
    Ok(GraphWalk { depth, candidates: candidates.unwrap_or(false), limit })
}

fn check_symbol(symbol: &str) -> Result<&str, Failure> {
    check_length("symbol", symbol, MAX_SYMBOL_BYTES)
}

fn reached_text(found: &Listed<Reached>, side: Side) -> String {
    let mut text: String = found.items.iter().map(|it| it.describe(side) + "\n").collect();
    match found.total - found.items.len() {
        0 if found.total == 0 => text += "no certain results\n",
        0 if found.more => text += "stopped early: there may be more\n",
        0 => {}
        rest => _ = writeln!(text, "{rest} more"),
    }
    text
}

fn steps(found: &Listed<Reached>) -> Vec<SymbolStep> {
    found.items.iter().map(SymbolStep::reached).collect()
}

/// A symbol and the edge through which it was reached.
#[derive(Serialize, JsonSchema)]
struct SymbolStep {
    id: String,
    path: String,
    line: Option<u32>,
    #[serde(rename = "type")]
    kind: Option<String>,
    certainty: Option<String>,
    via: Option<String>,
    via_line: Option<u32>,
    depth: u32,
}

impl SymbolStep {
    fn from(symbol: &Symbol) -> Self {
        let Symbol { id, path, line, .. } = symbol.clone();
        Self { id, path, line, kind: None, certainty: None, via: None, via_line: None, depth: 0 }
    }

    fn reached(reached: &Reached) -> Self {
        let Reached { symbol, depth, kind, certainty, via, via_line } = reached.clone();
        Self {
            kind: Some(kind),
            certainty: Some(certainty),
            via: Some(via),
            via_line,
            depth,
            ..Self::from(&symbol)
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct NeighbourResult {
    symbol: String,
    #[schemars(with = "Vec<serde_json::Value>")]
    found: Vec<SymbolStep>,
    likely: u64,
    more: bool,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct PathResult {
    #[schemars(with = "Vec<serde_json::Value>")]
    path: Vec<SymbolStep>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct ImpactResult {
    symbol: String,
    #[schemars(with = "Vec<serde_json::Value>")]
    impact: Vec<SymbolStep>,
    #[schemars(with = "Vec<serde_json::Value>")]
    tests: Vec<SymbolStep>,
    more: bool,
    #[serde(skip)]
    text: String,
}

impl ToolAnswer for NeighbourResult {
    fn text(&self) -> String {
        self.text.clone()
    }
}

impl ToolAnswer for PathResult {
    fn text(&self) -> String {
        self.text.clone()
    }
}

impl ToolAnswer for ImpactResult {
    fn text(&self) -> String {
        self.text.clone()
    }
}
