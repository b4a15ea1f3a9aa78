//! Opens files and folders below a folder without following links.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// A handle of a folder: things can be opened relative to it, but it cannot be read itself.
pub(crate) const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file for reading. Opening a pipe must not wait for a writer.
pub(crate) const FILE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How often a lookup is repeated if concurrent renames disturb it.
const MAX_TRIES: usize = 16;

/// Opens a path below a folder without following any link; an empty path is the folder itself.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a path that leads outside, or an error from the system.
pub fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    for _ in 0..MAX_TRIES {
        match openat2(&folder, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Old kernels lack the call, and old sandboxes deny unknown calls.
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(folder, path, flags),
            opened => return Ok(opened?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// The same for systems without `openat2`: opens one component after the other.
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
    let through = HANDLE | OFlags::NOFOLLOW;
    let mut at = openat(folder, ".", HANDLE, Mode::empty())?;
    for name in above {
        at = openat(&at, *name, through, Mode::empty()).map_err(|error| {
            // With O_NOFOLLOW, a link is reported as "not a directory".
            if is_link(&at, name) { Errno::LOOP } else { error }
        })?;
    }
    // With O_PATH, the system would return a handle of the link itself.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    fn sample_tree() -> (tempfile::TempDir, PathBuf) {
        let sample_tree = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(sample_tree.path()).unwrap();
        fs::create_dir_all(top.join("inside/deep")).unwrap();
        fs::create_dir(top.join("outside")).unwrap();
        fs::write(top.join("inside/deep/file"), "in").unwrap();
        fs::write(top.join("outside/file"), "out").unwrap();
        symlink("deep", top.join("inside/near")).unwrap();
        symlink("../outside", top.join("inside/far")).unwrap();
        symlink("deep/file", top.join("inside/link")).unwrap();
        (sample_tree, top)
    }

    type Opening = fn(&OwnedFd, &Path, OFlags) -> io::Result<OwnedFd>;

    #[test]
    fn links_and_paths_to_the_outside_are_rejected() {
        let (_place, top) = sample_tree();
        let inside = rustix::fs::open(top.join("inside"), HANDLE, Mode::empty()).unwrap();
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
                let opened = open(&inside, Path::new(path), FILE).map(|opened| {
                    let mut text = String::new();
                    File::from(opened).read_to_string(&mut text).unwrap();
                    text
                });
                let found = opened.map_err(|error| Errno::from_io_error(&error).unwrap());
                assert_eq!(found.as_deref().map_err(|error| *error), expected, "{way}: {path}");
            }
        }
    }
}
