//! Prompts that users choose in their client. They include what memory or the index already has.

use std::fmt::Write as _;

use isolith_engine::{Engine, MemorySearch};
use isolith_types::{FactQuery, Failure, Moment, counted};
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};

use crate::resources::protocol_error;
use crate::server::Server;
use crate::text::one_line;
use crate::untrusted::{RULE, fenced};
use crate::wake_up::{WAKE_UP_BUDGET, nothing_known, wake_up};

/// Maximum number of drawers, and of facts, in a prompt.
const MAX_RECALLED: u32 = 10;

/// Maximum number of characters of each.
const MAX_CHARS: usize = 500;

/// Maximum length of a topic.
const TOPIC_BYTES: usize = 1_000;

impl Server {
    pub(crate) fn prompts(&self) -> ListPromptsResult {
        let argument = |name: &str, description: &str, required| {
            PromptArgument::new(name).with_description(description).with_required(required)
        };
        let recall = Prompt::new(
            "recall",
            Some("Recall what you know about something"),
            Some(vec![argument("topic", "A person, project or subject", true)]),
        );
        let orient = Prompt::new(
            "orient",
            Some("Orient yourself in this code base"),
            Some(vec![argument("focus", "What matters most", false)]),
        );
        let wake_up = Prompt::new(
            "wake_up",
            Some("What to know when a session begins"),
            Some(vec![argument("wing", "A person or project; by default this one", false)]),
        );
        ListPromptsResult::with_all_items(vec![recall, orient, wake_up])
    }

    /// Renders a prompt with what is currently known.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<GetPromptResult, ErrorData> {
        let argument = |name: &str| {
            let text = arguments.get(name).and_then(|value| value.as_str()).map(str::trim);
            text.filter(|text| !text.is_empty() && text.len() <= TOPIC_BYTES)
        };
        let text = match name {
            "recall" => {
                let topic = argument("topic").ok_or_else(|| {
                    ErrorData::invalid_params("recall needs a topic of at most 1000 bytes", None)
                })?;
                self.recall(topic).await.map_err(protocol_error)?
            }
            "orient" => self.orient(argument("focus")).await.map_err(protocol_error)?,
            "wake_up" => self.woken(argument("wing")).await.map_err(protocol_error)?,
            _ => {
                let message = format!("unknown prompt {name:?}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
    }

    async fn recall(&self, topic: &str) -> Result<String, Failure> {
        let mut text = format!("Recall what you know about {topic}.\n");
        let Some(engine) = self.stores().memory()? else {
            text.push_str("Memory is empty: there are no drawers and no facts.\n");
            return Ok(text);
        };
        let known = self.known_about(&engine, topic).await?;
        match known.is_empty() {
            true => text.push_str("Nothing in memory fits this topic well.\n"),
            false => {
                let _ = writeln!(text, "\nThis is in memory. {RULE} {}", fenced(&known));
            }
        }
        text.push_str("Look further with memory_search, fact_query and fact_timeline. ");
        text.push_str("Then report what is known, since when, and what is not known.\n");
        Ok(text)
    }

    /// The drawers and facts about a topic, one line each; no drawers if none fits well.
    async fn known_about(&self, engine: &Engine, topic: &str) -> Result<String, Failure> {
        let mut text = String::new();
        let found = engine.search_memory(&MemorySearch::new(topic, MAX_RECALLED)).await?;
        let hits = if found.weak { Vec::new() } else { found.hits };
        if !hits.is_empty() {
            text.push_str("From memory, best first (memory_get reads a drawer in full):\n");
        }
        for hit in &hits {
            let drawer = &hit.drawer;
            let date = drawer.date.map_or(String::new(), |date| format!(", {date}"));
            let passage = one_line(&hit.passage, MAX_CHARS);
            let _ = writeln!(
                text,
                "- {} ({}/{}{date}): {passage}",
                drawer.id, drawer.wing, drawer.room
            );
        }
        let query = FactQuery {
            entity: Some(topic.to_owned()),
            limit: MAX_RECALLED,
            ..FactQuery::default()
        };
        let facts = engine.query_facts(&query).await?;
        if !facts.is_empty() {
            text.push_str("Facts, current ones first:\n");
        }
        for fact in &facts {
            let time = |at: Option<Moment>| at.map_or("…".to_owned(), |at| at.to_string());
            let (from, to) = (time(fact.valid_from), time(fact.valid_to));
            let (subject, predicate, object) = (&fact.subject, &fact.predicate, &fact.object);
            let _ = writeln!(text, "- {subject} {predicate} {object} [{from} – {to})");
        }
        Ok(text)
    }

    async fn woken(&self, wing: Option<&str>) -> Result<String, Failure> {
        let names = match wing {
            Some(wing) => vec![wing.to_owned()],
            None => self.stores().project_names(),
        };
        let woken = match self.stores().memory()? {
            Some(engine) => wake_up(&engine, &names, WAKE_UP_BUDGET).await?,
            None => nothing_known(&names),
        };
        Ok(format!("{RULE}\n{}", woken.text))
    }

    async fn orient(&self, focus: Option<&str>) -> Result<String, Failure> {
        let mut text = "Orient yourself in this code base.\n".to_owned();
        let roots = match self.stores().code() {
            Ok(engine) => engine.roots().await?,
            Err(_) => Vec::new(),
        };
        for root in &roots {
            let files = counted(root.files, "file");
            let chunks = counted(root.chunks, "chunk");
            let _ = writeln!(text, "Indexed: {}, {files}, {chunks}.", root.folder.display());
        }
        if roots.is_empty() {
            text.push_str("Nothing is indexed yet: call index_project first.\n");
        }
        text.push_str(
            "Use search_code to find the entry points, the main types and their tests; read the \
             best hits with read_chunk; use memory_search to find earlier decisions. Then \
             describe the parts, how data flows between them, and where to start.\n",
        );
        if let Some(focus) = focus {
            let _ = writeln!(text, "What matters most: {focus}.");
        }
        Ok(text)
    }
}
