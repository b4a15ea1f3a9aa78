//! Telling when files of a folder change.

use std::collections::HashSet;
use std::path::PathBuf;

use notify::event::EventKind;
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Something at this path, or a folder with all that is in it.
    Path(PathBuf),
    /// More than could be told.
    Everything,
}

/// Why folders cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system allows no more watches.
    #[error("the system allows no more watches (fs.inotify.max_user_watches)")]
    TooMany,
    /// The system refused.
    #[error("{0}")]
    Refused(String),
}

/// Watches folders, each by itself: those that the ignore rules leave out cost nothing.
#[derive(Debug)]
pub struct FolderWatch {
    watcher: RecommendedWatcher,
    covered: HashSet<PathBuf>,
}

impl FolderWatch {
    /// A watch over nothing yet. Changes are told on a thread of its own.
    ///
    /// # Errors
    /// If the system has no watches to give.
    pub fn start(tell: impl Fn(Change) + Send + 'static) -> Result<Self, WatchError> {
        let told = move |event: notify::Result<Event>| match event {
            // Reading changes nothing.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if event.need_rescan() => tell(Change::Everything),
            Ok(event) => event.paths.into_iter().for_each(|path| tell(Change::Path(path))),
            Err(_) => tell(Change::Everything),
        };
        let watcher = RecommendedWatcher::new(told, Config::default()).map_err(refused)?;
        Ok(Self { watcher, covered: HashSet::new() })
    }

    /// Watches these folders from now on, and no others. Folders that are gone by now, or
    /// closed to us, are left out. Returns those that were not watched before.
    ///
    /// # Errors
    /// If the system has no more watches to give; some folders are watched then.
    pub fn cover(&mut self, folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, WatchError> {
        let mut added = Vec::new();
        let folders: HashSet<PathBuf> = folders.into_iter().collect();
        for gone in self.covered.difference(&folders) {
            // A folder that was removed took its watch with it.
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

    /// Forgets a folder that was removed, so that one in its place is watched again.
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
    fn changes_in_covered_folders_are_told() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("seen")).unwrap();
        fs::create_dir(at("ignored")).unwrap();
        let (sender, changes) = mpsc::channel();
        let mut watch = FolderWatch::start(move |change| sender.send(change).unwrap()).unwrap();
        watch.cover(vec![at("seen"), at("nothing")]).unwrap();
        fs::write(at("ignored/a.rs"), "a").unwrap();
        // As editors save: written aside, then renamed.
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
    fn a_folder_that_comes_again_is_watched_again() {
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
