//! Rollouts of Codex: a header, then one item per line, each with a type and a payload.

use crate::transcript::TranscriptOptions;
use crate::transcript::json::Json;
use crate::transcript::session::Session;
use crate::transcript::turn::{ItemOutcome, NotATurn, Turn, text_of_blocks};

/// What Codex adds to a conversation in the name of the user.
const INSERTED_PREFIXES: [&str; 9] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
    "# AGENTS.md instructions for ",
];

/// Parses the item on a line. It has no id, so its line identifies it: rollouts only grow.
pub(crate) fn parse_line(
    line: Json<'_>,
    number: u64,
    session: &mut Session,
    options: &TranscriptOptions,
) -> ItemOutcome {
    item(line, number, session, options).unwrap_or_else(ItemOutcome::Problem)
}

fn item(
    line: Json<'_>,
    number: u64,
    session: &mut Session,
    options: &TranscriptOptions,
) -> Result<ItemOutcome, String> {
    if !line.is_object() {
        return Err(format!("an item must be an object, found {}", line.kind()));
    }
    let [kind, payload, timestamp] = line.fields(["type", "payload", "timestamp"])?;
    let date = timestamp.some_text();
    if kind.is("session_meta") {
        begin(payload, date.as_deref(), session)?;
        return Ok(ItemOutcome::Skipped(NotATurn::Event));
    }
    if kind.is("turn_context") {
        let [model] = payload.fields(["model"])?;
        session.model = model.some_text().map(Into::into).unwrap_or_default();
    }
    if !kind.is("response_item") {
        // What was said is repeated as events for the screen.
        return Ok(ItemOutcome::Skipped(NotATurn::Event));
    }
    let [kind, role, content] = payload.fields(["type", "role", "content"])?;
    if !kind.is("message") {
        return Ok(ItemOutcome::Skipped(NotATurn::WithoutText));
    }
    if !(role.is("user") || role.is("assistant")) {
        return Ok(ItemOutcome::Skipped(NotATurn::Hidden));
    }
    let text = text_of_blocks(content)?.unwrap_or_default();
    let begins = text.trim_start();
    if role.is("user") && INSERTED_PREFIXES.iter().any(|prefix| begins.starts_with(prefix)) {
        return Ok(ItemOutcome::Skipped(NotATurn::Inserted));
    }
    let role = if role.is("user") { "user" } else { "assistant" };
    let turn = Turn {
        text: &text,
        speaker: Some(role),
        source: match session.id.as_str() {
            "" => format!("{}#{number}", options.name),
            id => format!("codex:{id}:{number}"),
        },
        wing: session.wing.as_deref(),
        rooms: [Some(&session.room), None],
        date: date.as_deref(),
        notes: vec![
            ("role", role),
            ("session", &session.id),
            ("branch", &session.branch),
            ("model", if role == "user" { "" } else { &session.model }),
        ],
    };
    Ok(turn.into_outcome(options))
}

/// Reads the header of a rollout.
fn begin(header: Json<'_>, date: Option<&str>, session: &mut Session) -> Result<(), String> {
    let [id, cwd, git, started] = header.fields(["id", "cwd", "git", "timestamp"])?;
    let started = started.some_text();
    session.enter(
        id.some_text().as_deref(),
        started.as_deref().or(date),
        cwd.some_text().as_deref(),
    );
    let [branch] = git.fields(["branch"])?;
    session.branch = branch.some_text().map(Into::into).unwrap_or_default();
    Ok(())
}
