//! Flags of `isolith hook`.

use clap::Args;
use isolith_engine::{StoreScope, find_store};
use isolith_types::{Code, Failure};

use super::settings::Context;
use crate::hook::{Client, HookCommand, HookPlan};

#[derive(Args)]
pub(super) struct TypedHook {
    /// What happened: session-start, prompt, pre-compact, stop or session-end; the names that
    /// clients use are understood, too
    #[arg(value_name = "EVENT", required_unless_present = "work")]
    event: Option<String>,
    /// The client: claude-code, codex, gemini or cursor
    #[arg(long, value_name = "NAME", default_value = "claude-code")]
    client: String,
    /// Save what is waiting, then end
    #[arg(long, hide = true, conflicts_with = "event")]
    work: bool,
}

impl TypedHook {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<HookPlan, Failure> {
        let surroundings = context.surroundings(false)?;
        let state = surroundings.state_folder()?;
        let store = find_store(&surroundings, StoreScope::User)?;
        let client = Client::named(&self.client).ok_or_else(|| {
            Failure::new(Code::Usage, format!("unknown client {:?}", self.client))
        })?;
        let what = match self.event {
            Some(event) => HookCommand::Report { event, client },
            None => HookCommand::Work,
        };
        Ok(HookPlan { what, store, state })
    }
}
