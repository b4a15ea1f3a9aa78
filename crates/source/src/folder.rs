//! Folders that are held open, so that what lies below them is found without following links.
//!
//! A path that was checked can lead elsewhere a moment later. Everything here is opened
//! relative to a handle, and no link is followed on the way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// A folder that is held open. Clones share the handle.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    handle: Arc<OwnedFd>,
}

impl Folder {
    /// Opens a folder. Links in `path` are followed; [`Self::path`] has none.
    ///
    /// # Errors
    /// If it is not there, is not a folder, or is being replaced.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let top = rustix::fs::open("/", FOLDER, Mode::empty())?;
        let inner = path.strip_prefix("/").unwrap_or(&path);
        let handle = open_beneath(&top, inner, FOLDER)?;
        Ok(Self { path, handle: Arc::new(handle) })
    }

    /// A folder that somebody else has opened: a worker gets it from the front.
    pub fn of_handle(path: PathBuf, handle: Arc<OwnedFd>) -> Self {
        Self { path, handle }
    }

    /// Where it was when it was opened: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle, to be sent to a worker.
    pub fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.handle)
    }

    /// Opens a folder below this one, without following links.
    ///
    /// # Errors
    /// If there is no folder, or a link is on the way.
    pub fn beneath(&self, path: &Path) -> io::Result<Self> {
        let handle = Arc::new(open_beneath(&self.handle, path, FOLDER)?);
        Ok(Self { path: joined(&self.path, path), handle })
    }

    /// Opens a file below this folder for reading, without following links. Whether it is a
    /// regular file is for the caller to check; a pipe is not waited for.
    ///
    /// # Errors
    /// If nothing is there, it must not be read, or a link is on the way.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        Ok(open_beneath(&self.handle, path, FILE)?.into())
    }

    /// What is known of something below this folder, which is not opened for it.
    ///
    /// # Errors
    /// If nothing is there, or a link is on the way.
    pub fn metadata(&self, path: &Path) -> io::Result<std::fs::Metadata> {
        File::from(open_beneath(&self.handle, path, OFlags::PATH | OFlags::CLOEXEC)?).metadata()
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// A handle of a folder: things can be opened relative to it, and it cannot be read itself.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file to be read. Opening a pipe must not wait for somebody to write to it.
const FILE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How often a lookup is repeated that others disturb by renaming.
const TRIES: usize = 16;

/// Opens what lies below a folder without following any link; an empty path is the folder
/// itself.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a path that leads out, or what the system says.
pub(crate) fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    for _ in 0..TRIES {
        match openat2(&folder, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Old kernels do not have the call, and old sandboxes deny what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(folder, path, flags),
            opened => return Ok(opened?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// The same for systems without `openat2`: each component by itself.
fn step_by_step(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV.into());
            }
        }
    }
    let Some((last, above)) = names.split_last() else {
        return Ok(openat(folder, ".", flags, Mode::empty())?);
    };
    let through = FOLDER | OFlags::NOFOLLOW;
    let mut at = openat(folder, ".", FOLDER, Mode::empty())?;
    for name in above {
        at = openat(&at, *name, through, Mode::empty()).map_err(|error| {
            // A link that is not followed is not a folder.
            if is_link(&at, name) { Errno::LOOP } else { error }
        })?;
    }
    // A handle of a link is no harm to the system, and none to be used here.
    if is_link(&at, last) {
        return Err(Errno::LOOP.into());
    }
    let opened = openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())?;
    match File::from(opened) {
        file if file.metadata()?.is_symlink() => Err(Errno::LOOP.into()),
        file => Ok(file.into()),
    }
}

fn is_link(folder: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    let found = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|it| rustix::fs::FileType::from_raw_mode(it.st_mode).is_symlink())
}

fn joined(folder: &Path, path: &Path) -> PathBuf {
    let steps = path.components().filter(|it| *it != Component::CurDir);
    steps.fold(folder.to_owned(), |folder, step| folder.join(step))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(top.join("inside/deep")).unwrap();
        fs::create_dir(top.join("outside")).unwrap();
        fs::write(top.join("inside/deep/file"), "in").unwrap();
        fs::write(top.join("outside/file"), "out").unwrap();
        symlink("deep", top.join("inside/near")).unwrap();
        symlink("../outside", top.join("inside/far")).unwrap();
        symlink("deep/file", top.join("inside/link")).unwrap();
        (place, top)
    }

    type Opening = fn(&OwnedFd, &Path, OFlags) -> io::Result<OwnedFd>;

    #[test]
    fn no_link_is_followed_and_nothing_leads_out() {
        let (_place, top) = place();
        let inside = Folder::open(&top.join("inside")).unwrap();
        let ways: [Opening; 2] = [
            |folder, path, flags| open_beneath(folder, path, flags),
            |folder, path, flags| step_by_step(folder, path, flags),
        ];
        let table = [
            ("deep/file", Ok("in")),
            ("./deep/./file", Ok("in")),
            ("near/file", Err(Errno::LOOP)),
            ("far/file", Err(Errno::LOOP)),
            ("link", Err(Errno::LOOP)),
            ("../outside/file", Err(Errno::XDEV)),
            ("/etc/passwd", Err(Errno::XDEV)),
            ("nothing", Err(Errno::NOENT)),
        ];
        for (way, open) in ways.into_iter().enumerate() {
            for (path, expected) in table {
                let opened = open(&inside.handle, Path::new(path), FILE).map(|opened| {
                    let mut text = String::new();
                    File::from(opened).read_to_string(&mut text).unwrap();
                    text
                });
                let found = opened.map_err(|error| Errno::from_io_error(&error).unwrap());
                assert_eq!(found.as_deref().map_err(|error| *error), expected, "{way}: {path}");
            }
        }
    }

    #[test]
    fn a_folder_knows_where_it_is() {
        let (_place, top) = place();
        let folder = Folder::open(&top.join("inside/near/..")).unwrap();
        assert_eq!(folder.path(), top.join("inside"));
        assert_eq!(folder.beneath(Path::new("./deep")).unwrap().path(), top.join("inside/deep"));
        assert!(folder.beneath(Path::new("near")).is_err());
        assert!(folder.beneath(Path::new("deep/file")).is_err());
        assert_eq!(folder.metadata(Path::new("deep/file")).unwrap().len(), 2);
        assert!(folder.metadata(Path::new("link")).is_err());
    }

    #[test]
    fn a_folder_that_is_replaced_stays_the_one_it_was() {
        let (_place, top) = place();
        let folder = Folder::open(&top.join("inside/deep")).unwrap();
        fs::rename(top.join("inside/deep"), top.join("moved")).unwrap();
        symlink(top.join("outside"), top.join("inside/deep")).unwrap();
        let mut text = String::new();
        folder.file(Path::new("file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "in");
    }
}
