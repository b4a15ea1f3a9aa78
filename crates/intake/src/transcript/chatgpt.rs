//! ChatGPT exports: conversations as trees of messages. Only the branch shown last is read.

use std::collections::{HashMap, HashSet};

use crate::transcript::conversation::{Conversation, Outline, too_many_messages};
use crate::transcript::json::Json;
use crate::transcript::turn::{ItemOutcome, NotATurn, Turn, add_paragraph, seconds};
use crate::transcript::{MAX_MESSAGES, TranscriptOptions};

/// Scans a conversation.
pub(crate) fn outline(conversation: Json<'_>) -> Result<Outline, String> {
    let keys = ["conversation_id", "id", "title", "create_time", "mapping", "current_node"];
    let [public_id, id, title, create_time, mapping, current] = conversation.fields(keys)?;
    if !mapping.is_object() {
        return Err("it has no mapping of messages".to_owned());
    }
    let branch = Tree::read(mapping)?.branch(current.some_text().as_deref());
    Ok(Outline {
        id: public_id.some_text().or(id.some_text()).map(Into::into),
        title: title.some_text().map(Into::into),
        started: create_time.number().and_then(seconds),
        messages: branch.into_iter().map(|message| message.range_in(conversation)).collect(),
        flaw: None,
    })
}

/// Parses a message.
pub(crate) fn message(
    conversation: &Conversation,
    message: Json<'_>,
    at: usize,
    options: &TranscriptOptions,
) -> Result<ItemOutcome, String> {
    let keys = ["id", "author", "create_time", "content", "recipient", "metadata"];
    let [id, author, create_time, content, recipient, metadata] = message.fields(keys)?;
    let [role] = author.fields(["role"])?;
    let [hidden, model] =
        metadata.fields(["is_visually_hidden_from_conversation", "model_slug"])?;
    let to_all = recipient.is_null() || recipient.is("all");
    if hidden.is_true() || !to_all || !(role.is("user") || role.is("assistant")) {
        return Ok(ItemOutcome::Skipped(NotATurn::Hidden));
    }
    let Some(text) = message_text(content)? else {
        return Ok(ItemOutcome::Skipped(NotATurn::WithoutText));
    };
    let (role, model) = (role.some_text(), model.some_text());
    let date = create_time.number().and_then(seconds);
    let outline = &conversation.outline;
    let turn = Turn {
        text: &text,
        speaker: role.as_deref(),
        source: conversation.source(id.some_text().as_deref(), at, options),
        rooms: conversation.rooms(),
        date: date.as_deref().or(outline.started.as_deref()),
        notes: vec![
            ("conversation", outline.title.as_deref().unwrap_or("")),
            ("role", role.as_deref().unwrap_or("")),
            ("model", model.as_deref().unwrap_or("")),
        ],
        ..Turn::default()
    };
    Ok(turn.into_outcome(options))
}

/// The text of a message; `None` for content types without text of the conversation.
fn message_text(content: Json<'_>) -> Result<Option<String>, String> {
    let [kind, parts, text] = content.fields(["content_type", "parts", "text"])?;
    let text_types = ["text", "multimodal_text", "code"];
    if !(kind.is_null() || text_types.iter().any(|it| kind.is(it))) {
        return Ok(None);
    }
    if let Some(text) = text.some_text() {
        return Ok(Some(text.into()));
    }
    let mut said = String::new();
    for part in parts.items() {
        let part = part?;
        // Images and audio are objects; speech comes with its text.
        let words = if part.is_object() { part.fields(["text"])?[0] } else { part };
        if words.is_null() {
            continue;
        }
        let words = words.text().map_err(|reason| format!("a part {reason}"))?;
        add_paragraph(&mut said, &words);
    }
    Ok(Some(said))
}

/// The messages of a conversation with their parents.
struct Tree<'a> {
    nodes: HashMap<String, Node<'a>>,
    /// The ids in file order.
    order: Vec<String>,
}

struct Node<'a> {
    parent: Option<String>,
    message: Json<'a>,
}

impl<'a> Tree<'a> {
    fn read(mapping: Json<'a>) -> Result<Self, String> {
        let mut tree = Self { nodes: HashMap::new(), order: Vec::new() };
        for member in mapping.members() {
            let (id, node) = member?;
            if tree.order.len() == MAX_MESSAGES {
                return Err(too_many_messages());
            }
            let [message, parent] = node.fields(["message", "parent"])?;
            let parent = parent.some_text().map(Into::into);
            tree.nodes.insert(id.clone(), Node { parent, message });
            tree.order.push(id);
        }
        Ok(tree)
    }

    /// The messages from the root to this one, or to the newest leaf.
    fn branch(&self, current: Option<&str>) -> Vec<Json<'a>> {
        let current = current.filter(|id| self.nodes.contains_key(*id));
        let mut next = current.or_else(|| self.newest_leaf());
        let mut seen = HashSet::new();
        let mut branch = Vec::new();
        // Parents may form a cycle: stop at the first repeated node.
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            let Some(node) = self.nodes.get(id) else { break };
            if node.message.is_object() {
                branch.push(node.message);
            }
            next = node.parent.as_deref();
        }
        branch.reverse();
        branch
    }

    /// The latest leaf by time; of equal times, the last in the file.
    fn newest_leaf(&self) -> Option<&str> {
        let parents: HashSet<&str> =
            self.nodes.values().filter_map(|node| node.parent.as_deref()).collect();
        let leaves = self.order.iter().filter(|id| !parents.contains(id.as_str()));
        let time = |id: &&String| {
            let fields = self.nodes.get(*id).and_then(|it| it.message.fields(["create_time"]).ok());
            fields.and_then(|[time]| time.number()).unwrap_or(0.0)
        };
        leaves.max_by(|one, other| time(one).total_cmp(&time(other))).map(String::as_str)
    }
}
