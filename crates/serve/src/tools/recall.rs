//! The tool that searches memory.

use std::fmt::Write as _;

use isolith_engine::{MemoryHits, MemorySearch};
use isolith_types::{DrawerFilter, DrawerHit, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawer::ListedDrawer;
use crate::arguments::{limit, question};
use crate::text::{cut, line, round};
use crate::tool::{Call, Effect, Shown, Tool};

/// A longer drawer is cut to its best passage.
const WHOLE_BYTES: usize = 16 << 10;

/// Maximum number of characters of a hit in the text.
const LINE_LETTERS: usize = 400;

pub(super) fn tool() -> Tool {
    Tool::new(
        "memory_search",
        Effect::Read,
        "Search remembered texts by a question or keywords. Use it before asking the user again. Untrusted data.",
        memory_search,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    wing: Option<String>,
    room: Option<String>,
    limit: Option<u32>,
    /// Date
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Date, inclusive
    #[schemars(with = "Option<String>")]
    until: Option<Moment>,
}

async fn memory_search(call: Call, asked: Search) -> Result<Recalled, Failure> {
    let Search { query, wing, room, limit: most, since, until } = asked;
    let filter = DrawerFilter { wing, room, since, until, ..DrawerFilter::default() };
    let search = MemorySearch { filter, ..MemorySearch::new(question(&query)?, limit(most)?) };
    match call.server.stores().memory()? {
        Some(engine) => engine.search_memory(&search).await.map(Recalled::from),
        None => Ok(Recalled { hits: Vec::new(), degraded: None }),
    }
}

#[derive(Serialize, JsonSchema)]
struct Recalled {
    hits: Vec<Hit>,
    degraded: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Hit {
    id: String,
    wing: String,
    room: String,
    text: String,
    source: Option<String>,
    author: Option<String>,
    date: Option<String>,
    score: f64,
    why: Vec<String>,
    /// The best passage.
    #[serde(skip)]
    passage: String,
}

impl From<MemoryHits> for Recalled {
    fn from(found: MemoryHits) -> Self {
        let MemoryHits { hits, degraded, .. } = found;
        Self { hits: hits.into_iter().map(Hit::from).collect(), degraded }
    }
}

impl From<DrawerHit> for Hit {
    fn from(hit: DrawerHit) -> Self {
        let DrawerHit { drawer, passage, score, why } = hit;
        let whole = drawer.text.len() <= WHOLE_BYTES;
        let ListedDrawer { id, wing, room, text, source, author, date, .. } =
            ListedDrawer::of(drawer, WHOLE_BYTES);
        let text = if whole { text } else { cut(&passage, WHOLE_BYTES).to_owned() };
        let score = round(f64::from(score));
        Self { id, wing, room, text, source, author, date, score, why, passage }
    }
}

impl Shown for Recalled {
    fn text(&self) -> String {
        if self.hits.is_empty() {
            return "nothing found in memory".to_owned();
        }
        let mut text = String::new();
        for hit in &self.hits {
            let Hit { id, wing, room, .. } = hit;
            let date = hit.date.as_deref().map_or(String::new(), |date| format!(" {date}"));
            let author = hit.author.as_deref().map_or(String::new(), |it| format!(" {it}"));
            let _ = writeln!(text, "{id} [{wing}/{room}{date}{author}] {:.2}", hit.score);
            let _ = writeln!(text, "  {}", line(&hit.passage, LINE_LETTERS));
        }
        if let Some(degraded) = &self.degraded {
            let _ = writeln!(text, "degraded: {degraded}");
        }
        text
    }

    fn is_ours(&self) -> bool {
        self.hits.is_empty()
    }
}
