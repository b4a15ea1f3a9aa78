//! Search results as text.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{CodeHit, FoundPlace};

use crate::highlight::{highlight, needles};
use crate::output::{Output, Paint};
use crate::terminal::one_line;

/// Lines of context on either side of the best line.
const AROUND: usize = 2;

/// All hits, the best first.
pub(super) fn hits(
    hits: &[CodeHit],
    words: &str,
    around: Option<usize>,
    output: &Output,
) -> String {
    if hits.is_empty() {
        return "no results\n".to_owned();
    }
    let paint = output.paint();
    let words = needles(words);
    let last = hits.iter().map(|hit| hit.end_line).max().unwrap_or(0);
    let gutter = last.to_string().len().max(3);
    let mut text = String::new();
    for (at, hit) in hits.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        head(&mut text, hit, &paint);
        let mut hit = hit.clone();
        // A snippet that was already shortened is shown completely.
        if around.is_none() {
            narrow_to(&mut hit, &words, AROUND);
        }
        snippet(&mut text, &hit, &words, gutter, &paint);
        also(&mut text, &hit, &paint);
    }
    text
}

/// Further places in the file of a hit, on one line.
fn also(text: &mut String, hit: &CodeHit, paint: &Paint) {
    if hit.also.is_empty() {
        return;
    }
    let place = |it: &FoundPlace| match &it.symbol {
        Some(symbol) => format!("{}-{} {symbol}", it.start_line, it.end_line),
        None => format!("{}-{}", it.start_line, it.end_line),
    };
    let places: Vec<String> = hit.also.iter().map(place).collect();
    let line = format!("also lines {}", places.join(", "));
    let _ = writeln!(text, "  {}", paint.faint(&one_line(&line)));
}

fn head(text: &mut String, hit: &CodeHit, paint: &Paint) {
    let place =
        format!("{}:{}", path(&hit.root, &hit.path), hit.symbol_line.unwrap_or(hit.start_line));
    text.push_str(&paint.strong(&one_line(&place)));
    if let Some(symbol) = &hit.symbol {
        let name = match &hit.parent {
            Some(parent) if parent != symbol => format!("{parent} › {symbol}"),
            _ => symbol.clone(),
        };
        let _ = write!(text, "  {}", paint.name(&one_line(&name)));
    }
    let _ = write!(text, "  {}", paint.faint(&format!("{} {:.2}", hit.kind, hit.score)));
    if hit.stale {
        let _ =
            write!(text, "  {}", paint.warning("stale: the file has changed since it was indexed"));
    }
    text.push('\n');
    if !hit.why.is_empty() {
        let _ = writeln!(text, "  {}", paint.faint(&one_line(&hit.why.join(", "))));
    }
}

fn snippet(text: &mut String, hit: &CodeHit, words: &[String], gutter: usize, paint: &Paint) {
    for (number, line) in (hit.snippet_line..).zip(hit.snippet.lines()) {
        let line = line.replace('\t', "    ");
        let line = one_line(&line);
        let line = paint.fit(line.trim_end(), gutter + 4);
        let number = format!("{number:>gutter$}");
        let _ = writeln!(text, "  {} {}", paint.faint(&number), highlight(&line, words, paint));
    }
}

/// The path of a hit, relative to the working folder if it lies in it.
pub(super) fn path(root: &str, path: &str) -> String {
    let full = Path::new(root).join(path);
    let here = std::env::current_dir().ok();
    let near = here.as_ref().and_then(|here| full.strip_prefix(here).ok());
    near.unwrap_or(&full).display().to_string()
}

/// Shortens a snippet to the lines around the best one.
pub(super) fn narrow(hit: &mut CodeHit, words: &str, around: usize) {
    narrow_to(hit, &needles(words), around);
}

fn narrow_to(hit: &mut CodeHit, words: &[String], around: usize) {
    let lines: Vec<&str> = hit.snippet.lines().collect();
    let named = hit.symbol_line.and_then(|line| line.checked_sub(hit.snippet_line));
    let best = named.map(|line| line as usize).filter(|line| *line < lines.len());
    let best = best.unwrap_or_else(|| best_line(&lines, words));
    let to = (best + around + 1).max(2 * around + 1).min(lines.len());
    let from = best.saturating_sub(around).min(to.saturating_sub(2 * around + 1));
    // The snippet should not begin with blank lines.
    let from = (from..best).find(|at| !lines[*at].trim().is_empty()).unwrap_or(best);
    let narrowed = lines.get(from..to).unwrap_or_default().join("\n");
    hit.snippet_line += from as u32;
    hit.snippet = narrowed;
}

/// The first line with the most words.
fn best_line(lines: &[&str], words: &[String]) -> usize {
    let count = |line: &str| {
        let line = line.to_lowercase();
        words.iter().filter(|word| line.contains(word.as_str())).count()
    };
    let counts: Vec<usize> = lines.iter().map(|line| count(line)).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let first = counts.iter().position(|count| *count == most).unwrap_or(0);
    // If no line contains any of the words, take the first that is not blank.
    if most > 0 {
        first
    } else {
        lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0)
    }
}
