mod agents;
mod exports;
mod hostile;
mod properties;
mod recognition;
mod texts;

use isolith_types::NewDrawer;
use serde_json::Value;

use crate::transcript::{DrawerBatch, Format, Transcript, TranscriptError, TranscriptOptions};

/// Reads a whole file.
fn read_as(
    name: &str,
    format: Option<Format>,
    content: &[u8],
) -> Result<(Format, DrawerBatch), TranscriptError> {
    let options =
        TranscriptOptions { name: name.to_owned(), format, ..TranscriptOptions::default() };
    read_with(&options, content)
}

fn read(name: &str, content: impl AsRef<[u8]>) -> (Format, DrawerBatch) {
    read_as(name, None, content.as_ref()).unwrap()
}

/// Reads a whole file, and checks that batch sizes and resuming make no difference.
fn read_with(
    options: &TranscriptOptions,
    content: &[u8],
) -> Result<(Format, DrawerBatch), TranscriptError> {
    let whole = gather(options, content, (usize::MAX, usize::MAX), false)?;
    for limits in [(1, usize::MAX), (2, usize::MAX), (usize::MAX, 100)] {
        for resumes in [false, true] {
            assert_eq!(gather(options, content, limits, resumes)?, whole, "{limits:?} {resumes}");
        }
    }
    Ok(whole)
}

fn gather(
    options: &TranscriptOptions,
    content: &[u8],
    (rows, bytes): (usize, usize),
    resumes: bool,
) -> Result<(Format, DrawerBatch), TranscriptError> {
    let mut transcript = Transcript::open(content, options.clone())?;
    let format = transcript.cursor().format();
    let mut all = DrawerBatch::default();
    while let Some(batch) = transcript.next(rows, bytes)? {
        assert!(batch.drawers.len() + batch.problems.len() <= rows.saturating_add(1));
        assert_eq!(batch.drawers.len(), batch.rows.len());
        all.drawers.extend(batch.drawers);
        all.rows.extend(batch.rows);
        all.problems.extend(batch.problems);
        all.skipped += batch.skipped;
        if resumes {
            let cursor = transcript.cursor().clone();
            transcript = Transcript::resume(content, options.clone(), cursor)?;
        }
    }
    assert!(transcript.cursor().is_end());
    Ok((format, all))
}

/// The author and text of each drawer.
fn said(batch: &DrawerBatch) -> Vec<(&str, &str)> {
    batch
        .drawers
        .iter()
        .map(|drawer| (drawer.author.as_deref().unwrap_or("-"), drawer.text.as_str()))
        .collect()
}

fn problems(batch: &DrawerBatch) -> Vec<String> {
    batch.problems.iter().map(|it| format!("{}: {}", it.row, it.reason)).collect()
}

/// A drawer on one line.
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
