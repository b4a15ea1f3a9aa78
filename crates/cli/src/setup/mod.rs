//! `isolith setup`: registers the server with agents, after showing what that changes.

mod file;
mod show;
mod step;

use std::process::ExitCode;

use isolith_setup::{Agent, BaseFolders, HookProgram, ServerEntry};
use isolith_types::{Code, Failure};

use crate::output::Output;
use step::AgentSetup;

/// Which agents to set up, and how.
pub(crate) struct SetupPlan {
    /// The agents that were named; if none was, all that are found.
    pub(crate) agents: Vec<Agent>,
    /// Where agents keep their configuration.
    pub(crate) folders: BaseFolders,
    pub(crate) what: SetupKind,
    /// Whether to remove the entry.
    pub(crate) undo: bool,
    /// Whether to only show the changes.
    pub(crate) dry_run: bool,
    /// Whether to skip the confirmation.
    pub(crate) yes: bool,
}

/// What to register.
pub(crate) enum SetupKind {
    /// The server, with how agents start it.
    Server(ServerEntry),
    /// Hooks, with how agents start them.
    Hooks(HookProgram),
}

pub(crate) fn run(plan: &SetupPlan, output: &Output) -> Result<ExitCode, Failure> {
    let named = |agent: &Agent| plan.agents.is_empty() || plan.agents.contains(agent);
    let agents = Agent::ALL.into_iter().filter(named);
    let mut steps: Vec<AgentSetup> =
        agents.filter_map(|agent| AgentSetup::prepare(agent, plan)).collect();
    output.show(&show::preview(&steps, &output.paint()))?;

    let pending = steps.iter().any(AgentSetup::is_pending);
    let consent = match plan {
        _ if !pending || plan.dry_run => Some(false),
        _ if plan.yes => Some(true),
        _ => output.ask("Write these changes?"),
    };
    let mut written = 0;
    if consent == Some(true) {
        for step in steps.iter_mut().filter(|step| step.is_pending()) {
            written += usize::from(step.carry_out());
        }
    }
    output.result(&show::report(&steps, written > 0), &show::outcome(&steps, pending, written))?;

    let failures: Vec<&Failure> = steps.iter().filter_map(AgentSetup::failure).collect();
    failures.iter().for_each(|failure| output.complain(failure));
    let unanswered = Failure::new(Code::Usage, "confirmation needed; nothing was written")
        .with_hint(
            "run it again with --yes to write these changes, or with --dry-run to only show them",
        );
    let failure = match consent {
        None => {
            output.complain(&unanswered);
            Some(&unanswered)
        }
        Some(_) => failures.first().copied(),
    };
    Ok(failure.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.code.exit_status())))
}
