//! `memory_search`.

use std::fmt::Write as _;

use isolith_engine::{MemoryHits, MemorySearch};
use isolith_types::{DrawerFilter, DrawerHit, Failure, Moment, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawer::ListedDrawer;
use crate::arguments::check_query;
use crate::text::{fit, one_line, round, truncate};
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

/// A drawer larger than this is reduced to its best passage.
const WHOLE_BYTES: usize = 16 << 10;

/// Maximum length of a passage in the text, in characters.
const LINE_CHARS: usize = 400;

pub(super) fn tool() -> Tool {
    Tool::new(
        "memory_search",
        Effect::Read,
        "Search the user's memory: conversations, notes, decisions. Use it before asking the user again. Not for code (search_code) or what is true now (fact_query). Example: {\"query\":\"why did we choose SQLite\"}",
        memory_search,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchMemory {
    /// Question or words
    query: String,
    /// Person or project
    wing: Option<String>,
    /// Topic
    room: Option<String>,
    /// Default 10
    limit: Option<u32>,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Date, inclusive
    #[schemars(with = "Option<String>")]
    until: Option<Moment>,
    /// Tokens
    pub(crate) budget: Option<u32>,
}

async fn memory_search(call: Call, arguments: SearchMemory) -> Result<MemoryResults, Failure> {
    let budget = arguments.budget;
    let mut results = MemoryResults::from(find_drawers(&call, arguments).await?);
    results.cut = fit(&mut results.hits, budget);
    Ok(results)
}

/// Searches memory; finds nothing if there is no store.
pub(crate) async fn find_drawers(
    call: &Call,
    arguments: SearchMemory,
) -> Result<MemoryHits, Failure> {
    let SearchMemory { query, wing, room, limit, since, until, budget: _ } = arguments;
    let filter = DrawerFilter { wing, room, since, until, ..DrawerFilter::default() };
    let limit = call.limit(limit, Limits::RESULTS)?;
    let search = MemorySearch { filter, ..MemorySearch::new(check_query(&query)?, limit) };
    match call.server.stores().memory()? {
        Some(engine) => engine.search_memory(&search).await,
        None => Ok(MemoryHits::none()),
    }
}

#[derive(Serialize, JsonSchema)]
struct MemoryResults {
    hits: Vec<DrawerResult>,
    degraded: Option<String>,
    weak: bool,
    /// Says what the budget left out
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    cut: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    period: Option<NamedPeriod>,
}

/// The dates in the question: only drawers of that time were searched.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NamedPeriod {
    since: Option<String>,
    until: Option<String>,
}

impl From<Period> for NamedPeriod {
    fn from(Period { since, until }: Period) -> Self {
        let day = |day: Option<Moment>| day.map(|day| day.to_string());
        Self { since: day(since), until: day(until) }
    }
}

#[derive(Serialize, JsonSchema)]
struct DrawerResult {
    id: String,
    wing: String,
    room: String,
    text: String,
    source: Option<String>,
    author: Option<String>,
    date: Option<String>,
    score: f64,
    why: Vec<String>,
    /// The best matching part, for the text.
    #[serde(skip)]
    passage: String,
}

impl From<MemoryHits> for MemoryResults {
    fn from(found: MemoryHits) -> Self {
        let MemoryHits { hits, degraded, weak, period, .. } = found;
        let hits = hits.into_iter().map(DrawerResult::from).collect();
        Self { hits, degraded, weak, cut: None, period: period.map(NamedPeriod::from) }
    }
}

impl From<DrawerHit> for DrawerResult {
    fn from(hit: DrawerHit) -> Self {
        let DrawerHit { drawer, passage, score, why } = hit;
        let whole = drawer.text.len() <= WHOLE_BYTES;
        let ListedDrawer { id, wing, room, text, source, author, date, .. } =
            ListedDrawer::of(drawer, WHOLE_BYTES);
        let text = if whole { text } else { truncate(&passage, WHOLE_BYTES).to_owned() };
        let score = round(f64::from(score));
        Self { id, wing, room, text, source, author, date, score, why, passage }
    }
}

impl ToolAnswer for MemoryResults {
    fn text(&self) -> String {
        if self.hits.is_empty() {
            return "nothing found in memory".to_owned();
        }
        let mut text = match self.weak {
            true => "nothing fits well; these are the closest matches\n".to_owned(),
            false => String::new(),
        };
        if let Some(NamedPeriod { since, until }) = &self.period {
            let (since, until) = (since.as_deref(), until.as_deref());
            let (since, until) = (since.unwrap_or("…"), until.unwrap_or("…"));
            let _ = writeln!(text, "only from {since} to {until}, as the question says");
        }
        for hit in &self.hits {
            let DrawerResult { id, wing, room, .. } = hit;
            let date = hit.date.as_deref().map_or(String::new(), |date| format!(" {date}"));
            let author = hit.author.as_deref().map_or(String::new(), |it| format!(" {it}"));
            let _ = writeln!(text, "{id} [{wing}/{room}{date}{author}] {:.2}", hit.score);
            let _ = writeln!(text, "  {}", one_line(&hit.passage, LINE_CHARS));
        }
        if let Some(cut) = &self.cut {
            let _ = writeln!(text, "{cut}");
        }
        if let Some(degraded) = &self.degraded {
            let _ = writeln!(text, "degraded: {degraded}");
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.hits.is_empty()
    }
}
