//! The journal of a lane, line by line. Each line is written before the next step, so a killed
//! process leaves a complete record.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::content::{Place, State};

/// What a write does to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Adds it; it does not exist.
    Add,
    /// Adds it, or replaces all of it.
    Upsert,
    /// Replaces all of it by patches, if it exists.
    Replace,
    /// Changes its metadata, if it exists.
    Touch,
    /// Removes it by its ids.
    Delete,
    /// Removes it by a filter.
    Prune,
}

/// One write. Its number determines the version that it writes, and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Op {
    pub(crate) number: u64,
    pub(crate) place: Place,
    pub(crate) act: Act,
}

impl Op {
    /// The state of the unit after the write.
    pub(crate) fn after(&self, before: Option<State>) -> Option<State> {
        match self.act {
            Act::Add | Act::Upsert => Some(State { version: self.number, touched: None }),
            Act::Replace => before.map(|_| State { version: self.number, touched: None }),
            Act::Touch => before.map(|state| State { touched: Some(self.number), ..state }),
            Act::Delete | Act::Prune => None,
        }
    }
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Acknowledged, but missing.
    Lost,
    /// Applied twice.
    Duplicated,
    /// A wrong answer.
    Wrong,
    /// A failure of an operation that should succeed.
    Refused,
}

/// A line. Times are microseconds of the monotonic clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// A write is about to be sent for the first time.
    Intent { op: Op, at: u64 },
    /// It was acknowledged. `resent`: a predecessor had already sent it; `repeated`: it had
    /// already been applied.
    Done { at: u64, waited: u64, resent: bool, repeated: bool },
    /// A read was answered, and showed units of other lanes.
    Seen { from: u64, to: u64, degraded: bool, units: Vec<(Place, Option<State>)> },
    /// A hit appeared only when the search was repeated.
    Late { after: u64 },
    /// A fold was answered.
    Folded { swapped: bool },
    /// An operation that does not change the units: a repeated write, one that must be refused,
    /// or one on a temporary collection.
    Aside { waited: u64 },
    /// A problem.
    Problem { fault: Fault, what: String },
}

/// The file of one lane.
pub(crate) struct Journal {
    file: File,
}

impl Journal {
    pub(crate) fn path(folder: &Path, lane: u32) -> PathBuf {
        folder.join(format!("lane-{lane}.jsonl"))
    }

    /// Opens the journal and reads its entries.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let mut file = File::options().create(true).append(true).read(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        file.seek(SeekFrom::End(0))?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A killed process left half a line, which is ignored.
            file.write_all(b"\n")?;
        }
        Ok((Self { file }, parse(&text)))
    }

    /// All lines of all lanes.
    pub(crate) fn read_all(folder: &Path) -> io::Result<Vec<(u32, Vec<Entry>)>> {
        let mut journals = Vec::new();
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if let Some(lane) = stem.strip_prefix("lane-").and_then(|lane| lane.parse().ok()) {
                journals.push((lane, parse(&fs::read_to_string(&path)?)));
            }
        }
        journals.sort_by_key(|(lane, _)| *lane);
        Ok(journals)
    }

    pub(crate) fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Microseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}
