//! Keeps an index up to date: one watcher per root, across processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isolate::Supervised;
use isolith_source::walk::WalkOptions;
use isolith_source::watch::{Change, FolderWatch, WatchError};
use isolith_types::{Code, Failure};
use tokio::sync::mpsc;

use crate::index::{
    FoldWhen, IndexOptions, IndexReport, IndexWatcher, Listing, RootLock, has_moved_since,
    lock_file, walk_options,
};
use crate::open::Engine;

/// An event from a watcher.
#[derive(Debug)]
pub enum WatchEvent {
    /// Another process watches the root; this one takes over when that ends.
    Waiting,
    /// The index is up to date; waiting for changes.
    Watching,
    /// Files have changed; the index will be updated when changes stop arriving.
    Changed,
    /// The index was updated.
    Updated(IndexReport),
    /// The update failed and will be retried.
    Failed(Failure),
    /// The folder cannot be watched and is polled instead.
    Polling(String),
}

/// Receives events from a watcher.
pub type WatchListener = Arc<dyn Fn(WatchEvent) + Send + Sync>;

/// How long changes must pause before the index is updated: a save or a branch switch makes
/// many changes.
const QUIET: Duration = Duration::from_millis(150);

/// Maximum time that an update is delayed by further changes.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How often to poll a folder that cannot be watched or does not exist.
const POLL: Duration = Duration::from_secs(5);

/// How often to try to take over from another process.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// Maximum number of queued changes; beyond it, everything counts as changed.
const MAX_QUEUED: usize = 4_096;

impl Engine {
    /// Keeps the index of a folder up to date until the engine is drained. If the folder is
    /// part of a root, the rest of the root is ignored.
    ///
    /// # Errors
    /// Any error of the first run.
    pub async fn watch(
        &self,
        options: &IndexOptions,
        listener: WatchListener,
    ) -> Result<(), Failure> {
        let place = self.place_to_index(options).await?;
        let root = place.folder().to_owned();
        tokio::select! {
            outcome = self.watch_part(&root, place.under(), options, &listener) => outcome,
            () = self.inner.readers.drained() => Ok(()),
        }
    }

    async fn watch_part(
        &self,
        root: &Path,
        under: &str,
        options: &IndexOptions,
        listener: &WatchListener,
    ) -> Result<(), Failure> {
        let _lock = self.only_watcher(root, listener).await?;
        let (sender, changes) = mpsc::channel(MAX_QUEUED);
        let store = std::fs::canonicalize(self.folder()).unwrap_or_else(|_| self.folder().into());
        let overflow = Arc::new(AtomicBool::new(false));
        let tell = tell(sender, store, Arc::clone(&overflow));
        let whole = &if under.is_empty() { root.to_owned() } else { root.join(under) };
        let mut watched = Watched::start(self, root, under, tell, listener);
        // Start watching before the first run, so that no change is missed.
        watched.cover(None, listener).await;
        let first = self.renew(whole, options).await?;
        listener(WatchEvent::Updated(first));
        listener(WatchEvent::Watching);
        let mut changes = Changes { changes, overflow, root: whole.clone() };
        let options = &IndexOptions { of_root: Some(root.to_owned()), ..options.clone() };
        let (mut missed, mut asked) = (false, None);
        loop {
            self.renew_history(root, &mut asked).await;
            let part = match watched.watch.is_some() && !missed {
                true => changes.next(listener).await,
                false => changes.next_or_all(POLL, listener).await,
            };
            let Some(part) = part else { return Ok(()) };
            let part = if missed { whole.clone() } else { part };
            let part = watched.cover(Some(part), listener).await;
            match self.renew(&part, options).await {
                Ok(report) => {
                    missed = false;
                    listener(WatchEvent::Updated(report));
                }
                Err(failure) if failure.code == Code::Draining => return Ok(()),
                // The index was removed: there is nothing left to update.
                Err(failure) if failure.code == Code::NotFound && self.is_over(root).await => {
                    return Err(failure);
                }
                Err(failure) => {
                    missed = true;
                    listener(WatchEvent::Failed(failure));
                }
            }
        }
    }

    /// Whether there is nothing to watch any more: the folder is there, but has no index; or
    /// it was a worktree that has been removed, and its index is dropped.
    async fn is_over(&self, root: &Path) -> bool {
        let is_root = |it: &String| Path::new(it) == root;
        root.is_dir() || self.removed_worktrees().await.is_ok_and(|all| all.iter().any(is_root))
    }

    async fn renew(&self, part: &Path, options: &IndexOptions) -> Result<IndexReport, Failure> {
        let silent: IndexWatcher = Arc::new(|_| {});
        let options = IndexOptions {
            path: part.to_owned(),
            rebuild: false,
            reembed: false,
            fold: FoldWhen::Due,
            ..options.clone()
        };
        self.index(&options, silent).await
    }

    /// Reads the git history again if there may be new commits.
    async fn renew_history(&self, root: &Path, asked: &mut Option<i64>) {
        if !has_moved_since(root, *asked) {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        *asked = i64::try_from(now.as_millis()).ok();
        if let Err(failure) = self.gather_history(root).await {
            tracing::warn!(%failure, "authors and dates are not known");
        }
    }

    /// Waits until no other process watches the root.
    async fn only_watcher(
        &self,
        root: &Path,
        listener: &WatchListener,
    ) -> Result<RootLock, Failure> {
        let file = lock_file(self, root, "watch");
        let mut told = false;
        loop {
            if let Some(lock) = RootLock::try_take(&file)? {
                return Ok(lock);
            }
            if !told {
                listener(WatchEvent::Waiting);
            }
            told = true;
            tokio::time::sleep(TAKE_OVER).await;
        }
    }
}

/// The folders that are watched.
struct Watched {
    engine: Engine,
    root: PathBuf,
    /// The part of the root that is watched; empty for the whole root.
    under: String,
    /// `None` if the system provides no watches.
    watch: Option<FolderWatch>,
}

impl Watched {
    fn start(
        engine: &Engine,
        root: &Path,
        under: &str,
        tell: impl Fn(Change) + Send + 'static,
        listener: &WatchListener,
    ) -> Self {
        let watch = FolderWatch::start(tell);
        let watch = watch.map_err(|error| listener(WatchEvent::Polling(error.to_string()))).ok();
        Self { engine: engine.clone(), root: root.to_owned(), under: under.to_owned(), watch }
    }

    /// Updates the set of watched folders. Folders in the changed part are watched afresh,
    /// because a removed and recreated folder has lost its watch. Returns the part of the
    /// root with all folders that were not watched before.
    async fn cover(&mut self, part: Option<PathBuf>, listener: &WatchListener) -> PathBuf {
        let mut all = part.clone().unwrap_or_else(|| self.whole());
        let mut anew = part;
        while self.watch.is_some() {
            let covered = match self.folders().await {
                Ok(folders) => self.watch_these(folders, anew.take()).await,
                // A root that does not exist, or cannot be listed now, is retried later.
                Err(failure) => {
                    tracing::debug!(%failure, "the folders to watch are not known");
                    return all;
                }
            };
            match covered {
                // List again: a folder may have been created before its parent was watched.
                Ok(added) if added.is_empty() => break,
                Ok(added) => added.iter().for_each(|folder| all = common(&all, folder)),
                Err(reason) => listener(WatchEvent::Polling(reason)),
            }
        }
        all
    }

    fn whole(&self) -> PathBuf {
        match self.under.is_empty() {
            true => self.root.clone(),
            false => self.root.join(&self.under),
        }
    }

    /// The folders that a walk goes through.
    async fn folders(&self) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.engine.open_root(&self.root).map_err(|error| {
            Failure::new(Code::NotFound, format!("{}: {error}", self.root.display()))
        })?;
        let what =
            WalkOptions { folders: true, ..walk_options(&self.engine, &folder, &self.under) };
        let settings = self.engine.root_settings(&self.root)?;
        let mut listing = Listing::begin(&self.engine, &folder, what, &settings.ignored)?;
        let mut folders = Vec::new();
        while let Some(page) = listing.next().await? {
            // Skip the folders that only lead to the part.
            let found = page.folders.iter().map(|folder| self.root.join(folder));
            folders.extend(found.filter(|folder| folder.starts_with(self.whole())));
        }
        Ok(folders)
    }

    /// Replaces the set of watched folders, and restarts the watches in `anew`; returns the
    /// folders that were not watched before. After an error, nothing is watched.
    async fn watch_these(
        &mut self,
        folders: Vec<PathBuf>,
        anew: Option<PathBuf>,
    ) -> Result<Vec<PathBuf>, String> {
        let Some(mut watch) = self.watch.take() else { return Ok(Vec::new()) };
        // Changing the watches blocks until their thread has responded.
        let covering = tokio::task::spawn_blocking(move || {
            if let Some(anew) = &anew {
                watch.forget(anew);
            }
            let added = watch.cover(folders)?;
            Ok::<_, WatchError>((watch, added))
        });
        match covering.await {
            Ok(Ok((watch, added))) => {
                self.watch = Some(watch);
                Ok(added)
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Forwards changes without blocking: it runs on the watch's own thread.
fn tell(
    sender: mpsc::Sender<Change>,
    store: PathBuf,
    overflow: Arc<AtomicBool>,
) -> impl Fn(Change) + Send + 'static {
    move |change| {
        // Ignore the store: indexing writes to it, which would trigger indexing again.
        if matches!(&change, Change::Path(path) if path.starts_with(&store)) {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(change) {
            overflow.store(true, Ordering::Relaxed);
        }
    }
}

/// The queue of changes.
struct Changes {
    changes: mpsc::Receiver<Change>,
    /// Whether the queue has overflowed.
    overflow: Arc<AtomicBool>,
    root: PathBuf,
}

impl Changes {
    /// The smallest part of the root that contains all of the next changes; `None` at the end.
    async fn next(&mut self, listener: &WatchListener) -> Option<PathBuf> {
        let first = self.changes.recv().await?;
        listener(WatchEvent::Changed);
        Some(self.gather(first).await)
    }

    /// As [`Self::next`], or the whole root after a timeout.
    async fn next_or_all(&mut self, wait: Duration, listener: &WatchListener) -> Option<PathBuf> {
        match tokio::time::timeout(wait, self.changes.recv()).await {
            Ok(Some(first)) => {
                listener(WatchEvent::Changed);
                Some(self.gather(first).await)
            }
            // Without a watch there are no events; that is not the end.
            Ok(None) => {
                tokio::time::sleep(wait).await;
                Some(self.root.clone())
            }
            Err(_) => Some(self.root.clone()),
        }
    }

    async fn gather(&mut self, first: Change) -> PathBuf {
        let mut part = self.part_of(first);
        let latest = Instant::now() + MAX_WAIT;
        while let Some(left) = latest.checked_duration_since(Instant::now()) {
            match tokio::time::timeout(QUIET.min(left), self.changes.recv()).await {
                Ok(Some(next)) => part = common(&part, &self.part_of(next)),
                _ => break,
            }
        }
        if self.overflow.swap(false, Ordering::Relaxed) {
            return self.root.clone();
        }
        // The removal of a path shows in its parent folder.
        while !part.is_dir() && part != self.root && part.pop() {}
        if part.starts_with(&self.root) { part } else { self.root.clone() }
    }

    fn part_of(&self, change: Change) -> PathBuf {
        match change {
            Change::Everything => self.root.clone(),
            // Rules apply to everything in their folder.
            Change::Path(path) => path.parent().map(Path::to_owned).unwrap_or(path),
        }
    }
}

/// The deepest folder that contains both.
fn common(a: &Path, b: &Path) -> PathBuf {
    let same = a.components().zip(b.components()).take_while(|(a, b)| a == b);
    same.map(|(component, _)| component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_combined_into_their_common_folder() {
        let common = |a: &str, b: &str| super::common(Path::new(a), Path::new(b));
        assert_eq!(common("/a/b/c", "/a/b/d"), Path::new("/a/b"));
        assert_eq!(common("/a/b", "/a/b/c"), Path::new("/a/b"));
        assert_eq!(common("/a/bc", "/a/bd"), Path::new("/a"));
    }
}
