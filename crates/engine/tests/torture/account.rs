//! The results of a torture run.

use serde::Serialize;

use crate::journal::Fault;

/// The reported numbers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Account {
    /// Reads and writes that were answered.
    pub(crate) operations: u64,
    /// Signals that reached workers and whole processes.
    pub(crate) kills: u64,
    pub(crate) damaged_files: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) wrong: u64,
    pub(crate) refused: u64,
    /// The longest duration of an operation, including crashes of its workers.
    pub(crate) longest_wait_ms: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    /// Successful folds that members requested.
    pub(crate) folds: u64,
    /// Kills of whole processes.
    pub(crate) killed_processes: u64,
    /// Kills by signals that look like a crash.
    pub(crate) crashes: u64,
    /// Processes that replaced a killed one.
    pub(crate) lives: u64,
    /// Writes of a killed process that its successor sent again.
    pub(crate) resent: u64,
    /// Resent writes that had already been applied.
    pub(crate) resent_after_commit: u64,
    /// Reads answered without a segment and marked as degraded.
    pub(crate) degraded: u64,
    /// Searches that were repeated until a hit appeared.
    pub(crate) late_hits: u64,
    pub(crate) latest_hit_ms: u64,
    /// Records compared at the end.
    pub(crate) records: u64,
    /// Workers that survived their process.
    pub(crate) orphans: u64,
    /// The first problems, at most a hundred.
    pub(crate) problems: Vec<String>,
}

/// Maximum number of listed problems.
const TOLD: usize = 100;

impl Account {
    pub(crate) fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.wrong + self.refused + self.orphans == 0
    }

    /// Counts a problem that was already reported.
    pub(crate) fn count(&mut self, fault: Fault, what: &str) {
        let counter = match fault {
            Fault::Lost => &mut self.lost,
            Fault::Duplicated => &mut self.duplicated,
            Fault::Wrong => &mut self.wrong,
            Fault::Refused => &mut self.refused,
        };
        *counter += 1;
        if self.problems.len() < TOLD {
            self.problems.push(format!("{fault:?}: {what}"));
        }
    }

    /// Reports and counts a problem.
    pub(crate) fn problem(&mut self, fault: Fault, what: String) {
        eprintln!("torture: {fault:?}: {what}");
        self.count(fault, &what);
    }

    /// Prints one number per line, named as in the JSON.
    pub(crate) fn print(&self) -> serde_json::Result<()> {
        for line in serde_json::to_string_pretty(self)?.lines() {
            let figure = line.trim().trim_end_matches(',').split_once(": ");
            if let Some((name, value)) = figure.filter(|(_, value)| value.parse::<u64>().is_ok()) {
                println!("{:<22}{value:>8}", name.trim_matches('"').replace('_', " "));
            }
        }
        Ok(())
    }
}
