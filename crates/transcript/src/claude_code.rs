//! A session of Claude Code: an event in each line.

use std::borrow::Cow;

use isolith_types::Moment;
use serde::{Deserialize, Serialize};

use crate::Plan;
use crate::json::Json;
use crate::turn::{Part, Turn, words_of};

/// What its first line says of a session, for all of them: the folder may change while
/// it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Session {
    id: String,
    wing: Option<String>,
    room: String,
}

/// Reads the event of a line.
pub(crate) fn part(line: Json<'_>, number: u64, session: &mut Session, plan: &Plan) -> Part {
    match event(line, number, session, plan) {
        Ok(part) => part,
        Err(reason) => Part::Problem(reason),
    }
}

fn event(line: Json<'_>, number: u64, session: &mut Session, plan: &Plan) -> Result<Part, String> {
    if !line.is_object() {
        return Err(format!("an event must be an object, found {}", line.kind()));
    }
    let keys = ["type", "message", "uuid", "sessionId", "timestamp", "cwd", "gitBranch"];
    let [kind, message, uuid, id, timestamp, cwd, branch] = line.fields(keys)?;
    if !(kind.is("user") || kind.is("assistant")) {
        return Ok(Part::Skipped);
    }
    let keys = ["isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage"];
    if line.fields(keys)?.iter().any(|flag| flag.is_true()) {
        return Ok(Part::Skipped);
    }
    let (id, date, cwd) = (id.some_text(), timestamp.some_text(), cwd.some_text());
    session.enter(id.as_deref(), date.as_deref(), cwd.as_deref());
    let [content, model] = message.fields(["content", "model"])?;
    if model.is("<synthetic>") {
        return Ok(Part::Skipped);
    }
    let said = spoken(content)?;
    let Some(text) = without_commands(&said) else { return Ok(Part::Skipped) };
    let source = match (uuid.some_text(), session.id.as_str()) {
        (Some(uuid), id) if !id.is_empty() => format!("claude-code:{id}:{uuid}"),
        _ => format!("{}#{number}", plan.name),
    };
    let role = if kind.is("user") { "user" } else { "assistant" };
    let (model, branch) = (model.some_text(), branch.some_text());
    let turn = Turn {
        text: &text,
        speaker: Some(role),
        source,
        wing: session.wing.as_deref(),
        rooms: [Some(&session.room), None],
        date: date.as_deref(),
        notes: vec![
            ("role", role),
            ("session", &session.id),
            ("folder", cwd.as_deref().unwrap_or("")),
            ("branch", branch.as_deref().unwrap_or("")),
            ("model", model.as_deref().unwrap_or("")),
        ],
    };
    Ok(turn.into_part(plan))
}

impl Session {
    /// Takes an event that may be the first of another session.
    fn enter(&mut self, id: Option<&str>, date: Option<&str>, cwd: Option<&str>) {
        let id = id.unwrap_or("");
        if self.id == id && !self.room.is_empty() {
            return;
        }
        let start = date.and_then(|date| date.parse::<Moment>().ok());
        let day = start.map(|start| Moment::day_of(start.start()).to_string());
        let short: String = id.chars().take(8).collect();
        let named: Vec<&str> = day
            .as_deref()
            .into_iter()
            .chain([short.as_str()])
            .filter(|it| !it.is_empty())
            .collect();
        *self = Self { id: id.to_owned(), wing: cwd.and_then(folder_name), room: named.join(" ") };
    }
}

/// The last name of a path, as any system writes it.
fn folder_name(path: &str) -> Option<String> {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    name.filter(|name| !name.is_empty() && !name.ends_with(':')).map(str::to_owned)
}

/// What a message says in words: text, and neither thoughts nor tools.
fn spoken(content: Json<'_>) -> Result<Cow<'_, str>, String> {
    if !content.is_list() && !content.is_null() {
        return content.text().map_err(|reason| format!("content {reason}"));
    }
    Ok(words_of(content)?.unwrap_or_default().into())
}

/// What people typed: a command with its words as they were typed, nothing of what the
/// program put in between.
fn without_commands(said: &str) -> Option<Cow<'_, str>> {
    const NOT_SAID: [&str; 9] = [
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-input>",
        "<bash-stdout>",
        "<bash-stderr>",
        "<system-reminder>",
        "<task-notification>",
        "[Request interrupted by user",
    ];
    let text = said.trim_start();
    if text.is_empty() || NOT_SAID.iter().any(|tag| text.starts_with(tag)) {
        return None;
    }
    if !text.starts_with("<command-") {
        return Some(said.into());
    }
    let (name, words) = (between(text, "command-name")?, between(text, "command-args")?);
    (!words.is_empty()).then(|| format!("{name} {words}").into())
}

fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    let (inner, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(inner.trim())
}
