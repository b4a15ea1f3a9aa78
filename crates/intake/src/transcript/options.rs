use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How to read a file, and where its drawers go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TranscriptOptions {
    /// The name of the file, without its folder.
    pub name: String,
    /// The format; detected from the content if not given.
    pub format: Option<Format>,
    /// The wing, instead of the one that the format suggests.
    pub wing: Option<String>,
    /// The room, instead of the one that the format suggests.
    pub room: Option<String>,
    /// Authors to rename: the name in the file (in any case), and the name to store.
    pub authors: Vec<(String, String)>,
    /// Whether the file is still being written: a last line without an end is left for later.
    pub grows: bool,
}

impl TranscriptOptions {
    /// The name of the file without its extension.
    pub(crate) fn stem(&self) -> &str {
        match self.name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => &self.name,
        }
    }

    /// The extension of the file in lower case; empty if it has none.
    pub(crate) fn extension(&self) -> String {
        let extension = self.name.rsplit_once('.').map_or("", |(_, extension)| extension);
        extension.to_ascii_lowercase()
    }

    /// The author to store for a speaker.
    pub(crate) fn author(&self, speaker: &str) -> String {
        let known = self.authors.iter().find(|(from, _)| from.eq_ignore_ascii_case(speaker));
        known.map_or(speaker, |(_, to)| to).to_owned()
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// One ready drawer per line, as JSON.
    Drawers,
    /// Plain text: a chat with speaker labels, or paragraphs.
    Text,
    /// Markdown: a chat with speaker labels, or sections.
    Markdown,
    /// The `conversations.json` of a Claude export.
    Claude,
    /// The `conversations.json` of a ChatGPT export.
    Chatgpt,
    /// A Claude Code session.
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// A session of Gemini CLI.
    Gemini,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 8] = [
        Format::Drawers,
        Format::Text,
        Format::Markdown,
        Format::Claude,
        Format::Chatgpt,
        Format::ClaudeCode,
        Format::Codex,
        Format::Gemini,
    ];

    /// The name used on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Drawers => "drawers",
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Claude => "claude",
            Format::Chatgpt => "chatgpt",
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::Gemini => "gemini",
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
