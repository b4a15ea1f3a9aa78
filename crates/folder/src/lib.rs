//! Opens folders and files without following links.
//!
//! The content of a store or project may come from elsewhere: a clone, an archive. A link in it
//! must never make the program read, write or delete anything outside, and a path that was
//! checked can lead elsewhere a moment later. So a folder is opened once, as a handle, and
//! everything in it is accessed relative to that handle: by a plain name in a store, by a path
//! without links in a project.

mod beneath;
pub mod git;

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

pub use beneath::open_beneath;
use beneath::{FILE, HANDLE};

const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open folder. Clones share the handle.
#[derive(Debug, Clone)]
pub struct Folder {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// An entry of a folder. A link is reported as a link, whatever it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last modified.
    pub modified: SystemTime,
    /// Its device and inode number.
    pub id: (u64, u64),
    /// The user ID of its owner.
    pub owner: u32,
}

/// The type of an [`Entry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A socket, pipe or device.
    Other,
}

impl Folder {
    /// Opens the folder at `path`, which must be canonical: free of links.
    ///
    /// # Errors
    /// If it cannot be opened; [`met_link`] tells whether a component of the path is a link.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self { handle: Arc::new(open_without_links(&path, flags)?), path })
    }

    /// Opens the folder at `path`, following links; [`Self::path`] returns the resolved path.
    /// The handle is for opening what is below it.
    ///
    /// # Errors
    /// If it does not exist, is not a folder, or is being replaced.
    pub fn resolve(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        Ok(Self { handle: Arc::new(open_without_links(&path, HANDLE)?), path })
    }

    /// A folder that someone else has opened: workers get theirs from the front.
    pub fn of_handle(path: PathBuf, handle: Arc<OwnedFd>) -> Self {
        Self { handle, path }
    }

    /// The handle, for sending to a worker.
    pub fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.handle)
    }

    /// Opens a folder below this one, by a path without links.
    ///
    /// # Errors
    /// If there is no folder, or a component of the path is a link.
    pub fn beneath(&self, path: &Path) -> io::Result<Self> {
        let handle = Arc::new(open_beneath(&self.handle, path, HANDLE)?);
        let steps = path.components().filter(|it| *it != Component::CurDir);
        let path = steps.fold(self.path.clone(), |folder, step| folder.join(step));
        Ok(Self { handle, path })
    }

    /// Opens a file below this folder for reading, by a path without links. The caller must
    /// check that it is a regular file; opening a pipe does not block.
    ///
    /// # Errors
    /// If it does not exist or cannot be read, or a component of the path is a link.
    pub fn file_beneath(&self, path: &Path) -> io::Result<File> {
        Ok(open_beneath(&self.handle, path, FILE)?.into())
    }

    /// The metadata of something below this folder, without opening it.
    ///
    /// # Errors
    /// If it does not exist, or a component of the path is a link.
    pub fn metadata(&self, path: &Path) -> io::Result<std::fs::Metadata> {
        File::from(open_beneath(&self.handle, path, OFlags::PATH | OFlags::CLOEXEC)?).metadata()
    }

    /// Opens the folder `name` in this one.
    ///
    /// # Errors
    /// If it cannot be opened; [`met_link`] tells whether it is a link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let handle = Arc::new(openat(&self.handle, plain(name)?, flags, Mode::empty())?);
        Ok(Self { handle, path: self.path.join(name) })
    }

    /// Opens the folder `name` in this one; creates it, accessible to this user only, if it
    /// does not exist.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub fn folder_or_create(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.handle, plain(name)?, FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it is something else, or an error from the system.
    pub fn file(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing; creates it, accessible to this user only,
    /// if it does not exist.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn file_or_create(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Opens a regular file for appending; creates it, accessible to this user only, if it does
    /// not exist.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn file_to_append(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    /// Creates a file that is accessible to this user only.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if the name is taken, or an error from the system.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.handle, plain(name)?, flags, FILE_MODE)?))
    }

    /// The entry `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// An error from the system.
    pub fn entry(&self, name: &str) -> io::Result<Option<Entry>> {
        match statat(&self.handle, plain(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry::new(name.to_owned(), &stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// All entries of the folder, except for those that disappear meanwhile or whose names are
    /// not UTF-8, which the program never creates.
    ///
    /// # Errors
    /// An error from the system.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for found in Dir::new(openat(&self.handle, ".", flags, Mode::empty())?)? {
            let found = found?;
            let Ok(name) = found.file_name().to_str() else { continue };
            if name != "." && name != ".." {
                entries.extend(self.entry(name)?);
            }
        }
        Ok(entries)
    }

    /// Removes an entry, unless it is a folder. Removes a link itself, not its target.
    ///
    /// # Errors
    /// An error from the system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, plain(name)?, AtFlags::empty())?)
    }

    /// Renames an entry, replacing an entry that has the new name.
    ///
    /// # Errors
    /// An error from the system.
    pub fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, plain(name)?, &to.handle, plain(new)?)?)
    }

    /// Renames an entry; the new name must not exist.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or an error from the system.
    pub fn rename_new(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        let (name, new) = (plain(name)?, plain(new)?);
        let renamed = renameat_with(&self.handle, &name, &to.handle, &new, RenameFlags::NOREPLACE);
        match renamed {
            // Not every filesystem supports that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if statat(&to.handle, &new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                Ok(renameat(&self.handle, &name, &to.handle, &new)?)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Makes all creations, renames and removals so far survive a power failure.
    ///
    /// # Errors
    /// An error from the system.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }

    /// The path it was opened with, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_regular(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Opening a pipe would block until there is a writer.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        regular(File::from(openat(&self.handle, plain(name)?, flags, FILE_MODE)?))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Entry {
    fn new(name: String, stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
        let nanoseconds = Duration::from_nanos(stat.st_mtime_nsec);
        Self {
            name,
            kind,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: UNIX_EPOCH + seconds + nanoseconds,
            id: (stat.st_dev, stat.st_ino),
            owner: stat.st_uid,
        }
    }
}

/// Opens the regular file at `path` for reading. The path must be free of links.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if it is not a regular file; [`met_link`] tells whether a
/// component of the path is a link.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(File::from(open_without_links(path, flags)?))
}

/// Whether opening failed because a component of the path is a link, or otherwise not a folder.
pub fn met_link(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::LOOP | Errno::NOTDIR))
}

/// Opens a path that must not contain any link.
fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let (top, inner) = match path.strip_prefix("/") {
        Ok(inner) => ("/", inner),
        Err(_) => (".", path),
    };
    open_beneath(rustix::fs::open(top, HANDLE, Mode::empty())?, inner, flags)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Checks that a name is a single path component.
fn plain(name: &str) -> io::Result<CString> {
    if matches!(name, "" | "." | "..") || OsStr::new(name).as_bytes().contains(&b'/') {
        let text = format!("{name:?} is not a plain file name");
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(CString::new(name)?)
}

#[cfg(test)]
mod tests;
