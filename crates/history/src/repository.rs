use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the parts of a repository are. All paths are absolute, without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The folder that holds `.git`.
    pub work_tree: PathBuf,
    /// What `.git` is, or leads to: it has `HEAD`.
    pub git_dir: PathBuf,
    /// Where objects and branches are: the same, but for a linked work tree.
    pub common_dir: PathBuf,
}

impl Repository {
    /// A folder of the work tree, as it is called in commits: relative, with slashes,
    /// and empty for the work tree itself. None if it is elsewhere or has a name that is
    /// not UTF-8.
    pub fn below(&self, folder: &Path) -> Option<String> {
        let folder = fs::canonicalize(folder).ok()?;
        folder.strip_prefix(&self.work_tree).ok()?.to_str().map(str::to_owned)
    }

    /// Whether the repository is in the work tree, or knows it as one of its linked work
    /// trees. Anybody can make a `.git` that names a repository of somebody else.
    pub fn knows_work_tree(&self) -> bool {
        let entry = self.work_tree.join(".git");
        let back = || fs::canonicalize(path_in(&self.git_dir.join("gitdir"), b"")?).ok();
        self.git_dir == entry || back().is_some_and(|back| back == entry)
    }
}

/// Finds the repository that a folder is in, looking upward on the same file system.
///
/// This only looks at a few names and reads two short files, so it is safe in the front.
/// A `.git` that leads nowhere is passed over. One that leads elsewhere is believed only
/// if a repository is there, as the answer decides what a worker may read.
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

/// The repository that a linked work tree belongs to. Git keeps what is the work tree's
/// own inside of that repository; if it is elsewhere, the link is not git's.
fn linked_from(git_dir: &Path, path: &Path) -> Option<PathBuf> {
    let common_dir = fs::canonicalize(git_dir.join(path)).ok()?;
    (git_dir.parent()? == common_dir.join("worktrees")).then_some(common_dir)
}

/// The longest file that names a path.
const LONGEST_POINTER: u64 = 8 << 10;

/// The path that a small file consists of, after a label.
fn path_in(file: &Path, label: &[u8]) -> Option<PathBuf> {
    // Opening a pipe would wait for somebody to write to it.
    let unblocked = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(unblocked).open(file).ok()?;
    if !opened.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(LONGEST_POINTER).read_to_end(&mut bytes).ok()?;
    let path = bytes.strip_prefix(label)?.trim_ascii();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
