//! `isolith drill`: the faults that a sceptic would try, on real processes.

mod ledger;
mod orphans;
mod report;
mod role;
mod run;
mod screen;

use std::process::ExitCode;
use std::sync::Arc;

use isolith_types::{Code, Failure};

use crate::output::Output;
pub(crate) use role::Saboteur;
use screen::Screen;

/// Options of a drill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrillPlan {
    pub(crate) count: u32,
    pub(crate) seed: u64,
    /// Print each fault as a line of JSON.
    pub(crate) lines: bool,
}

/// Runs the drill and prints its report.
pub(crate) fn run(plan: &DrillPlan, output: &Output) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::Failed, format!("cannot start the drill: {error}"))
    };
    let scratch = tempfile::Builder::new().prefix("isolith-drill-").tempdir().map_err(failed)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let screen = Arc::new(Screen::new(plan, output));
    let report = runtime.block_on(run::run(plan, scratch.path(), &screen));
    // No longer needed, and a worker could be stuck in it.
    runtime.shutdown_background();
    screen.finish();
    let report = report?;
    match plan.lines {
        true => output.lines(&[&report])?,
        false => output.result(&report, &report.to_string())?,
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
