use isolith_types::{LONGEST_DRAWER, Metadata, Moment, NewDrawer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::transcript::TranscriptOptions;
use crate::transcript::json::Json;

/// The result of reading one item of a file: a turn, an attachment or a ready drawer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ItemOutcome {
    Drawer(Box<NewDrawer>),
    /// It is unusable, for this reason.
    Problem(String),
    /// It is not a turn.
    Skipped(NotATurn),
}

/// Why an item is not a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotATurn {
    /// It is no message.
    Event,
    /// It is a message that the client hides or made itself.
    Hidden,
    /// It belongs to a subagent.
    Subagent,
    /// The client inserted it, for example the output of a command.
    Inserted,
    /// It has no text, only tool calls, their results or thinking.
    WithoutText,
}

/// The numbers of items that are not turns, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SkippedItems {
    /// Events that are not messages.
    pub events: u64,
    /// Messages that the client hides or made itself: system messages, summaries.
    pub hidden: u64,
    /// Messages of subagents.
    pub subagents: u64,
    /// Texts that the client inserted, for example the output of a command.
    pub inserted: u64,
    /// Messages without text, for example tool calls and thinking.
    pub without_text: u64,
}

impl SkippedItems {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { events, hidden, subagents, inserted, without_text } = self;
        events + hidden + subagents + inserted + without_text
    }

    pub(crate) fn count(&mut self, reason: NotATurn) {
        let count = match reason {
            NotATurn::Event => &mut self.events,
            NotATurn::Hidden => &mut self.hidden,
            NotATurn::Subagent => &mut self.subagents,
            NotATurn::Inserted => &mut self.inserted,
            NotATurn::WithoutText => &mut self.without_text,
        };
        *count += 1;
    }
}

impl std::ops::AddAssign for SkippedItems {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.hidden += other.hidden;
        self.subagents += other.subagents;
        self.inserted += other.inserted;
        self.without_text += other.without_text;
    }
}

/// The wing if neither the options nor the format name one.
const DEFAULT_WING: &str = "conversations";

/// Longer room names are truncated.
const MAX_ROOM_CHARS: usize = 120;

/// A message of a conversation, before it becomes a drawer.
#[derive(Debug, Default)]
pub(crate) struct Turn<'a> {
    pub(crate) text: &'a str,
    pub(crate) speaker: Option<&'a str>,
    /// Identifies the message.
    pub(crate) source: String,
    /// The wing that the format suggests.
    pub(crate) wing: Option<&'a str>,
    /// The rooms that the format suggests, best first; blank ones are ignored.
    pub(crate) rooms: [Option<&'a str>; 2],
    /// When it was written, as the file has it.
    pub(crate) date: Option<&'a str>,
    pub(crate) notes: Vec<(&'static str, &'a str)>,
}

impl Turn<'_> {
    pub(crate) fn into_outcome(self, options: &TranscriptOptions) -> ItemOutcome {
        if self.text.trim().is_empty() {
            return ItemOutcome::Skipped(NotATurn::WithoutText);
        }
        if let Some(reason) = text_problem(self.text) {
            return ItemOutcome::Problem(reason);
        }
        let (date, date_text) = match self.date.map(str::trim).filter(|date| !date.is_empty()) {
            None => (None, None),
            Some(date) => match date.parse::<Moment>() {
                Ok(moment) => (Some(moment), None),
                Err(_) => (None, Some(date.to_owned())),
            },
        };
        let room = self.rooms.into_iter().flatten().map(str::trim).find(|room| !room.is_empty());
        ItemOutcome::Drawer(Box::new(NewDrawer {
            text: self.text.to_owned(),
            wing: first_name(options.wing.as_deref(), self.wing, DEFAULT_WING),
            room: first_name(options.room.as_deref(), room.map(shorten).as_deref(), options.stem()),
            source: Some(self.source),
            author: self.speaker.map(|speaker| options.author(speaker)),
            date,
            date_text,
            tags: Vec::new(),
            metadata: metadata(&self.notes),
        }))
    }
}

/// The text of a message's content blocks, without thinking and tool calls. `None` if there are no
/// blocks.
pub(crate) fn text_of_blocks(blocks: Json<'_>) -> Result<Option<String>, String> {
    let mut said: Option<String> = None;
    for block in blocks.items() {
        let [kind, text, transcript] = block?.fields(["type", "text", "transcript"])?;
        let said = said.get_or_insert_default();
        let spoken_aloud = kind.is("voice_note") && text.is_null();
        let text = if spoken_aloud { transcript } else { text };
        let is_text =
            ["text", "input_text", "output_text", "voice_note"].iter().any(|it| kind.is(it));
        if is_text && !text.is_null() {
            let text = text.text().map_err(|reason| format!("text {reason}"))?;
            add_paragraph(said, &text);
        }
    }
    Ok(said)
}

/// Appends a paragraph.
pub(crate) fn add_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() && !paragraph.trim().is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

/// Why a text cannot be stored unchanged, if so.
pub(crate) fn text_problem(text: &str) -> Option<String> {
    if text.len() > LONGEST_DRAWER {
        let limit = LONGEST_DRAWER >> 20;
        return Some(format!("the text has {} bytes, more than {limit} MB", text.len()));
    }
    text.contains('\0').then(|| "the text contains a NUL character".to_owned())
}

/// Seconds since 1970 in ISO 8601; `None` outside 1970 to 3000.
pub(crate) fn seconds(value: f64) -> Option<String> {
    const YEAR_3000: f64 = 32_503_680_000.0;
    let sane = (0.0..YEAR_3000).contains(&value);
    sane.then(|| Moment::instant((value * 1000.0).round() as i64).to_string())
}

fn first_name(asked: Option<&str>, suggested: Option<&str>, otherwise: &str) -> String {
    let some = |name: &&str| !name.trim().is_empty();
    asked.filter(some).or(suggested.filter(some)).unwrap_or(otherwise).trim().to_owned()
}

/// The name on one line, with at most [`MAX_ROOM_CHARS`] characters.
fn shorten(name: &str) -> String {
    let plain = name.replace(|c: char| c.is_control(), " ");
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() <= MAX_ROOM_CHARS {
        return name;
    }
    name.chars().take(MAX_ROOM_CHARS - 1).chain(['…']).collect()
}

fn metadata(notes: &[(&'static str, &str)]) -> Metadata {
    let some = notes.iter().filter(|(_, value)| !value.trim().is_empty());
    let object: Map<String, Value> =
        some.map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
    // Text values are always valid metadata.
    Metadata::from_json(Value::Object(object)).unwrap_or_default()
}
