//! Flags of servers.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use isolith_engine::{Scope, Surroundings, find_store};
use isolith_serve::{HttpOptions, ServerOptions, Token};
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
    /// Stop a question or a write that takes longer than so many seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
}

#[derive(Args)]
pub(super) struct TypedServe {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    listen: SocketAddr,
    /// A file with the token that clients have to show, readable by its owner alone
    /// [default: ISOLITH_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name that clients know the server by, beside its address; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Keep no sessions: every request stands for itself
    #[arg(long)]
    stateless: bool,
    /// Have the fixtures of the conformance suite too, in builds that have them
    #[arg(long, hide = true)]
    conformance: bool,
    #[command(flatten)]
    common: TypedMcp,
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
        let logs = logs.map(|store| store.path().to_owned());
        let deadline = Duration::from_secs(self.timeout);
        Ok(ServePlan { options: ServerOptions { surroundings, allowed, deadline }, logs })
    }
}

impl TypedServe {
    pub(super) fn plan(
        self,
        surroundings: Surroundings,
    ) -> Result<(ServePlan, HttpOptions), Failure> {
        let token = match &self.token_file {
            Some(file) => Some(read_token(file)?),
            None => std::env::var("ISOLITH_TOKEN").ok().filter(|token| !token.is_empty()),
        };
        let token = token.as_deref().map(Token::new).transpose()?;
        let http = HttpOptions {
            listen: self.listen,
            token,
            hosts: self.hosts,
            stateless: self.stateless,
            conformance: self.conformance,
        };
        Ok((self.common.plan(surroundings)?, http))
    }
}

fn read_token(file: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Code::Usage, format!("{} cannot be read: {error}", file.display()))
    };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let message = format!("others than its owner may read {}", file.display());
        return Err(
            Failure::new(Code::Usage, message).with_hint(format!("chmod 600 {}", file.display()))
        );
    }
    std::fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(unreadable)
}
