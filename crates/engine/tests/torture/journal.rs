//! What a lane did, line by line. A process that is killed leaves its lines behind, as
//! each is in the hands of the system before the next step.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::content::{Place, State};

/// What a write does to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Adds it; it is not there.
    Add,
    /// Adds it, or replaces all of it.
    Upsert,
    /// Replaces all of it, if it is there, by patches.
    Replace,
    /// Changes its metadata, if it is there.
    Touch,
    /// Removes it by its ids.
    Delete,
    /// Removes it by a filter.
    Prune,
}

/// One write. Its number names the version that it makes, and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Op {
    pub(crate) number: u64,
    pub(crate) place: Place,
    pub(crate) act: Act,
}

impl Op {
    /// What the unit is once this is done.
    pub(crate) fn after(&self, before: Option<State>) -> Option<State> {
        match self.act {
            Act::Add | Act::Upsert => Some(State { version: self.number, touched: None }),
            Act::Replace => before.map(|_| State { version: self.number, touched: None }),
            Act::Touch => before.map(|state| State { touched: Some(self.number), ..state }),
            Act::Delete | Act::Prune => None,
        }
    }
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Acknowledged, and not there.
    Lost,
    /// Done twice.
    Duplicated,
    /// Answered what is not so.
    Wrong,
    /// Not answered, though nothing stood in the way for good.
    Refused,
}

/// A line. Times are microseconds of the clock that all processes share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// A write is about to be sent for the first time.
    Intent { op: Op, at: u64 },
    /// It was acknowledged. `resent` says that an earlier life had sent it already,
    /// `repeated` that it had been done by then.
    Done { at: u64, waited: u64, resent: bool, repeated: bool },
    /// A read was answered, and showed units of other lanes.
    Seen { from: u64, to: u64, degraded: bool, units: Vec<(Place, Option<State>)> },
    /// A hit came only when the search was repeated.
    Late { after: u64 },
    /// A fold was answered.
    Folded { swapped: bool },
    /// Something was answered that leaves the units as they are: a repeated write, one
    /// that is to be refused, the life of a passing collection.
    Aside { waited: u64 },
    /// Something is wrong.
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

    /// Opens the journal, with all that it says so far.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let mut file = File::options().create(true).append(true).read(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        file.seek(SeekFrom::End(0))?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A killed process left half a line, which says nothing.
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

/// Microseconds of the clock that all processes share.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}
