//! Claude Code sessions: one event per line.

use std::borrow::Cow;

use crate::transcript::TranscriptOptions;
use crate::transcript::json::Json;
use crate::transcript::session::Session;
use crate::transcript::turn::{ItemOutcome, NotATurn, Turn, text_of_blocks};

/// Parses the event on a line.
pub(crate) fn parse_line(
    line: Json<'_>,
    number: u64,
    session: &mut Session,
    options: &TranscriptOptions,
) -> ItemOutcome {
    match event(line, number, session, options) {
        Ok(outcome) => outcome,
        Err(reason) => ItemOutcome::Problem(reason),
    }
}

fn event(
    line: Json<'_>,
    number: u64,
    session: &mut Session,
    options: &TranscriptOptions,
) -> Result<ItemOutcome, String> {
    if !line.is_object() {
        return Err(format!("an event must be an object, found {}", line.kind()));
    }
    let keys = ["type", "message", "uuid", "sessionId", "timestamp", "cwd", "gitBranch"];
    let [kind, message, uuid, id, timestamp, cwd, branch] = line.fields(keys)?;
    if !(kind.is("user") || kind.is("assistant")) {
        return Ok(ItemOutcome::Skipped(NotATurn::Event));
    }
    let keys = ["isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage"];
    let [is_subagent, hidden @ ..] = line.fields(keys)?.map(Json::is_true);
    if is_subagent {
        return Ok(ItemOutcome::Skipped(NotATurn::Subagent));
    }
    if hidden.contains(&true) {
        return Ok(ItemOutcome::Skipped(NotATurn::Hidden));
    }
    let (id, date, cwd) = (id.some_text(), timestamp.some_text(), cwd.some_text());
    session.enter(id.as_deref(), date.as_deref(), cwd.as_deref());
    let [content, model] = message.fields(["content", "model"])?;
    if model.is("<synthetic>") {
        return Ok(ItemOutcome::Skipped(NotATurn::Hidden));
    }
    let whole = message_text(content)?;
    let said = without_reminders(&whole);
    let Some(text) = without_commands(&said) else {
        let had_text = !is_blank(&whole);
        let reason = if had_text { NotATurn::Inserted } else { NotATurn::WithoutText };
        return Ok(ItemOutcome::Skipped(reason));
    };
    let source = match (uuid.some_text(), session.id.as_str()) {
        (Some(uuid), id) if !id.is_empty() => format!("claude-code:{id}:{uuid}"),
        _ => format!("{}#{number}", options.name),
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
    Ok(turn.into_outcome(options))
}

/// The text of a message, without thinking and tool calls.
fn message_text(content: Json<'_>) -> Result<Cow<'_, str>, String> {
    if !content.is_list() && !content.is_null() {
        return content.text().map_err(|reason| format!("content {reason}"));
    }
    Ok(text_of_blocks(content)?.unwrap_or_default().into())
}

/// The text without the reminders that Claude Code adds to what was typed: those at the beginning, and
/// those that are paragraphs of their own. One without an end goes to the end of the text.
fn without_reminders(said: &str) -> Cow<'_, str> {
    const BEGIN: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut kept = String::new();
    let (mut rest, mut searched) = (said, 0);
    while let Some(found) = rest[searched..].find(BEGIN) {
        let start = searched + found;
        let after = match rest[start..].find(END) {
            Some(end) => start + end + END.len(),
            None => rest.len(),
        };
        let is_first = kept.is_empty() && is_blank(&rest[..start]);
        let begins_line = rest[..start].rsplit('\n').next().is_none_or(is_blank);
        let ends_line = rest[after..].split('\n').next().is_none_or(is_blank);
        if is_first || begins_line && ends_line {
            kept.push_str(&rest[..start]);
            (rest, searched) = (rest[after..].trim_start(), 0);
        } else {
            searched = start + BEGIN.len();
        }
    }
    match rest.len() == said.len() {
        true => said.into(),
        false => (kept + rest).trim().to_owned().into(),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The text that was typed: slash commands with their arguments as typed, without what Claude Code
/// inserts. `None` if nothing is left.
fn without_commands(said: &str) -> Option<Cow<'_, str>> {
    const INSERTED_PREFIXES: [&str; 9] = [
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-input>",
        "<bash-stdout>",
        "<bash-stderr>",
        "<task-notification>",
        "[Request interrupted by user",
        "Caveat: The messages below were generated by the user while running local commands",
    ];
    let text = said.trim_start();
    if text.is_empty() || INSERTED_PREFIXES.iter().any(|tag| text.starts_with(tag)) {
        return None;
    }
    if !text.starts_with("<command-") {
        return Some(said.into());
    }
    let (name, arguments) = (between(text, "command-name")?, between(text, "command-args")?);
    (!arguments.is_empty()).then(|| format!("{name} {arguments}").into())
}

fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    let (inner, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_are_removed_and_what_was_typed_is_kept() {
        for (said, expected) in [
            ("<system-reminder>a</system-reminder>\nFix it.", "Fix it."),
            (
                "<system-reminder>a</system-reminder>\n\n<system-reminder>b</system-reminder>Fix",
                "Fix",
            ),
            ("Fix it.\n\n<system-reminder>\na\n\nb\n</system-reminder>\n", "Fix it."),
            ("One\n<system-reminder>a</system-reminder>\nTwo", "One\nTwo"),
            ("<system-reminder>a</system-reminder>", ""),
            ("<system-reminder>without an end", ""),
            (
                "What is `<system-reminder>a</system-reminder>`?",
                "What is `<system-reminder>a</system-reminder>`?",
            ),
            ("  as typed \n", "  as typed \n"),
        ] {
            assert_eq!(without_reminders(said), expected, "{said:?}");
        }
    }
}
