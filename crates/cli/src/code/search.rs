//! `isolith search` and `isolith similar`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use isolith_engine::{
    CodeFilter, CodeHit, CodeHits, CodeSearch, EngineOptions, SearchMode, StorePlace,
};
use isolith_types::{Failure, Hint};
use serde::Serialize;
use serde_json::{Value, json};

use super::matches::{self, MatchPlan};
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
    /// The folder that it is asked in.
    pub(crate) here: PathBuf,
    /// Another store that may hold the same code.
    pub(crate) store_above: Option<PathBuf>,
}

/// What to search for.
pub(crate) enum SearchInput {
    /// Code that matches a text.
    Text { text: String, mode: SearchMode },
    /// Code in which a pattern matches.
    Matches(MatchPlan),
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
    let here = Some(plan.here.clone());
    let mut session = Session::open(store, EngineOptions { here, ..EngineOptions::default() })?;
    let (filter, limit) = (plan.filter.clone(), plan.limit);
    let found = match &plan.asked {
        SearchInput::Matches(asked) => return matches::run(session, store, asked, plan, output),
        SearchInput::Text { text, mode } => {
            let search = CodeSearch { filter, mode: *mode, ..CodeSearch::new(text, limit) };
            session.run(async |engine| engine.search_code(&search).await)
        }
        SearchInput::Like { file, line } => session
            .run(async |engine| engine.similar_code(file, *line, filter.clone(), limit).await),
    };
    session.close();
    let mut found = found?;
    if let Some(around) = plan.context {
        found.hits.iter_mut().for_each(|hit| show::narrow(hit, plan.words(), around));
    }
    if let Some(degraded) = &found.degraded {
        let why = output.degraded(degraded);
        output.note(&format!("results may be incomplete: {why}"));
    }
    if found.weak && !found.hits.is_empty() {
        output.note("nothing fits well; these are the closest matches");
    }
    if let Some(missing) = found.missing_text() {
        output.note(&format!("{missing}; without quotes, words are optional"));
    }
    let notice = plan.notice(store, output);
    let shown = Shown { found: &found, store, notice };
    print(&shown, plan, output)?;
    Ok(ExitCode::SUCCESS)
}

impl SearchPlan {
    /// The words that may be highlighted.
    fn words(&self) -> &str {
        match &self.asked {
            SearchInput::Text { text, .. } => text,
            SearchInput::Matches(_) | SearchInput::Like { .. } => "",
        }
    }

    /// Shows and returns a notice if another store may hold the same code.
    pub(super) fn notice(&self, store: &StorePlace, output: &Output) -> Option<String> {
        let notice = notice(store, self.store_above.as_deref()?, output);
        output.note(&notice);
        Some(notice)
    }
}

/// Says which of two stores was searched, and how to make one of them.
fn notice(store: &StorePlace, above: &Path, output: &Output) -> String {
    let folder = store.path().parent().unwrap_or(store.path()).display().to_string();
    let (used, above) = (store.path().display(), above.display());
    let hint = output.hint(&Hint::MergeStore { folder });
    format!("searched {used}; {above} may hold the same code: {hint}")
}

/// What was found, and where.
struct Shown<'a> {
    found: &'a CodeHits,
    store: &'a StorePlace,
    notice: Option<String>,
}

impl Shown<'_> {
    fn document(&self, hits: &impl Serialize, output: &Output) -> Value {
        let CodeHits { degraded, weak, missing, took, .. } = self.found;
        json!({
            "hits": hits,
            "degraded": degraded.as_ref().map(|it| output.degraded(it)),
            "weak": weak,
            "missing": missing,
            "took_ms": (took.as_secs_f64() * 1e5).round() / 1e2,
            "store": self.store.path(),
            "notice": self.notice,
        })
    }
}

fn print(shown: &Shown<'_>, plan: &SearchPlan, output: &Output) -> Result<(), Failure> {
    let hits = &shown.found.hits;
    match plan.listing {
        Listing::Lines => output.lines(hits),
        Listing::Files | Listing::FileLines => {
            let mut files: Vec<&CodeHit> = Vec::new();
            for hit in hits {
                if !files.iter().any(|it| it.path == hit.path && it.root == hit.root) {
                    files.push(hit);
                }
            }
            let text: String =
                files.iter().map(|hit| show::path(&hit.root, &hit.path) + "\n").collect();
            let files: Vec<_> = files
                .iter()
                .map(|hit| json!({ "root": hit.root, "path": hit.path, "score": hit.score }))
                .collect();
            if plan.listing == Listing::FileLines {
                return output.lines(&files);
            }
            output.result(&shown.document(&files, output), &text)
        }
        Listing::Hits => {
            let text = show::hits(hits, plan.words(), plan.context, output);
            output.result(&shown.document(hits, output), &text)
        }
    }
}
