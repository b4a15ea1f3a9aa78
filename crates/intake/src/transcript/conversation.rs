//! A conversation of an export: what is known of all of it, and where its messages are.

use std::ops::{ControlFlow, Range};

use crate::transcript::json::Json;
use crate::transcript::turn::Part;
use crate::transcript::{Format, MAX_MESSAGES, Plan, chatgpt, claude};

/// Takes the parts of a message, until it has enough of them.
pub(crate) type Sink<'a> = dyn FnMut(Part) -> ControlFlow<()> + 'a;

/// A conversation that was looked through once.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Whose export it is in.
    format: Format,
    /// Its number in the file, from 1.
    number: u64,
    /// How many bytes it has.
    pub(crate) length: usize,
    pub(crate) outline: Outline,
}

/// What a conversation says of itself.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    /// When it began, as it is written.
    pub(crate) started: Option<String>,
    /// Where its messages are, counted from its own beginning, in the order in which they
    /// were said.
    pub(crate) messages: Vec<Range<usize>>,
    /// What is wrong behind the last of them.
    pub(crate) flaw: Option<String>,
}

impl Conversation {
    /// Looks through a conversation. One that is none has nothing but its flaw.
    pub(crate) fn read(json: Json<'_>, format: Format, number: u64) -> Self {
        let outline = match format {
            Format::Chatgpt => chatgpt::outline(json),
            _ => claude::outline(json),
        };
        let flawed = |reason| Outline { flaw: Some(reason), ..Outline::default() };
        let outline = outline.unwrap_or_else(flawed);
        Self { format, number, length: json.bytes.len(), outline }
    }

    /// Hands out what a message says. It is the `at`th, from 1.
    pub(crate) fn message(
        &self,
        message: Json<'_>,
        at: usize,
        plan: &Plan,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let outcome = match self.format {
            Format::Chatgpt => chatgpt::message(self, message, at, plan).map(&mut *sink),
            _ => claude::message(self, message, at, plan, sink),
        };
        outcome.unwrap_or_else(|reason| sink(Part::Problem(format!("message {at}: {reason}"))))
    }

    /// The source of a message.
    pub(crate) fn source(&self, message: Option<&str>, at: usize, plan: &Plan) -> String {
        match (&self.outline.id, message) {
            (Some(id), Some(message)) => format!("{}:{id}:{message}", self.format),
            _ => format!("{}#{}.{at}", plan.name, self.number),
        }
    }

    /// What the room is called: the title, or the day.
    pub(crate) fn rooms(&self) -> [Option<&str>; 2] {
        let day = self.outline.started.as_deref().and_then(|started| started.get(..10));
        [self.outline.title.as_deref(), day]
    }
}

/// That a conversation is longer than any that people have.
pub(crate) fn too_many_messages() -> String {
    format!("it has more than {MAX_MESSAGES} messages")
}
