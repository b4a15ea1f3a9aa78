use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolate::Supervised;
use isolith_folder::Folder;
use isolith_types::{Code, Failure, Hint};

use super::{IndexProgress, IndexStage, IndexWatcher};
use crate::open::Engine;

/// Ensures one run at a time per root, across processes. Released when its holder dies.
#[derive(Debug)]
pub(crate) struct RootLock {
    _file: File,
}

/// How often to retry a lock held by another process.
const POLL: Duration = Duration::from_millis(50);

impl RootLock {
    /// Takes the lock of a root; with `wait`, waits for its holder.
    pub(crate) async fn take(
        engine: &Engine,
        root: &Path,
        wait: bool,
        watcher: &IndexWatcher,
    ) -> Result<Self, Failure> {
        let path = lock_file(engine, root, "index");
        loop {
            if let Some(lock) = Self::try_take(&path)? {
                return Ok(lock);
            }
            if !wait {
                let message = format!("{} is being indexed by another process", root.display());
                return Err(Failure::new(Code::LockHeld, message).with_hint(Hint::WaitForIndexing));
            }
            watcher(IndexProgress { stage: IndexStage::Waiting, done: 0, total: 0 });
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = engine.inner.readers.drained() => {
                    return Err(Failure::new(Code::Draining, "the program is stopping"));
                }
            }
        }
    }

    /// Takes the lock in this file if it is free.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, Failure> {
        let refuse = |error: std::io::Error| {
            Failure::new(Code::ReadOnly, format!("cannot lock {}: {error}", path.display()))
        };
        let file = open_lock(path).map_err(refuse)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(refuse(error)),
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    let nameless = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(nameless)?;
    let run = path.parent().ok_or_else(nameless)?;
    let store = Folder::open(run.parent().ok_or_else(nameless)?)?;
    let run = run.file_name().and_then(|name| name.to_str()).ok_or_else(nameless)?;
    store.folder_or_create(run)?.file_or_create(name)
}

/// The file of a root's lock for a purpose. Its name has a fixed length.
pub(crate) fn lock_file(engine: &Engine, root: &Path, purpose: &str) -> PathBuf {
    // The store may be visible under several paths; its names for roots are the same.
    let hash = blake3::hash(engine.stored_path(root).as_bytes()).to_hex();
    engine.inner.folder.run().join(format!("{purpose}-{}.lock", &hash[..16]))
}
