//! Restricts a server's engine to allowed folders, whatever the store contains.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolith_folder::Folder;
use isolith_folder::git::{Worktree, repository_top, shared_git_folder};
use isolith_protocol::{LocateRoots, RootPlace};
use isolith_source::walk::looks_like_store;
use isolith_types::{Code, Failure, Hint};

use crate::location::PROJECT_FOLDER;
use crate::open::Engine;

/// Folders whose files may be read, except for the stores in them.
#[derive(Debug, Clone, Default)]
pub struct Within {
    folders: Vec<PathBuf>,
    stores: Vec<PathBuf>,
    /// What the worktrees of the project's repository share.
    git_folder: Option<PathBuf>,
}

impl Within {
    /// Allows these folders, except for these stores, which need not exist. Other stores are
    /// recognised by their content.
    pub fn new(folders: Vec<PathBuf>, stores: Vec<PathBuf>) -> Self {
        let real = |paths: Vec<PathBuf>| {
            paths.into_iter().filter_map(|path| Some(real_path(&path)?.0)).collect()
        };
        Self { folders: real(folders), stores: real(stores), git_folder: None }
    }

    /// Also allows what is indexed of other worktrees of the repository of this folder. Their
    /// files are not read.
    #[must_use]
    pub fn with_worktrees_of(self, project: Option<&Path>) -> Self {
        let top = project.and_then(repository_top);
        Self { git_folder: top.and_then(shared_git_folder), ..self }
    }

    /// Whether a root is a checkout of the project's repository.
    fn is_worktree(&self, folder: &Path, worktree: Option<&Path>) -> bool {
        let kept = worktree.and_then(|entry| Worktree::kept_in(entry.to_owned()));
        self.git_folder.as_deref().is_some_and(|shared| match kept {
            Some(worktree) => worktree.shared_git_folder() == shared,
            None => folder.join(".git") == shared,
        })
    }

    /// Whether a path lies in one of the folders and in no store. It must be absolute and
    /// without links; it need not exist.
    pub fn allows(&self, path: &Path) -> bool {
        let is_in = |folder: &PathBuf| path.starts_with(folder);
        self.folders.iter().any(is_in) && !self.stores.iter().any(is_in) && !is_in_store(path)
    }

    /// Opens an allowed folder. Follows no link, so that a path replaced by a link since the
    /// check fails.
    ///
    /// # Errors
    /// `PermissionDenied` if it is not allowed; any error from the system.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        let (folder, inner) = self.outer(path)?;
        folder.beneath(&inner)
    }

    /// Opens an allowed file in the same way.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let (folder, inner) = self.outer(path)?;
        folder.file_beneath(&inner)
    }

    /// Opens the allowed folder that contains a path; also returns the rest of the path.
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

/// Resolves the links of a path, and tells whether it exists. If not, its existing part is
/// resolved, so that errors do not reveal what lies outside.
pub fn real_path(path: &Path) -> Option<(PathBuf, bool)> {
    if let Ok(path) = std::fs::canonicalize(path) {
        return Some((path, true));
    }
    // The target of a dangling link may appear later, outside of the allowed folders.
    if path.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        return None;
    }
    let (above, _) = real_path(path.parent()?)?;
    Some((above.join(path.file_name()?), false))
}

/// Whether a path lies in a store, judging by the names and contents of the folders above it.
pub(crate) fn is_in_store(path: &Path) -> bool {
    path.ancestors().any(|folder| {
        folder.file_name().is_some_and(|name| name == PROJECT_FOLDER)
            || looks_like_store(|name| folder.join(name).symlink_metadata().is_ok())
    })
}

/// When all roots of a store were last seen to be allowed.
#[derive(Debug, Default)]
pub(crate) struct RootsSeen(Mutex<Option<Instant>>);

/// How long the result is cached: one tool call may make many queries.
const CACHED_FOR: Duration = Duration::from_secs(1);

impl RootsSeen {
    fn recently(&self) -> bool {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < CACHED_FOR)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Engine {
    /// Whether this engine may read files of this folder.
    pub(crate) fn allows_folder(&self, folder: &Path) -> bool {
        self.inner.options.within.as_ref().is_none_or(|within| within.allows(folder))
    }

    /// Whether this engine may read what is indexed of a root. `worktree` is the folder that
    /// git keeps for it, if it is a linked worktree.
    pub(crate) fn allows_root(&self, folder: &Path, worktree: Option<&Path>) -> bool {
        let within = self.inner.options.within.as_ref();
        within.is_none_or(|it| it.allows(folder) || it.is_worktree(folder, worktree))
    }

    /// The same for a root as it is stored.
    pub(crate) fn allows_place(&self, place: &RootPlace) -> bool {
        let worktree = place.worktree.as_ref().map(|entry| self.root_folder(entry));
        self.allows_root(&self.root_folder(&place.path), worktree.as_deref())
    }

    /// Opens the folder of a root, if its path has no links and this engine may read it.
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

    /// Folders that must not be indexed, relative to the root: the engine's own store, and
    /// the stores that its server hides.
    pub(crate) fn private_folders(&self, root: &Folder) -> Vec<String> {
        let more = self.inner.options.within.as_ref().map(|within| &within.stores[..]);
        let folders = more.unwrap_or_default().iter().map(PathBuf::as_path).chain([self.folder()]);
        let inner = |folder: &Path| {
            let real = std::fs::canonicalize(folder).ok()?;
            real.strip_prefix(root.path()).ok()?.to_str().map(str::to_owned)
        };
        folders.filter_map(inner).collect()
    }

    /// Fails if the store has roots that this engine must not read, because graph queries can
    /// reach all of them.
    pub(crate) async fn check_all_roots(&self) -> Result<(), Failure> {
        if self.inner.options.within.is_none() || self.inner.roots_seen.recently() {
            return Ok(());
        }
        let roots = self.ask(LocateRoots).await?;
        let outside = roots.iter().filter(|it| !self.allows_place(it));
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
    fn stores_in_allowed_folders_are_not_allowed() {
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
