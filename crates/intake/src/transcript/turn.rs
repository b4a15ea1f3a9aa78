use isolith_types::{LONGEST_DRAWER, Metadata, Moment, NewDrawer};
use serde_json::{Map, Value};

use crate::transcript::Plan;
use crate::transcript::json::Json;

/// What becomes of one part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Drawer(Box<NewDrawer>),
    /// It cannot be used, and this is why.
    Problem(String),
    /// It is nothing that anybody said.
    Skipped,
}

/// The wing of conversations that suggest none.
const WING: &str = "conversations";

/// Longer names of rooms are cut.
const ROOM_CHARS: usize = 120;

/// What somebody said, on its way to a drawer.
#[derive(Debug, Default)]
pub(crate) struct Turn<'a> {
    pub(crate) text: &'a str,
    pub(crate) speaker: Option<&'a str>,
    /// Where it comes from.
    pub(crate) source: String,
    /// What the format suggests for the wing.
    pub(crate) wing: Option<&'a str>,
    /// What the format suggests for the room, the best first; blank ones do not count.
    pub(crate) rooms: [Option<&'a str>; 2],
    /// When it was said, as it is written.
    pub(crate) date: Option<&'a str>,
    pub(crate) notes: Vec<(&'static str, &'a str)>,
}

impl Turn<'_> {
    pub(crate) fn into_part(self, plan: &Plan) -> Part {
        if self.text.trim().is_empty() {
            return Part::Skipped;
        }
        if let Some(reason) = unfit(self.text) {
            return Part::Problem(reason);
        }
        let (date, date_text) = match self.date.map(str::trim).filter(|date| !date.is_empty()) {
            None => (None, None),
            Some(date) => match date.parse::<Moment>() {
                Ok(moment) => (Some(moment), None),
                Err(_) => (None, Some(date.to_owned())),
            },
        };
        let room = self.rooms.into_iter().flatten().map(str::trim).find(|room| !room.is_empty());
        Part::Drawer(Box::new(NewDrawer {
            text: self.text.to_owned(),
            wing: named(plan.wing.as_deref(), self.wing, WING),
            room: named(plan.room.as_deref(), room.map(cut).as_deref(), plan.stem()),
            source: Some(self.source),
            author: self.speaker.map(|speaker| plan.author(speaker)),
            date,
            date_text,
            tags: Vec::new(),
            metadata: metadata(&self.notes),
        }))
    }
}

/// What the blocks of a message say: text, and neither thoughts nor tools. Nothing if
/// there are no blocks.
pub(crate) fn words_of(blocks: Json<'_>) -> Result<Option<String>, String> {
    let mut said: Option<String> = None;
    for block in blocks.items() {
        let [kind, text, transcript] = block?.fields(["type", "text", "transcript"])?;
        let said = said.get_or_insert_default();
        let spoken_aloud = kind.is("voice_note") && text.is_null();
        let text = if spoken_aloud { transcript } else { text };
        if (kind.is("text") || kind.is("voice_note")) && !text.is_null() {
            let text = text.text().map_err(|reason| format!("text {reason}"))?;
            add_paragraph(said, &text);
        }
    }
    Ok(said)
}

/// Adds words behind others.
pub(crate) fn add_paragraph(said: &mut String, words: &str) {
    if !said.is_empty() && !words.trim().is_empty() {
        said.push_str("\n\n");
    }
    said.push_str(words);
}

/// Why a text cannot be kept as it is.
pub(crate) fn unfit(text: &str) -> Option<String> {
    if text.len() > LONGEST_DRAWER {
        let limit = LONGEST_DRAWER >> 20;
        return Some(format!("the text has {} bytes, more than {limit} MB", text.len()));
    }
    text.contains('\0').then(|| "the text has a NUL character in it".to_owned())
}

/// An instant of this many seconds since 1970, as programs write it.
pub(crate) fn seconds(value: f64) -> Option<String> {
    const YEAR_3000: f64 = 32_503_680_000.0;
    let sane = (0.0..YEAR_3000).contains(&value);
    sane.then(|| Moment::instant((value * 1000.0).round() as i64).to_string())
}

fn named(asked: Option<&str>, suggested: Option<&str>, otherwise: &str) -> String {
    let some = |name: &&str| !name.trim().is_empty();
    asked.filter(some).or(suggested.filter(some)).unwrap_or(otherwise).trim().to_owned()
}

/// A name of one line and not too long.
fn cut(name: &str) -> String {
    let plain = name.replace(|c: char| c.is_control(), " ");
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() <= ROOM_CHARS {
        return name;
    }
    name.chars().take(ROOM_CHARS - 1).chain(['…']).collect()
}

fn metadata(notes: &[(&'static str, &str)]) -> Metadata {
    let some = notes.iter().filter(|(_, value)| !value.trim().is_empty());
    let object: Map<String, Value> =
        some.map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
    // Texts are always fit for metadata.
    Metadata::from_json(Value::Object(object)).unwrap_or_default()
}
