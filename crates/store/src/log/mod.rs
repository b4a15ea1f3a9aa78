//! Reads SQLite's log directly: whether the truth has everything that was acknowledged, and what
//! can be recovered if not.
//!
//! This module opens the truth's files as plain files. Closing one would drop SQLite's locks in
//! the same process, so none of this may run in a process that has the truth open.

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

use self::frames::{FrameState, Frames, page_of};
use self::store_row::STORE_PAGE;
use crate::acknowledged::{MarkRead, Progress};
use crate::folder::{StoreFolder, io_failure, is_missing};
use crate::identity::with_suffix;
use crate::open::Truth;

pub(crate) use recover::all_commits;
pub use recover::{LogRecovery, LostPart};

/// The state of the log compared with the mark of acknowledged commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// Whether the mark is readable.
    pub mark: MarkState,
    /// Number of valid frames in the log.
    pub frames: u64,
    /// Progress of the truth as SQLite sees it; `None` if it cannot be read.
    pub reached: Option<Progress>,
    /// Acknowledged commits that are missing.
    pub missing: Option<MissingCommits>,
}

/// The state of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkState {
    /// Nothing was written yet, or only by a version without marks.
    None,
    /// Not readable: losses would go unnoticed.
    Damaged,
    /// Readable.
    Sound,
}

/// Acknowledged commits that SQLite does not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCommits {
    /// The first missing commit, and the first change of a record that may be missing.
    pub from: Progress,
    /// The last ones.
    pub to: Progress,
    /// The frame, counted from 1, at which SQLite stops; `None` if the log just ends too early.
    pub stops_at: Option<u64>,
    /// Number of commits after that frame.
    pub beyond: u64,
    /// The progress that a repair can reach; not above `from` if nothing can be recovered.
    pub recoverable_to: Progress,
    /// The recoverable contents of those commits, by kind.
    pub parts: Vec<LostPart>,
}

/// The log may change while it is read.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

impl Truth {
    /// Compares the truth and its log with what was acknowledged. Other processes may have the
    /// truth open; this one must not.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or if the files cannot be read.
    pub fn examine_log(folder: &StoreFolder, token: InWorker) -> Result<LogState, StoreError> {
        folder.check()?;
        let mut files = TruthFiles::look(folder)?;
        for _ in 1..TRIES {
            if !files.is_behind() {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
            files = TruthFiles::look(folder)?;
        }
        let missing = if files.is_behind() { files.missing(folder, token)? } else { None };
        Ok(files.state(missing))
    }
}

/// Whether a log has a damaged frame followed by commits. Opens only the log, which is safe in
/// any process: SQLite's locks are on the other two files.
pub(crate) fn is_broken(truth: &Path) -> bool {
    let log = File::open(with_suffix(truth, "-wal"));
    let frames = log.and_then(|log| Frames::read(&log, None));
    frames.is_ok_and(|frames| frames.goes_on())
}

/// The files of the truth at one point in time.
struct TruthFiles {
    mark: MarkRead,
    log: Option<File>,
    truth: File,
    frames: Frames,
    uuid: Option<String>,
    reached: Option<Progress>,
}

impl TruthFiles {
    fn look(folder: &StoreFolder) -> Result<Self, StoreError> {
        // The order matters: commits are in the log before they are acknowledged, and in the
        // file before they leave the log.
        let mark = MarkRead::read(folder)?;
        let path = folder.truth();
        let truth = open(&path)?
            .ok_or_else(|| StoreError::Missing { folder: folder.path().to_path_buf() })?;
        let log_path = with_suffix(&path, "-wal");
        let log = open(&log_path)?;
        let frames = match &log {
            None => Frames::default(),
            Some(log) => match Frames::read(log, Some(&truth)) {
                // Truncated while it was read.
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

    /// The row of table `store` after this many frames.
    fn store_row(&self, frames: usize) -> Option<(String, Progress)> {
        let in_log = self.frames.all[..frames].iter().rposition(|frame| {
            frame.page == Some(STORE_PAGE) && frame.state != FrameState::Damaged
        });
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

    fn state(self, missing: Option<MissingCommits>) -> LogState {
        let mark = match self.mark {
            MarkRead::Nothing => MarkState::None,
            MarkRead::Damaged => MarkState::Damaged,
            MarkRead::Mark(..) => MarkState::Sound,
        };
        LogState { mark, frames: self.frames.all.len() as u64, reached: self.reached, missing }
    }

    fn missing(
        &self,
        folder: &StoreFolder,
        token: InWorker,
    ) -> Result<Option<MissingCommits>, StoreError> {
        let Some(reached) = self.reached else { return Ok(None) };
        let (recoverable_to, parts) = self.preview(folder, reached, token)?;
        let beyond = self.frames.commits().filter(|place| *place >= self.frames.used).count();
        Ok(Some(MissingCommits {
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
