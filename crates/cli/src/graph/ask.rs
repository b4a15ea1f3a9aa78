//! Ready-made queries on the code graph.

use std::fmt::Write as _;

use isolith_engine::{
    Engine, GraphSize, GraphWalk, HotBy, Hotspot, Impact, ImportCycle, Listed, Neighbours, Reached,
    Side, Symbol, SymbolPath,
};
use isolith_types::{Failure, counted};
use serde_json::{Value, json};

use crate::table::table;

/// Files of a cycle that are listed; the others are counted.
const SHOWN_FILES: usize = 20;

/// A query that needs no Cypher.
pub(crate) enum Question {
    Callers { symbol: String, walk: GraphWalk },
    Callees { symbol: String, walk: GraphWalk },
    Path { from: String, to: String, walk: GraphWalk },
    Impact { symbol: String, walk: GraphWalk },
    Cycles { candidates: bool, limit: u32 },
    Unused { exported: bool, limit: u32 },
    Hotspots { by: HotBy, candidates: bool, limit: u32 },
    Stats,
}

impl Question {
    /// The answer as JSON and as text.
    pub(super) async fn answer(self, engine: &Engine) -> Result<(Value, String), Failure> {
        Ok(match self {
            Self::Callers { symbol, walk } => {
                let found = engine.callers(&symbol, &walk).await?;
                let text = show_reached(
                    &found.found,
                    Side::Before,
                    "no callers found (calls inside macros are not seen)",
                );
                (neighbours("callers", &found), text + &tell_likely(&found, "caller"))
            }
            Self::Callees { symbol, walk } => {
                let found = engine.callees(&symbol, &walk).await?;
                let text = show_reached(
                    &found.found,
                    Side::After,
                    "no callees found (calls inside macros are not seen)",
                );
                (neighbours("callees", &found), text + &tell_likely(&found, "callee"))
            }
            Self::Path { from, to, walk } => {
                let path = engine.symbol_path(&from, &to, &walk).await?;
                (path_document(&path), show_path(&path))
            }
            Self::Impact { symbol, walk } => {
                let impact = engine.impact(&symbol, &walk).await?;
                (impact_document(&impact), show_impact(&impact))
            }
            Self::Cycles { candidates, limit } => {
                let cycles = engine.import_cycles(candidates, limit as usize).await?;
                (listed(json!({}), "cycles", &cycles), show_cycles(&cycles))
            }
            Self::Unused { exported, limit } => {
                let unused = engine.unused(exported, limit as usize).await?;
                (listed(json!({}), "unused", &unused), show_unused(&unused))
            }
            Self::Hotspots { by, candidates, limit } => {
                let spots = engine.hotspots(by, candidates, limit as usize).await?;
                (json!({ "by": by, "hotspots": spots }), show_hotspots(&spots))
            }
            Self::Stats => {
                let size = engine.graph_size().await?;
                (json!(size), show_size(&size))
            }
        })
    }
}

fn listed<T: serde::Serialize>(mut document: Value, name: &str, found: &Listed<T>) -> Value {
    document[name] = json!(found.items);
    document["total"] = json!(found.total);
    document["more"] = json!(found.more);
    document
}

fn neighbours(name: &str, around: &Neighbours) -> Value {
    let document = json!({ "symbol": around.symbol, "likely": around.likely });
    listed(document, name, &around.found)
}

fn path_document(path: &SymbolPath) -> Value {
    let steps = path.steps.as_ref().map(|(start, steps)| {
        let steps = steps.iter().map(|step| json!(step));
        [json!(start)].into_iter().chain(steps).collect::<Vec<_>>()
    });
    json!({ "from": path.from, "to": path.to, "path": steps })
}

fn impact_document(impact: &Impact) -> Value {
    json!({
        "symbol": impact.symbol,
        "impact": impact.code.items,
        "total": impact.code.total,
        "tests": impact.tests.items,
        "tests_total": impact.tests.total,
        "more": impact.code.more || impact.tests.more,
    })
}

fn show_reached(found: &Listed<Reached>, side: Side, nothing: &str) -> String {
    if found.items.is_empty() {
        return format!("{nothing}\n");
    }
    let mut text = String::new();
    for it in &found.items {
        let _ = writeln!(text, "{}", it.describe(side));
    }
    tell_more(&mut text, found);
    text
}

fn show_path(path: &SymbolPath) -> String {
    let (from, to) = (&path.from.id, &path.to.id);
    let Some((start, steps)) = &path.steps else {
        return format!("no path from {from} to {to}\n");
    };
    let mut text = format!("{}\n", start.describe());
    for step in steps {
        let _ = writeln!(text, "{}", step.describe(Side::After));
    }
    text
}

fn show_impact(impact: &Impact) -> String {
    let Impact { code, tests, .. } = impact;
    let mut text =
        show_reached(code, Side::Before, "no dependents found (calls inside macros are not seen)");
    if !tests.items.is_empty() {
        text += "\ntests:\n";
        text += &show_reached(tests, Side::Before, "");
    }
    text
}

fn show_cycles(cycles: &Listed<ImportCycle>) -> String {
    if cycles.items.is_empty() {
        return "no import cycles\n".to_owned();
    }
    let mut text = String::new();
    for (at, cycle) in cycles.items.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{} files import each other", cycle.files.len());
        for step in &cycle.ring {
            let line = step.line.map_or(String::new(), |line| format!(":{line}"));
            let _ = writeln!(text, "  {}{line}  imports {}", step.from, step.to);
        }
        let is_around = |file: &&String| cycle.ring.iter().any(|step| step.from == **file);
        let others: Vec<&String> = cycle.files.iter().filter(|file| !is_around(file)).collect();
        for file in others.iter().take(SHOWN_FILES) {
            let _ = writeln!(text, "  {file}");
        }
        if others.len() > SHOWN_FILES {
            let more = counted(others.len() - SHOWN_FILES, "more file");
            let _ = writeln!(text, "  and {more}");
        }
    }
    tell_more(&mut text, cycles);
    text
}

fn show_unused(unused: &Listed<Symbol>) -> String {
    if unused.items.is_empty() {
        return "no unused symbols found\n".to_owned();
    }
    let mut text = String::new();
    for symbol in &unused.items {
        let _ = writeln!(text, "{}  ({})", symbol.describe(), symbol.kind);
    }
    tell_more(&mut text, unused);
    text
}

fn show_hotspots(spots: &[Hotspot]) -> String {
    let row = |spot: &Hotspot| {
        let Symbol { qualified_name, kind, .. } = &spot.symbol;
        vec![spot.count.to_string(), spot.symbol.place(), qualified_name.clone(), kind.clone()]
    };
    table(&[">COUNT", "WHERE", "NAME", "KIND"], &spots.iter().map(row).collect::<Vec<_>>())
}

fn show_size(size: &GraphSize) -> String {
    let labels: Vec<Vec<String>> = size
        .labels
        .iter()
        .map(|it| vec![it.label.clone().unwrap_or("-".to_owned()), it.count.to_string()])
        .collect();
    let types: Vec<Vec<String>> = size
        .types
        .iter()
        .map(|it| {
            let certainty = it.certainty.clone().unwrap_or("-".to_owned());
            vec![it.kind.clone(), certainty, it.count.to_string()]
        })
        .collect();
    let nodes = counted(size.nodes, "node");
    let mut text = format!("{nodes}, {}\n", counted(size.edges, "edge"));
    if !labels.is_empty() {
        text += "\n";
        text += &table(&["LABEL", ">NODES"], &labels);
    }
    if !types.is_empty() {
        text += "\n";
        text += &table(&["TYPE", "CERTAINTY", ">EDGES"], &types);
    }
    text
}

fn tell_more<T>(text: &mut String, found: &Listed<T>) {
    let rest = found.total - found.items.len();
    if rest > 0 {
        let _ = writeln!(text, "{rest} more: use --limit {}", found.total);
    } else if found.more {
        text.push_str("too many to list: use a smaller --depth\n");
    }
}

fn tell_likely(around: &Neighbours, one: &str) -> String {
    match around.likely {
        0 => String::new(),
        1 => format!("1 more likely {one}: use --candidates to show it\n"),
        likely => format!("{likely} more likely {one}s: use --candidates to show them\n"),
    }
}
