//! `isolith mcp`, `isolith serve` and `isolith ui`.

use std::future::pending;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use isolate::{OtherProcess, Signals};
use isolith_serve::{Listen, Server, ServerOptions};
use isolith_types::{Code, Failure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::browser;
use crate::flags::{HttpPlan, Pages, TokenSource};
use crate::output::Output;
use crate::session::{DRAIN, setup};
use crate::terminal;

/// How long clients have to disconnect.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long running calls may take when the process that the server was started for has ended.
const ORPHANED: Duration = Duration::from_millis(300);

/// What people read below the link to the pages.
const PAGES_GREETING: &str = "open this link in a browser; it works once, within five minutes\n\
                              Ctrl-C stops the server";

/// Open files that are not authenticated connections: other connections, workers, watched
/// folders, logs.
const OTHER_FILES: u64 = 512;

/// Minimum number of connections, however low the limit on open files is.
const FEWEST: usize = 16;

pub(crate) fn mcp(options: ServerOptions) -> Result<ExitCode, Failure> {
    let (runtime, signals) = setup()?;
    let server = Server::new(options);
    let serving = async {
        say_if_database_is_missing(&server).await;
        let served = server.serve_stdio().await;
        server.close().await;
        served
    };
    runtime.block_on(until_signalled(&server, signals, None, serving))
}

pub(crate) fn http(
    options: ServerOptions,
    mut plan: HttpPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    plan.options.connections = affordable(plan.options.connections);
    let (runtime, signals) = setup()?;
    let server = Server::new(options);
    let serving = async {
        let listening = server.listen(&plan.options)?;
        let url = listening.url()?;
        server.watch_for_alerts(plan.alerts.clone());
        say_if_database_is_missing(&server).await;
        let shown = io::stderr().is_terminal();
        match plan.pages {
            Pages::Served => {
                // The result says only that the server runs; people read it next to the log.
                output.result(&announcement(&url, &plan), "")?;
                if !output.is_quiet() {
                    output.progress(&greeting(&url, &plan, shown));
                }
            }
            Pages::Printed | Pages::Opened => {
                let link = listening.sign_in_url()?;
                output.result(&json!({ "url": link }), &format!("{link}\n"))?;
                if !output.is_quiet() {
                    output.progress(PAGES_GREETING);
                }
                if plan.pages == Pages::Opened {
                    browser::open(&link, output);
                }
            }
        }
        listening.serve().await;
        server.close().await;
        Ok(())
    };
    runtime.block_on(async {
        let owner = plan.owner.map(watch_owner).transpose()?;
        until_signalled(&server, signals, owner, serving).await
    })
}

/// Only Chroma's API creates databases, so a misspelled name is not one that calls create.
async fn say_if_database_is_missing(server: &Server) {
    if let Some(database) = server.missing_database().await {
        terminal::tell(&format!(
            "isolith: there is no database {database}; calls for collections fail until a client of \
             Chroma's API creates it"
        ));
    }
}

/// The process that the server was started for.
fn watch_owner(pid: u32) -> Result<OtherProcess, Failure> {
    OtherProcess::watch(pid).map_err(|error| {
        Failure::new(Code::NotFound, format!("cannot watch the process {pid}: {error}"))
            .with_hint("--exit-with takes the id of a running process")
    })
}

/// As many connections as the limit on open files allows. Raises the limit if necessary.
fn affordable(connections: usize) -> usize {
    let wanted = connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let mut current = current.unwrap_or(u64::MAX);
    if current < wanted {
        let raised = maximum.unwrap_or(u64::MAX).min(wanted);
        if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
            current = raised;
        }
    }
    let left = usize::try_from(current.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    connections.min(left.max(FEWEST))
}

fn announcement(url: &str, plan: &HttpPlan) -> Value {
    let mut document = json!({ "url": url });
    if let Listen::Unix(path) = &plan.options.listen {
        document["socket"] = json!(path);
    }
    if let TokenSource::Generated(file, _) | TokenSource::File(file) = &plan.token {
        document["token_file"] = json!(file);
    }
    document
}

/// The text for people. The token itself is only shown on a terminal: other output may be
/// stored and read by others.
fn greeting(url: &str, plan: &HttpPlan, at_terminal: bool) -> String {
    let place = match &plan.options.listen {
        Listen::Tcp(_) => url.to_owned(),
        Listen::Unix(path) => format!("{url} on the socket {}", path.display()),
    };
    let token = match &plan.token {
        TokenSource::None if matches!(plan.options.listen, Listen::Unix(_)) => {
            "no token needed: only you can use the socket".to_owned()
        }
        TokenSource::None => {
            "warning: no token is required; every user and program on this machine can read and change what is stored"
                .to_owned()
        }
        TokenSource::File(file) => format!("clients need the token in {}", file.display()),
        TokenSource::Environment => "clients need the token in ISOLITH_TOKEN".to_owned(),
        TokenSource::Generated(_, token) if at_terminal => format!(
            "clients need this header:\n  Authorization: Bearer {token}\nfor example:\n  \
             claude mcp add --transport http isolith {url} --header 'Authorization: Bearer {token}'"
        ),
        TokenSource::Generated(file, _) => {
            format!("clients need the token in {}", file.display())
        }
    };
    let python = match &plan.options.listen {
        Listen::Tcp(_) if plan.chroma => in_python(url, &plan.token, at_terminal),
        _ => String::new(),
    };
    let pages = match &plan.options.listen {
        Listen::Tcp(_) => format!("\nin a browser: {}", url.trim_end_matches("mcp")),
        Listen::Unix(_) => String::new(),
    };
    format!("serving {place}\n{token}{pages}{python}")
}

/// How Chroma's Python client connects.
fn in_python(url: &str, token: &TokenSource, at_terminal: bool) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "80"));
    let host = host.trim_matches(['[', ']']);
    let token = match token {
        TokenSource::None => None,
        TokenSource::Generated(_, token) if at_terminal => Some(format!("\"Bearer {token}\"")),
        TokenSource::Generated(file, _) | TokenSource::File(file) => {
            Some(format!("\"Bearer \" + open({:?}).read().strip()", file.display().to_string()))
        }
        TokenSource::Environment => Some("\"Bearer \" + os.environ[\"ISOLITH_TOKEN\"]".to_owned()),
    };
    let headers = token.map(|token| format!(", headers={{\"Authorization\": {token}}}"));
    let headers = headers.unwrap_or_default();
    format!(
        "\nin Python:\n  import chromadb\n  client = chromadb.HttpClient(host=\"{host}\", \
         port={port}{headers})"
    )
}

/// Serves until the end, a signal, or the end of the owner. After the first signal, running calls
/// are still answered; the second one stops everything at once.
async fn until_signalled(
    server: &Server,
    mut signals: Signals,
    owner: Option<OtherProcess>,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Result<ExitCode, Failure> {
    let mut serving = pin!(serving);
    let (status, budget) = tokio::select! {
        served = &mut serving => return served.map(|()| ExitCode::SUCCESS),
        signal = signals.next() => (signal.exit_status(), DRAIN),
        () = ended(owner.as_ref()) => (0, ORPHANED),
    };
    server.begin_drain(budget);
    let drained = async {
        tokio::select! {
            _ = &mut serving => true,
            () = server.drained() => false,
        }
    };
    let has_ended = tokio::select! {
        has_ended = drained => Some(has_ended),
        // Workers are killed at the end of the drain, which takes a moment.
        () = tokio::time::sleep(budget + GOODBYE.min(budget)) => Some(false),
        _ = signals.next() => None,
    };
    server.kill();
    if has_ended == Some(false) {
        server.stop();
        tokio::select! {
            _ = tokio::time::timeout(GOODBYE.min(budget), &mut serving) => {}
            _ = signals.next() => {}
        }
    }
    Ok(ExitCode::from(status))
}

/// Waits for the end of the owner, if there is one.
async fn ended(owner: Option<&OtherProcess>) {
    match owner {
        Some(owner) if owner.ended().await.is_ok() => {}
        _ => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use isolith_serve::{AlertLimits, AlertOptions, HttpOptions};

    use super::*;

    #[test]
    fn the_token_is_shown_at_a_terminal_only() {
        let plan = |listen: &str, token| HttpPlan {
            options: HttpOptions {
                listen: listen.parse().unwrap(),
                token: None,
                hosts: Vec::new(),
                stateless: false,
                conformance: false,
                allow_reset: false,
                connections: 1,
            },
            token,
            alerts: AlertOptions {
                command: None,
                webhook: None,
                limits: AlertLimits {
                    failure_percent: 5,
                    window: Duration::from_secs(300),
                    disk_free: 1,
                },
            },
            chroma: false,
            owner: None,
            pages: Pages::Served,
        };
        let url = "http://127.0.0.1:7411/mcp";
        let made = plan(
            "127.0.0.1:7411",
            TokenSource::Generated("/state/isolith/token".into(), "c0ffee".to_owned()),
        );
        assert!(greeting(url, &made, true).contains("\n  Authorization: Bearer c0ffee\n"));
        let unseen = greeting(url, &made, false);
        assert!(!unseen.contains("c0ffee") && unseen.contains("/state/isolith/token"), "{unseen}");
        assert_eq!(
            announcement(url, &made),
            json!({ "url": url, "token_file": "/state/isolith/token" })
        );
        let python = greeting(url, &HttpPlan { chroma: true, ..made }, false);
        let expected = "  client = chromadb.HttpClient(host=\"127.0.0.1\", port=7411, \
             headers={\"Authorization\": \"Bearer \" + open(\"/state/isolith/token\").read().strip()})";
        assert!(python.ends_with(expected) && !python.contains("c0ffee"), "{python}");
        let open = greeting(url, &plan("127.0.0.1:7411", TokenSource::None), true);
        assert!(open.contains("warning"), "{open}");
        let socket = plan("unix:/run/me/i.sock", TokenSource::None);
        let text = greeting("http://localhost/mcp", &socket, true);
        assert!(text.contains("/run/me/i.sock") && !text.contains("warning"), "{text}");
    }
}
