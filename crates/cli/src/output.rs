//! Where words go: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use isolith_types::{Code, Failure};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

/// How a command speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    verbose: u8,
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: &'a Failure,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, verbose: u8) -> Self {
        Self { json, quiet, verbose }
    }

    /// The way a command speaks that was asked for JSON and no more is known of.
    pub(crate) fn json() -> Self {
        Self::new(true, false, 0)
    }

    pub(crate) fn start_log(&self) {
        let level = match self.verbose {
            0 => "off",
            1 => "warn",
            2 => "debug",
            _ => "trace",
        };
        let asked = std::env::var("ISOLITH_LOG").ok().filter(|filter| !filter.is_empty());
        let filter = EnvFilter::new(asked.as_deref().unwrap_or(level));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr)
            // It would complain of a closed stderr on stderr, and panic.
            .log_internal_errors(false)
            .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .init();
    }

    /// Whether progress may be drawn over and over.
    pub(crate) fn draws_progress(&self) -> bool {
        !self.quiet && self.verbose == 0 && io::stderr().is_terminal()
    }

    /// Whether progress is told in lines.
    pub(crate) fn tells_progress(&self) -> bool {
        !self.quiet && !self.draws_progress()
    }

    /// Tells progress in a line. A reader that has gone away is no error.
    pub(crate) fn progress(&self, line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Prints a result: as JSON where that was asked for, else as text. A reader
    /// that has gone away is no error; a full disk is one.
    pub(crate) fn result(&self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        let lost = |error: io::Error| {
            Failure::new(Code::Failed, format!("the result cannot be written: {error}"))
        };
        let text = match self.json {
            true => serde_json::to_string(document).map_err(|error| lost(error.into()))? + "\n",
            false => text.to_owned(),
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(lost(error)),
            _ => Ok(()),
        }
    }

    /// Tells people why something failed.
    pub(crate) fn complain(&self, failure: &Failure) {
        let mut err = io::stderr().lock();
        let _ = writeln!(err, "isolith: {}", failure.message);
        if !failure.hint.is_empty() {
            let _ = writeln!(err, "  {}", failure.hint);
        }
    }

    /// Says why a command failed.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.complain(failure);
        if self.json {
            // If that cannot be written either, the exit code must do.
            let _ = self.result(&ErrorDocument { error: failure }, "");
        }
    }
}
