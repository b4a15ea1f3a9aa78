//! Hooks: which events of an agent's session call `isolith hook`, and where that is configured.
//!
//! All four agents keep hooks in JSON, as `{"hooks": {EVENT: [entry, …]}}`. An entry is inserted as
//! the first of its list, so that the change is a single insertion; it is recognized by its command.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::{Agent, BaseFolders};
use crate::change::edit_checked;
use crate::json::{self, ListEntry};
use crate::{AgentConfig, ConfigChange, ConfigFormat, EditError, EntryAction};

/// How agents start the hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProgram {
    /// The program, as a shell takes it.
    pub command: String,
    /// Options after the event, as a shell takes them, with a space before each; or nothing.
    pub options: String,
    /// Whether to also recall for each prompt.
    pub prompts: bool,
}

/// The events of an agent: its name for each, and ours. The first is that of prompts, which is
/// optional; empty if the agent offers no context for it.
struct Events {
    prompt: &'static str,
    others: &'static [(&'static str, &'static str)],
}

const CLAUDE_CODE: Events = Events {
    prompt: "UserPromptSubmit",
    others: &[
        ("SessionStart", "session-start"),
        ("PreCompact", "pre-compact"),
        ("Stop", "stop"),
        ("SessionEnd", "session-end"),
    ],
};
const GEMINI: Events = Events {
    prompt: "BeforeAgent",
    others: &[
        ("SessionStart", "session-start"),
        ("PreCompress", "pre-compact"),
        ("AfterAgent", "stop"),
        ("SessionEnd", "session-end"),
    ],
};
const CURSOR: Events = Events {
    prompt: "",
    others: &[
        ("sessionStart", "session-start"),
        ("preCompact", "pre-compact"),
        ("stop", "stop"),
        ("sessionEnd", "session-end"),
    ],
};

/// How long an agent may wait for a hook, in seconds. Codex allows no more for `SessionEnd`.
const SECONDS: u32 = 3;

impl Agent {
    /// The file in which the agent's hooks are configured; `None` if it has no hooks that can be
    /// registered.
    pub fn hooks_config(self, folders: &BaseFolders) -> Option<AgentConfig> {
        let AgentConfig { path, folder, .. } = self.config(folders);
        let path: PathBuf = match self {
            Self::ClaudeCode => folder.join("settings.json"),
            Self::Codex | Self::Cursor => folder.join("hooks.json"),
            Self::Gemini => path,
            Self::ClaudeDesktop | Self::Windsurf | Self::Devin | Self::VsCode => return None,
        };
        let format = ConfigFormat::Json { servers: "hooks", typed: false };
        Some(AgentConfig { path, folder, format })
    }

    fn events(self) -> Option<Events> {
        match self {
            // The same names and entries.
            Self::ClaudeCode | Self::Codex => Some(CLAUDE_CODE),
            Self::Gemini => Some(GEMINI),
            Self::Cursor => Some(CURSOR),
            Self::ClaudeDesktop | Self::Windsurf | Self::Devin | Self::VsCode => None,
        }
    }

    /// The entry for an event.
    fn hook(self, event: &str, program: &HookProgram) -> Value {
        let HookProgram { command, options, .. } = program;
        let command = format!("{command} {}{options}", self.marker(event));
        match self {
            Self::Cursor => json!({ "command": command, "timeout": SECONDS }),
            Self::Gemini => {
                let timeout = SECONDS * 1_000;
                json!({ "hooks": [
                    { "command": command, "name": "isolith", "timeout": timeout, "type": "command" }
                ] })
            }
            _ => json!({ "hooks": [
                { "command": command, "timeout": SECONDS, "type": "command" }
            ] }),
        }
    }

    /// What shows that a command is ours.
    fn marker(self, event: &str) -> String {
        format!("hook {event} --client {}", self.id())
    }
}

/// Adds or updates the hooks of an agent in the text of a file; `None` stands for a missing file.
/// The hook for prompts is removed if it is not wanted.
///
/// # Errors
/// If the text is not valid, or cannot be edited without changing other parts of it.
pub fn register_hooks(
    agent: Agent,
    text: Option<&str>,
    program: &HookProgram,
) -> Result<ConfigChange, EditError> {
    let Some(events) = agent.events() else {
        return Ok(ConfigChange::unchanged(EntryAction::None));
    };
    let is_new = text.is_none_or(|text| text.trim().is_empty());
    let start = match text {
        None if agent == Agent::Cursor => NEW_CURSOR_FILE.to_owned(),
        None => "{}\n".to_owned(),
        Some(text) => text.to_owned(),
    };
    let prompt = Some((events.prompt, "prompt")).filter(|_| !events.prompt.is_empty());
    let edit = |body: &str| {
        let mut steps = Steps::new(body);
        for (name, event) in events.others.iter().copied().chain(prompt) {
            let marker = agent.marker(event);
            if event == "prompt" && !program.prompts {
                steps.remove(|text| json::remove_from_list(text, "hooks", name, &marker))?;
                continue;
            }
            let value = agent.hook(event, program);
            let entry = ListEntry { value: &value, marker: &marker };
            steps.take(|text| json::add_to_list(text, "hooks", name, &entry))?;
        }
        Ok(steps.finish())
    };
    let change = edit_checked(&start, edit, EntryAction::Unchanged)?;
    match is_new {
        true => Ok(ConfigChange { action: EntryAction::Added, ..change }),
        false => Ok(change),
    }
}

/// A new file of Cursor's hooks.
const NEW_CURSOR_FILE: &str = "{\n  \"version\": 1\n}\n";

/// Removes the hooks of an agent from the text of a file; `None` stands for a missing file.
///
/// # Errors
/// As for [`register_hooks`].
pub fn unregister_hooks(agent: Agent, text: Option<&str>) -> Result<ConfigChange, EditError> {
    let (Some(text), Some(events)) = (text, agent.events()) else {
        return Ok(ConfigChange::unchanged(EntryAction::None));
    };
    let prompt = Some((events.prompt, "prompt")).filter(|_| !events.prompt.is_empty());
    let edit = |body: &str| {
        let mut steps = Steps::new(body);
        // In the opposite order, each step undoes one of `register_hooks`.
        for (name, event) in prompt.into_iter().chain(events.others.iter().rev().copied()) {
            let marker = agent.marker(event);
            steps.remove(|text| json::remove_from_list(text, "hooks", name, &marker))?;
        }
        let mut change = steps.finish();
        if change.action == EntryAction::Updated {
            change.action = EntryAction::Removed;
        }
        if change.action == EntryAction::Unchanged {
            change.action = EntryAction::None;
        }
        Ok(change)
    };
    let change = edit_checked(text, edit, EntryAction::None)?;
    let left = change.text.as_deref().map(str::trim);
    let can_delete_file = left.is_some_and(|left| left == "{}" || left == NEW_CURSOR_FILE.trim());
    Ok(ConfigChange { can_delete_file, ..change })
}

/// Edits that follow each other.
struct Steps<'t> {
    start: &'t str,
    text: String,
    actions: Vec<EntryAction>,
}

impl<'t> Steps<'t> {
    fn new(start: &'t str) -> Self {
        Self { start, text: start.to_owned(), actions: Vec::new() }
    }

    fn take(
        &mut self,
        edit: impl FnOnce(&str) -> Result<ConfigChange, EditError>,
    ) -> Result<(), EditError> {
        let change = edit(&self.text)?;
        self.actions.push(change.action);
        if let Some(text) = change.text {
            self.text = text;
        }
        Ok(())
    }

    /// As [`Self::take`], but finding nothing to remove says nothing about the rest.
    fn remove(
        &mut self,
        edit: impl FnOnce(&str) -> Result<ConfigChange, EditError>,
    ) -> Result<(), EditError> {
        self.take(edit)?;
        self.actions.pop_if(|action| *action == EntryAction::Unchanged);
        Ok(())
    }

    /// All edits as one change.
    fn finish(self) -> ConfigChange {
        let Self { start, text, actions } = self;
        let some = |action| actions.contains(&action);
        let action = match () {
            () if text == start => EntryAction::Unchanged,
            // All of them are new.
            () if some(EntryAction::Added)
                && !some(EntryAction::Unchanged)
                && !some(EntryAction::Updated)
                && !some(EntryAction::Removed) =>
            {
                EntryAction::Added
            }
            () => EntryAction::Updated,
        };
        match action {
            EntryAction::Unchanged => ConfigChange::unchanged(action),
            action => ConfigChange::new(action, text),
        }
    }
}
