//! Which files of a folder are imported: the sessions in it, or else its notes.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};
use isolith_engine::TranscriptFormat;
use isolith_types::{Code, Failure};

/// A file to import.
pub(super) struct ImportFile {
    pub(super) path: PathBuf,
    /// Its name in sources and rooms: its path within the folder, for notes.
    pub(super) name: String,
    /// The wing, if the user does not give one: the name of the folder, for notes.
    pub(super) wing: Option<String>,
}

impl ImportFile {
    pub(super) fn single(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self { path: path.to_owned(), name, wing: None }
    }
}

/// Deeper folders are left out.
const MAX_DEPTH: usize = 64;

/// Maximum number of files.
const MAX_FILES: usize = 100_000;

/// Maximum number of entries in all folders.
const MAX_ENTRIES: usize = 2_000_000;

/// Ignore rules for Isolith alone, as `isolith index` reads them.
const IGNORE_FILE: &str = ".isolithignore";

/// The files of a folder: sessions of agents, or without any, notes.
pub(super) fn files_in(
    folder: &Path,
    format: Option<TranscriptFormat>,
) -> Result<Vec<ImportFile>, Failure> {
    let (sessions, notes) = match format {
        None => (true, true),
        Some(TranscriptFormat::ClaudeCode | TranscriptFormat::Codex | TranscriptFormat::Gemini) => {
            (true, false)
        }
        Some(TranscriptFormat::Markdown | TranscriptFormat::Text) => (false, true),
        Some(TranscriptFormat::Claude | TranscriptFormat::Chatgpt | TranscriptFormat::Drawers) => {
            let message = format!("{} is a folder", folder.display());
            return Err(Failure::new(Code::BadInput, message)
                .with_hint("name the files in it; folders can have sessions of agents or notes"));
        }
    };
    if sessions {
        // Agents keep their sessions in hidden folders, and never among ignored files.
        let mut walk = walker(folder);
        walk.standard_filters(false);
        let found = collect(&walk, |entry| is_session(&name_of(entry), format))?;
        if !found.is_empty() {
            return Ok(found.iter().map(|path| ImportFile::single(path)).collect());
        }
    }
    if notes {
        let mut walk = walker(folder);
        walk.add_custom_ignore_filename(IGNORE_FILE).require_git(false);
        let found = collect(&walk, |entry| is_note(entry.path(), format))?;
        let wing = folder.canonicalize().ok();
        let wing = wing.as_deref().and_then(Path::file_name);
        let wing = wing.map(|name| name.to_string_lossy().into_owned());
        if !found.is_empty() {
            let note = |path: PathBuf| {
                let within = path.strip_prefix(folder).unwrap_or(&path);
                ImportFile { name: within.to_string_lossy().into(), wing: wing.clone(), path }
            };
            return Ok(found.into_iter().map(note).collect());
        }
    }
    let message = format!("{} contains nothing to import", folder.display());
    Err(Failure::new(Code::NotFound, message).with_hint(
        "folders can have sessions of Claude Code (.jsonl, usually in ~/.claude/projects), Codex \
         (~/.codex/sessions) or Gemini CLI (~/.gemini/tmp), or notes (.md, .txt)",
    ))
}

fn walker(folder: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    // Links could lead anywhere.
    walk.follow_links(false).max_depth(Some(MAX_DEPTH)).sort_by_file_name(Ord::cmp);
    walk.filter_entry(|entry| entry.depth() == 0 || name_of(entry) != "subagents");
    walk
}

fn collect(
    walk: &WalkBuilder,
    is_meant: impl Fn(&DirEntry) -> bool,
) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for (at, entry) in walk.build().enumerate() {
        let entry =
            entry.map_err(|error| Failure::new(Code::BadInput, format!("cannot read: {error}")))?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && is_meant(&entry) {
            found.push(entry.into_path());
        }
        if at >= MAX_ENTRIES || found.len() > MAX_FILES {
            let message = format!("the folder has more than {MAX_FILES} files to import");
            return Err(Failure::new(Code::TooLarge, message).with_hint("name a part of it"));
        }
    }
    Ok(found)
}

fn name_of(entry: &DirEntry) -> String {
    entry.file_name().to_string_lossy().into_owned()
}

/// Sessions of Claude Code and Codex are lines; those of subagents do not talk to people.
fn is_session(name: &str, format: Option<TranscriptFormat>) -> bool {
    let is_gemini = name.starts_with("session-") && name.ends_with(".json");
    let is_lines = name.ends_with(".jsonl") && !name.starts_with("agent-");
    match format {
        Some(TranscriptFormat::Gemini) => is_gemini,
        Some(_) => is_lines,
        None => is_gemini || is_lines,
    }
}

fn is_note(path: &Path, format: Option<TranscriptFormat>) -> bool {
    let extension = path.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
    let markdown = ["md", "markdown", "mdown"];
    match (extension.as_deref(), format) {
        (Some("txt"), Some(TranscriptFormat::Markdown)) => false,
        (Some("txt"), _) => true,
        (Some(other), Some(TranscriptFormat::Text)) => other == "text",
        (Some(other), _) => markdown.contains(&other) || other == "text",
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(folder: &Path, format: Option<TranscriptFormat>) -> Vec<String> {
        let files = files_in(folder, format).unwrap();
        files.into_iter().map(|file| file.name.replace('\\', "/")).collect()
    }

    #[test]
    fn a_folder_has_sessions_or_notes() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(files_in(place.path(), None).err().unwrap().code, Code::NotFound);
        for name in
            ["b.md", "sub/a.TXT", "sub/skip.md", ".obsidian/x.md", "drafts/y.md", "image.png"]
        {
            write(name, "text");
        }
        write(".gitignore", "drafts/\n");
        write(".isolithignore", "skip.md\n");
        assert_eq!(names(place.path(), None), ["b.md", "sub/a.TXT"]);
        assert_eq!(names(place.path(), Some(TranscriptFormat::Markdown)), ["b.md"]);
        let wing = files_in(place.path(), None).unwrap().remove(0).wing;
        assert_eq!(wing.as_deref(), place.path().file_name().unwrap().to_str());

        write(".hidden/rollout-1.jsonl", "{}");
        write("subagents/2.jsonl", "{}");
        write("agent-3.jsonl", "{}");
        write("chats/session-4.json", "{}");
        assert_eq!(names(place.path(), None), ["rollout-1.jsonl", "session-4.json"]);
        assert_eq!(names(place.path(), Some(TranscriptFormat::Codex)), ["rollout-1.jsonl"]);
        assert_eq!(names(place.path(), Some(TranscriptFormat::Gemini)), ["session-4.json"]);
        assert!(files_in(place.path(), Some(TranscriptFormat::Claude)).is_err());
    }
}
