//! Tools for the code graph that need no Cypher: callers, callees, paths and impact.

use std::fmt::Write as _;

use isolith_engine::{GraphWalk, Listed, Neighbours, Reached, Side, Symbol};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{bounded, limit_of};
use crate::tool::{Call, Effect, Shown, Tool};

/// Default and maximum number of symbols.
const LIMITS: (u32, u32) = (30, 500);

/// Maximum length of a symbol's name.
const SYMBOL_BYTES: usize = 2_048;

/// Maximum depth.
const MAX_DEPTH: u32 = 100;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "graph_neighbours",
            Effect::Read,
            "List what calls a symbol, or what it calls. symbol: name, Type.name, path#Name or path:line.",
            graph_neighbours,
        ),
        Tool::new(
            "graph_path",
            Effect::Read,
            "Find a shortest path between two symbols along calls, references and imports.",
            graph_path,
        ),
        Tool::new(
            "graph_impact",
            Effect::Read,
            "List what may break if a symbol or file changes, and the tests to run.",
            graph_impact,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskNeighbours {
    symbol: String,
    /// callers (default) or callees
    direction: Option<String>,
    /// Default 1
    depth: Option<u32>,
    /// Include uncertain edges
    candidates: Option<bool>,
    limit: Option<u32>,
}

async fn graph_neighbours(call: Call, asked: AskNeighbours) -> Result<Around, Failure> {
    let walk = walk(asked.depth.or(Some(1)), asked.candidates, asked.limit)?;
    let symbol = named(&asked.symbol)?;
    let engine = call.server.stores().graph()?;
    call.server.settled().await;
    let (side, around) = match asked.direction.as_deref() {
        None | Some("callers") => (Side::Before, engine.callers(symbol, &walk).await),
        Some("callees") => (Side::After, engine.callees(symbol, &walk).await),
        Some(other) => {
            let message = format!("direction must be callers or callees, not {other:?}");
            return Err(Failure::new(Code::BadInput, message));
        }
    };
    let Neighbours { symbol, found, likely } = around?;
    let mut text = reached_text(&found, side);
    if likely > 0 {
        let _ = writeln!(text, "{likely} more are likely: set candidates to true to see them");
    }
    Ok(Around { symbol: symbol.id, found: steps(&found), likely, more: found.more, text })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskPath {
    from: String,
    to: String,
    candidates: Option<bool>,
}

async fn graph_path(call: Call, asked: AskPath) -> Result<Way, Failure> {
    let walk = walk(None, asked.candidates, None)?;
    let (from, to) = (named(&asked.from)?, named(&asked.to)?);
    let engine = call.server.stores().graph()?;
    call.server.settled().await;
    let found = engine.symbol_path(from, to, &walk).await?;
    let Some((start, steps)) = found.steps else {
        let text = format!("no path from {} to {}\n", found.from.id, found.to.id);
        return Ok(Way { path: Vec::new(), text });
    };
    let mut text = format!("{}\n", start.describe());
    steps.iter().for_each(|step| text += &(step.describe(Side::After) + "\n"));
    let path = [Step::from(&start)].into_iter().chain(steps.iter().map(Step::reached));
    Ok(Way { path: path.collect(), text })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskImpact {
    symbol: String,
    /// Default: any
    depth: Option<u32>,
    candidates: Option<bool>,
    limit: Option<u32>,
}

async fn graph_impact(call: Call, asked: AskImpact) -> Result<Breaks, Failure> {
    let walk = walk(asked.depth, asked.candidates, asked.limit)?;
    let symbol = named(&asked.symbol)?;
    let engine = call.server.stores().graph()?;
    call.server.settled().await;
    let found = engine.impact(symbol, &walk).await?;
    let mut text = reached_text(&found.code, Side::Before);
    if found.tests.total > 0 {
        text += "tests:\n";
        text += &reached_text(&found.tests, Side::Before);
    }
    let more = found.code.more || found.tests.more;
    let (impact, tests) = (steps(&found.code), steps(&found.tests));
    Ok(Breaks { symbol: found.symbol.id, impact, tests, more, text })
}

fn walk(
    depth: Option<u32>,
    candidates: Option<bool>,
    limit: Option<u32>,
) -> Result<GraphWalk, Failure> {
    if let Some(depth) = depth.filter(|depth| !(1..=MAX_DEPTH).contains(depth)) {
        let message = format!("depth must be from 1 to {MAX_DEPTH}, not {depth}");
        return Err(Failure::new(Code::BadInput, message));
    }
    let limit = limit_of(limit, LIMITS)? as usize;
    Ok(GraphWalk { depth, candidates: candidates.unwrap_or(false), limit })
}

fn named(symbol: &str) -> Result<&str, Failure> {
    bounded("symbol", symbol, SYMBOL_BYTES)
}

fn reached_text(found: &Listed<Reached>, side: Side) -> String {
    let mut text: String = found.items.iter().map(|it| it.describe(side) + "\n").collect();
    match found.total - found.items.len() {
        0 if found.total == 0 => text += "nothing found for certain\n",
        0 if found.more => text += "there is more than can be followed\n",
        0 => {}
        rest => _ = writeln!(text, "{rest} more"),
    }
    text
}

fn steps(found: &Listed<Reached>) -> Vec<Step> {
    found.items.iter().map(Step::reached).collect()
}

/// A symbol, and how it was reached.
#[derive(Serialize, JsonSchema)]
struct Step {
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

impl Step {
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
struct Around {
    symbol: String,
    #[schemars(with = "Vec<serde_json::Value>")]
    found: Vec<Step>,
    likely: u64,
    more: bool,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Way {
    /// Empty if there is none
    #[schemars(with = "Vec<serde_json::Value>")]
    path: Vec<Step>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Breaks {
    symbol: String,
    #[schemars(with = "Vec<serde_json::Value>")]
    impact: Vec<Step>,
    #[schemars(with = "Vec<serde_json::Value>")]
    tests: Vec<Step>,
    more: bool,
    #[serde(skip)]
    text: String,
}

impl Shown for Around {
    fn text(&self) -> String {
        self.text.clone()
    }
}

impl Shown for Way {
    fn text(&self) -> String {
        self.text.clone()
    }
}

impl Shown for Breaks {
    fn text(&self) -> String {
        self.text.clone()
    }
}
