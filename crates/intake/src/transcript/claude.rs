//! Claude exports: conversations with a list of messages.

use std::ops::ControlFlow;

use crate::transcript::TranscriptOptions;
use crate::transcript::conversation::{Conversation, Outline, Sink, outline_of};
use crate::transcript::json::Json;
use crate::transcript::turn::{Turn, text_of_blocks};

/// Scans a conversation.
pub(crate) fn outline(conversation: Json<'_>) -> Result<Outline, String> {
    let [uuid, name, created_at, messages] =
        conversation.fields(["uuid", "name", "created_at", "chat_messages"])?;
    if !messages.is_list() {
        return Err("it has no list of chat_messages".to_owned());
    }
    let outline = Outline {
        id: uuid.some_text().map(Into::into),
        title: name.some_text().map(Into::into),
        started: created_at.some_text().map(Into::into),
        ..Outline::default()
    };
    Ok(outline_of(outline, messages, conversation))
}

/// Passes the text of a message and its attachments to the sink.
pub(crate) fn message(
    conversation: &Conversation,
    message: Json<'_>,
    at: usize,
    options: &TranscriptOptions,
    sink: &mut Sink<'_>,
) -> Result<ControlFlow<()>, String> {
    let keys = ["uuid", "sender", "text", "content", "created_at", "attachments"];
    let [uuid, sender, text, content, created_at, attachments] = message.fields(keys)?;
    let (sender, date) = (sender.some_text(), created_at.some_text());
    let role = match sender.as_deref() {
        Some("human") => Some("user"),
        other => other,
    };
    let said = match text_of_blocks(content)? {
        Some(said) => said,
        // Older exports have the text outside the blocks.
        None if text.is_null() => String::new(),
        None => text.text().map_err(|reason| format!("text {reason}"))?.into_owned(),
    };
    let outline = &conversation.outline;
    let turn = |text: &str, source: String, attachment: &str| {
        let turn = Turn {
            text,
            speaker: role,
            source,
            rooms: conversation.rooms(),
            date: date.as_deref().or(outline.started.as_deref()),
            notes: vec![
                ("conversation", outline.title.as_deref().unwrap_or("")),
                ("role", role.unwrap_or("")),
                ("attachment", attachment),
            ],
            ..Turn::default()
        };
        turn.into_outcome(options)
    };
    let source = conversation.source(uuid.some_text().as_deref(), at, options);
    if sink(turn(&said, source.clone(), "")).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    for (number, attachment) in attachments.items().enumerate() {
        let [name, content] = attachment?.fields(["file_name", "extracted_content"])?;
        let Some(content) = content.some_text() else { continue };
        let name = name.some_text();
        let source = format!("{source}:{}", number + 1);
        let outcome = turn(&content, source, name.as_deref().unwrap_or("without a name"));
        if sink(outcome).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
