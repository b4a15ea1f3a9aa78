//! Output of `isolith memory search`.

use std::fmt::Write as _;

use isolith_engine::MemoryHits;
use isolith_types::{DrawerHit, Failure, Moment, Period};
use serde_json::{Value, json};

use super::show::{about, day};
use crate::highlight::{highlight, needles};
use crate::output::{Output, Paint};
use crate::terminal::one_line;

/// Maximum number of lines shown per hit.
const LINES: usize = 6;

pub(super) fn print(
    found: MemoryHits,
    question: &str,
    lines: bool,
    output: &Output,
) -> Result<(), Failure> {
    let MemoryHits { hits, weak, period, degraded, took, .. } = found;
    if let Some(degraded) = &degraded {
        output.note(&format!("results may be incomplete: {degraded}"));
    }
    if weak && !hits.is_empty() {
        output.note("nothing fits well; these are the closest matches");
    }
    if let Some(Period { since, until }) = period {
        let end = |day: Option<Moment>| day.map_or("…".to_owned(), |day| day.to_string());
        let (since, until) = (end(since), end(until));
        output.note(&format!("only drawers from {since} to {until}; --any-date searches all"));
    }
    let text = hits_for_people(&hits, question, &output.paint());
    let hits: Vec<Value> = hits.into_iter().map(document).collect();
    if lines {
        return output.lines(&hits);
    }
    let took_ms = (took.as_secs_f64() * 1e5).round() / 1e2;
    let period = period.map(|Period { since, until }| json!({ "since": since, "until": until }));
    let document = json!({
        "hits": hits, "degraded": degraded, "weak": weak, "period": period, "took_ms": took_ms,
    });
    output.result(&document, &text)
}

/// A drawer with the score and position of its hit.
fn document(hit: DrawerHit) -> Value {
    let DrawerHit { drawer, passage, score, why } = hit;
    let mut document = json!(drawer);
    document["snippet"] = json!(passage);
    document["score"] = json!(score);
    document["why"] = json!(why);
    document
}

fn hits_for_people(hits: &[DrawerHit], question: &str, paint: &Paint) -> String {
    if hits.is_empty() {
        return "no results\n".to_owned();
    }
    let words = needles(question);
    let mut text = String::new();
    for (at, hit) in hits.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        let drawer = &hit.drawer;
        let place = one_line(&format!("{}/{}", drawer.wing, drawer.room));
        let _ = write!(text, "{}  {}", paint.strong(&drawer.id), paint.name(&place));
        let _ = writeln!(text, "  {}", paint.faint(&format!("{} {:.2}", day(drawer), hit.score)));
        let about = about(drawer);
        let reasons = [hit.why.join(", "), about].into_iter().filter(|part| !part.is_empty());
        for line in reasons {
            let _ = writeln!(text, "  {}", paint.faint(&one_line(&line)));
        }
        let all: Vec<&str> = hit.passage.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in all.iter().take(LINES) {
            let line = one_line(&line.replace('\t', "    "));
            let line = paint.fit(line.trim_end(), 2);
            let _ = writeln!(text, "  {}", highlight(&line, &words, paint));
        }
        if all.len() > LINES || hit.passage.len() < drawer.text.len() {
            let _ = writeln!(text, "  {}", paint.faint("[...]"));
        }
    }
    text
}
