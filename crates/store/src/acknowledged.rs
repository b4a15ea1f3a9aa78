//! The last acknowledged commit, recorded where damage to SQLite's log cannot reach it.
//!
//! SQLite silently drops the end of a damaged log. The file `acknowledged` records the last
//! commit that was acknowledged; a truth that is behind it has lost some.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isolith_protocol::StoreError;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::folder::{StoreFolder, io_failure, is_missing};
use crate::sqlite::SqliteDuring;

/// A point in the history of a store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
pub struct Progress {
    /// Number of commits so far.
    pub commits: u64,
    /// The last change number of a record.
    pub change: u64,
}

impl Progress {
    /// The later value of each counter.
    #[must_use]
    pub(crate) fn or_later(self, other: Self) -> Self {
        Self { commits: self.commits.max(other.commits), change: self.change.max(other.change) }
    }
}

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Which store it belongs to: a hash of its uuid.
    store: [u8; 16],
    /// Synced to disk before it was acknowledged.
    durable: Progress,
    /// Acknowledged once the operating system had it; a power loss may undo it.
    written: Progress,
}

/// The result of reading the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkRead {
    /// No file: nothing was written to this store yet, or only by a version without marks.
    Nothing,
    /// The file is not a valid mark.
    Damaged,
    /// A mark, and whether it was written since the system booted.
    Mark(Mark, bool),
}

const MAGIC: [u8; 8] = *b"ISLTACK1";
const LENGTH: usize = 64;
/// Length without the checksum.
const BODY: usize = LENGTH - 4;

/// A writer holds the lock for a microsecond, unless it was stopped while holding it.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);
const LOCK_PAUSE: Duration = Duration::from_micros(50);

/// Smaller adjustments of the clock are ignored.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

impl MarkRead {
    pub(crate) fn read(folder: &StoreFolder) -> Result<Self, StoreError> {
        let path = folder.acknowledged();
        let read = || {
            let file = File::options().read(true).custom_flags(nofollow()).open(&path)?;
            Self::read_from(&file)
        };
        match read() {
            Err(error) if is_missing(&error) => Ok(Self::Nothing),
            read => read.map_err(|error| io_failure(&path, "read", &error)),
        }
    }

    fn read_from(file: &File) -> io::Result<Self> {
        // Another process may be writing; only damage that persists counts.
        for _ in 0..3 {
            let mut bytes = [0; LENGTH];
            match file.read_exact_at(&mut bytes, 0) {
                Ok(()) => {
                    if let Some(mark) = Mark::decode(&bytes) {
                        let all_durable = mark.written == Progress::default();
                        return Ok(Self::Mark(mark, all_durable || is_of_this_boot(file)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    // Just created by a process that is about to fill it.
                    if file.metadata()?.len() == 0 {
                        return Ok(Self::Nothing);
                    }
                }
                Err(error) => return Err(error),
            }
            std::thread::yield_now();
        }
        Ok(Self::Damaged)
    }

    /// The progress that the store with this uuid must have reached.
    pub(crate) fn expected(&self, uuid: &str) -> Progress {
        match self {
            Self::Mark(mark, this_boot) if mark.store == hash(uuid) => {
                if *this_boot {
                    mark.durable.or_later(mark.written)
                } else {
                    mark.durable
                }
            }
            _ => Progress::default(),
        }
    }
}

impl Mark {
    fn decode(bytes: &[u8; LENGTH]) -> Option<Self> {
        let number = |at: usize| {
            u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|offset| bytes[at + offset]))
        };
        if bytes[..8] != MAGIC || bytes[BODY..] != crc32c::crc32c(&bytes[..BODY]).to_le_bytes() {
            return None;
        }
        let mut store = [0; 16];
        store.copy_from_slice(&bytes[8..24]);
        Some(Self {
            store,
            durable: Progress { commits: number(24), change: number(32) },
            written: Progress { commits: number(40), change: number(48) },
        })
    }

    fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.store);
        let numbers =
            [self.durable.commits, self.durable.change, self.written.commits, self.written.change];
        for (at, number) in numbers.into_iter().enumerate() {
            bytes[24 + 8 * at..32 + 8 * at].copy_from_slice(&number.to_le_bytes());
        }
        let check = crc32c::crc32c(&bytes[..BODY]);
        bytes[BODY..].copy_from_slice(&check.to_le_bytes());
        bytes
    }
}

/// The mark, opened by a writer.
#[derive(Debug)]
pub(crate) struct MarkFile {
    path: PathBuf,
    store: [u8; 16],
    file: File,
    /// Its contents when last read.
    known: Option<Mark>,
}

impl MarkFile {
    /// Opens or creates the mark of the store with this uuid.
    pub(crate) fn open(folder: &StoreFolder, uuid: &str) -> Result<Self, StoreError> {
        let path = folder.acknowledged();
        let file = open_or_make(&path).map_err(|error| io_failure(&path, "open", &error))?;
        Ok(Self { path, store: hash(uuid), file, known: None })
    }

    /// The progress that the truth must have reached by now.
    pub(crate) fn expected(&mut self) -> Progress {
        self.known = MarkRead::read_from(&self.file).ok().and_then(|found| self.ours(found));
        self.known.map_or_else(Progress::default, |mark| mark.durable.or_later(mark.written))
    }

    /// Records what is about to be acknowledged. Several processes do this, so the mark is only
    /// ever raised.
    pub(crate) fn raise(&mut self, to: Progress, durable: bool) -> io::Result<()> {
        if self.file.metadata()?.nlink() == 0 {
            self.file = open_or_make(&self.path)?;
        } else if self.known.is_some() && self.known == Some(self.raised(self.known, to, durable)) {
            return Ok(());
        }
        let locked = self.lock();
        let written = self.write(to, durable);
        if locked {
            flock(&self.file, FlockOperation::Unlock)?;
        }
        written
    }

    fn write(&mut self, to: Progress, durable: bool) -> io::Result<()> {
        let known = self.ours(MarkRead::read_from(&self.file)?);
        let mark = self.raised(known, to, durable);
        self.known = Some(mark);
        if known == Some(mark) {
            return Ok(());
        }
        self.file.write_all_at(&mark.encode(), 0)
    }

    fn raised(&self, known: Option<Mark>, to: Progress, durable: bool) -> Mark {
        let none = Progress::default();
        let mut mark = known.unwrap_or(Mark { store: self.store, durable: none, written: none });
        let place = if durable { &mut mark.durable } else { &mut mark.written };
        *place = place.or_later(to);
        mark
    }

    /// The mark, if it belongs to this store.
    fn ours(&self, found: MarkRead) -> Option<Mark> {
        match found {
            MarkRead::Mark(mark, _) if mark.store != self.store => None,
            MarkRead::Mark(mark, true) => Some(mark),
            // Commits that were not synced do not count after a reboot.
            MarkRead::Mark(mark, false) => Some(Mark { written: Progress::default(), ..mark }),
            MarkRead::Nothing | MarkRead::Damaged => None,
        }
    }

    /// Returns false if the lock cannot be taken in time; the mark is then written without it,
    /// so that a writer stopped while holding the lock cannot block all others.
    fn lock(&self) -> bool {
        let mut waited = Duration::ZERO;
        while waited < LOCK_PATIENCE {
            if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return true;
            }
            std::thread::sleep(LOCK_PAUSE);
            waited += LOCK_PAUSE;
        }
        false
    }
}

/// The store's uuid and progress.
pub(crate) fn progress_of(db: &Connection) -> Result<(String, Progress), StoreError> {
    let read = |sql: &str| {
        db.prepare_cached(sql)?.query_row([], |row| {
            let progress = Progress { commits: row.get(1)?, change: row.get(2)? };
            Ok((row.get::<_, String>(0)?, progress))
        })
    };
    match read("SELECT uuid, commits, last_change FROM store") {
        // A schema version without commit counts.
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.extended_code == rusqlite::ffi::SQLITE_ERROR =>
        {
            read("SELECT uuid, 0, last_change FROM store")
        }
        read => read,
    }
    .during(db, "read the progress of the store")
}

/// Fails if the truth is behind what was acknowledged. Call this before writing anything: what is
/// missing may still be in the log.
pub(crate) fn refuse_if_behind(folder: &StoreFolder, db: &Connection) -> Result<(), StoreError> {
    // Read the mark first: the truth may advance between the two reads.
    let mark = MarkRead::read(folder)?;
    if !matches!(mark, MarkRead::Mark(..)) {
        return Ok(());
    }
    let (uuid, reached) = progress_of(db)?;
    compare(&folder.truth(), mark.expected(&uuid), reached)
}

/// Fails if `reached` is behind what was acknowledged.
pub(crate) fn compare(
    truth: &Path,
    expected: Progress,
    reached: Progress,
) -> Result<(), StoreError> {
    if reached.commits >= expected.commits {
        return Ok(());
    }
    Err(StoreError::Behind {
        path: truth.to_path_buf(),
        commits: expected.commits - reached.commits,
        changes: expected.change.saturating_sub(reached.change),
    })
}

/// Raises the progress of a repaired truth above the mark. So the mark need not be lowered, and a
/// copy from before the repair is not mistaken for the newest state.
pub(crate) fn outrank(folder: &StoreFolder, db: &Connection) -> Result<Progress, StoreError> {
    let mark = MarkRead::read(folder)?;
    let (uuid, reached) = progress_of(db)?;
    let above = reached.or_later(mark.expected(&uuid));
    let above = Progress { commits: above.commits + 1, ..above };
    db.execute(
        "UPDATE store SET commits = ?1, last_change = ?2",
        rusqlite::params![above.commits, above.change],
    )
    .during(db, "write the progress of the store")?;
    Ok(above)
}

fn open_or_make(path: &Path) -> io::Result<File> {
    let flags = nofollow();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

/// Do not follow a link, or block on a pipe, in place of the mark.
fn nofollow() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

fn hash(uuid: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(uuid.as_bytes()).as_bytes()[..16]);
    short
}

/// Whether the file was written since the system booted.
fn is_of_this_boot(file: &File) -> bool {
    let up = rustix::system::sysinfo().uptime;
    let up = Duration::from_secs(u64::try_from(up).unwrap_or(0)) + CLOCK_SLACK;
    let started = SystemTime::now().checked_sub(up);
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    match (started, modified) {
        (Some(started), Ok(modified)) => modified >= started,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commits: u64) -> Progress {
        Progress { commits, change: commits * 10 }
    }

    fn place() -> (tempfile::TempDir, StoreFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path());
        (place, folder)
    }

    #[test]
    fn a_mark_is_never_lowered() {
        let (_place, folder) = place();
        assert_eq!(MarkRead::read(&folder).unwrap(), MarkRead::Nothing);
        let mut one = MarkFile::open(&folder, "a").unwrap();
        let mut other = MarkFile::open(&folder, "a").unwrap();
        for (commits, expected) in [(1, 1), (5, 5), (3, 5), (4, 5), (6, 6)] {
            one.raise(at(commits), true).unwrap();
            assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(expected));
            other.raise(at(commits - 1), true).unwrap();
            assert_eq!(other.expected(), at(expected));
        }
        // Another store in the same folder starts over.
        assert_eq!(MarkRead::read(&folder).unwrap().expected("b"), at(0));
        MarkFile::open(&folder, "b").unwrap().raise(at(2), true).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("b"), at(2));
        assert_eq!(std::fs::metadata(folder.acknowledged()).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn concurrent_writers_leave_the_highest_mark() {
        let (_place, folder) = place();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let folder = &folder;
                scope.spawn(move || {
                    let mut mark = MarkFile::open(folder, "a").unwrap();
                    for step in 0..500 {
                        mark.raise(at(first + 4 * step), true).unwrap();
                    }
                });
            }
        });
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(3 + 4 * 499));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let mark = Mark { store: hash("a"), durable: at(7), written: at(9) };
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), Some(mark));
        for bit in 0..LENGTH * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decode(&damaged), None, "{bit}");
        }
    }

    #[test]
    fn unsynced_commits_count_until_a_reboot() {
        let (_place, folder) = place();
        let mut mark = MarkFile::open(&folder, "a").unwrap();
        mark.raise(at(3), true).unwrap();
        mark.raise(at(5), false).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(5));
        let long_ago = SystemTime::now() - Duration::from_secs(20 * 365 * 86_400);
        mark.file.set_modified(long_ago).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(3));
        let mut mark = MarkFile::open(&folder, "a").unwrap();
        assert_eq!(mark.expected(), at(3));
        mark.raise(at(4), false).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(4));
    }

    #[test]
    fn the_next_write_recreates_a_damaged_or_deleted_mark() {
        let (_place, folder) = place();
        let mut mark = MarkFile::open(&folder, "a").unwrap();
        mark.raise(at(3), true).unwrap();
        std::fs::write(folder.acknowledged(), [7; LENGTH]).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap(), MarkRead::Damaged);
        mark.raise(at(4), true).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(4));
        std::fs::remove_file(folder.acknowledged()).unwrap();
        mark.raise(at(5), true).unwrap();
        assert_eq!(MarkRead::read(&folder).unwrap().expected("a"), at(5));
    }
}
