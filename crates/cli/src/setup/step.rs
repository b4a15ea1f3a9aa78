use std::path::Path;

use isolith_setup::{
    Agent, AgentConfig, ConfigChange, EntryAction, diff, register, register_hooks, unregister,
    unregister_hooks,
};
use isolith_types::Failure;

use super::file::ConfigFile;
use super::{SetupKind, SetupPlan};

/// The setup of one agent.
pub(super) struct AgentSetup {
    pub(super) agent: Agent,
    pub(super) config: AgentConfig,
    /// Whether the agent seems to be installed.
    pub(super) found: bool,
    outcome: Result<Prepared, Failure>,
}

struct Prepared {
    change: ConfigChange,
    /// The file as it was when the change was computed; `None` if there is nothing to do.
    file: Option<ConfigFile>,
    diff: String,
}

impl AgentSetup {
    /// Determines the change; `None` if the agent has no hooks. Writes nothing.
    pub(super) fn prepare(agent: Agent, plan: &SetupPlan) -> Option<Self> {
        let config = match plan.what {
            SetupKind::Server(_) => agent.config(&plan.folders),
            SetupKind::Hooks(_) => agent.hooks_config(&plan.folders)?,
        };
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let found = exists(&config.path) || exists(&config.folder);
        let wanted = found || !plan.agents.is_empty();
        let outcome = if wanted { prepare(agent, &config, plan) } else { Ok(Prepared::nothing()) };
        Some(Self { agent, config, found, outcome })
    }

    /// Whether there is a change to write.
    pub(super) fn is_pending(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|prepared| prepared.file.is_some())
    }

    /// Writes the change. If that fails, returns false and records the failure.
    pub(super) fn carry_out(&mut self) -> bool {
        let Ok(prepared) = &self.outcome else { return false };
        let (Some(file), Some(text)) = (&prepared.file, &prepared.change.text) else {
            return false;
        };
        let result = match prepared.change.can_delete_file {
            true => file.remove_or_write(text),
            false => file.write(text),
        };
        match result {
            Ok(()) => true,
            Err(failure) => {
                self.outcome = Err(failure);
                false
            }
        }
    }

    /// The kind of change, or `None` if it failed.
    pub(super) fn action(&self) -> Option<EntryAction> {
        self.outcome.as_ref().ok().map(|prepared| prepared.change.action)
    }

    /// The change as a diff; empty if there is none.
    pub(super) fn diff(&self) -> &str {
        self.outcome.as_ref().map_or("", |prepared| &prepared.diff)
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        self.outcome.as_ref().err()
    }
}

impl Prepared {
    fn nothing() -> Self {
        let change = ConfigChange { action: EntryAction::None, text: None, can_delete_file: false };
        Self { change, file: None, diff: String::new() }
    }
}

fn prepare(agent: Agent, config: &AgentConfig, plan: &SetupPlan) -> Result<Prepared, Failure> {
    let file = ConfigFile::read(&config.path)?;
    let change = match (&plan.what, plan.undo) {
        (SetupKind::Server(entry), false) => register(config.format, file.text(), entry),
        (SetupKind::Server(_), true) => unregister(config.format, file.text()),
        (SetupKind::Hooks(program), false) => register_hooks(agent, file.text(), program),
        (SetupKind::Hooks(_), true) => unregister_hooks(agent, file.text()),
    };
    let change = change.map_err(|error| {
        let mut failure = Failure::from(&error);
        failure.message = format!("cannot edit {}: {error}", config.path.display());
        failure
    })?;
    let Some(text) = &change.text else { return Ok(Prepared { change, ..Prepared::nothing() }) };
    file.check_writable()?;
    let delete = change.can_delete_file && file.is_deletable();
    let diff = diff(file.text().unwrap_or_default(), if delete { "" } else { text });
    Ok(Prepared { change, file: Some(file), diff })
}
