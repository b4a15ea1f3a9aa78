//! SQLite's log, read by ourselves: whether the truth has come as far as was acknowledged, and
//! what can be had back if it has not.
//!
//! Everything here opens the truth's files as plain files. Closing one of them would drop the
//! locks that SQLite holds in the same process, so nothing here may run in a process that has
//! the truth open.

mod checksum;
mod frames;
mod recover;
mod store_row;

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use isolate::InWorker;
use isolith_protocol::StoreError;
use serde::{Deserialize, Serialize};

use self::frames::{Frames, State, page_of};
use self::store_row::STORE_PAGE;
use crate::acknowledged::{Found, Progress};
use crate::folder::{StoreFolder, io_failure, is_missing};
use crate::identity::with_suffix;
use crate::open::Truth;

pub(crate) use recover::all_commits;
pub use recover::{LogRecovery, Part};

/// How the log and the mark of what was acknowledged fit together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// Whether the mark itself can be read.
    pub mark: MarkState,
    /// Frames of the log that count.
    pub frames: u64,
    /// How far the truth has come, as SQLite sees it; none if that cannot be read.
    pub reached: Option<Progress>,
    /// What is missing.
    pub missing: Option<Missing>,
}

/// What became of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkState {
    /// Nothing was written yet, or not by a program that knows marks.
    None,
    /// It cannot be read: losses would go unnoticed.
    Damaged,
    /// It is there.
    Sound,
}

/// Commits that were acknowledged and that SQLite does not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The first commit that is missing, and the first change of a record that may be.
    pub from: Progress,
    /// The last ones.
    pub to: Progress,
    /// The frame of the log, from 1, at which SQLite stops; none if the log just ends too
    /// early.
    pub stops_at: Option<u64>,
    /// Commits found in the log beyond that frame.
    pub beyond: u64,
    /// How far a repair can bring the truth; no further than `from` if nothing can be had
    /// back.
    pub recoverable_to: Progress,
    /// What those commits wrote, by kind, as far as it can be had back.
    pub parts: Vec<Part>,
}

/// A log that others write to may change while it is read.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

impl Truth {
    /// Compares what is in the truth and its log with what was acknowledged. Others may have
    /// the truth open; this process must not.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or that the files cannot be read.
    pub fn examine_log(folder: &StoreFolder, token: InWorker) -> Result<LogState, StoreError> {
        folder.check()?;
        let mut files = Files::look(folder)?;
        for _ in 1..TRIES {
            if !files.is_behind() {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
            files = Files::look(folder)?;
        }
        let missing = if files.is_behind() { files.missing(folder, token)? } else { None };
        Ok(files.state(missing))
    }
}

/// Whether a log has a damaged frame and commits beyond it. Opens the log alone, which is safe
/// in any process: SQLite's locks are on the other two files.
pub(crate) fn is_broken(truth: &Path) -> bool {
    let log = File::open(with_suffix(truth, "-wal"));
    let frames = log.and_then(|log| Frames::read(&log, None));
    frames.is_ok_and(|frames| frames.goes_on())
}

/// The files of the truth, as they were at one moment.
struct Files {
    mark: Found,
    log: Option<File>,
    truth: File,
    frames: Frames,
    uuid: Option<String>,
    reached: Option<Progress>,
}

impl Files {
    fn look(folder: &StoreFolder) -> Result<Self, StoreError> {
        // In this order: what is acknowledged is in the log before, and what leaves the log
        // is in the file before.
        let mark = Found::read(folder)?;
        let path = folder.truth();
        let truth = open(&path)?
            .ok_or_else(|| StoreError::Missing { folder: folder.path().to_path_buf() })?;
        let log_path = with_suffix(&path, "-wal");
        let log = open(&log_path)?;
        let frames = match &log {
            None => Frames::default(),
            Some(log) => match Frames::read(log, Some(&truth)) {
                // Cut while it was read.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Frames::default(),
                read => read.map_err(|error| io_failure(&log_path, "read", &error))?,
            },
        };
        let mut files = Self { mark, log, truth, frames, uuid: None, reached: None };
        let used = files.frames.used;
        if let Some((uuid, reached)) = files.store_row(used) {
            (files.uuid, files.reached) = (Some(uuid), Some(reached));
        }
        Ok(files)
    }

    /// The row of the store as of this many frames.
    fn store_row(&self, frames: usize) -> Option<(String, Progress)> {
        let in_log = self.frames.all[..frames]
            .iter()
            .rposition(|frame| frame.page == Some(STORE_PAGE) && frame.state != State::Damaged);
        let page = match (in_log, &self.log) {
            (Some(place), Some(log)) => self.frames.page(log, place).ok()?,
            _ => None,
        };
        store_row::read(&page.map_or_else(|| page_of(&self.truth, STORE_PAGE), Ok).ok()?)
    }

    fn expected(&self) -> Progress {
        self.uuid.as_ref().map_or_else(Progress::default, |uuid| self.mark.expected(uuid))
    }

    fn is_behind(&self) -> bool {
        self.reached.is_some_and(|reached| reached.commits < self.expected().commits)
    }

    fn state(self, missing: Option<Missing>) -> LogState {
        let mark = match self.mark {
            Found::Nothing => MarkState::None,
            Found::Damaged => MarkState::Damaged,
            Found::Mark(..) => MarkState::Sound,
        };
        LogState { mark, frames: self.frames.all.len() as u64, reached: self.reached, missing }
    }

    fn missing(
        &self,
        folder: &StoreFolder,
        token: InWorker,
    ) -> Result<Option<Missing>, StoreError> {
        let Some(reached) = self.reached else { return Ok(None) };
        let (recoverable_to, parts) = self.preview(folder, reached, token)?;
        let beyond = self.frames.commits().filter(|place| *place >= self.frames.used).count();
        Ok(Some(Missing {
            from: Progress { commits: reached.commits + 1, change: reached.change + 1 },
            to: self.expected(),
            stops_at: self.frames.goes_on().then(|| self.frames.used as u64 + 1),
            beyond: beyond as u64,
            recoverable_to,
            parts,
        }))
    }
}

fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(io_failure(path, "open", &error)),
    }
}
