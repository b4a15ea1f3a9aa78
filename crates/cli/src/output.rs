//! Output: results to standard output, everything else to standard error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::Path;
use std::sync::Mutex;

use isolith_types::{Code, Degraded, Failure, Hint, quoted};
use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::logs::LogFiles;
use crate::terminal::{self, Guarded, TextKind};

/// Log filter for files: starts, exits and errors of workers.
const WORKER_LOG_FILTER: &str =
    "isolate=debug,isolith_engine=debug,isolith_serve=info,isolith::hook=info";

/// How a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    verbose: u8,
    /// `--store` as it was typed, to be repeated in commands that hints name.
    store: Option<&'static str>,
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: &'a Failure,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, verbose: u8) -> Self {
        Self { json, quiet, verbose, store: None }
    }

    /// Repeats `--store` in the commands that hints name.
    pub(crate) fn with_store(self, store: Option<&Path>) -> Self {
        let named = |store: &Path| &*format!("--store {}", quoted(&store.to_string_lossy())).leak();
        Self { store: store.map(named), ..self }
    }

    /// What to do about something, in the words of the terminal.
    pub(crate) fn hint(&self, hint: &Hint) -> String {
        let words = hint.for_terminal();
        self.store.map_or_else(|| words.clone(), |store| repeat_store(&words, store))
    }

    /// Why an answer is incomplete, in the words of the terminal.
    pub(crate) fn degraded(&self, degraded: &Degraded) -> String {
        let words = degraded.worded(Hint::for_terminal);
        self.store.map_or_else(|| words.clone(), |store| repeat_store(&words, store))
    }

    /// The failure as it is shown, with hints that name the store.
    pub(crate) fn failure(&self, failure: &Failure) -> Failure {
        let hint = failure.hint.as_ref().map(|hint| Hint::Text(self.hint(hint)));
        Failure { hint, ..failure.clone() }
    }

    /// Output for a command line that could not be parsed but asked for JSON.
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
            // It would panic if standard error is closed.
            .log_internal_errors(false)
            // Its escape sequences could not be told from those in file names.
            .with_ansi(false)
            .with_filter(filter);
        let to_files = files.map(|files| {
            tracing_subscriber::fmt::layer()
                .json()
                .with_writer(Mutex::new(files))
                .log_internal_errors(false)
                .with_filter(EnvFilter::new(WORKER_LOG_FILTER))
        });
        tracing_subscriber::registry().with(to_terminal).with(to_files).init();
    }

    /// Whether the result is one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether to print only results and errors.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether to draw progress bars.
    pub(crate) fn draws_progress(&self) -> bool {
        !self.quiet && self.verbose == 0 && io::stderr().is_terminal()
    }

    /// Whether to print progress as lines.
    pub(crate) fn prints_progress(&self) -> bool {
        !self.quiet && !self.draws_progress()
    }

    /// Prints a line of progress. A closed pipe is not an error.
    pub(crate) fn progress(&self, line: &str) {
        terminal::tell(line);
    }

    /// Prints a result, as JSON if requested, otherwise as text.
    pub(crate) fn result(&self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        match self.json {
            true => {
                let document = serde_json::to_string(document);
                let document = document.map_err(|error| unwritten(&error))?;
                print(&(document + "\n"), TextKind::Json)
            }
            false => print(text, TextKind::Text),
        }
    }

    /// Prints text before the result is known; nothing with `--json`.
    pub(crate) fn show(&self, text: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { self.result(&(), text) }
    }

    /// Asks for confirmation. `None` without a terminal.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        self.show_question(question).then(read_answer).flatten()
    }

    /// Prints a question for [`read_answer`], if there is a terminal to answer it.
    pub(crate) fn show_question(&self, question: &str) -> bool {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        write!(terminal::stderr(), "{question} [y/N] ").is_ok()
    }

    /// Prints one JSON document per line.
    pub(crate) fn lines<T: Serialize>(&self, documents: &[T]) -> Result<(), Failure> {
        let mut text = String::new();
        for document in documents {
            text += &serde_json::to_string(document).map_err(|error| unwritten(&error))?;
            text.push('\n');
        }
        self.json_lines(&text)
    }

    /// Prints text that already consists of JSON lines.
    pub(crate) fn json_lines(&self, text: &str) -> Result<(), Failure> {
        print(text, TextKind::Json)
    }

    /// Prints a note for people to standard error.
    pub(crate) fn note(&self, line: &str) {
        terminal::tell(&format!("isolith: {line}"));
    }

    /// Colours and width for printing results to people.
    pub(crate) fn paint(&self) -> Paint {
        let terminal = io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let size = terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        Paint { coloured: terminal && !plain, width }
    }

    /// Prints an error to standard error.
    pub(crate) fn complain(&self, failure: &Failure) {
        terminal::tell(&format!("isolith: {}", failure.message));
        if let Some(hint) = &failure.hint {
            terminal::tell(&format!("  {}", self.hint(hint)));
        }
    }

    /// Prints why a command failed, with `--json` also as a document.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.complain(failure);
        if self.json {
            // If this fails too, there is still the exit code.
            let _ = self.result(&ErrorDocument { error: &self.failure(failure) }, "");
        }
    }
}

/// Adds the store to commands in backticks that do not name one.
fn repeat_store(words: &str, store: &str) -> String {
    let mut text = String::new();
    for (at, part) in words.split('`').enumerate() {
        if at > 0 {
            text.push('`');
        }
        text.push_str(part);
        // Every second part is within backticks.
        if at % 2 == 1 && part.starts_with("isolith ") && !part.contains("--store") {
            text.push(' ');
            text.push_str(store);
        }
    }
    text
}

/// Standard output for a result that is written in parts. It remembers whether its reader
/// closed the pipe, as `head` does: that ends the output, but it is not an error.
pub(crate) struct ResultStream {
    out: BufWriter<Guarded<Stdout>>,
    is_closed: bool,
}

impl ResultStream {
    pub(crate) fn new(kind: TextKind) -> Self {
        Self { out: BufWriter::new(terminal::stdout(kind)), is_closed: false }
    }

    /// Ends the output. A closed pipe counts as success, whatever the writer returned.
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

fn print(text: &str, kind: TextKind) -> Result<(), Failure> {
    let mut out = ResultStream::new(kind);
    let written = out.write_all(text.as_bytes()).map_err(|error| unwritten(&error));
    out.finish(written)
}

/// The error for a result that cannot be written.
pub(crate) fn unwritten(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("cannot write the result: {error}"))
}

/// Colours and width of the terminal, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    coloured: bool,
    width: Option<usize>,
}

impl Paint {
    pub(crate) fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// For locations.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.styled(text, "1;36")
    }

    /// For names.
    pub(crate) fn name(&self, text: &str) -> String {
        self.styled(text, "1")
    }

    /// For matches.
    pub(crate) fn found(&self, text: &str) -> String {
        self.styled(text, "1;33")
    }

    /// For less important text.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.styled(text, "2")
    }

    /// For warnings.
    pub(crate) fn warning(&self, text: &str) -> String {
        self.styled(text, "31")
    }

    /// Cuts a line to the width left after `used` columns, if the width is known.
    pub(crate) fn fit(&self, line: &str, used: usize) -> String {
        let Some(room) = self.width.map(|width| width.saturating_sub(used).max(20)) else {
            return line.to_owned();
        };
        if line.chars().count() <= room {
            return line.to_owned();
        }
        line.chars().take(room - 1).chain(['…']).collect()
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.coloured { terminal::style(text, code) } else { text.to_owned() }
    }
}

/// Waits for a line on standard input that confirms or declines.
pub(crate) fn read_answer() -> Option<bool> {
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_repeat_the_store_that_was_given() {
        let output = Output::json().with_store(Some(Path::new("my store")));
        let folder = "/a b".to_owned();
        let table = [
            (Hint::RepairStore, "run `isolith doctor --repair --store 'my store'`"),
            (
                Hint::ResumeIndexing { folder },
                "`isolith index '/a b' --store 'my store'` resumes it",
            ),
            (Hint::AllowFolder, "start the server with --allow DIR to add a folder"),
            ("free some space".into(), "free some space"),
        ];
        for (hint, expected) in table {
            assert_eq!(output.hint(&hint), expected);
        }
        let adopt = Hint::AdoptStore { store: "/s".to_owned(), project: None };
        assert_eq!(output.hint(&adopt), adopt.for_terminal());
        assert_eq!(Output::json().hint(&Hint::RepairStore), Hint::RepairStore.for_terminal());
    }
}
