//! Drawers in answers of tools.

use std::fmt::Write as _;

use isolith_types::{Code, Drawer, Failure, Metadata};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::text::{one_line, truncate};

/// Maximum length of a drawer's text on one line, in characters.
const LINE_CHARS: usize = 200;

/// A drawer with its full text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FullDrawer {
    id: String,
    wing: String,
    room: String,
    position: u64,
    text: String,
    source: Option<String>,
    author: Option<String>,
    date: Option<String>,
    tags: Vec<String>,
    metadata: JsonObject,
    created_at: String,
    updated_at: String,
}

impl From<Drawer> for FullDrawer {
    fn from(drawer: Drawer) -> Self {
        Self {
            metadata: object(&drawer.metadata),
            date: date(&drawer),
            id: drawer.id,
            wing: drawer.wing,
            room: drawer.room,
            position: drawer.position,
            text: drawer.text,
            source: drawer.source,
            author: drawer.author,
            tags: drawer.tags,
            created_at: drawer.created_at.to_string(),
            updated_at: drawer.updated_at.to_string(),
        }
    }
}

impl FullDrawer {
    pub(super) fn full_text(&self) -> String {
        let mut text = format!("{} in {}/{}", self.id, self.wing, self.room);
        for (word, value) in [("date", &self.date), ("by", &self.author), ("from", &self.source)] {
            if let Some(value) = value {
                let _ = write!(text, ", {word} {value}");
            }
        }
        let _ = write!(text, "\n{}", self.text);
        text
    }
}

/// A drawer in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedDrawer {
    pub(super) id: String,
    pub(super) wing: String,
    pub(super) room: String,
    pub(super) text: String,
    pub(super) source: Option<String>,
    pub(super) author: Option<String>,
    pub(super) date: Option<String>,
    pub(super) tags: Vec<String>,
}

impl ListedDrawer {
    /// Keeps at most `max` bytes of the text.
    pub(super) fn of(drawer: Drawer, max: usize) -> Self {
        Self {
            date: date(&drawer),
            text: match drawer.text.len() > max {
                true => truncate(&drawer.text, max).to_owned() + "…",
                false => drawer.text,
            },
            id: drawer.id,
            wing: drawer.wing,
            room: drawer.room,
            source: drawer.source,
            author: drawer.author,
            tags: drawer.tags,
        }
    }

    pub(super) fn one_line(&self) -> String {
        let date = self.date.as_deref().map_or(String::new(), |date| format!(" {date}"));
        let author = self.author.as_deref().map_or(String::new(), |author| format!(" {author}"));
        let text = one_line(&self.text, LINE_CHARS);
        format!("{} [{}/{}{date}{author}] {text}", self.id, self.wing, self.room)
    }
}

/// The date of a drawer, or its free-form date.
fn date(drawer: &Drawer) -> Option<String> {
    drawer.date.map(|date| date.to_string()).or_else(|| drawer.date_text.clone())
}

pub(crate) fn object(metadata: &Metadata) -> JsonObject {
    match metadata.to_json() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

pub(super) fn metadata(object: Option<JsonObject>) -> Result<Option<Metadata>, Failure> {
    let metadata = object.map(|object| Metadata::from_json(Value::Object(object))).transpose();
    metadata.map_err(|error| Failure::new(Code::BadInput, error.to_string()))
}
