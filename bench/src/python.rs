//! Rivals written in Python: a process that reads one line of JSON per round and answers with one.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::samples::Samples;

/// A script of `rivals/`; `running` is `None` if it could not be run.
pub(crate) struct Python {
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// `None` once it was told to exit.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Round {
    nanoseconds: Vec<u64>,
}

impl Python {
    pub(crate) fn start(script: &str) -> Self {
        Self { running: Running::start(script).ok() }
    }

    /// Runs one round. A rival that fails is skipped from then on; our own figures are still
    /// reported.
    pub(crate) fn round(&mut self, order: &Value) -> Option<Samples> {
        let round = self.running.as_mut()?.round(order);
        if let Err(error) = &round {
            eprintln!("bench: skipping a rival in Python: {error}");
            self.running = None;
        }
        round.ok()
    }
}

impl Running {
    fn start(script: &str) -> io::Result<Self> {
        let mut child = Command::new("python3")
            .arg(rival(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut running = Self { child, input: Some(input), output: BufReader::new(output) };
        // Wait until it has started, so that its start does not disturb a measurement.
        running.answer()?;
        Ok(running)
    }

    fn round(&mut self, order: &Value) -> io::Result<Samples> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{order}")?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Samples> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let round: Round = serde_json::from_str(&line)?;
        let samples = round.nanoseconds.into_iter();
        Ok(samples.map(Duration::from_nanos).collect())
    }
}

/// The path of a file in `rivals/`.
pub(crate) fn rival(file: &str) -> PathBuf {
    // Without Cargo, the program must be started from the root of the repository.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "bench".into());
    PathBuf::from(package).join("rivals").join(file)
}

impl Drop for Running {
    fn drop(&mut self) {
        // It exits at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
