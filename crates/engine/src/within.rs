//! What an engine of a server may read and answer for: folders that were allowed, whatever
//! the store says.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolith_folder::Folder;
use isolith_protocol::LocateRoots;
use isolith_source::walk::looks_like_store;
use isolith_types::{Code, Failure, Hint};

use crate::location::PROJECT_FOLDER;
use crate::open::Engine;

/// Folders below which files may be read, without the stores in them.
#[derive(Debug, Clone, Default)]
pub struct Within {
    folders: Vec<PathBuf>,
    stores: Vec<PathBuf>,
}

impl Within {
    /// These folders, but for these stores, which need not exist. Other stores are known by
    /// what is in them.
    pub fn new(folders: Vec<PathBuf>, stores: Vec<PathBuf>) -> Self {
        let real = |paths: Vec<PathBuf>| {
            paths.into_iter().filter_map(|path| Some(real_path(&path)?.0)).collect()
        };
        Self { folders: real(folders), stores: real(stores) }
    }

    /// Whether a path lies in one of the folders and in no store. It is absolute and has no
    /// links; it need not exist.
    pub fn allows(&self, path: &Path) -> bool {
        let is_in = |folder: &PathBuf| path.starts_with(folder);
        self.folders.iter().any(is_in) && !self.stores.iter().any(is_in) && !is_in_store(path)
    }

    /// Opens a folder that is allowed. No link is followed: a path that has become one since
    /// it was looked at leads nowhere.
    ///
    /// # Errors
    /// `PermissionDenied` if it is not allowed, or what the system says.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        let (folder, inner) = self.outer(path)?;
        folder.beneath(&inner)
    }

    /// Opens a file that is allowed, in the same way.
    ///
    /// # Errors
    /// The same.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let (folder, inner) = self.outer(path)?;
        folder.file_beneath(&inner)
    }

    /// The folder that a path lies in, open, and the rest of the path.
    fn outer(&self, path: &Path) -> io::Result<(Folder, PathBuf)> {
        if self.allows(path) {
            for folder in &self.folders {
                let Ok(folder) = Folder::resolve(folder) else { continue };
                if let Ok(inner) = path.strip_prefix(folder.path()) {
                    let inner = inner.to_owned();
                    return Ok((folder, inner));
                }
            }
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The path without links, and whether anything is there. Of a path to nothing, the part that
/// exists is resolved: whoever asks must not learn from an error what lies outside.
pub fn real_path(path: &Path) -> Option<(PathBuf, bool)> {
    if let Ok(path) = std::fs::canonicalize(path) {
        return Some((path, true));
    }
    // A link that leads nowhere may lead somewhere soon, and not where it seems to be.
    if path.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        return None;
    }
    let (above, _) = real_path(path.parent()?)?;
    Some((above.join(path.file_name()?), false))
}

/// Whether a path lies in a store, going by names and by what is in the folders above it.
fn is_in_store(path: &Path) -> bool {
    path.ancestors().any(|folder| {
        folder.file_name().is_some_and(|name| name == PROJECT_FOLDER)
            || looks_like_store(|name| folder.join(name).symlink_metadata().is_ok())
    })
}

/// When all roots of a store were last seen to be allowed.
#[derive(Debug, Default)]
pub(crate) struct RootsSeen(Mutex<Option<Instant>>);

/// So long is it believed: one call of a tool may be many queries.
const BELIEVED: Duration = Duration::from_secs(1);

impl RootsSeen {
    fn recently(&self) -> bool {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < BELIEVED)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Engine {
    /// Whether this engine may answer for the root in this folder.
    pub(crate) fn allows_root(&self, folder: &Path) -> bool {
        self.inner.options.within.as_ref().is_none_or(|within| within.allows(folder))
    }

    /// Opens the folder of a root, if that is where it says and this engine may read it.
    pub(crate) fn open_root(&self, folder: &Path) -> io::Result<Folder> {
        match &self.inner.options.within {
            Some(within) => within.folder(folder),
            None => {
                let opened = Folder::resolve(folder)?;
                match opened.path() == folder {
                    true => Ok(opened),
                    false => Err(io::Error::other("it has become a link to another folder")),
                }
            }
        }
    }

    /// Folders in a root that belong to the program, relative to it: the engine's own store,
    /// and what its server keeps from everybody.
    pub(crate) fn private_folders(&self, root: &Folder) -> Vec<String> {
        let more = self.inner.options.within.as_ref().map(|within| &within.stores[..]);
        let folders = more.unwrap_or_default().iter().map(PathBuf::as_path).chain([self.folder()]);
        let inner = |folder: &Path| {
            let real = std::fs::canonicalize(folder).ok()?;
            real.strip_prefix(root.path()).ok()?.to_str().map(str::to_owned)
        };
        folders.filter_map(inner).collect()
    }

    /// An error if the store knows roots that this engine must not answer for: queries of the
    /// graph can reach all of them.
    pub(crate) async fn check_all_roots(&self) -> Result<(), Failure> {
        if self.inner.options.within.is_none() || self.inner.roots_seen.recently() {
            return Ok(());
        }
        let roots = self.ask(LocateRoots).await?;
        let outside = roots.iter().filter(|it| !self.allows_root(&self.root_folder(&it.path)));
        match outside.count() {
            0 => {
                self.inner.roots_seen.note();
                Ok(())
            }
            count => {
                let message = format!(
                    "the graph holds code of {count} folder(s) outside of what this server may read"
                );
                Err(Failure::new(Code::ForbiddenPath, message).with_hint(Hint::AllowIndexedFolder))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn stores_are_no_part_of_what_is_allowed() {
        let place = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(place.path()).unwrap();
        for folder in ["a/src", "a/.isolith", "a/other/segments", "a/given", "a/sealed", "b"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        for file in ["a/other/truth.sqlite", "a/sealed/seal", "a/sealed/lock", "a/src/seal"] {
            fs::write(top.join(file), "").unwrap();
        }
        symlink(top.join("b"), top.join("a/link")).unwrap();
        let within = Within::new(vec![top.join("a")], vec![top.join("a/given")]);
        let table = [
            ("a", true),
            ("a/src", true),
            ("a/src/nothing", true),
            ("a/.isolith", false),
            ("a/.isolith/x", false),
            ("a/other", false),
            ("a/other/segments/x", false),
            ("a/given/x", false),
            ("a/sealed", false),
            ("b", false),
        ];
        for (path, expected) in table {
            assert_eq!(within.allows(&top.join(path)), expected, "{path}");
        }
        assert_eq!(within.folder(&top.join("a/src")).unwrap().path(), top.join("a/src"));
        assert!(within.folder(&top.join("a/link")).is_err());
        assert!(within.file(&top.join("a/other/truth.sqlite")).is_err());
    }
}
