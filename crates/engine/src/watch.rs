//! Keeping an index fresh: one watcher for each root, across processes.

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
    FoldWhen, IndexOptions, IndexReport, IndexWatcher, Listing, Place, RootLock, has_moved_since,
    lock_file,
};
use crate::open::Engine;

/// What a watcher tells.
#[derive(Debug)]
pub enum WatchEvent {
    /// Another process watches the root; this one waits for it to end.
    Waiting,
    /// The index is up to date, and changes are waited for.
    Watching,
    /// Something has changed; the index will be renewed when no more changes come.
    Changed,
    /// The index was updated.
    Updated(IndexReport),
    /// The index could not be updated; it is tried again.
    Failed(Failure),
    /// Changes cannot be watched for; the folder is looked through now and then.
    Polling(String),
}

/// Takes what a watcher tells.
pub type WatchListener = Arc<dyn Fn(WatchEvent) + Send + Sync>;

/// So long must nothing change before the index is updated: a save or a switch of
/// branches is many changes.
const QUIET: Duration = Duration::from_millis(150);

/// A change waits no longer than this for the others.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How often a folder is looked through that cannot be watched, or that is not there.
const POLL: Duration = Duration::from_secs(5);

/// How often another process's watch is tried to be taken over.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// Changes that may wait; beyond these everything is taken for changed.
const WAITING: usize = 4_096;

impl Engine {
    /// Keeps the index of a folder up to date until the engine is drained. Of a root that
    /// holds more than that folder, nothing else is looked at.
    ///
    /// # Errors
    /// What keeps the first run from being done.
    pub async fn watch(
        &self,
        options: &IndexOptions,
        listener: WatchListener,
    ) -> Result<(), Failure> {
        let place = Place::find(self, &options.path).await?;
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
        let (sender, changes) = mpsc::channel(WAITING);
        let store = std::fs::canonicalize(self.folder()).unwrap_or_else(|_| self.folder().into());
        let overflow = Arc::new(AtomicBool::new(false));
        let tell = tell(sender, store, Arc::clone(&overflow));
        let whole = &if under.is_empty() { root.to_owned() } else { root.join(under) };
        let mut watched = Watched::start(self, root, under, tell, listener);
        // Watching begins before the first run, so that nothing falls between them.
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
                // Somebody dropped the index: there is nothing to be kept fresh.
                Err(failure) if failure.code == Code::NotFound && root.is_dir() => {
                    return Err(failure);
                }
                Err(failure) => {
                    missed = true;
                    listener(WatchEvent::Failed(failure));
                }
            }
        }
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

    /// Asks git again if there may be commits that came after it was last asked.
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
    /// The part of the root that is watched; empty for all of it.
    under: String,
    /// None if there is nothing to watch with.
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

    /// Watches the folders that are there now, those of a part that changed anew: one that
    /// was removed has lost its watch, and another may be in its place. Returns the part
    /// with all folders that were not watched before.
    async fn cover(&mut self, part: Option<PathBuf>, listener: &WatchListener) -> PathBuf {
        let mut all = part.clone().unwrap_or_else(|| self.whole());
        let mut anew = part;
        while self.watch.is_some() {
            let covered = match self.folders().await {
                Ok(folders) => self.watch_these(folders, anew.take()).await,
                // A root that is not there, or cannot be listed now, is looked at again.
                Err(failure) => {
                    tracing::debug!(%failure, "the folders to watch are not known");
                    return all;
                }
            };
            match covered {
                // A folder that was made while its parent was not watched yet is found by
                // looking again.
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
        let except = self.engine.private_folders(&folder);
        let what = WalkOptions {
            under: self.under.clone(),
            largest_file: 0,
            include_secrets: false,
            folders: true,
            except,
            languages: Vec::new(),
        };
        let settings = self.engine.root_settings(&self.root)?;
        let mut listing = Listing::begin(&self.engine, &folder, what, &settings.ignored)?;
        let mut folders = Vec::new();
        while let Some(page) = listing.next().await? {
            // Those on the way to a part are no part of it.
            let found = page.folders.iter().map(|folder| self.root.join(folder));
            folders.extend(found.filter(|folder| folder.starts_with(self.whole())));
        }
        Ok(folders)
    }

    /// Watches these and no others, those in `anew` from the beginning; returns those that
    /// were not watched before. After an error nothing is watched.
    async fn watch_these(
        &mut self,
        folders: Vec<PathBuf>,
        anew: Option<PathBuf>,
    ) -> Result<Vec<PathBuf>, String> {
        let Some(mut watch) = self.watch.take() else { return Ok(Vec::new()) };
        // The watch waits for its own thread.
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

/// Passes changes on, and never waits: the watch's own thread calls it.
fn tell(
    sender: mpsc::Sender<Change>,
    store: PathBuf,
    overflow: Arc<AtomicBool>,
) -> impl Fn(Change) + Send + 'static {
    move |change| {
        // What is indexed is written there: it would never come to an end.
        if matches!(&change, Change::Path(path) if path.starts_with(&store)) {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(change) {
            overflow.store(true, Ordering::Relaxed);
        }
    }
}

/// Changes, gathered.
struct Changes {
    changes: mpsc::Receiver<Change>,
    /// Whether there were more than could be kept.
    overflow: Arc<AtomicBool>,
    root: PathBuf,
}

impl Changes {
    /// The smallest part of the root that holds all of the next changes; none at the end.
    async fn next(&mut self, listener: &WatchListener) -> Option<PathBuf> {
        let first = self.changes.recv().await?;
        listener(WatchEvent::Changed);
        Some(self.gather(first).await)
    }

    /// The same, or all of the root after some time.
    async fn next_or_all(&mut self, wait: Duration, listener: &WatchListener) -> Option<PathBuf> {
        match tokio::time::timeout(wait, self.changes.recv()).await {
            Ok(Some(first)) => {
                listener(WatchEvent::Changed);
                Some(self.gather(first).await)
            }
            // Without a watch nothing is ever told; that is not an end.
            Ok(None) => {
                tokio::time::sleep(wait).await;
                Some(self.root.clone())
            }
            Err(_) => Some(self.root.clone()),
        }
    }

    async fn gather(&mut self, first: Change) -> PathBuf {
        let mut part = self.part_of(first);
        let latest = Instant::now() + LONGEST_WAIT;
        while let Some(left) = latest.checked_duration_since(Instant::now()) {
            match tokio::time::timeout(QUIET.min(left), self.changes.recv()).await {
                Ok(Some(next)) => part = common(&part, &self.part_of(next)),
                _ => break,
            }
        }
        if self.overflow.swap(false, Ordering::Relaxed) {
            return self.root.clone();
        }
        // What went away is seen from the folder that it was in.
        while !part.is_dir() && part != self.root && part.pop() {}
        if part.starts_with(&self.root) { part } else { self.root.clone() }
    }

    fn part_of(&self, change: Change) -> PathBuf {
        match change {
            Change::Everything => self.root.clone(),
            // Rules hold for everything below them.
            Change::Path(path) => path.parent().map(Path::to_owned).unwrap_or(path),
        }
    }
}

/// The deepest folder that both lie in.
fn common(a: &Path, b: &Path) -> PathBuf {
    let same = a.components().zip(b.components()).take_while(|(a, b)| a == b);
    same.map(|(component, _)| component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_gathered_to_their_common_folder() {
        let common = |a: &str, b: &str| super::common(Path::new(a), Path::new(b));
        assert_eq!(common("/a/b/c", "/a/b/d"), Path::new("/a/b"));
        assert_eq!(common("/a/b", "/a/b/c"), Path::new("/a/b"));
        assert_eq!(common("/a/bc", "/a/bd"), Path::new("/a"));
    }
}
