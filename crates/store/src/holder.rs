//! Which process holds a lock. Only looks at paths and at `/proc`: opening and closing one of
//! SQLite's files would drop the locks that this process has on it.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::folder::StoreFolder;
use crate::identity::with_suffix;
use crate::lock::{Kind, holders_of};

/// Where SQLite's write lock is in the index of its log (`WAL_WRITE_LOCK`).
const WRITE_LOCK: u64 = 120;

/// Characters of a command line that are told.
const LONGEST_COMMAND: usize = 120;

/// A process that holds a lock, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// How it was started, if that can be read.
    pub command: String,
    /// What it does.
    pub state: HolderState,
    /// The process that started it.
    pub parent: Option<u32>,
}

/// Whether a process can go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderState {
    /// It runs, or waits for something.
    Running,
    /// It was stopped, and holds what it holds until it is continued or ended.
    Stopped,
    /// It cannot be told.
    Unknown,
}

impl LockHolder {
    /// What is known of a process.
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

    /// Whether it was stopped.
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

/// The process that is writing to the store at this moment, if there is one and the system
/// tells it. Does not need the store to be readable.
pub fn write_lock_holder(folder: &StoreFolder) -> Option<LockHolder> {
    let index = with_suffix(&folder.truth(), "-shm");
    holders_of(&index, Kind::Posix(WRITE_LOCK)).first().map(|pid| LockHolder::look_at(*pid))
}

fn command_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ").chars().take(LONGEST_COMMAND).collect()
}
