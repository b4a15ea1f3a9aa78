//! Reports changes to the files of a folder.

use std::collections::HashSet;
use std::path::PathBuf;

use notify::event::EventKind;
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};

/// A change to a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This path changed; if it is a folder, anything in it may have changed.
    Path(PathBuf),
    /// Events were lost: anything may have changed.
    Everything,
}

/// Why folders cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The limit on inotify watches is reached.
    #[error("the system allows no more watches (fs.inotify.max_user_watches)")]
    TooMany,
    /// Any other error from the system.
    #[error("{0}")]
    Refused(String),
}

/// Watches folders individually, not recursively, so that ignored folders cost nothing.
#[derive(Debug)]
pub struct FolderWatch {
    watcher: RecommendedWatcher,
    covered: HashSet<PathBuf>,
}

impl FolderWatch {
    /// Starts without any folder. `tell` is called on a dedicated thread.
    ///
    /// # Errors
    /// If the system provides no watches.
    pub fn start(tell: impl Fn(Change) + Send + 'static) -> Result<Self, WatchError> {
        let told = move |event: notify::Result<Event>| match event {
            // Reads are not changes.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if event.need_rescan() => tell(Change::Everything),
            Ok(event) => event.paths.into_iter().for_each(|path| tell(Change::Path(path))),
            Err(_) => tell(Change::Everything),
        };
        let watcher = RecommendedWatcher::new(told, Config::default()).map_err(refused)?;
        Ok(Self { watcher, covered: HashSet::new() })
    }

    /// Replaces the set of watched folders. Folders that no longer exist or cannot be read
    /// are skipped. Returns those that were not watched before.
    ///
    /// # Errors
    /// If the system runs out of watches; some of the folders are watched then.
    pub fn cover(&mut self, folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, WatchError> {
        let mut added = Vec::new();
        let folders: HashSet<PathBuf> = folders.into_iter().collect();
        for gone in self.covered.difference(&folders) {
            // Removing a folder also removes its watch.
            let _ = self.watcher.unwatch(gone);
        }
        self.covered.retain(|folder| folders.contains(folder));
        for folder in folders {
            if self.covered.contains(&folder) {
                continue;
            }
            match self.watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    added.push(folder.clone());
                    self.covered.insert(folder);
                }
                Err(error) if is_out_of_reach(&error) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(added)
    }

    /// Forgets a removed folder, so that a new one at the same path is watched again.
    pub fn forget(&mut self, folder: &std::path::Path) {
        let below: Vec<PathBuf> =
            self.covered.iter().filter(|covered| covered.starts_with(folder)).cloned().collect();
        for folder in below {
            let _ = self.watcher.unwatch(&folder);
            self.covered.remove(&folder);
        }
    }
}

fn is_out_of_reach(error: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => {
            matches!(error.kind(), NotFound | PermissionDenied | NotADirectory)
        }
        _ => false,
    }
}

fn refused(error: notify::Error) -> WatchError {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => WatchError::TooMany,
        _ => WatchError::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn changes_in_watched_folders_are_reported() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("seen")).unwrap();
        fs::create_dir(at("ignored")).unwrap();
        let (sender, changes) = mpsc::channel();
        let mut watch = FolderWatch::start(move |change| sender.send(change).unwrap()).unwrap();
        watch.cover(vec![at("seen"), at("nothing")]).unwrap();
        fs::write(at("ignored/a.rs"), "a").unwrap();
        // The way editors save: write a temporary file, then rename it.
        fs::write(at("seen/a.tmp"), "a").unwrap();
        fs::rename(at("seen/a.tmp"), at("seen/a.rs")).unwrap();
        let wanted = Change::Path(at("seen/a.rs"));
        while let Ok(change) = changes.recv_timeout(Duration::from_secs(20)) {
            assert_ne!(change, Change::Path(at("ignored/a.rs")));
            if change == wanted {
                return;
            }
        }
        panic!("the file was not told");
    }

    #[test]
    fn a_recreated_folder_is_watched_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let (sender, changes) = mpsc::channel();
        let mut watch = FolderWatch::start(move |change| sender.send(change).unwrap()).unwrap();
        watch.cover(vec![folder.clone()]).unwrap();
        fs::remove_dir(&folder).unwrap();
        watch.forget(&folder);
        fs::create_dir(&folder).unwrap();
        watch.cover(vec![folder.clone()]).unwrap();
        while changes.try_recv().is_ok() {}
        fs::write(folder.join("a.rs"), "a").unwrap();
        let wanted = Change::Path(folder.join("a.rs"));
        while let Ok(change) = changes.recv_timeout(Duration::from_secs(20)) {
            if change == wanted {
                return;
            }
        }
        panic!("the file was not told");
    }
}
