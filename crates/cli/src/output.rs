//! Where words go: results to standard output, everything else to standard error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::Mutex;

use isolith_types::{Code, Failure};
use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::logs::LogFiles;
use crate::terminal::{self, Guarded, Kind};

/// What is written to files: each worker's start, end and trouble.
const WORKERS_LIVES: &str = "isolate=debug,isolith_engine=debug,isolith_serve=info";

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

    /// Starts logging to standard error, with the user's filter unless flags give another,
    /// and for a long-running command also to the store's files.
    pub(crate) fn start_log(&self, filter: Option<&str>, files: Option<LogFiles>) {
        let filter = EnvFilter::new(match self.verbose {
            0 => filter.unwrap_or("off"),
            1 => "warn",
            2 => "debug",
            _ => "trace",
        });
        let to_terminal = tracing_subscriber::fmt::layer()
            .with_writer(terminal::stderr)
            // It would complain of a closed stderr on stderr, and panic.
            .log_internal_errors(false)
            // Its colours would be told from those in a file's name by nothing.
            .with_ansi(false)
            .with_filter(filter);
        let to_files = files.map(|files| {
            tracing_subscriber::fmt::layer()
                .json()
                .with_writer(Mutex::new(files))
                .log_internal_errors(false)
                .with_filter(EnvFilter::new(WORKERS_LIVES))
        });
        tracing_subscriber::registry().with(to_terminal).with(to_files).init();
    }

    /// Whether the result is to be one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nothing is to be said beside results and failures.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether progress may be drawn over and over.
    pub(crate) fn draws_progress(&self) -> bool {
        !self.quiet && self.verbose == 0 && io::stderr().is_terminal()
    }

    /// Whether progress is told in lines.
    pub(crate) fn tells_progress(&self) -> bool {
        !self.quiet && !self.draws_progress()
    }

    /// Tells progress in a line. A reader that has gone away is not an error.
    pub(crate) fn progress(&self, line: &str) {
        terminal::tell(line);
    }

    /// Prints a result: as JSON where that was asked for, else as text.
    pub(crate) fn result(&self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        match self.json {
            true => {
                let document = serde_json::to_string(document);
                let document = document.map_err(|error| unwritten(&error))?;
                print(&(document + "\n"), Kind::Json)
            }
            false => print(text, Kind::Text),
        }
    }

    /// Prints text for people before the result is there; nothing where that is to be JSON.
    pub(crate) fn show(&self, text: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { self.result(&(), text) }
    }

    /// Asks for consent. `None` where nobody can give it.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let _ = write!(terminal::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    /// Prints a JSON document a line.
    pub(crate) fn lines<T: Serialize>(&self, documents: &[T]) -> Result<(), Failure> {
        let mut text = String::new();
        for document in documents {
            text += &serde_json::to_string(document).map_err(|error| unwritten(&error))?;
            text.push('\n');
        }
        self.json_lines(&text)
    }

    /// Prints lines that are JSON documents already.
    pub(crate) fn json_lines(&self, text: &str) -> Result<(), Failure> {
        print(text, Kind::Json)
    }

    /// Tells people what they should know beside the result.
    pub(crate) fn note(&self, line: &str) {
        terminal::tell(&format!("isolith: {line}"));
    }

    /// How results for people are drawn.
    pub(crate) fn paint(&self) -> Paint {
        let terminal = io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let size = terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        Paint { coloured: terminal && !plain, width }
    }

    /// Tells people why something failed.
    pub(crate) fn complain(&self, failure: &Failure) {
        terminal::tell(&format!("isolith: {}", failure.message));
        if let Some(hint) = &failure.hint {
            terminal::tell(&format!("  {}", hint.for_terminal()));
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

/// Standard output for a result that is written in parts. It remembers whether its reader
/// closed the pipe, as `head` does: that ends the output, but it is not an error.
pub(crate) struct ResultStream {
    out: BufWriter<Guarded<Stdout>>,
    is_closed: bool,
}

impl ResultStream {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { out: BufWriter::new(terminal::stdout(kind)), is_closed: false }
    }

    /// Ends the output. Whatever the writer made of a closed pipe, the outcome is a success.
    pub(crate) fn finish(mut self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let flushed = self.flush().map_err(|error| unwritten(&error));
        if self.is_closed { Ok(()) } else { outcome.and(flushed) }
    }

    fn note<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        self.is_closed |=
            written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written
    }
}

impl Write for ResultStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

fn print(text: &str, kind: Kind) -> Result<(), Failure> {
    let mut out = ResultStream::new(kind);
    let written = out.write_all(text.as_bytes()).map_err(|error| unwritten(&error));
    out.finish(written)
}

/// The failure to write a result.
pub(crate) fn unwritten(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("cannot write the result: {error}"))
}

/// Colours and widths, where there is a terminal that shows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    coloured: bool,
    width: Option<usize>,
}

impl Paint {
    pub(crate) fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// Where something is.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.dress(text, "1;36")
    }

    /// What something is called.
    pub(crate) fn name(&self, text: &str) -> String {
        self.dress(text, "1")
    }

    /// What was looked for.
    pub(crate) fn found(&self, text: &str) -> String {
        self.dress(text, "1;33")
    }

    /// What matters less.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.dress(text, "2")
    }

    /// What should not be overlooked.
    pub(crate) fn warning(&self, text: &str) -> String {
        self.dress(text, "31")
    }

    /// A line that fits beside `used` columns, as far as that can be told.
    pub(crate) fn fit(&self, line: &str, used: usize) -> String {
        let Some(room) = self.width.map(|width| width.saturating_sub(used).max(20)) else {
            return line.to_owned();
        };
        if line.chars().count() <= room {
            return line.to_owned();
        }
        line.chars().take(room - 1).chain(['…']).collect()
    }

    fn dress(&self, text: &str, code: &str) -> String {
        if self.coloured { terminal::style(text, code) } else { text.to_owned() }
    }
}
