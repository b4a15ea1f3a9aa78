//! A conversation of Claude's export: messages in their order.

use std::ops::ControlFlow;

use crate::json::Json;
use crate::turn::{Part, Turn, words_of};
use crate::{MAX_MESSAGES, Plan};

/// What a conversation is about, for all of its messages.
struct Conversation<'a> {
    plan: &'a Plan,
    /// Its number in the file, from 1.
    number: u64,
    id: Option<&'a str>,
    title: Option<&'a str>,
    started: Option<&'a str>,
}

/// Hands out the parts of a conversation until told to stop.
pub(crate) fn parts(
    conversation: Json<'_>,
    number: u64,
    plan: &Plan,
    sink: &mut dyn FnMut(Part) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let fields = conversation.fields(["uuid", "name", "created_at", "chat_messages"]);
    let [uuid, name, created_at, messages] = match fields {
        Ok(fields) => fields,
        Err(reason) => return sink(Part::Problem(reason)),
    };
    if !messages.is_list() {
        return sink(Part::Problem("it has no list of chat_messages".to_owned()));
    }
    let (id, title, started) = (uuid.some_text(), name.some_text(), created_at.some_text());
    let conversation = Conversation {
        plan,
        number,
        id: id.as_deref(),
        title: title.as_deref(),
        started: started.as_deref(),
    };
    for (at, message) in messages.items().enumerate() {
        if at == MAX_MESSAGES {
            return sink(Part::Problem(format!("it has more than {MAX_MESSAGES} messages")));
        }
        let outcome = message.and_then(|message| conversation.message(message, at + 1, sink));
        match outcome {
            Ok(flow) => flow?,
            Err(reason) => sink(Part::Problem(format!("message {}: {reason}", at + 1)))?,
        }
    }
    ControlFlow::Continue(())
}

impl Conversation<'_> {
    fn message(
        &self,
        message: Json<'_>,
        at: usize,
        sink: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, String> {
        let keys = ["uuid", "sender", "text", "content", "created_at", "attachments"];
        let [uuid, sender, text, content, created_at, attachments] = message.fields(keys)?;
        let id = uuid.some_text();
        let source = match (self.id, &id) {
            (Some(conversation), Some(message)) => format!("claude:{conversation}:{message}"),
            _ => format!("{}#{}.{at}", self.plan.name, self.number),
        };
        let sender = sender.some_text();
        let role = match sender.as_deref() {
            Some("human") => Some("user"),
            other => other,
        };
        let said = match words_of(content)? {
            // Older exports have the text beside the blocks.
            Some(said) => said,
            None if text.is_null() => String::new(),
            None => text.text().map_err(|reason| format!("text {reason}"))?.into_owned(),
        };
        let date = created_at.some_text();
        let turn = |text: &str, source: String, attachment: &str| {
            let turn = Turn {
                text,
                speaker: role,
                source,
                rooms: [self.title, self.started.and_then(|started| started.get(..10))],
                date: date.as_deref().or(self.started),
                notes: vec![
                    ("conversation", self.title.unwrap_or("")),
                    ("role", role.unwrap_or("")),
                    ("attachment", attachment),
                ],
                ..Turn::default()
            };
            turn.into_part(self.plan)
        };
        if sink(turn(said.trim(), source.clone(), "")).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        for (number, attachment) in attachments.items().enumerate() {
            let [name, content] = attachment?.fields(["file_name", "extracted_content"])?;
            let Some(content) = content.some_text() else { continue };
            let name = name.some_text();
            let part = turn(
                &content,
                format!("{source}:{}", number + 1),
                name.as_deref().unwrap_or("without a name"),
            );
            if sink(part).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
