//! Finds the process that holds a lock. Only looks at paths and `/proc`: opening and closing one
//! of SQLite's files would drop this process's locks on it.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::folder::StoreFolder;
use crate::identity::with_suffix;
use crate::lock::{LockKind, holders_of};

/// Offset of SQLite's write lock (`WAL_WRITE_LOCK`) in the WAL index.
const WRITE_LOCK: u64 = 120;

/// Maximum length of a reported command line, in characters.
const MAX_COMMAND_LEN: usize = 120;

/// A process that holds a lock, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of its program.
    pub program: String,
    /// Its command line; empty if that cannot be read.
    pub command: String,
    /// Whether it is running.
    pub state: HolderState,
    /// Id of its parent process.
    pub parent: Option<u32>,
}

/// Whether a process can continue by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderState {
    /// Running, or waiting for something.
    Running,
    /// Stopped by a signal; holds its locks until it is continued or killed.
    Stopped,
    /// Cannot be determined.
    Unknown,
}

impl LockHolder {
    /// Looks up a process.
    pub fn look_at(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (before, after) = stat.rsplit_once(") ").unwrap_or(("", ""));
        let program = before.split_once('(').map_or("", |(_, name)| name).to_owned();
        let mut fields = after.split_whitespace();
        let state = match fields.next() {
            Some("T" | "t") => HolderState::Stopped,
            Some(_) => HolderState::Running,
            None => HolderState::Unknown,
        };
        let parent = fields.next().and_then(|pid| pid.parse().ok());
        Self { pid, program, command: command_of(pid), state, parent }
    }

    /// Whether it was stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        self.state == HolderState::Stopped
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if !self.program.is_empty() {
            write!(f, " ({}", self.program)?;
            if let Some(parent) = self.parent {
                write!(f, ", started by process {parent}")?;
            }
            f.write_str(")")?;
        }
        if self.is_stopped() {
            f.write_str(", which is stopped")?;
        }
        Ok(())
    }
}

/// The process that is writing to the store at this moment, if any and if the system reports it.
/// Works even if the store is not readable.
pub fn write_lock_holder(folder: &StoreFolder) -> Option<LockHolder> {
    let index = with_suffix(&folder.truth(), "-shm");
    holders_of(&index, LockKind::Posix(WRITE_LOCK)).first().map(|pid| LockHolder::look_at(*pid))
}

fn command_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ").chars().take(MAX_COMMAND_LEN).collect()
}
