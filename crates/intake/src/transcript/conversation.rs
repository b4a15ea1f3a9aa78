//! A conversation in an export: its metadata and the positions of its messages.

use std::ops::{ControlFlow, Range};

use crate::transcript::json::Json;
use crate::transcript::turn::ItemOutcome;
use crate::transcript::{Format, MAX_MESSAGES, TranscriptOptions, chatgpt, claude, gemini};

/// Receives the items of a message, and breaks when the batch is full.
pub(crate) type Sink<'a> = dyn FnMut(ItemOutcome) -> ControlFlow<()> + 'a;

/// A conversation after its first scan.
#[derive(Debug)]
pub(crate) struct Conversation {
    format: Format,
    /// Its number in the file, from 1.
    number: u64,
    /// Its size in bytes.
    pub(crate) length: usize,
    pub(crate) outline: Outline,
}

/// The metadata of a conversation and the positions of its messages.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    /// When it began, as written in the export.
    pub(crate) started: Option<String>,
    /// The byte ranges of its messages, relative to the conversation, in chronological order.
    pub(crate) messages: Vec<Range<usize>>,
    /// Why the messages after the last one cannot be used.
    pub(crate) flaw: Option<String>,
}

impl Conversation {
    /// Scans a conversation. The result for an invalid one has only a flaw.
    pub(crate) fn read(json: Json<'_>, format: Format, number: u64) -> Self {
        let outline = match format {
            Format::Chatgpt => chatgpt::outline(json),
            Format::Gemini => gemini::outline(json),
            _ => claude::outline(json),
        };
        let flawed = |reason| Outline { flaw: Some(reason), ..Outline::default() };
        let outline = outline.unwrap_or_else(flawed);
        Self { format, number, length: json.bytes.len(), outline }
    }

    /// Passes the items of a message to the sink. `at` is its number in the conversation, from 1.
    pub(crate) fn message(
        &self,
        message: Json<'_>,
        at: usize,
        options: &TranscriptOptions,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let outcome = match self.format {
            Format::Chatgpt => chatgpt::message(self, message, at, options).map(&mut *sink),
            Format::Gemini => gemini::message(self, message, at, options).map(&mut *sink),
            _ => claude::message(self, message, at, options, sink),
        };
        outcome
            .unwrap_or_else(|reason| sink(ItemOutcome::Problem(format!("message {at}: {reason}"))))
    }

    /// The source to store for a message: its ids, or else its position in the file.
    pub(crate) fn source(
        &self,
        message: Option<&str>,
        at: usize,
        options: &TranscriptOptions,
    ) -> String {
        match (&self.outline.id, message) {
            (Some(id), Some(message)) => format!("{}:{id}:{message}", self.format),
            _ => format!("{}#{}.{at}", options.name, self.number),
        }
    }

    /// Suggested rooms: the title, and the day.
    pub(crate) fn rooms(&self) -> [Option<&str>; 2] {
        let day = self.outline.started.as_deref().and_then(|started| started.get(..10));
        [self.outline.title.as_deref(), day]
    }
}

/// Adds the positions of the messages in a list of a conversation.
pub(crate) fn outline_of(
    mut outline: Outline,
    messages: Json<'_>,
    conversation: Json<'_>,
) -> Outline {
    for message in messages.items() {
        match message {
            Ok(_) if outline.messages.len() == MAX_MESSAGES => {
                outline.flaw = Some(too_many_messages());
                break;
            }
            Ok(message) => outline.messages.push(message.range_in(conversation)),
            Err(reason) => {
                outline.flaw = Some(format!("message {}: {reason}", outline.messages.len() + 1));
            }
        }
    }
    outline
}

pub(crate) fn too_many_messages() -> String {
    format!("it has more than {MAX_MESSAGES} messages")
}
