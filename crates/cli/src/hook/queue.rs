//! What is to be saved: a small file for each transcript, in the state folder.
//!
//! A request is written before the client is answered. The background process takes it (renames it)
//! before it reads the transcript, so that a request which arrives meanwhile is not lost, and removes
//! it when everything is durable. What a killed process has taken is found again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolith_engine::StorePlace;
use isolith_types::{Code, Failure};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::reply::Client;

/// Requests that could not be carried out for so long are dropped.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Maximum number of files of each kind.
const MAX_FILES: usize = 1_000;

const WAITING: &str = "todo";
const TAKEN: &str = "taken";
const MARK: &str = "mark";

/// A transcript to save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saving {
    pub(super) client: Client,
    pub(super) transcript: PathBuf,
    /// The folder that the session is about.
    pub(super) folder: PathBuf,
}

/// The queue of a store.
pub(super) struct Queue {
    folder: PathBuf,
}

/// A request that was taken.
pub(super) struct Taken {
    pub(super) saving: Saving,
    file: PathBuf,
}

/// Held by the one background process of a store.
pub(super) struct WorkLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl Queue {
    /// Opens the queue of a store, in `state`.
    pub(super) fn open(state: &Path, store: &StorePlace) -> Result<Self, Failure> {
        let store = std::path::absolute(store.path()).map_err(|error| cannot("use", &error))?;
        let store = fs::canonicalize(&store).unwrap_or(store);
        let folder = state.join("hooks").join(name_of(&store));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| cannot("create", &error))?;
        Ok(Self { folder })
    }

    /// Adds a request, or replaces the one for the same transcript.
    pub(super) fn add(&self, saving: &Saving) -> Result<(), Failure> {
        self.write(&self.file(&saving.transcript, WAITING), saving)
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.files(&[WAITING, TAKEN])?.is_empty())
    }

    /// Takes the next request, but none for transcripts that have failed in this run. Removes what is
    /// unreadable or too old.
    pub(super) fn take(&self, failed: &[PathBuf]) -> Result<Option<Taken>, Failure> {
        for file in self.files(&[TAKEN, WAITING])? {
            let too_old = age(&file).is_some_and(|age| age > MAX_AGE);
            let saving = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let Some(saving) = saving.filter(|_| !too_old) else {
                remove(&file)?;
                continue;
            };
            let saving: Saving = saving;
            if failed.contains(&saving.transcript) {
                continue;
            }
            let taken = file.with_extension(TAKEN);
            fs::rename(&file, &taken).map_err(|error| cannot("take", &error))?;
            return Ok(Some(Taken { saving, file: taken }));
        }
        Ok(None)
    }

    /// Removes a request that was carried out, or cannot be.
    pub(super) fn finish(&self, taken: &Taken) -> Result<(), Failure> {
        remove(&taken.file)
    }

    /// The lock of the background process; `None` if another one has it.
    pub(super) fn lock(&self) -> Result<Option<WorkLock>, Failure> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.folder.join("lock")).map_err(|it| cannot("lock", &it))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(WorkLock(file))),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
            Err(error) => Err(cannot("lock", &error.into())),
        }
    }

    /// The text of a transcript's mark.
    pub(super) fn read_mark(&self, transcript: &Path) -> Option<Vec<u8>> {
        fs::read(self.file(transcript, MARK)).ok()
    }

    /// Replaces a transcript's mark.
    pub(super) fn write_mark(
        &self,
        transcript: &Path,
        mark: &impl Serialize,
    ) -> Result<(), Failure> {
        self.write(&self.file(transcript, MARK), mark)
    }

    /// Removes the oldest marks beyond the limit. A transcript without a mark is read from its start.
    pub(super) fn limit_marks(&self) -> Result<(), Failure> {
        let files = self.files(&[MARK])?;
        let surplus = files.len().saturating_sub(MAX_FILES);
        files.iter().take(surplus).try_for_each(|file| remove(file))
    }

    fn file(&self, transcript: &Path, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", name_of(transcript)))
    }

    /// The files of these kinds: one kind after the other, the oldest first.
    fn files(&self, kinds: &[&str]) -> Result<Vec<PathBuf>, Failure> {
        let entries = fs::read_dir(&self.folder).map_err(|error| cannot("list", &error))?;
        let kind_of = |path: &Path| {
            let kind = path.extension()?;
            kinds.iter().position(|it| *it == kind)
        };
        let mut found: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let path = entry.path();
                let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
                Some((kind_of(&path)?, modified, path))
            })
            .collect();
        found.sort();
        Ok(found.into_iter().map(|(_, _, path)| path).collect())
    }

    /// Writes a file at once: it has the old or the new content.
    fn write(&self, file: &Path, content: &impl Serialize) -> Result<(), Failure> {
        let write = || -> io::Result<()> {
            let mut aside = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
            serde_json::to_writer(&mut aside, content)?;
            aside.flush()?;
            aside.persist(file)?;
            Ok(())
        };
        write().map_err(|error| cannot("write", &error))
    }
}

fn age(file: &Path) -> Option<Duration> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok()
}

fn remove(file: &Path) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", &error)),
        _ => Ok(()),
    }
}

/// A file name for a path.
fn name_of(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut hasher = blake3::Hasher::new();
    hasher.update(path.as_os_str().as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::new(Code::Failed, format!("cannot {what} the queue of hooks: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saving(name: &str) -> Saving {
        let (transcript, folder) = (Path::new("/t").join(name), PathBuf::from("/p"));
        Saving { client: Client::Codex, transcript, folder }
    }

    #[test]
    fn what_arrives_while_it_is_carried_out_is_not_lost() {
        let state = tempfile::tempdir().unwrap();
        let place = StorePlace::unchecked("/s");
        let queue = Queue::open(state.path(), &place).unwrap();
        assert!(queue.is_empty().unwrap());
        queue.add(&saving("a")).unwrap();
        queue.add(&saving("a")).unwrap();
        let taken = queue.take(&[]).unwrap().unwrap();
        assert_eq!(taken.saving, saving("a"));
        // Asked for again, before it is finished.
        queue.add(&saving("a")).unwrap();
        queue.finish(&taken).unwrap();
        assert!(!queue.is_empty().unwrap());
        // Killed before it is finished.
        drop(queue.take(&[]).unwrap().unwrap());
        let again = queue.take(&[]).unwrap().unwrap();
        assert_eq!(again.saving, saving("a"));
        assert!(queue.take(&[PathBuf::from("/t/a")]).unwrap().is_none());
        queue.finish(&again).unwrap();
        assert!(queue.is_empty().unwrap());
    }

    #[test]
    fn unreadable_requests_are_removed() {
        let state = tempfile::tempdir().unwrap();
        let queue = Queue::open(state.path(), &StorePlace::unchecked("/s")).unwrap();
        fs::write(queue.folder.join("x.todo"), b"{").unwrap();
        assert!(queue.take(&[]).unwrap().is_none() && queue.is_empty().unwrap());
    }

    #[test]
    fn only_one_process_works_on_a_store() {
        let state = tempfile::tempdir().unwrap();
        let open = |store: &str| Queue::open(state.path(), &StorePlace::unchecked(store)).unwrap();
        let (first, second, other) = (open("/s"), open("/s"), open("/o"));
        let held = first.lock().unwrap().unwrap();
        assert!(second.lock().unwrap().is_none() && other.lock().unwrap().is_some());
        drop(held);
        assert!(second.lock().unwrap().is_some());
    }
}
