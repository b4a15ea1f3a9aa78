//! Sessions of Gemini CLI: one object with a list of messages.

use crate::transcript::TranscriptOptions;
use crate::transcript::conversation::{Conversation, Outline, outline_of};
use crate::transcript::json::Json;
use crate::transcript::turn::{ItemOutcome, NotATurn, Turn, add_paragraph};

/// Scans a session.
pub(crate) fn outline(session: Json<'_>) -> Result<Outline, String> {
    let [id, summary, started, messages] =
        session.fields(["sessionId", "summary", "startTime", "messages"])?;
    if !messages.is_list() {
        return Err("it has no list of messages".to_owned());
    }
    let outline = Outline {
        id: id.some_text().map(Into::into),
        title: summary.some_text().map(Into::into),
        started: started.some_text().map(Into::into),
        ..Outline::default()
    };
    Ok(outline_of(outline, messages, session))
}

/// Parses a message.
pub(crate) fn message(
    conversation: &Conversation,
    message: Json<'_>,
    at: usize,
    options: &TranscriptOptions,
) -> Result<ItemOutcome, String> {
    let keys = ["id", "type", "content", "timestamp", "model"];
    let [id, kind, content, timestamp, model] = message.fields(keys)?;
    let role = match (kind.is("user"), kind.is("gemini")) {
        (true, _) => "user",
        (_, true) => "assistant",
        // What the program told: information, warnings and errors.
        _ => return Ok(ItemOutcome::Skipped(NotATurn::Hidden)),
    };
    let text = message_text(content)?;
    let (date, model) = (timestamp.some_text(), model.some_text());
    let outline = &conversation.outline;
    let turn = Turn {
        text: &text,
        speaker: Some(role),
        source: conversation.source(id.some_text().as_deref(), at, options),
        rooms: conversation.rooms(),
        date: date.as_deref().or(outline.started.as_deref()),
        notes: vec![
            ("role", role),
            ("session", outline.id.as_deref().unwrap_or("")),
            ("model", model.as_deref().unwrap_or("")),
        ],
        ..Turn::default()
    };
    Ok(turn.into_outcome(options))
}

/// The text of a message: a text, a part, or a list of both.
fn message_text(content: Json<'_>) -> Result<String, String> {
    if content.is_null() {
        return Ok(String::new());
    }
    if !content.is_list() {
        return part_text(content);
    }
    let mut said = String::new();
    for part in content.items() {
        add_paragraph(&mut said, &part_text(part?)?);
    }
    Ok(said)
}

/// The text of a part; empty for files, calls and thoughts.
fn part_text(part: Json<'_>) -> Result<String, String> {
    if !part.is_object() {
        return Ok(part.text().map_err(|reason| format!("content {reason}"))?.into_owned());
    }
    let [text, thought] = part.fields(["text", "thought"])?;
    if text.is_null() || thought.is_true() {
        return Ok(String::new());
    }
    Ok(text.text().map_err(|reason| format!("text {reason}"))?.into_owned())
}
