//! Reports about the whole code graph: import cycles, unused definitions, hotspots and sizes.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{
    EdgeCount, Engine, FileImport, GraphSize, HotBy, ImportCycle, LabelCount, Listed, Symbol,
};
use isolith_types::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::SymbolAnswer;
use crate::arguments::{NoArguments, check_length};
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

/// Numbers of cycles and of unused definitions.
const MANY: Limits = Limits { default: 50, agent: 500, program: 10_000 };

/// How many are looked at if only those in a folder, or only tests, are wanted.
const LOOKED_AT: usize = 100_000;

const MAX_FILTER_BYTES: usize = 1_024;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "graph_cycles",
            Effect::Read,
            "List files that import each other in a circle. Use it to untangle modules. For a path between two symbols use graph_path. Example: {\"path\":\"src\"}",
            graph_cycles,
        ),
        Tool::new(
            "graph_unused",
            Effect::Read,
            "List definitions that nothing in the project uses. Use it to look for dead code; calls inside macros are not seen. For the callers of one function use graph_neighbours. Example: {\"path\":\"src\"}",
            graph_unused,
        ),
        Tool::new(
            "graph_hotspots",
            Effect::Read,
            "List the functions with the most callers, callees or links. Use it to find central code and what is risky to change. For one function use graph_impact. Example: {\"by\":\"callers\",\"limit\":5}",
            graph_hotspots,
        ),
        Tool::new(
            "graph_stats",
            Effect::Read,
            "Count the nodes of the graph by label, and its edges by type. Use it to see how large the code graph is. For properties and examples use graph_schema. Example: {}",
            graph_stats,
        ),
    ]
}

/// Which symbols a report is about.
struct Wanted {
    path: Option<String>,
    tests: Option<bool>,
}

impl Wanted {
    fn new(path: Option<String>, tests: Option<bool>) -> Result<Self, Failure> {
        check_length("path", path.as_deref().unwrap_or_default(), MAX_FILTER_BYTES)?;
        Ok(Self { path, tests })
    }

    fn is_all(&self) -> bool {
        self.path.is_none() && self.tests.is_none()
    }

    /// How many to ask the engine for.
    fn ask_for(&self, limit: usize) -> usize {
        if self.is_all() { limit } else { LOOKED_AT.max(limit) }
    }

    fn has_path(&self, path: &str) -> bool {
        let folder = self.path.as_deref().map(|it| it.trim_start_matches("./"));
        folder.is_none_or(|folder| folder == "." || Path::new(path).starts_with(folder))
    }

    fn has(&self, symbol: &Symbol) -> bool {
        self.has_path(&symbol.path) && self.tests.is_none_or(|tests| tests == symbol.test)
    }
}

async fn engine(call: &Call) -> Result<Engine, Failure> {
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    Ok(engine)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cycles {
    /// Only cycles with a file in this folder
    path: Option<String>,
    /// Also uncertain edges
    candidates: Option<bool>,
    /// Maximum number of cycles, default 50
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

pub(crate) async fn graph_cycles(call: Call, arguments: Cycles) -> Result<CycleAnswer, Failure> {
    let limit = call.limit(arguments.limit, MANY)? as usize;
    let wanted = Wanted::new(arguments.path, None)?;
    let candidates = arguments.candidates.unwrap_or(false);
    let found = engine(&call).await?.import_cycles(candidates, wanted.ask_for(limit)).await?;
    let Listed { items, total, more } = found;
    let is_wanted = |cycle: &ImportCycle| cycle.files.iter().any(|file| wanted.has_path(file));
    let (items, total, more) = narrowed(items, is_wanted, &wanted, limit, (total, more));
    Ok(CycleAnswer { cycles: items.into_iter().map(Cycle::from).collect(), total, more })
}

/// The first of those that are wanted, their number, and whether there are more.
fn narrowed<T>(
    mut items: Vec<T>,
    is_wanted: impl FnMut(&T) -> bool,
    wanted: &Wanted,
    limit: usize,
    (total, more): (usize, bool),
) -> (Vec<T>, usize, bool) {
    if wanted.is_all() {
        return (items, total, more);
    }
    // Whether there are more than were looked at.
    let unseen = more && items.len() < total;
    items.retain(is_wanted);
    let total = items.len();
    items.truncate(limit);
    let more = unseen || items.len() < total;
    (items, total, more)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unused {
    /// Only in this folder or file
    path: Option<String>,
    /// true: only tests; false: no tests
    tests: Option<bool>,
    /// Also what other files can see but do not use
    exported: Option<bool>,
    /// Maximum number of definitions, default 50
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

pub(crate) async fn graph_unused(call: Call, arguments: Unused) -> Result<UnusedAnswer, Failure> {
    let limit = call.limit(arguments.limit, MANY)? as usize;
    let wanted = Wanted::new(arguments.path, arguments.tests)?;
    let exported = arguments.exported.unwrap_or(false);
    let found = engine(&call).await?.unused(exported, wanted.ask_for(limit)).await?;
    let Listed { items, total, more } = found;
    let is_wanted = |symbol: &Symbol| wanted.has(symbol);
    let (items, total, more) = narrowed(items, is_wanted, &wanted, limit, (total, more));
    Ok(UnusedAnswer { unused: items.into_iter().map(SymbolAnswer::from).collect(), total, more })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hotspots {
    /// Which edges to count, default callers
    by: Option<By>,
    /// Only in this folder or file
    path: Option<String>,
    /// true: only tests; false: no tests
    tests: Option<bool>,
    /// Also uncertain edges
    candidates: Option<bool>,
    /// Maximum number of symbols, default 10
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    #[default]
    Callers,
    Callees,
    Links,
}

pub(crate) async fn graph_hotspots(
    call: Call,
    arguments: Hotspots,
) -> Result<HotspotAnswer, Failure> {
    let limit = call.limit(arguments.limit, Limits::RESULTS)? as usize;
    let wanted = Wanted::new(arguments.path, arguments.tests)?;
    let by = match arguments.by.unwrap_or_default() {
        By::Callers => HotBy::Callers,
        By::Callees => HotBy::Callees,
        By::Links => HotBy::Links,
    };
    let candidates = arguments.candidates.unwrap_or(false);
    let mut found = engine(&call).await?.hotspots(by, candidates, wanted.ask_for(limit)).await?;
    found.retain(|it| wanted.has(&it.symbol));
    found.truncate(limit);
    let hotspots = found.into_iter();
    let hotspots = hotspots.map(|it| Hotspot { symbol: it.symbol.into(), count: it.count });
    Ok(HotspotAnswer { hotspots: hotspots.collect() })
}

pub(crate) async fn graph_stats(call: Call, _: NoArguments) -> Result<SizeAnswer, Failure> {
    let GraphSize { nodes, edges, labels, types } = engine(&call).await?.graph_size().await?;
    let label = |it: LabelCount| Labelled { label: it.label, count: it.count };
    let edge = |EdgeCount { kind, certainty, count }: EdgeCount| Typed { kind, certainty, count };
    let labels = labels.into_iter().map(label).collect();
    Ok(SizeAnswer { nodes, edges, labels, types: types.into_iter().map(edge).collect() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CycleAnswer {
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
        let import = |FileImport { from, to, line }: FileImport| Import { from, to, line };
        Self { files, ring: ring.into_iter().map(import).collect() }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct UnusedAnswer {
    unused: Vec<SymbolAnswer>,
    total: usize,
    more: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct HotspotAnswer {
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
pub(crate) struct SizeAnswer {
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

impl ToolAnswer for CycleAnswer {
    fn text(&self) -> String {
        let mut text = format!("import cycles: {}\n", self.total);
        for Cycle { files, ring } in &self.cycles {
            let from: Vec<&str> = ring.iter().map(|import| import.from.as_str()).collect();
            let _ = writeln!(text, "{} files: {}", files.len(), from.join(" -> "));
        }
        text + more(self.more)
    }
}

impl ToolAnswer for UnusedAnswer {
    fn text(&self) -> String {
        let mut text = format!("unused definitions: {}\n", self.total);
        self.unused.iter().for_each(|symbol| text += &(symbol.line_of_text() + "\n"));
        text + more(self.more)
    }
}

impl ToolAnswer for HotspotAnswer {
    fn text(&self) -> String {
        let mut text = String::new();
        for Hotspot { symbol, count } in &self.hotspots {
            let _ = writeln!(text, "{count} {}", symbol.line_of_text());
        }
        if text.is_empty() { "none found\n".to_owned() } else { text }
    }
}

impl ToolAnswer for SizeAnswer {
    fn text(&self) -> String {
        let mut text = format!("{} nodes, {} edges\n", self.nodes, self.edges);
        for Labelled { label, count } in &self.labels {
            let _ = writeln!(text, "{count} {}", label.as_deref().unwrap_or("without a label"));
        }
        for Typed { kind, certainty, count } in &self.types {
            let _ = writeln!(text, "{count} {kind} {}", certainty.as_deref().unwrap_or_default());
        }
        text
    }
}

fn more(more: bool) -> &'static str {
    if more { "there are more: raise limit or narrow path\n" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_told_apart() {
        let wanted = |path: &str| Wanted::new(Some(path.to_owned()), None).unwrap();
        for (path, file, expected) in [
            ("src", "src/a.rs", true),
            ("./src/", "src/a.rs", true),
            ("src", "src2/a.rs", false),
            ("src/a.rs", "src/a.rs", true),
            (".", "src/a.rs", true),
        ] {
            assert_eq!(wanted(path).has_path(file), expected, "{path} {file}");
        }
    }

    #[test]
    fn what_is_narrowed_is_counted() {
        let wanted = Wanted::new(Some("src".to_owned()), None).unwrap();
        let items = vec!["src/a", "b", "src/c", "src/d"];
        let narrow =
            |limit, seen| narrowed(items.clone(), |it| wanted.has_path(it), &wanted, limit, seen);
        assert_eq!(narrow(2, (4, false)), (vec!["src/a", "src/c"], 3, true));
        assert_eq!(narrow(9, (4, false)), (vec!["src/a", "src/c", "src/d"], 3, false));
        assert!(narrow(9, (100, true)).2);
        let all = Wanted::new(None, None).unwrap();
        assert_eq!(narrowed(items.clone(), |_| true, &all, 4, (9, true)), (items.clone(), 9, true));
    }
}
