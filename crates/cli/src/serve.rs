//! `isolith mcp` and `isolith serve`.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use isolate::Signals;
use isolith_serve::{HttpOptions, Server, ServerOptions};
use isolith_types::Failure;
use serde_json::json;

use crate::output::Output;
use crate::session::{DRAIN, setup};

/// How long clients are told goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

pub(crate) fn mcp(options: ServerOptions) -> Result<ExitCode, Failure> {
    let (runtime, signals) = setup()?;
    let server = Server::new(options);
    let serving = async {
        let served = server.serve_stdio().await;
        server.close().await;
        served
    };
    runtime.block_on(until_signalled(&server, signals, serving))
}

pub(crate) fn http(
    options: ServerOptions,
    http: &HttpOptions,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let (runtime, signals) = setup()?;
    let server = Server::new(options);
    let serving = async {
        let listening = server.listen(http).await?;
        let url = format!("http://{}/mcp", listening.address()?);
        // A server has no result but that it is there; people read that beside its log.
        output.result(&json!({ "url": url }), "")?;
        if !output.is_quiet() {
            output.progress(&format!("serving {url}"));
        }
        let served = listening.serve().await;
        server.close().await;
        served
    };
    runtime.block_on(until_signalled(&server, signals, serving))
}

/// Serves until it is over or a signal comes. After the first one, calls that run are
/// still answered; the second one ends everything at once.
async fn until_signalled(
    server: &Server,
    mut signals: Signals,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Result<ExitCode, Failure> {
    let mut serving = pin!(serving);
    let signal = tokio::select! {
        served = &mut serving => return served.map(|()| ExitCode::SUCCESS),
        signal = signals.next() => signal,
    };
    server.begin_drain(DRAIN);
    let orderly = async {
        tokio::select! {
            _ = &mut serving => return,
            () = server.drained() => {}
        }
        server.stop();
        let _ = tokio::time::timeout(GOODBYE, &mut serving).await;
    };
    tokio::select! {
        () = orderly => {}
        _ = signals.next() => {}
        () = tokio::time::sleep(DRAIN + GOODBYE) => {}
    }
    server.kill();
    Ok(ExitCode::from(signal.exit_status()))
}
