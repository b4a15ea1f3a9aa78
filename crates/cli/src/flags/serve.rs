//! Flags of servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use isolith_config::{Key, Settings, parse_disk_size};
use isolith_engine::{MIN_DISK_FREE, Secret, StorePlace, StoreScope, find_store};
use isolith_serve::{
    AlertLimits, AlertOptions, DefaultLimits, HttpOptions, Listen, ServerOptions, Token,
    ToolSelection,
};
use isolith_types::{Code, DatabaseName, Failure, Hint};

use super::settings::{Context, limit_of, unusable, variable};
use super::typed::database;

/// Maximum number of authenticated connections. The limit on open files may allow fewer.
const CONNECTIONS: usize = 2048;

/// Where a server listens by default.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7411);

/// Where it listens by default for clients of Chroma, which is where they look for a server.
const CHROMA_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

/// Where `isolith ui` listens by default.
const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How long one call may take by default, in seconds.
const DEFAULT_TIMEOUT: u64 = 30;

/// The percentage of failed jobs that is normal, and the minutes over which it is counted.
const DEFAULT_FAILURE_PERCENT: u64 = 5;
const DEFAULT_ALERT_MINUTES: u64 = 5;

/// How to run a server.
pub(crate) struct ServePlan {
    pub(crate) options: ServerOptions,
    /// The store that its log is written to.
    pub(crate) logs: Option<StorePlace>,
}

/// How to serve over HTTP.
pub(crate) struct HttpPlan {
    pub(crate) options: HttpOptions,
    pub(crate) token: TokenSource,
    pub(crate) alerts: AlertOptions,
    /// Whether to show how clients of Chroma connect.
    pub(crate) chroma: bool,
    /// The process whose end stops the server.
    pub(crate) owner: Option<u32>,
    pub(crate) pages: Pages,
}

/// What is done about the pages when the server has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Nothing: people who open them enter the token.
    Served,
    /// A link that signs in is printed.
    Printed,
    /// It is printed and opened in the browser.
    Opened,
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
    /// Also allow tools to read files in this folder; may be repeated
    #[arg(long, value_name = "DIR")]
    allow: Vec<PathBuf>,
    /// Time limit of a call in seconds [default: server.timeout, or 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: Option<u64>,
    /// Database whose collections tools see [default: default_database]
    #[arg(long, value_name = "[TENANT/]NAME", value_parser = database)]
    database: Option<DatabaseName>,
    /// Tools to offer: default, all, or groups separated by commas: code, graph, memory, facts,
    /// collections, admin
    ///
    /// By default those are listed that most requests need, and the others can be called by name.
    /// With groups, no other tools can be called.
    #[arg(long, value_name = "TOOLS", default_value = "default")]
    tools: ToolSelection,
}

#[derive(Args)]
pub(super) struct TypedServe {
    /// Address to listen on: ADDRESS:PORT or unix:PATH [default: server.listen, or
    /// 127.0.0.1:7411, with --chroma 127.0.0.1:8000]
    ///
    /// Port 0 takes a free port. A Unix socket can only be used by you, and needs no token.
    #[arg(long, help_heading = "Server", value_name = "ADDRESS")]
    listen: Option<Listen>,
    /// File with the token that clients must send
    ///
    /// Only its owner may be able to read it. By default the token is that of ISOLITH_TOKEN or
    /// server.token_file, else one that is generated once and kept in
    /// $XDG_STATE_HOME/isolith/token.
    #[arg(long, help_heading = "Server", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Require no token (loopback addresses only)
    ///
    /// Every user and program on this machine can then read and change what is stored.
    #[arg(long, help_heading = "Server", conflicts_with = "token_file")]
    no_token: bool,
    /// Host name that clients may use for the server; may be repeated
    #[arg(long = "host", help_heading = "Server", value_name = "NAME")]
    hosts: Vec<String>,
    /// Listen on port 8000 by default, and show how clients of Chroma connect
    ///
    /// Chroma's API is served at /api/v2 with and without this flag.
    #[arg(long, help_heading = "Server")]
    chroma: bool,
    /// Let clients of Chroma's API delete all collections, databases and tenants at once
    ///
    /// The code index, memory, facts and the graph stay.
    #[arg(long, help_heading = "Server")]
    allow_reset: bool,
    /// Keep no sessions: every request is independent
    #[arg(long, help_heading = "Server")]
    stateless: bool,
    /// Stop when the process with this id ends
    ///
    /// For programs that start a server of their own. Running calls are cancelled.
    #[arg(long, help_heading = "Server", value_name = "PID")]
    exit_with: Option<u32>,
    /// Also serve the fixtures of the conformance suite, in builds that have them
    #[arg(long, hide = true)]
    conformance: bool,
    #[command(flatten)]
    alerts: TypedAlerts,
    #[command(flatten)]
    common: TypedMcp,
}

#[derive(Args)]
pub(super) struct TypedUi {
    /// Loopback address to listen on: ADDRESS:PORT [default: 127.0.0.1 and a free port]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Only print the URL
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    common: TypedMcp,
}

impl TypedUi {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<(ServePlan, HttpPlan), Failure> {
        let address = self.listen.unwrap_or(FREE_PORT);
        if !address.ip().is_loopback() {
            let message = format!("{address} is not a loopback address");
            return Err(Failure::new(Code::Usage, message)
                .with_hint("`isolith serve` has the pages as well, and listens on any address"));
        }
        let listen = Listen::Tcp(address);
        let (source, token) = required_token(None, context)?;
        let users = context.users()?;
        let options = HttpOptions {
            listen,
            token: Some(Token::new(&token)?),
            hosts: users.list(Key::ServerHosts),
            stateless: false,
            conformance: false,
            allow_reset: false,
            connections: CONNECTIONS,
        };
        let http = HttpPlan {
            options,
            token: source,
            alerts: TypedAlerts::default().plan(&users)?,
            chroma: false,
            owner: None,
            pages: if self.no_browser { Pages::Printed } else { Pages::Opened },
        };
        Ok((self.common.plan(context)?, http))
    }
}

/// Alerts for whoever looks after the server.
#[derive(Args, Default)]
struct TypedAlerts {
    /// Program to start when something is wrong, with its arguments [default:
    /// server.alert_command]
    ///
    /// No shell reads the line; quotes keep words together. The alert is JSON on standard input and
    /// in environment variables (ISOLITH_ALERT_CAUSE, ISOLITH_ALERT_MESSAGE, ...). At most once per
    /// cause and hour.
    #[arg(long, help_heading = "Alerts", value_name = "COMMAND")]
    alert_command: Option<String>,
    /// URL to post the alert to as JSON, http:// only [default: server.alert_webhook]
    #[arg(long, help_heading = "Alerts", value_name = "URL")]
    alert_webhook: Option<String>,
    /// Alert when more than this percentage of jobs fails [default: server.alert_failure_rate, or
    /// 5]
    #[arg(long, help_heading = "Alerts", value_name = "PERCENT",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    alert_failure_rate: Option<u64>,
    /// Minutes over which failed jobs are counted [default: server.alert_minutes, or 5]
    #[arg(long, help_heading = "Alerts", value_name = "MINUTES",
          value_parser = clap::value_parser!(u64).range(1..=1_440))]
    alert_minutes: Option<u64>,
    /// Alert when the disk of a store has less free space than this, such as 10G [default:
    /// server.alert_disk_free, or 1G]
    #[arg(long, help_heading = "Alerts", value_name = "SIZE", value_parser = parse_disk_size)]
    alert_disk_free: Option<u64>,
}

impl TypedAlerts {
    fn plan(self, users: &Settings) -> Result<AlertOptions, Failure> {
        Ok(AlertOptions {
            command: hook(self.alert_command, users, Key::ServerAlertCommand)?,
            webhook: hook(self.alert_webhook, users, Key::ServerAlertWebhook)?,
            limits: AlertLimits {
                failure_percent: self
                    .alert_failure_rate
                    .or(users.number(Key::ServerAlertFailureRate))
                    .unwrap_or(DEFAULT_FAILURE_PERCENT),
                window: Duration::from_secs(
                    60 * self
                        .alert_minutes
                        .or(users.number(Key::ServerAlertMinutes))
                        .unwrap_or(DEFAULT_ALERT_MINUTES),
                ),
                disk_free: self
                    .alert_disk_free
                    .or(users.number(Key::ServerAlertDiskFree))
                    .unwrap_or(MIN_DISK_FREE),
            },
        })
    }
}

/// Whom to tell: from the flag, else the setting.
fn hook<T: FromStr<Err = Failure>>(
    flag: Option<String>,
    users: &Settings,
    key: Key,
) -> Result<Option<T>, Failure> {
    if let Some(text) = flag {
        return text.parse().map(Some);
    }
    let set = users.text(key).map(str::parse).transpose();
    set.map_err(|error: Failure| unusable(users, key, &error.message))
}

impl TypedMcp {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<ServePlan, Failure> {
        let here = context.here_if_possible()?;
        let real = |name: &str, folder: &Path| {
            std::fs::canonicalize(folder).map_err(|error| {
                Failure::new(Code::NotFound, format!("{name} {}: {error}", folder.display()))
            })
        };
        let typed = self.allow.iter().map(|folder| real("--allow", folder));
        let set = here.list(Key::ServerAllow);
        let set = set.iter().map(|folder| real("server.allow", Path::new(folder)));
        let allowed = typed.chain(set).collect::<Result<_, _>>()?;
        let surroundings = context.surroundings(false)?;
        let logs = find_store(&surroundings, StoreScope::User).ok();
        let timeout = self.timeout.or(here.number(Key::ServerTimeout)).unwrap_or(DEFAULT_TIMEOUT);
        let options = ServerOptions {
            surroundings,
            allowed,
            deadline: Duration::from_secs(timeout),
            settings: context.layers()?.clone(),
            database: self.database.unwrap_or_default(),
            tools: self.tools,
            defaults: DefaultLimits {
                results: limit_of(&here, Key::LimitsResults),
                rows: limit_of(&here, Key::LimitsRows),
            },
        };
        Ok(ServePlan { options, logs })
    }
}

impl TypedServe {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<(ServePlan, HttpPlan), Failure> {
        let users = context.users()?;
        let listen = match (&self.listen, users.text(Key::ServerListen)) {
            (Some(listen), _) => listen.clone(),
            (None, Some(text)) => text
                .parse()
                .map_err(|error: Failure| unusable(&users, Key::ServerListen, &error.message))?,
            (None, None) if self.chroma => Listen::Tcp(CHROMA_ADDRESS),
            (None, None) => Listen::Tcp(DEFAULT_ADDRESS),
        };
        let (source, token) = self.token(context, &listen)?;
        let options = HttpOptions {
            listen,
            token: token.as_deref().map(Token::new).transpose()?,
            hosts: self.hosts.into_iter().chain(users.list(Key::ServerHosts)).collect(),
            stateless: self.stateless,
            conformance: self.conformance,
            allow_reset: self.allow_reset,
            connections: CONNECTIONS,
        };
        let alerts = self.alerts.plan(&users)?;
        let (chroma, owner) = (self.chroma, self.exit_with);
        let pages = Pages::Served;
        let http = HttpPlan { options, token: source, alerts, chroma, owner, pages };
        Ok((self.common.plan(context)?, http))
    }

    /// A token that was given is required everywhere. Otherwise a Unix socket needs none.
    fn token(
        &self,
        context: &Context<'_>,
        listen: &Listen,
    ) -> Result<(TokenSource, Option<String>), Failure> {
        if self.no_token {
            return Ok((TokenSource::None, None));
        }
        if let Some((source, token)) = given_token(self.token_file.as_deref(), context)? {
            return Ok((source, Some(token)));
        }
        if matches!(listen, Listen::Unix(_)) {
            return Ok((TokenSource::None, None));
        }
        let (source, token) = generated_token(context)?;
        Ok((source, Some(token)))
    }
}

fn required_token(
    file: Option<&Path>,
    context: &Context<'_>,
) -> Result<(TokenSource, String), Failure> {
    match given_token(file, context)? {
        Some(given) => Ok(given),
        None => generated_token(context),
    }
}

/// The token from a file, the environment or the settings.
fn given_token(
    file: Option<&Path>,
    context: &Context<'_>,
) -> Result<Option<(TokenSource, String)>, Failure> {
    if let Some(file) = file {
        return Ok(Some((TokenSource::File(file.to_owned()), read_token(file)?)));
    }
    if let Some(token) = variable("ISOLITH_TOKEN") {
        let token = token
            .into_string()
            .map_err(|_| Failure::new(Code::Usage, "ISOLITH_TOKEN is not valid UTF-8"))?;
        return Ok(Some((TokenSource::Environment, token)));
    }
    if let Some(file) = context.users()?.text(Key::ServerTokenFile) {
        let file = PathBuf::from(file);
        let token = read_token(&file)?;
        return Ok(Some((TokenSource::File(file), token)));
    }
    Ok(None)
}

fn generated_token(context: &Context<'_>) -> Result<(TokenSource, String), Failure> {
    let folder = context.surroundings(false)?.state_folder().map_err(without_secret)?;
    let file = folder.join("token");
    let token = Secret::load_or_create(&file).map_err(without_secret)?.to_hex();
    Ok((TokenSource::Generated(file, token.clone()), token))
}

/// Replaces hints about ISOLITH_SECRET_FILE, which has no effect on the token's file.
fn without_secret(failure: Failure) -> Failure {
    match failure.hint {
        Some(Hint::NameSecretFile { .. }) => failure.with_hint(
            "set a token with --token-file or ISOLITH_TOKEN, or use a Unix socket: \
             --listen unix:PATH",
        ),
        _ => failure,
    }
}

fn read_token(file: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Code::Usage, format!("cannot read {}: {error}", file.display()))
    };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let message = format!("other users can read {}", file.display());
        return Err(
            Failure::new(Code::Usage, message).with_hint(format!("chmod 600 {}", file.display()))
        );
    }
    std::fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(unreadable)
}
