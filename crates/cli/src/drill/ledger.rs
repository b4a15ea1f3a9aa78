//! Records what workers did for each job, written by the workers themselves.
//!
//! Each attempt appends lines to the job's file, so lost and repeated jobs are detected
//! independently of the supervisor.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

/// The log of one job.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
}

/// The contents of a ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Number of attempts that began.
    pub(super) tries: usize,
    /// Number of times the effect took place.
    pub(super) effects: usize,
    /// When the fault was injected, on the monotonic clock.
    pub(super) fault_ns: Option<u64>,
}

impl Ledger {
    pub(super) fn of(folder: &Path, token: u64) -> Self {
        Self { path: folder.join(token.to_string()) }
    }

    pub(super) fn note_try(&self) -> io::Result<()> {
        self.append("try")
    }

    pub(super) fn note_effect(&self) -> io::Result<()> {
        self.append("effect")
    }

    pub(super) fn note_fault(&self) -> io::Result<()> {
        self.append(&format!("fault {}", monotonic_ns()))
    }

    /// A single write, so that a line is either complete or absent.
    fn append(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    pub(super) fn read(&self) -> io::Result<Account> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Account::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Account::default()),
            Err(error) => Err(error),
        }
    }
}

impl Account {
    fn parse(text: &str) -> Self {
        let mut account = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                None if line == "try" => account.tries += 1,
                None if line == "effect" => account.effects += 1,
                Some(("fault", at)) => account.fault_ns = at.parse().ok(),
                _ => {}
            }
        }
        account
    }
}

/// The machine's monotonic clock, the same in all processes.
pub(super) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_repeated_jobs_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(folder.path(), 7);
        assert_eq!(ledger.read().unwrap(), Account::default());
        ledger.note_try().unwrap();
        ledger.note_fault().unwrap();
        ledger.note_try().unwrap();
        ledger.note_effect().unwrap();
        ledger.note_effect().unwrap();
        let account = ledger.read().unwrap();
        assert_eq!((account.tries, account.effects), (2, 2));
        assert!(account.fault_ns.is_some_and(|at| at <= monotonic_ns()));
    }
}
