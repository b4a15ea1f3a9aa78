use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The paths of a repository. All are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The folder that holds `.git`.
    pub work_tree: PathBuf,
    /// The `.git` folder, or the one that a `.git` file points to; contains `HEAD`.
    pub git_dir: PathBuf,
    /// Contains objects and branches: `git_dir`, except for a linked work tree.
    pub common_dir: PathBuf,
}

impl Repository {
    /// The path of a folder of the work tree as used in commits: relative, with slashes, empty
    /// for the work tree itself. `None` if it is elsewhere or not UTF-8.
    pub fn below(&self, folder: &Path) -> Option<String> {
        let folder = fs::canonicalize(folder).ok()?;
        folder.strip_prefix(&self.work_tree).ok()?.to_str().map(str::to_owned)
    }
}

/// Finds the repository that contains a folder, searching upward on the same file system.
///
/// Only checks a few names and reads two short files, so it is safe in the front. A `.git` that
/// leads nowhere is skipped. One that points elsewhere is accepted only if a repository is
/// there, because the result decides what a worker may read.
pub fn repository_of(folder: &Path) -> Option<Repository> {
    let folder = fs::canonicalize(folder).ok()?;
    let device = fs::metadata(&folder).ok()?.dev();
    let same_device = |path: &&Path| fs::metadata(path).is_ok_and(|seen| seen.dev() == device);
    folder.ancestors().take_while(same_device).find_map(repository_at)
}

fn repository_at(work_tree: &Path) -> Option<Repository> {
    let entry = work_tree.join(".git");
    let kind = fs::metadata(&entry).ok()?.file_type();
    let git_dir = if kind.is_dir() { entry } else { work_tree.join(path_in(&entry, b"gitdir:")?) };
    let git_dir = fs::canonicalize(git_dir).ok()?;
    let common_dir = match path_in(&git_dir.join("commondir"), b"") {
        Some(path) => linked_from(&git_dir, &path)?,
        None => git_dir.clone(),
    };
    let complete = git_dir.join("HEAD").is_file()
        && common_dir.join("objects").is_dir()
        && common_dir.join("refs").is_dir();
    complete.then(|| Repository { work_tree: work_tree.to_owned(), git_dir, common_dir })
}

/// The repository of a linked work tree. Git stores the work tree's own data inside that
/// repository; if it is elsewhere, git did not create the link.
fn linked_from(git_dir: &Path, path: &Path) -> Option<PathBuf> {
    let common_dir = fs::canonicalize(git_dir.join(path)).ok()?;
    (git_dir.parent()? == common_dir.join("worktrees")).then_some(common_dir)
}

/// The maximum size of a file that contains a path.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// The path in a small file, after a label.
fn path_in(file: &Path, label: &[u8]) -> Option<PathBuf> {
    // Opening a pipe would block until there is a writer.
    let unblocked = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(unblocked).open(file).ok()?;
    if !opened.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(MAX_POINTER_BYTES).read_to_end(&mut bytes).ok()?;
    let path = bytes.strip_prefix(label)?.trim_ascii();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
