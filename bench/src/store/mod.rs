//! The store compared with Chroma and with Python's sqlite3.
//!
//! Every phase of either side is a separate process that reports in JSON, and the sides alternate.
//! All files are in one folder next to this program and are removed at the end.

mod chroma;
mod data;
pub(crate) mod front;
mod npy;
mod report;
pub(crate) mod usage;
mod writers;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use crate::table::Comparison;
use front::Phase;

pub(crate) fn measure(quick: bool, vectors: Option<&Path>) -> Result<Vec<Comparison>> {
    let program = std::env::current_exe()?;
    let beside = program.parent().context("cannot find the folder of this program")?;
    // Not in the system's temporary folder, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-store-").tempdir_in(beside)?;
    Ok(vec![
        chroma::compare(scratch.path(), quick, vectors)?,
        writers::compare(scratch.path(), quick)?,
    ])
}

/// The command that runs a phase of our side.
fn front(phase: &Phase) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(front::PHASE_FLAG).arg(serde_json::to_string(phase)?);
    Ok(command)
}

/// Runs a phase of our side in a new process.
fn run_phase<T: DeserializeOwned>(phase: &Phase) -> Result<T> {
    eprintln!("bench:   isolith: {phase:?}");
    report(front(phase)?).with_context(|| format!("{phase:?} failed"))
}

/// Runs a process and reads its report.
fn report<T: DeserializeOwned>(mut command: Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).output()?;
    let _ = std::io::stderr().write_all(&output.stderr);
    ensure!(output.status.success(), "{}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}
