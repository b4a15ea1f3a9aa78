//! `isolith hook`: what agents' clients call when a session begins, pauses and ends.
//!
//! A hook must neither delay nor fail the session: every error goes to the log, and the exit status is
//! always 0. Saving is left to one background process per store (`background.rs`), which finds what to
//! do in a queue on disk (`queue.rs`) and remembers in marks (`mark.rs`) what it has done.

mod background;
mod input;
mod mark;
mod queue;
mod reply;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use isolith_engine::{EngineOptions, MemorySearch, StorePlace, project_names};
use isolith_serve::{WAKE_UP_BUDGET, recalled, wake_up};
use isolith_types::{Code, Failure};

use crate::output::Output;
use crate::session::Session;
use input::HookInput;
use queue::{Queue, Saving};
pub(crate) use reply::Client;

/// What a client reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    SessionStart,
    Prompt,
    PreCompact,
    Stop,
    SessionEnd,
}

impl Event {
    /// The event with this name, as any of the clients writes it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        Some(match plain.as_str() {
            "sessionstart" => Self::SessionStart,
            "userpromptsubmit" | "beforesubmitprompt" | "beforeagent" => Self::Prompt,
            "precompact" | "precompress" => Self::PreCompact,
            "stop" | "afteragent" => Self::Stop,
            "sessionend" => Self::SessionEnd,
            _ => return None,
        })
    }
}

/// A hook to run.
pub(crate) struct HookPlan {
    pub(crate) what: HookCommand,
    pub(crate) store: StorePlace,
    /// Where queues and marks are kept: outside every store.
    pub(crate) state: PathBuf,
}

pub(crate) enum HookCommand {
    /// Reports an event of a client.
    Report { event: String, client: Client },
    /// Does what is in the queue.
    Work,
}

/// How long the client's input may take to arrive, and an answer to be found.
const INPUT_TIME: Duration = Duration::from_secs(1);
const ANSWER_TIME: Duration = Duration::from_millis(1_500);

/// How much is recalled for a prompt, in tokens.
const PROMPT_BUDGET: u32 = 400;

/// Maximum number of drawers recalled for a prompt.
const PROMPT_HITS: u32 = 5;

/// Runs a hook. Always succeeds: a client would show or act on anything else.
pub(crate) fn run(plan: &HookPlan, output: &Output) -> ExitCode {
    let done = match &plan.what {
        HookCommand::Report { event, client } => report(plan, event, *client, output),
        HookCommand::Work => background::run(plan),
    };
    if let Err(failure) = done {
        tracing::error!(%failure, "hook failed");
    }
    ExitCode::SUCCESS
}

fn report(plan: &HookPlan, event: &str, client: Client, output: &Output) -> Result<(), Failure> {
    let event = Event::named(event).ok_or_else(|| {
        Failure::new(Code::Usage, format!("unknown event {event:?} of {}", client.id()))
    })?;
    let input = HookInput::read(io::stdin(), INPUT_TIME);
    let text = match (event, &input) {
        (Event::SessionStart, Ok(input)) => known(plan, input),
        (Event::Prompt, Ok(input)) => recall(plan, input),
        _ => Ok(None),
    };
    // A client may wait for an answer even if there is nothing to say.
    let said = text.as_ref().ok().and_then(Option::as_deref);
    output.show(&reply::reply(client, event, said))?;
    let input = input?;
    let queue = Queue::open(&plan.state, &plan.store)?;
    let saves = matches!(event, Event::PreCompact | Event::Stop | Event::SessionEnd);
    if let (true, Some(transcript)) = (saves, &input.transcript) {
        let (transcript, folder) = (transcript.clone(), input.folder.clone());
        queue.add(&Saving { client, transcript, folder })?;
    }
    // Also finishes what was interrupted before.
    if !queue.is_empty()? {
        background::start(plan)?;
    }
    text.map(drop)
}

/// What is worth knowing about the project when a session begins.
fn known(plan: &HookPlan, input: &HookInput) -> Result<Option<String>, Failure> {
    let names = project_names(&input.folder);
    let woken = with_engine(plan, async |engine| wake_up(engine, &names, WAKE_UP_BUDGET).await)?;
    Ok(woken.map(|woken| woken.text))
}

/// What memory has that fits a prompt well.
fn recall(plan: &HookPlan, input: &HookInput) -> Result<Option<String>, Failure> {
    let Some(prompt) = &input.prompt else { return Ok(None) };
    let search = MemorySearch::new(prompt, PROMPT_HITS);
    let found = with_engine(plan, async |engine| engine.search_memory(&search).await)?;
    Ok(found.and_then(|found| recalled(&found, PROMPT_BUDGET)))
}

/// Asks the store; `None` if there is none.
fn with_engine<T>(
    plan: &HookPlan,
    ask: impl AsyncFnOnce(&isolith_engine::Engine) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let options = EngineOptions { deadline: ANSWER_TIME, ..EngineOptions::default() };
    let mut session = match Session::open(&plan.store, options) {
        Err(failure) if failure.code == Code::NoStore => return Ok(None),
        session => session?,
    };
    let late = || Failure::new(Code::Timeout, "memory did not answer in time");
    let answered = session.run(async |engine| {
        tokio::time::timeout(ANSWER_TIME, ask(engine)).await.map_err(|_| late())?
    });
    // `run` has closed the session if it failed.
    let answer = answered?;
    session.close();
    Ok(Some(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_by_the_names_of_all_clients() {
        for (name, event) in [
            ("SessionStart", Event::SessionStart),
            ("sessionStart", Event::SessionStart),
            ("session-start", Event::SessionStart),
            ("UserPromptSubmit", Event::Prompt),
            ("BeforeAgent", Event::Prompt),
            ("PreCompact", Event::PreCompact),
            ("PreCompress", Event::PreCompact),
            ("stop", Event::Stop),
            ("AfterAgent", Event::Stop),
            ("session-end", Event::SessionEnd),
        ] {
            assert_eq!(Event::named(name), Some(event), "{name}");
        }
        assert_eq!(Event::named("PreToolUse"), None);
    }
}
