//! Repairs the modes of the files in a store. Runs in the front, because workers may not
//! change modes.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Maximum depth; a store itself has only one level of folders.
const MAX_DEPTH: u32 = 8;

/// Corrects the modes of the folder and everything in it, and returns how many were wrong.
/// Follows no links and leaves files of other users alone.
///
/// # Errors
/// The first file or folder that could not be changed or read.
pub(super) fn mend(folder: &Path) -> io::Result<u64> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    let mended = set_mode(&handle, &rustix::fs::fstat(&handle)?)?;
    Ok(u64::from(mended) + mend_below(&handle, MAX_DEPTH)?)
}

fn mend_below(folder: &OwnedFd, depth: u32) -> io::Result<u64> {
    let mut mended = 0;
    for name in names(folder)? {
        mended += match mend_entry(folder.as_fd(), &name, depth) {
            // Another process removed it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            mended => mended.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", name.to_string_lossy()))
            })?,
        };
    }
    Ok(mended)
}

fn mend_entry(folder: BorrowedFd<'_>, name: &CStr, depth: u32) -> io::Result<u64> {
    // Opened with O_PATH: it may be a pipe, or have no permissions at all.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    let mended = u64::from(set_mode(&handle, &stat)?);
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    if !is_folder || !is_ours(&stat) || depth == 0 {
        return Ok(mended);
    }
    Ok(mended + mend_below(&handle, depth - 1)?)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(folder, c".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(listed)? {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Sets the mode; returns whether it was different.
fn set_mode(handle: &OwnedFd, stat: &Stat) -> io::Result<bool> {
    let wanted = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => return Ok(false),
        FileType::Directory => FOLDER_MODE,
        _ => FILE_MODE,
    };
    if stat.st_mode & 0o777 == wanted || !is_ours(stat) {
        return Ok(false);
    }
    // `fchmod` fails on an O_PATH handle; this path names the open file itself, without
    // another lookup.
    let place = format!("/proc/self/fd/{}", handle.as_raw_fd());
    match rustix::fs::chmod(place, Mode::from_raw_mode(wanted)) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_files_of_the_store_get_their_mode() {
        let place = tempfile::tempdir().unwrap();
        let (store, outside) = (place.path().join("store"), place.path().join("outside"));
        fs::create_dir_all(store.join("segments")).unwrap();
        fs::create_dir(&outside).unwrap();
        let (open, closed) = (store.join("segments/open"), store.join("segments/closed"));
        for file in [&open, &closed, &outside.join("file")] {
            fs::write(file, "x").unwrap();
        }
        symlink(&outside, store.join("folder link")).unwrap();
        symlink(outside.join("file"), store.join("file link")).unwrap();
        set(&outside, 0o755);
        set(&outside.join("file"), 0o644);
        set(&open, 0o644);
        set(&closed, 0);
        set(&store.join("segments"), 0);
        set(&store, 0o755);

        assert_eq!(mend(&store).unwrap(), 4);
        assert_eq!([&open, &closed].map(|file| mode(file)), [0o600; 2]);
        assert_eq!([&store, &store.join("segments")].map(|folder| mode(folder)), [0o700; 2]);
        assert_eq!((mode(&outside), mode(&outside.join("file"))), (0o755, 0o644));
        assert_eq!(mend(&store).unwrap(), 0);
    }

    #[test]
    fn a_link_in_place_of_the_store_is_refused() {
        let place = tempfile::tempdir().unwrap();
        set(place.path(), 0o755);
        let link = place.path().join("link");
        symlink(place.path(), &link).unwrap();
        assert!(mend(&link).is_err());
        assert_eq!(mode(place.path()), 0o755);
    }
}
