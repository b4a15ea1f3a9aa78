//! `search_code` for every match of a text or a regular expression.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{CodeFilter, MatchHit, MatchSearch, MatchTotals, Matches};
use isolith_types::{Failure, counted};
use schemars::JsonSchema;
use serde::Serialize;

use super::code::{CodeResult, CodeResults, MAX_SNIPPET_BYTES};
use crate::arguments::check_query;
use crate::fresh::search_fresh;
use crate::hints::for_agents;
use crate::text::truncate;
use crate::tool::{Call, Limits};

/// Maximum number of lines before and after a match.
pub(crate) const MAX_CONTEXT: u32 = 20;

/// What to match.
pub(super) struct MatchQuery {
    pub(super) pattern: String,
    pub(super) regex: bool,
    pub(super) ignore_case: bool,
    pub(super) limit: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) filter: CodeFilter,
}

/// The number of all matches, in the answer or not.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MatchCounts {
    pub(crate) total: u64,
    pub(crate) lines: u64,
    pub(crate) files: u64,
}

/// Finds all matches.
///
/// # Errors
/// As [`isolith_engine::Engine::find_matches`].
pub(super) async fn find_matches(call: Call, query: MatchQuery) -> Result<CodeResults, Failure> {
    let MatchQuery { pattern, regex, ignore_case, limit, context, filter } = query;
    let search = MatchSearch {
        regex,
        ignore_case,
        context: context.unwrap_or(0).min(MAX_CONTEXT),
        filter,
        ..MatchSearch::new(check_query(&pattern)?, call.limit(limit, Limits::RESULTS)?)
    };
    let found = find_all(&call, &search).await?;
    let Matches { hits, counts: MatchTotals { total, lines, files }, degraded, .. } = found;
    Ok(CodeResults {
        hits: hits.into_iter().map(CodeResult::from).collect(),
        matches: Some(MatchCounts { total, lines, files }),
        degraded: degraded.map(|it| it.worded(for_agents)),
        weak: false,
        missing: None,
        notice: call.notice(),
        cut: None,
    })
}

/// Finds all matches, after what has changed is indexed again.
pub(crate) async fn find_all(call: &Call, search: &MatchSearch) -> Result<Matches, Failure> {
    let engine = call.server.stores().code()?;
    call.server.wait_for_watchers().await;
    search_fresh(&engine, || engine.find_matches(search)).await
}

impl From<MatchHit> for CodeResult {
    fn from(hit: MatchHit) -> Self {
        Self {
            before: 0,
            root: hit.root,
            path: hit.path,
            start_line: hit.start_line,
            end_line: hit.end_line,
            line: Some(hit.line),
            column: Some(hit.column),
            symbol: hit.symbol,
            kind: hit.kind.name().to_owned(),
            score: f64::from(hit.score),
            snippet: truncate(&hit.snippet, MAX_SNIPPET_BYTES).to_owned(),
            why: hit.why,
            also: Vec::new(),
            stale: hit.stale,
        }
    }
}

/// One line for each match, and the totals.
pub(super) fn matches_text(hits: &[CodeResult], counts: &MatchCounts) -> String {
    let MatchCounts { total, lines, files } = counts;
    if *total == 0 {
        return "no matches\n".to_owned();
    }
    let mut text = String::new();
    for hit in hits {
        let path = Path::new(&hit.root).join(&hit.path);
        let (line, column) = (hit.line.unwrap_or_default(), hit.column.unwrap_or_default());
        let _ = write!(text, "{}:{line}:{column}", path.display());
        if let Some(symbol) = &hit.symbol {
            let _ = write!(text, " {symbol}");
        }
        let stale =
            if hit.stale { " (stale: the file has changed since it was indexed)" } else { "" };
        let _ = writeln!(text, "{stale}");
        for line in hit.snippet.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let of_lines = |count| counted(count, "line");
    let (matches, files) = (counted(*total, "match"), counted(*files, "file"));
    let _ = write!(text, "{matches} on {} in {files}", of_lines(*lines));
    let _ = match lines.saturating_sub(hits.len() as u64) {
        0 => writeln!(text),
        hidden => writeln!(text, "; {} not shown", of_lines(hidden)),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(line: u32, snippet: &str, symbol: Option<&str>) -> CodeResult {
        CodeResult {
            root: "/root".to_owned(),
            path: "src/a.rs".to_owned(),
            start_line: 1,
            end_line: 20,
            line: Some(line),
            column: Some(5),
            symbol: symbol.map(str::to_owned),
            kind: "function".to_owned(),
            score: 1.0,
            snippet: snippet.to_owned(),
            why: Vec::new(),
            also: Vec::new(),
            stale: line == 9,
            before: 0,
        }
    }

    #[test]
    fn matches_are_listed_with_totals() {
        let hits = [hit(3, "    lock();", Some("take")), hit(9, "x\n    lock();", None)];
        let counts = MatchCounts { total: 5, lines: 3, files: 1 };
        insta::assert_snapshot!(matches_text(&hits, &counts), @r"
        /root/src/a.rs:3:5 take
              lock();
        /root/src/a.rs:9:5 (stale: the file has changed since it was indexed)
          x
              lock();
        5 matches on 3 lines in 1 file; 1 line not shown
        ");
        let none = MatchCounts { total: 0, lines: 0, files: 0 };
        assert_eq!(matches_text(&[], &none), "no matches\n");
    }
}
