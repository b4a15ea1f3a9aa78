//! `isolith search --mode exact` and `--mode regex`.

use std::fmt::Write as _;
use std::process::ExitCode;

use isolith_engine::{MatchHit, MatchSearch, MatchTotals, Matches, StorePlace};
use isolith_types::{Failure, counted};
use serde_json::json;

use super::search::{Listing, SearchPlan};
use super::show::path;
use crate::output::{Output, Paint};
use crate::session::Session;
use crate::terminal::one_line;

/// What to match.
pub(crate) struct MatchPlan {
    pub(crate) pattern: String,
    pub(crate) regex: bool,
    pub(crate) ignore_case: bool,
}

pub(super) fn run(
    mut session: Session,
    store: &StorePlace,
    asked: &MatchPlan,
    plan: &SearchPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let context = plan.context.unwrap_or(0);
    let search = MatchSearch {
        regex: asked.regex,
        ignore_case: asked.ignore_case,
        context: u32::try_from(context).unwrap_or(u32::MAX),
        by_file: matches!(plan.listing, Listing::Files | Listing::FileLines),
        filter: plan.filter.clone(),
        ..MatchSearch::new(&asked.pattern, plan.limit)
    };
    let found = session.run(async |engine| engine.find_matches(&search).await);
    session.close();
    let found = found?;
    if let Some(degraded) = &found.degraded {
        let why = output.degraded(degraded);
        output.note(&format!("results may be incomplete: {why}"));
    }
    let notice = plan.notice(store, output);
    print(&Shown { found: &found, store, notice }, plan.listing, output)?;
    Ok(ExitCode::SUCCESS)
}

/// What was found, and where.
struct Shown<'a> {
    found: &'a Matches,
    store: &'a StorePlace,
    notice: Option<String>,
}

fn print(shown: &Shown<'_>, listing: Listing, output: &Output) -> Result<(), Failure> {
    let Matches { hits, counts, degraded, took } = shown.found;
    let degraded = degraded.as_ref().map(|it| output.degraded(it));
    let took_ms = (took.as_secs_f64() * 1e5).round() / 1e2;
    let file = |hit: &MatchHit| {
        let MatchHit { root, path, score, matches, .. } = hit;
        json!({ "root": root, "path": path, "score": score, "matches": matches })
    };
    let document = |hits: serde_json::Value| {
        json!({
            "hits": hits,
            "matches": counts,
            "degraded": degraded,
            "weak": false,
            "took_ms": took_ms,
            "store": shown.store.path(),
            "notice": shown.notice,
        })
    };
    let hidden = |of: u64| of.saturating_sub(hits.len() as u64);
    match listing {
        Listing::Hits => {
            let text = text(hits, *counts, &output.paint());
            output.result(&document(json!(hits)), &text)
        }
        // The totals are no line of the result.
        Listing::Lines => {
            output.note(&summary(*counts, hidden(counts.lines)));
            output.lines(hits)
        }
        Listing::Files => {
            output.note(&summary(*counts, hidden(counts.files)));
            let text: String = hits.iter().map(|hit| path(&hit.root, &hit.path) + "\n").collect();
            output.result(&document(hits.iter().map(file).collect()), &text)
        }
        Listing::FileLines => {
            output.note(&summary(*counts, hidden(counts.files)));
            output.lines(&hits.iter().map(file).collect::<Vec<_>>())
        }
    }
}

/// All hits, file by file, and the totals.
fn text(hits: &[MatchHit], counts: MatchTotals, paint: &Paint) -> String {
    if counts.total == 0 {
        return "no matches\n".to_owned();
    }
    let last = hits.iter().map(|hit| hit.last_line).max().unwrap_or(0);
    let gutter = last.to_string().len().max(4);
    let mut text = String::new();
    for file in hits.chunk_by(|one, next| one.path == next.path && one.root == next.root) {
        let mut printed = 0;
        for (at, hit) in file.iter().enumerate() {
            if at == 0 {
                head(&mut text, hit, paint);
            }
            // The lines of the next hit are its own.
            let end = file.get(at + 1).map_or(u32::MAX, |next| next.line);
            printed = lines(&mut text, hit, (printed, end), gutter, paint);
        }
        text.push('\n');
    }
    text.push_str(&summary(counts, counts.lines.saturating_sub(hits.len() as u64)));
    text.push('\n');
    text
}

fn head(text: &mut String, hit: &MatchHit, paint: &Paint) {
    text.push_str(&paint.strong(&one_line(&path(&hit.root, &hit.path))));
    if hit.stale {
        let stale = "stale: the file has changed since it was indexed";
        let _ = write!(text, "  {}", paint.warning(stale));
    }
    text.push('\n');
}

/// Adds the lines of a snippet after `printed` and before `end`; returns the last one.
fn lines(
    text: &mut String,
    hit: &MatchHit,
    (printed, end): (u32, u32),
    gutter: usize,
    paint: &Paint,
) -> u32 {
    if printed > 0 && hit.snippet_line > printed + 1 && hit.snippet_line < hit.line {
        let _ = writeln!(text, "  {}", paint.faint("--"));
    }
    let mut last = printed;
    for (number, line) in (hit.snippet_line..).zip(hit.snippet.split('\n')) {
        if number <= printed || (number >= end && number > hit.last_line) {
            continue;
        }
        last = number;
        if number == hit.line {
            let place = format!("{number:>gutter$}:{}:", hit.column);
            let spans = if hit.shortened { &[][..] } else { &hit.spans };
            let line = highlighted(line, spans, place.len() + 4, paint);
            let _ = writeln!(text, "  {} {line}{}", paint.faint(&place), symbol(hit, paint));
        } else {
            let matched = (hit.line..=hit.last_line).contains(&number);
            let place = format!("{number:>gutter$}{}", if matched { ':' } else { '-' });
            let line = paint.fit(plain(line).trim_end(), gutter + 5);
            let space = if line.is_empty() { "" } else { " " };
            let _ = writeln!(text, "  {}{space}{line}", paint.faint(&place));
        }
    }
    last
}

fn symbol(hit: &MatchHit, paint: &Paint) -> String {
    let Some(symbol) = &hit.symbol else { return String::new() };
    let name = match &hit.parent {
        Some(parent) if parent != symbol => format!("{parent} › {symbol}"),
        _ => symbol.clone(),
    };
    format!("  {}", paint.faint(&format!("[{}]", one_line(&name))))
}

/// A line with its matches highlighted, cut to the width of the terminal.
fn highlighted(line: &str, spans: &[(u32, u32)], used: usize, paint: &Paint) -> String {
    let whole = plain(line);
    let whole = whole.trim_end();
    let fitting = paint.fit(whole, used);
    if !paint.is_coloured() || fitting != whole {
        return fitting;
    }
    let mut text = String::new();
    let mut at = 0;
    for (start, end) in spans {
        let (start, end) = (*start as usize, *end as usize);
        let (Some(before), Some(found)) = (line.get(at..start), line.get(start..end)) else {
            continue;
        };
        text.push_str(&plain(before));
        text.push_str(&paint.found(&plain(found)));
        at = end;
    }
    text + plain(&line[at..]).trim_end()
}

fn plain(line: &str) -> String {
    one_line(&line.replace('\t', "    "))
}

/// The totals; `hidden` is the number of lines or files that are not shown.
fn summary(counts: MatchTotals, hidden: u64) -> String {
    let MatchTotals { total, lines, files } = counts;
    let matches = counted(total, "match");
    let lines = counted(lines, "line");
    let all = format!("{matches} on {lines} in {}", counted(files, "file"));
    match hidden {
        0 => all,
        hidden => format!("{all}; {hidden} not shown, --limit shows more"),
    }
}
