use std::fmt::Write;
use std::path::Path;

use isolith_setup::EntryAction;
use isolith_types::{Failure, counted};
use serde::Serialize;

use super::step::AgentSetup;
use crate::output::Paint;

/// The JSON document of the command.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    agents: Vec<AgentReport<'a>>,
    written: bool,
}

#[derive(Serialize)]
struct AgentReport<'a> {
    agent: &'static str,
    path: &'a Path,
    found: bool,
    action: &'static str,
    diff: Option<&'a str>,
    error: Option<&'a Failure>,
}

pub(super) fn report(steps: &[AgentSetup], written: bool) -> Report<'_> {
    let agents = steps.iter().map(|step| AgentReport {
        agent: step.agent.id(),
        path: &step.config.path,
        found: step.found,
        action: step.action().map_or("failed", EntryAction::id),
        diff: Some(step.diff()).filter(|diff| !diff.is_empty()),
        error: step.failure(),
    });
    Report { agents: agents.collect(), written }
}

/// The changes that will be made, as diffs.
pub(super) fn preview(steps: &[AgentSetup], paint: &Paint) -> String {
    let mut text = String::new();
    for step in steps {
        let path = step.config.path.display();
        let what = match step.action() {
            None => format!("cannot edit {path}"),
            Some(_) if !step.found && step.diff().is_empty() => "not found".to_owned(),
            Some(EntryAction::Added) => format!("add to {path}"),
            Some(EntryAction::Updated) => format!("update in {path}"),
            Some(EntryAction::Removed) => format!("remove from {path}"),
            Some(EntryAction::Unchanged) => format!("already registered in {path}"),
            Some(EntryAction::None) => format!("not registered in {path}"),
        };
        let _ = writeln!(text, "{}: {what}", paint.name(step.agent.name()));
        for line in step.diff().lines() {
            let line = match line.as_bytes().first() {
                Some(b'+') => paint.found(line),
                Some(b'-') => paint.warning(line),
                _ => paint.faint(line),
            };
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// A summary of what was done.
pub(super) fn outcome(steps: &[AgentSetup], pending: bool, written: usize) -> String {
    if written > 0 {
        let files = counted(written, "file");
        return format!("{files} written. Restart agents that are running.\n");
    }
    if steps.iter().any(|step| step.found) || pending {
        return "Nothing was written.\n".to_owned();
    }
    "No agents found. Use --agent to set one up anyway.\n".to_owned()
}
