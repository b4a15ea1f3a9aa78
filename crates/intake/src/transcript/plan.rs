use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is known of a file before it is opened, and where its drawers go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The name of the file, without folders.
    pub name: String,
    /// The format; what is in the file decides if it is not given.
    pub format: Option<Format>,
    /// The wing, in the place of the one that the format suggests.
    pub wing: Option<String>,
    /// The room, in the place of the one that the format suggests.
    pub room: Option<String>,
    /// Who authors are, where a file has another name for them.
    pub authors: Vec<(String, String)>,
}

impl Plan {
    /// The name of the file without its ending.
    pub(crate) fn stem(&self) -> &str {
        match self.name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => &self.name,
        }
    }

    /// The ending of the file's name, in small letters.
    pub(crate) fn ending(&self) -> String {
        let ending = self.name.rsplit_once('.').map_or("", |(_, ending)| ending);
        ending.to_ascii_lowercase()
    }

    pub(crate) fn author(&self, speaker: &str) -> String {
        let known = self.authors.iter().find(|(from, _)| from.eq_ignore_ascii_case(speaker));
        known.map_or(speaker, |(_, to)| to).to_owned()
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// A ready drawer in each line, as JSON.
    Drawers,
    /// Plain text: a chat with its speakers, or paragraphs.
    Text,
    /// Markdown: a chat with its speakers, or sections.
    Markdown,
    /// The `conversations.json` of an export from Claude.
    Claude,
    /// The `conversations.json` of an export from ChatGPT.
    Chatgpt,
    /// A session of Claude Code.
    ClaudeCode,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Drawers,
        Format::Text,
        Format::Markdown,
        Format::Claude,
        Format::Chatgpt,
        Format::ClaudeCode,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Drawers => "drawers",
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Claude => "claude",
            Format::Chatgpt => "chatgpt",
            Format::ClaudeCode => "claude-code",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(())
    }
}
