mod exports;
mod hostile;
mod properties;
mod recognition;
mod texts;

use isolith_types::NewDrawer;
use serde_json::Value;

use crate::transcript::{Batch, Format, Plan, Transcript, TranscriptError};

/// All that is in a file.
fn read_as(
    name: &str,
    format: Option<Format>,
    content: &[u8],
) -> Result<(Format, Batch), TranscriptError> {
    let plan = Plan { name: name.to_owned(), format, ..Plan::default() };
    read_with(&plan, content)
}

fn read(name: &str, content: impl AsRef<[u8]>) -> (Format, Batch) {
    read_as(name, None, content.as_ref()).unwrap()
}

/// All that is in a file. However it is cut into batches, and wherever a new reader goes
/// on, it is the same.
fn read_with(plan: &Plan, content: &[u8]) -> Result<(Format, Batch), TranscriptError> {
    let whole = gather(plan, content, (usize::MAX, usize::MAX), false)?;
    for limits in [(1, usize::MAX), (2, usize::MAX), (usize::MAX, 100)] {
        for afresh in [false, true] {
            assert_eq!(gather(plan, content, limits, afresh)?, whole, "{limits:?} {afresh}");
        }
    }
    Ok(whole)
}

fn gather(
    plan: &Plan,
    content: &[u8],
    (rows, bytes): (usize, usize),
    afresh: bool,
) -> Result<(Format, Batch), TranscriptError> {
    let mut transcript = Transcript::open(content, plan.clone())?;
    let format = transcript.place().format();
    let mut all = Batch::default();
    while let Some(batch) = transcript.next(rows, bytes)? {
        assert!(batch.drawers.len() + batch.problems.len() <= rows.saturating_add(1));
        assert_eq!(batch.drawers.len(), batch.rows.len());
        all.drawers.extend(batch.drawers);
        all.rows.extend(batch.rows);
        all.problems.extend(batch.problems);
        all.skipped += batch.skipped;
        if afresh {
            let place = transcript.place().clone();
            transcript = Transcript::resume(content, plan.clone(), place)?;
        }
    }
    assert!(transcript.place().is_end());
    Ok((format, all))
}

/// Who said what.
fn said(batch: &Batch) -> Vec<(&str, &str)> {
    batch
        .drawers
        .iter()
        .map(|drawer| (drawer.author.as_deref().unwrap_or("-"), drawer.text.as_str()))
        .collect()
}

fn problems(batch: &Batch) -> Vec<String> {
    batch.problems.iter().map(|it| format!("{}: {}", it.row, it.reason)).collect()
}

/// A drawer for people to read.
fn shown(drawer: &NewDrawer) -> String {
    let NewDrawer { text, wing, room, source, author, date, date_text, tags, metadata } = drawer;
    let or = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
    format!(
        "{wing}/{room} {} {}: {text:?} {} {} {tags:?} {}",
        or(source.clone()),
        or(author.clone()),
        or(date.map(|date| date.to_string())),
        or(date_text.clone()),
        metadata.as_str()
    )
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}
