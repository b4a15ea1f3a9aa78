//! What a torture came to.

use serde::Serialize;

use crate::journal::Fault;

/// The figures that people and scripts get.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Account {
    /// Reads and writes that were answered.
    pub(crate) operations: u64,
    /// Workers and whole processes.
    pub(crate) kills: u64,
    pub(crate) damaged_files: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) wrong: u64,
    pub(crate) refused: u64,
    /// The longest that one operation took, whatever was killed meanwhile.
    pub(crate) longest_wait_ms: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    /// New generations that members asked for and got.
    pub(crate) folds: u64,
    /// Of the kills, those of whole processes.
    pub(crate) killed_processes: u64,
    /// Of the kills, those by signals that look like a crash.
    pub(crate) crashes: u64,
    /// Processes that followed another.
    pub(crate) lives: u64,
    /// Writes that a killed process had sent, and the next one sent again.
    pub(crate) resent: u64,
    /// Of these, the ones that had been done.
    pub(crate) resent_after_commit: u64,
    /// Reads that went on without a segment, and said so.
    pub(crate) degraded: u64,
    /// Searches that had to be repeated until a hit was there.
    pub(crate) late_hits: u64,
    pub(crate) latest_hit_ms: u64,
    /// Records that were compared at the end.
    pub(crate) records: u64,
    /// Workers that outlived their process.
    pub(crate) orphans: u64,
    /// What was wrong, at most a hundred of it.
    pub(crate) problems: Vec<String>,
}

/// This many problems are told.
const TOLD: usize = 100;

impl Account {
    pub(crate) fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.wrong + self.refused + self.orphans == 0
    }

    /// Counts a problem that was told already.
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

    /// Tells and counts a problem.
    pub(crate) fn problem(&mut self, fault: Fault, what: String) {
        eprintln!("torture: {fault:?}: {what}");
        self.count(fault, &what);
    }

    /// One figure to a line, as JSON has them.
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
