//! The roots of a store, and how paths relate to them.

use std::path::{Path, PathBuf};

use isolith_folder::git::{Worktree, shared_git_folder, without_dots};
use isolith_protocol::{ListRoots, LocateRoots, RootPlace, RootState};
use isolith_types::{Code, Failure, Hint};
use serde::Serialize;

use crate::open::Engine;

/// An indexed folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// Its number in the database.
    pub id: u64,
    /// Its absolute path.
    pub folder: PathBuf,
    /// When a run over the whole root was last completed, in milliseconds since 1970.
    pub indexed_at: Option<i64>,
    /// For a linked worktree: the folder that git keeps for it.
    pub worktree: Option<PathBuf>,
    /// Number of indexed files.
    pub files: u64,
    /// Number of chunks.
    pub chunks: u64,
}

/// An indexed folder, without counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RootFolder {
    pub(crate) id: u64,
    pub(crate) folder: PathBuf,
    /// Whether an index run over it was ever completed.
    pub(crate) finished: bool,
}

impl AsRef<Path> for Root {
    fn as_ref(&self) -> &Path {
        &self.folder
    }
}

impl AsRef<Path> for RootFolder {
    fn as_ref(&self) -> &Path {
        &self.folder
    }
}

/// The root that a path belongs to: the innermost one around it.
pub(crate) fn root_around<'r, R: AsRef<Path>>(roots: &'r [R], path: &Path) -> Option<&'r R> {
    let around = roots.iter().filter(|root| path.starts_with(root));
    around.max_by_key(|root| root.as_ref().components().count())
}

impl Root {
    /// The folder that all worktrees of its repository share.
    pub(super) fn shared_git_folder(&self) -> Option<PathBuf> {
        match &self.worktree {
            Some(entry) => Some(Worktree::kept_in(entry.clone())?.shared_git_folder().to_owned()),
            None => shared_git_folder(&self.folder),
        }
    }

    /// Whether it was a linked worktree that has been removed.
    pub(crate) fn is_removed_worktree(&self) -> bool {
        let worktree = self.worktree.clone().and_then(Worktree::kept_in);
        worktree.is_some_and(|worktree| worktree.is_removed(&self.folder))
    }
}

impl Engine {
    /// Lists the indexed folders that this engine may read.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn roots(&self) -> Result<Vec<Root>, Failure> {
        let roots = self.ask(ListRoots).await?.into_iter().map(|state| self.root(state));
        Ok(roots.filter(|it| self.allows_root(&it.folder, it.worktree.as_deref())).collect())
    }

    fn root(&self, state: RootState) -> Root {
        let RootState { id, path, indexed_at, worktree, files, chunks } = state;
        let worktree = worktree.map(|entry| self.root_folder(&entry));
        Root { id, folder: self.root_folder(&path), indexed_at, worktree, files, chunks }
    }

    /// The indexed folders that this engine may read, without counts.
    pub(crate) async fn root_folders(&self) -> Result<Vec<RootFolder>, Failure> {
        Ok(self.allowed_roots(&self.ask(LocateRoots).await?))
    }

    /// Those of these roots that this engine may read.
    pub(crate) fn allowed_roots(&self, places: &[RootPlace]) -> Vec<RootFolder> {
        let allowed = places.iter().filter(|it| self.allows_place(it));
        let folder = |it: &RootPlace| RootFolder {
            id: it.id,
            folder: self.root_folder(&it.path),
            finished: it.indexed_at.is_some(),
        };
        allowed.map(folder).collect()
    }

    /// The root at this path.
    pub(crate) async fn root_at(&self, path: &Path) -> Result<Root, Failure> {
        let real = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let real = without_dots(&real.unwrap_or_else(|_| path.to_owned()));
        let roots = self.roots().await?;
        match root_around(&roots, &real) {
            Some(root) if root.folder == real => Ok(root.clone()),
            Some(root) => {
                let (part, whole) = (real.display(), root.folder.display());
                let message = format!("{part} is only a part of {whole}, which has the index");
                Err(Failure::new(Code::BadInput, message)
                    .with_hint("name that folder, or leave the part out with .isolithignore"))
            }
            None => Err(not_indexed(&real)),
        }
    }

    /// The folder of a root, from its stored path.
    pub(crate) fn root_folder(&self, path: &str) -> PathBuf {
        without_dots(&self.home().join(path))
    }

    /// The folder that contains the store.
    pub(crate) fn home(&self) -> PathBuf {
        let store = self.folder();
        // A store that is a link belongs to the folder that contains the link.
        let home = store.parent().filter(|home| *home != Path::new("")).unwrap_or(Path::new("."));
        std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned())
    }

    /// The path to store for a root. Relative to the folder that contains the store if it is
    /// below it, so that both can be moved together.
    pub(crate) fn stored_path(&self, folder: &Path) -> String {
        let relative = folder.strip_prefix(self.home()).ok();
        // The folder itself is stored as ".", because a path must not be empty.
        let relative =
            relative.map(|path| if path == Path::new("") { Path::new(".") } else { path });
        relative.unwrap_or(folder).to_string_lossy().into_owned()
    }
}

pub(super) fn not_indexed(folder: &Path) -> Failure {
    Failure::new(Code::NotFound, format!("{} has no index", folder.display()))
        .with_hint(Hint::ListIndexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_innermost_root() {
        let roots = ["/a", "/a/b/c", "/ab"].map(PathBuf::from);
        let around =
            |path: &str| root_around(&roots, Path::new(path)).map(|it| it.to_str().unwrap());
        assert_eq!(around("/a/b"), Some("/a"));
        assert_eq!(around("/a/b/c/d"), Some("/a/b/c"));
        assert_eq!(around("/ab/c"), Some("/ab"));
        assert_eq!(around("/abc"), None);
    }
}
