//! Drawers as text.

use std::fmt::Write as _;

use isolith_types::{Drawer, Moment, SimilarDrawer, Wing, counted};

use crate::collection::excerpt;
use crate::output::Paint;
use crate::table::table;
use crate::terminal::one_line;

/// A page of drawers, one per line.
pub(super) fn list(drawers: &[Drawer], total: u64, offset: u64, paint: &Paint) -> String {
    if drawers.is_empty() {
        return match total {
            0 => "no drawers\n".to_owned(),
            total => format!("no more: {} in total\n", counted(total, "drawer")),
        };
    }
    let rows: Vec<Vec<String>> = drawers
        .iter()
        .map(|drawer| {
            vec![
                drawer.id.clone(),
                day(drawer),
                one_line(&format!("{}/{}", drawer.wing, drawer.room)),
                one_line(drawer.author.as_deref().unwrap_or_default()),
                excerpt(Some(&drawer.text)),
            ]
        })
        .collect();
    let mut text = String::new();
    for line in table(&["ID", "DATE", "WING/ROOM", "AUTHOR", "TEXT"], &rows).lines() {
        let _ = writeln!(text, "{}", paint.fit(line, 0));
    }
    let last = offset + drawers.len() as u64;
    if last < total || offset > 0 {
        let _ = writeln!(text, "{} to {last} of {total}", offset + 1);
    }
    text
}

/// Drawers with their full texts.
pub(super) fn drawers(drawers: &[&Drawer], paint: &Paint) -> String {
    let mut text = String::new();
    for (at, drawer) in drawers.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        let place = format!("{}/{} {}", drawer.wing, drawer.room, drawer.position);
        let _ = write!(text, "{}  {}", paint.strong(&drawer.id), paint.name(&one_line(&place)));
        let _ = writeln!(text, "  {}", paint.faint(&day(drawer)));
        let about = about(drawer);
        if !about.is_empty() {
            let _ = writeln!(text, "{}", paint.faint(&about));
        }
        push_text(&mut text, &drawer.text);
    }
    text
}

/// Entries of a diary.
pub(super) fn diary(entries: &[Drawer], paint: &Paint) -> String {
    if entries.is_empty() {
        return "no entries\n".to_owned();
    }
    let mut text = String::new();
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        let _ = write!(text, "{}", paint.strong(&day(entry)));
        if !entry.tags.is_empty() {
            let _ = write!(text, "  {}", paint.name(&one_line(&entry.tags.join(", "))));
        }
        let _ = writeln!(text, "  {}", paint.faint(&entry.id));
        push_text(&mut text, &entry.text);
    }
    text
}

/// Wings with their rooms.
pub(super) fn taxonomy(wings: &[Wing]) -> String {
    if wings.is_empty() {
        return "no drawers\n".to_owned();
    }
    let mut rows = Vec::new();
    for wing in wings {
        rows.push(vec![one_line(&wing.name), wing.drawers.to_string()]);
        let room = |room: &isolith_types::Room| {
            vec![format!("  {}", one_line(&room.name)), room.drawers.to_string()]
        };
        rows.extend(wing.rooms.iter().map(room));
    }
    table(&["WING", ">DRAWERS"], &rows)
}

/// Drawers that are similar to a text.
pub(super) fn similar(similar: &[SimilarDrawer]) -> String {
    if similar.is_empty() {
        return "no similar drawers\n".to_owned();
    }
    let rows: Vec<Vec<String>> = similar
        .iter()
        .map(|it| {
            let place = one_line(&format!("{}/{}", it.drawer.wing, it.drawer.room));
            let number = format!("{:.2}", it.similarity);
            vec![number, it.drawer.id.clone(), place, excerpt(Some(&it.drawer.text))]
        })
        .collect();
    table(&[">SIMILARITY", "ID", "WING/ROOM", "TEXT"], &rows)
}

/// The drawer's date, or the day it was stored.
pub(super) fn day(drawer: &Drawer) -> String {
    Moment::day_of(drawer.date.unwrap_or(drawer.created_at).start()).to_string()
}

/// The drawer's metadata, on one line.
pub(super) fn about(drawer: &Drawer) -> String {
    let mut parts = Vec::new();
    for (name, value) in
        [("by", &drawer.author), ("from", &drawer.source), ("dated", &drawer.date_text)]
    {
        if let Some(value) = value {
            parts.push(format!("{name} {}", one_line(value)));
        }
    }
    if !drawer.tags.is_empty() {
        parts.push(format!("tags {}", one_line(&drawer.tags.join(", "))));
    }
    parts.join("; ")
}

/// Appends text, removing characters that would move the cursor.
fn push_text(out: &mut String, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{}", one_line(&line.replace('\t', "    ")));
    }
}
