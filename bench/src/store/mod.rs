//! The store beside Chroma and beside Python's sqlite3.
//!
//! Every phase of either side is a process of its own that reports in JSON; the
//! phases of both alternate. All files are in one folder beside this program, on the
//! same disk, and are removed at the end.

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
use front::Order;

pub(crate) fn measure(quick: bool, vectors: Option<&Path>) -> Result<Vec<Comparison>> {
    let program = std::env::current_exe()?;
    let beside = program.parent().context("the program is in no folder")?;
    // Not in the system's folder for temporary files, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-store-").tempdir_in(beside)?;
    Ok(vec![
        chroma::compare(scratch.path(), quick, vectors)?,
        writers::compare(scratch.path(), quick)?,
    ])
}

/// Starts a front of ours.
fn front(order: &Order) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(front::ARGUMENT).arg(serde_json::to_string(order)?);
    Ok(command)
}

/// Has a front do its phase.
fn obey<T: DeserializeOwned>(order: &Order) -> Result<T> {
    eprintln!("bench:   isolith: {order:?}");
    report(front(order)?).with_context(|| format!("{order:?} failed"))
}

/// Runs a process and reads its report.
fn report<T: DeserializeOwned>(mut command: Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).output()?;
    let _ = std::io::stderr().write_all(&output.stderr);
    ensure!(output.status.success(), "{}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}
