//! How folders and git repositories belong together, from the `.git` entries of folders.
//!
//! Anyone can create a `.git` file that points anywhere. So nothing is opened through a link, git
//! is never started, and a folder counts as a linked worktree only if the repository that it names
//! points back to it. All paths must be absolute and without links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::Folder;

/// Maximum size of a file that holds a path.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// The entry `.git` of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitEntry {
    /// There is none.
    Absent,
    /// A folder, or something that git cannot use.
    Own,
    /// A file that names a folder, which need not exist.
    Pointer(PathBuf),
}

impl GitEntry {
    /// Reads the entry in the folder `below` this one.
    pub fn read(folder: &Folder, below: &Path) -> Self {
        match pointer(folder, &below.join(".git"), b"gitdir:") {
            Ok(Some(path)) => Self::Pointer(without_dots(&folder.path().join(below).join(path))),
            Ok(None) => Self::Own,
            Err(error) if is_absent(&error) => Self::Absent,
            Err(_) => Self::Own,
        }
    }

    /// Whether the folder is a repository of its own, and not a submodule of the one around it,
    /// whose git folder this is.
    pub fn is_own(&self, around: Option<&Path>) -> bool {
        match self {
            Self::Absent => false,
            Self::Own => true,
            Self::Pointer(target) => {
                !around.is_some_and(|around| target.starts_with(around.join("modules")))
            }
        }
    }

    /// Where git keeps the repository of this folder, if it has one.
    pub fn git_folder(self, folder: &Path) -> Option<PathBuf> {
        match self {
            Self::Absent => None,
            Self::Own => Some(folder.join(".git")),
            Self::Pointer(target) => Some(target),
        }
    }

    fn at(folder: &Path) -> Self {
        match Folder::resolve(Path::new("/")) {
            Ok(top) => Self::read(&top, folder.strip_prefix("/").unwrap_or(folder)),
            Err(_) => Self::Absent,
        }
    }
}

/// Where git keeps the repository that a folder is in.
pub fn git_folder_around(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|folder| GitEntry::at(folder).git_folder(folder))
}

/// Whether a folder is the top of a repository or linked worktree; a submodule is not.
pub fn is_repository(folder: &Path) -> bool {
    match GitEntry::at(folder) {
        GitEntry::Absent => false,
        GitEntry::Own => true,
        entry @ GitEntry::Pointer(_) => {
            let around = folder.parent().and_then(git_folder_around);
            entry.is_own(around.as_deref())
        }
    }
}

/// The top of the repository or linked worktree that a path is in.
pub fn repository_top(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| is_repository(folder))
}

/// The top of the innermost repository that a path is in, if it is below `folder`: the path is
/// then not part of what `folder` is the top of.
pub fn repository_between<'a>(folder: &Path, path: &'a Path) -> Option<&'a Path> {
    let mut below = path.ancestors().take_while(|it| *it != folder && it.starts_with(folder));
    below.find(|folder| is_repository(folder))
}

/// The folder that all worktrees of a repository share, for the top of one of them or of a
/// submodule. `None` if a `.git` file names a folder that does not confirm it.
pub fn shared_git_folder(top: &Path) -> Option<PathBuf> {
    match GitEntry::at(top) {
        GitEntry::Absent => None,
        GitEntry::Own => Some(top.join(".git")),
        GitEntry::Pointer(target) if !is_repository(top) => Some(target),
        GitEntry::Pointer(_) => Some(Worktree::of(top)?.shared_git_folder().to_owned()),
    }
}

/// A linked worktree, as its repository knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The folder that git keeps for it: `<shared git folder>/worktrees/<name>`.
    entry: PathBuf,
}

impl Worktree {
    /// The linked worktree in a folder, if its repository points back to the folder.
    pub fn of(folder: &Path) -> Option<Self> {
        let GitEntry::Pointer(entry) = GitEntry::at(folder) else { return None };
        let worktree = Self::kept_in(entry)?;
        worktree.listed().is_ok_and(|top| top.as_deref() == Some(folder)).then_some(worktree)
    }

    /// The worktree that git keeps this folder for. Nothing is checked but the path.
    pub fn kept_in(entry: PathBuf) -> Option<Self> {
        let is_entry = entry.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
        (is_entry && entry.file_name().is_some()).then_some(Self { entry })
    }

    /// The folder that git keeps for it.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// The folder that it shares with the main checkout.
    pub fn shared_git_folder(&self) -> &Path {
        self.entry.parent().and_then(Path::parent).unwrap_or(&self.entry)
    }

    /// The main checkout; none for a bare repository.
    pub fn main_checkout(&self) -> Option<&Path> {
        let shared = self.shared_git_folder();
        shared.parent().filter(|_| shared.file_name() == Some(OsStr::new(".git")))
    }

    /// Whether the worktree that was in a folder has been removed: neither the folder is there
    /// nor does the repository know of it, although the repository itself can be read.
    pub fn is_removed(&self, folder: &Path) -> bool {
        let is_gone = |error: io::Error| error.kind() == ErrorKind::NotFound;
        let repository = Folder::open(self.shared_git_folder());
        let is_there = repository.and_then(|it| it.file("HEAD")).is_ok();
        let is_listed = match self.listed() {
            Ok(top) => top.as_deref() == Some(folder),
            Err(error) => !is_absent(&error),
        };
        is_there && !is_listed && folder.symlink_metadata().is_err_and(is_gone)
    }

    /// The folder that the repository says the worktree is in.
    fn listed(&self) -> io::Result<Option<PathBuf>> {
        let top = Folder::resolve(Path::new("/"))?;
        let entry = self.entry.strip_prefix("/").unwrap_or(&self.entry);
        let path = pointer(&top, &entry.join("gitdir"), b"")?;
        let Some(path) = path.map(|path| without_dots(&self.entry.join(path))) else {
            return Ok(None);
        };
        let is_entry = path.file_name() == Some(OsStr::new(".git"));
        Ok(path.parent().filter(|_| is_entry).map(Path::to_owned))
    }
}

/// The path in a small file, after a label; none if it holds something else.
fn pointer(folder: &Folder, path: &Path, label: &[u8]) -> io::Result<Option<PathBuf>> {
    let file: File = folder.file_beneath(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_POINTER_BYTES).read_to_end(&mut bytes)?;
    let path = bytes.strip_prefix(label).map(<[u8]>::trim_ascii);
    let path = path.filter(|path| !path.is_empty() && !path.contains(&0));
    Ok(path.map(|path| PathBuf::from(OsStr::from_bytes(path))))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The path without `.` and `..`, which need not exist.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
