//! Flags of `memory import`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use isolith_engine::{TranscriptFormat, TranscriptOptions};

use super::typed::TypedPersonal;
use crate::memory::MemoryImportPlan;

#[derive(Args)]
pub(super) struct TypedImport {
    /// Files to import, or a folder with sessions of agents or with notes; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files
    #[arg(long, value_enum, default_value_t = TypedFormat::Auto)]
    format: TypedFormat,
    /// Wing of the drawers
    ///
    /// By default that of each drawer, or general; for sessions of Claude Code and Codex the
    /// project's folder; for a folder of notes its name; otherwise conversations.
    #[arg(long, value_name = "NAME")]
    wing: Option<String>,
    /// Room of the drawers
    ///
    /// By default that of each drawer, or general; otherwise the conversation's title, the
    /// session's day or the file's name.
    #[arg(long, value_name = "NAME")]
    room: Option<String>,
    /// Author for a speaker, for example user=Anna; may be repeated
    #[arg(long = "author", value_name = "SPEAKER=NAME", value_parser = author)]
    authors: Vec<(String, String)>,
    /// Read everything, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Seconds without progress before giving up
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    pub(super) place: TypedPersonal,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedFormat {
    /// Detect the format from the content
    Auto,
    /// JSONL, one drawer per line: text, wing, room, source, author, date, date_text, tags;
    /// other keys become metadata
    Drawers,
    /// Plain text: turns of speakers, or paragraphs
    Text,
    /// Markdown: turns of speakers, or sections
    Markdown,
    /// conversations.json from an export of Claude
    Claude,
    /// conversations.json from an export of ChatGPT
    Chatgpt,
    /// Sessions of Claude Code
    ClaudeCode,
    /// Rollouts of Codex
    Codex,
    /// Sessions of Gemini CLI
    Gemini,
}

impl TypedImport {
    pub(super) fn plan(self) -> MemoryImportPlan {
        let format = match self.format {
            TypedFormat::Auto => None,
            TypedFormat::Drawers => Some(TranscriptFormat::Drawers),
            TypedFormat::Text => Some(TranscriptFormat::Text),
            TypedFormat::Markdown => Some(TranscriptFormat::Markdown),
            TypedFormat::Claude => Some(TranscriptFormat::Claude),
            TypedFormat::Chatgpt => Some(TranscriptFormat::Chatgpt),
            TypedFormat::ClaudeCode => Some(TranscriptFormat::ClaudeCode),
            TypedFormat::Codex => Some(TranscriptFormat::Codex),
            TypedFormat::Gemini => Some(TranscriptFormat::Gemini),
        };
        MemoryImportPlan {
            paths: self.files,
            turns: TranscriptOptions {
                name: String::new(),
                format,
                wing: self.wing.filter(|name| !name.trim().is_empty()),
                room: self.room.filter(|name| !name.trim().is_empty()),
                authors: self.authors,
                grows: false,
            },
            dry_run: self.dry_run,
            patience: Duration::from_secs(self.timeout),
        }
    }
}

fn author(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(speaker, name)| (speaker.trim(), name.trim())) {
        Some((speaker, name)) if !speaker.is_empty() && !name.is_empty() => {
            Ok((speaker.to_owned(), name.to_owned()))
        }
        _ => Err("expected SPEAKER=NAME, for example user=Anna".to_owned()),
    }
}
