//! `isolith search` and `isolith similar`.

use std::path::PathBuf;
use std::process::ExitCode;

use isolith_engine::{
    CodeFilter, CodeHit, CodeHits, CodeSearch, EngineOptions, SearchMode, StorePlace,
};
use isolith_types::{Failure, Hint};
use serde_json::json;

use super::show;
use crate::output::Output;
use crate::session::Session;

/// A search, and how to show its results.
pub(crate) struct SearchPlan {
    pub(crate) asked: SearchInput,
    pub(crate) filter: CodeFilter,
    pub(crate) limit: u32,
    pub(crate) context: Option<usize>,
    pub(crate) listing: Listing,
}

/// What to search for.
pub(crate) enum SearchInput {
    /// Code that matches a text.
    Text { text: String, mode: SearchMode },
    /// Code that is similar to other code.
    Like { file: PathBuf, line: Option<u32> },
}

/// How to show results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// With snippets, or as one JSON document.
    Hits,
    /// One JSON document per line.
    Lines,
    /// Only paths.
    Files,
    /// One JSON document per line, one for each file.
    FileLines,
}

pub(crate) fn run(
    store: &StorePlace,
    plan: &SearchPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let mut session = Session::open(store, EngineOptions::default())?;
    let found = session.run(async |engine| {
        let (filter, limit) = (plan.filter.clone(), plan.limit);
        match &plan.asked {
            SearchInput::Text { text, mode } => {
                let search = CodeSearch { filter, mode: *mode, ..CodeSearch::new(text, limit) };
                engine.search_code(&search).await
            }
            SearchInput::Like { file, line } => {
                engine.similar_code(file, *line, filter, limit).await
            }
        }
    });
    session.close();
    let mut found = found?;
    if let Some(around) = plan.context {
        found.hits.iter_mut().for_each(|hit| show::narrow(hit, plan.words(), around));
    }
    if let Some(degraded) = &found.degraded {
        let why = degraded.worded(Hint::for_terminal);
        output.note(&format!("results may be incomplete: {why}"));
    }
    if found.weak && !found.hits.is_empty() {
        output.note("nothing fits well; these are the closest matches");
    }
    print(&found, plan, output)?;
    Ok(ExitCode::SUCCESS)
}

impl SearchPlan {
    /// The words that may be highlighted.
    fn words(&self) -> &str {
        match &self.asked {
            SearchInput::Text { text, .. } => text,
            SearchInput::Like { .. } => "",
        }
    }
}

fn print(found: &CodeHits, plan: &SearchPlan, output: &Output) -> Result<(), Failure> {
    let CodeHits { hits, degraded, weak, took } = found;
    let degraded = degraded.as_ref().map(|it| it.worded(Hint::for_terminal));
    let took_ms = (took.as_secs_f64() * 1e5).round() / 1e2;
    match plan.listing {
        Listing::Lines => output.lines(hits),
        Listing::Files | Listing::FileLines => {
            let mut files: Vec<&CodeHit> = Vec::new();
            for hit in hits {
                if !files.iter().any(|it| it.path == hit.path && it.root == hit.root) {
                    files.push(hit);
                }
            }
            let text: String = files.iter().map(|hit| show::path(hit) + "\n").collect();
            let files: Vec<_> = files
                .iter()
                .map(|hit| json!({ "root": hit.root, "path": hit.path, "score": hit.score }))
                .collect();
            if plan.listing == Listing::FileLines {
                return output.lines(&files);
            }
            let document =
                json!({ "hits": files, "degraded": degraded, "weak": weak, "took_ms": took_ms });
            output.result(&document, &text)
        }
        Listing::Hits => {
            let document =
                json!({ "hits": hits, "degraded": degraded, "weak": weak, "took_ms": took_ms });
            output.result(&document, &show::hits(hits, plan.words(), plan.context, output))
        }
    }
}
