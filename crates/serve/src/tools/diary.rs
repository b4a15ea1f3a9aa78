//! Tools for agents' diaries.

use std::fmt::Write as _;

use isolith_engine::DiaryEntry;
use isolith_types::{Drawer, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::memory::DrawerAdded;
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "diary_write",
            Effect::Add,
            "Add an entry to your diary: what you did and what is next. Use it at the end of a task. With texts and facts together use memory_checkpoint. Example: {\"agent\":\"reviewer\",\"text\":\"Looked at the retry code.\"}",
            diary_write,
        ),
        Tool::new(
            "diary_read",
            Effect::Read,
            "Read the latest entries of an agent's diary, or those of a day. Use it to see what was done before. To search all memory use memory_search. Example: {\"agent\":\"reviewer\"}",
            diary_read,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiaryWrite {
    /// Your name
    agent: String,
    /// What was done and what is next
    text: String,
    /// e.g. the project
    topic: Option<String>,
    /// Default: today
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
}

pub(crate) async fn diary_write(call: Call, arguments: DiaryWrite) -> Result<DrawerAdded, Failure> {
    let DiaryWrite { agent, text, topic, date: day } = arguments;
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.write_diary(DiaryEntry { agent, text, day, topic }, call.key).await?;
    Ok(added.into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiaryRead {
    /// Whose diary
    agent: String,
    /// Only this day
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
    /// 1-100, default 10
    limit: Option<u32>,
}

pub(crate) async fn diary_read(call: Call, arguments: DiaryRead) -> Result<Diary, Failure> {
    let DiaryRead { agent, date, limit } = arguments;
    let last = call.limit(limit, Limits::RESULTS)?;
    let entries = match call.server.stores().memory()? {
        Some(engine) => engine.read_diary(&agent, date, last).await?,
        None => Vec::new(),
    };
    Ok(Diary { agent, entries: entries.into_iter().map(EntryRow::from).collect() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Diary {
    agent: String,
    entries: Vec<EntryRow>,
}

#[derive(Serialize, JsonSchema)]
struct EntryRow {
    id: String,
    date: Option<String>,
    topic: Option<String>,
    text: String,
}

impl From<Drawer> for EntryRow {
    fn from(drawer: Drawer) -> Self {
        Self {
            date: drawer.date.map(|date| date.to_string()),
            topic: drawer.tags.into_iter().next(),
            id: drawer.id,
            text: drawer.text,
        }
    }
}

impl ToolAnswer for Diary {
    fn text(&self) -> String {
        if self.entries.is_empty() {
            return "no entries".to_owned();
        }
        let mut text = String::new();
        for entry in &self.entries {
            let date = entry.date.as_deref().unwrap_or_default();
            let topic = entry.topic.as_deref().map_or(String::new(), |it| format!(" ({it})"));
            let _ = writeln!(text, "{date}{topic}: {}", entry.text);
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.entries.is_empty()
    }
}
