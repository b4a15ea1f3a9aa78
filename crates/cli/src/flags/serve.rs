//! Flags of servers.

use std::path::PathBuf;

use clap::Args;
use isolith_engine::{Scope, Surroundings, find_store};
use isolith_serve::ServerOptions;
use isolith_types::{Code, Failure};

/// What a server is to do.
pub(crate) struct ServePlan {
    pub(crate) options: ServerOptions,
    /// The store that has its log.
    pub(crate) logs: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct TypedMcp {
    /// Let tools name files below this folder too, beside the project's; may be repeated
    #[arg(long, value_name = "DIR")]
    allow: Vec<PathBuf>,
}

impl TypedMcp {
    pub(super) fn plan(self, surroundings: Surroundings) -> Result<ServePlan, Failure> {
        let real = |folder: &PathBuf| {
            std::fs::canonicalize(folder).map_err(|error| {
                let message = format!("--allow {}: {error}", folder.display());
                Failure::new(Code::NotFound, message)
            })
        };
        let allowed = self.allow.iter().map(real).collect::<Result<_, _>>()?;
        let logs = find_store(&surroundings, Scope::User).ok();
        Ok(ServePlan { options: ServerOptions { surroundings, allowed }, logs })
    }
}
