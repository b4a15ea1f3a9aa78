//! The rivals that are written in Python: a process that takes one line of JSON
//! for each round and answers with one.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::samples::Samples;

/// A script of `rivals/`, or nothing if it could not be run.
pub(crate) struct Python {
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// `None` once it was told to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Round {
    nanoseconds: Vec<u64>,
}

impl Python {
    pub(crate) fn start(script: &str) -> Self {
        Self { running: Running::start(script).ok() }
    }

    /// Has the script do one round. A rival that fails is not available from then
    /// on: our own figures are still worth having.
    pub(crate) fn round(&mut self, order: &Value) -> Option<Samples> {
        let round = self.running.as_mut()?.round(order);
        if let Err(error) = &round {
            eprintln!("bench: a rival in Python cannot take part: {error}");
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
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut running = Self { child, orders: Some(orders), answers: BufReader::new(answers) };
        // It says that it is there, so that its start disturbs no measurement.
        running.answer()?;
        Ok(running)
    }

    fn round(&mut self, order: &Value) -> io::Result<Samples> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(orders, "{order}")?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Samples> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let round: Round = serde_json::from_str(&line)?;
        let samples = round.nanoseconds.into_iter();
        Ok(samples.map(Duration::from_nanos).collect())
    }
}

/// Where a file of `rivals/` is.
pub(crate) fn rival(file: &str) -> PathBuf {
    // Cargo tells where the package is; by hand it is started from the root.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "bench".into());
    PathBuf::from(package).join("rivals").join(file)
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of its input tells it to end.
        self.orders = None;
        let _ = self.child.wait();
    }
}
