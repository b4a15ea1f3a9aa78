//! Flags of servers.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use isolith_engine::{Scope, Secret, StorePlace, Surroundings, find_store};
use isolith_serve::{HttpOptions, Listen, ServerOptions, Token};
use isolith_types::{Code, Failure};

use super::meaning::variable;

/// How many connections of clients with a token are wanted. The limit on open files may
/// allow fewer.
const CONNECTIONS: usize = 2048;

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  isolith serve
  isolith serve --listen unix:$XDG_RUNTIME_DIR/isolith.sock
  isolith serve --listen 0.0.0.0:7411 --host box.lan --token-file ~/isolith-token
  curl -H \"Authorization: Bearer $(cat ~/.local/state/isolith/token)\" \\
      http://127.0.0.1:7411/mcp";

/// What a server is to do.
pub(crate) struct ServePlan {
    pub(crate) options: ServerOptions,
    /// The store that has its log.
    pub(crate) logs: Option<StorePlace>,
}

/// Where and to whom a server answers, and how its clients learn the token.
pub(crate) struct HttpPlan {
    pub(crate) options: HttpOptions,
    pub(crate) token: TokenSource,
}

/// Where the token comes from.
pub(crate) enum TokenSource {
    /// None is required.
    None,
    /// The file that the user named.
    File(PathBuf),
    /// `ISOLITH_TOKEN`.
    Environment,
    /// The file in the user's state folder, created if there was none; and the token.
    Generated(PathBuf, String),
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
    /// Where to listen: ADDRESS:PORT (port 0 takes a free one), or unix:PATH for a socket
    /// that only you can use and that needs no token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    listen: Listen,
    /// A file with the token that clients have to send, readable by its owner alone
    /// [default: ISOLITH_TOKEN, else a token that is generated once and kept in
    /// $XDG_STATE_HOME/isolith/token]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Require no token: every user and program of this machine can read what is stored;
    /// only on a loopback address
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,
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
        let deadline = Duration::from_secs(self.timeout);
        Ok(ServePlan { options: ServerOptions { surroundings, allowed, deadline }, logs })
    }
}

impl TypedServe {
    pub(super) fn plan(self, surroundings: Surroundings) -> Result<(ServePlan, HttpPlan), Failure> {
        let (source, token) = self.token(&surroundings)?;
        let options = HttpOptions {
            listen: self.listen,
            token: token.as_deref().map(Token::new).transpose()?,
            hosts: self.hosts,
            stateless: self.stateless,
            conformance: self.conformance,
            connections: CONNECTIONS,
        };
        Ok((self.common.plan(surroundings)?, HttpPlan { options, token: source }))
    }

    /// A token that was given is required everywhere. Otherwise a Unix socket needs none.
    fn token(&self, surroundings: &Surroundings) -> Result<(TokenSource, Option<String>), Failure> {
        if self.no_token {
            return Ok((TokenSource::None, None));
        }
        if let Some(file) = &self.token_file {
            return Ok((TokenSource::File(file.clone()), Some(read_token(file)?)));
        }
        if let Some(token) = variable("ISOLITH_TOKEN") {
            let token = token
                .into_string()
                .map_err(|_| Failure::new(Code::Usage, "ISOLITH_TOKEN is not valid UTF-8"))?;
            return Ok((TokenSource::Environment, Some(token)));
        }
        if matches!(self.listen, Listen::Unix(_)) {
            return Ok((TokenSource::None, None));
        }
        let file = surroundings.state_folder().map_err(without_secret)?.join("token");
        let token = Secret::load_or_create(&file).map_err(without_secret)?;
        let token = token.to_hex();
        Ok((TokenSource::Generated(file, token.clone()), Some(token)))
    }
}

/// The token's file cannot be moved as the other secret's can.
fn without_secret(failure: Failure) -> Failure {
    match failure.hint.contains("ISOLITH_SECRET_FILE") {
        true => failure.with_hint(
            "give a token with --token-file or ISOLITH_TOKEN, or listen on a Unix socket with \
             --listen unix:PATH",
        ),
        false => failure,
    }
}

fn read_token(file: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Code::Usage, format!("cannot read {}: {error}", file.display()))
    };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let message = format!("{} can be read by other users", file.display());
        return Err(
            Failure::new(Code::Usage, message).with_hint(format!("chmod 600 {}", file.display()))
        );
    }
    std::fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(unreadable)
}
