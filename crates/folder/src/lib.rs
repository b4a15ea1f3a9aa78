//! Folders and files that are opened without following links.
//!
//! What lies in a store or a project may have come from somewhere else: a clone, an archive. A
//! link in it must never make the program read, write or delete anything outside, and a path
//! that was checked can lead elsewhere a moment later. So a folder is opened once, as a handle,
//! and everything in it is reached relative to that handle: by a plain name in a store, by a
//! path without links in a project.

mod beneath;

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

/// A folder, by its handle. Clones share the handle.
#[derive(Debug, Clone)]
pub struct Folder {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// What a name in a folder stands for. A link is a link, whatever it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// How long it is.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
    /// Its device and inode.
    pub id: (u64, u64),
    /// Its owner.
    pub owner: u32,
}

/// What an [`Entry`] is.
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
    /// Opens the folder at `path`, which must be free of links: canonical.
    ///
    /// # Errors
    /// [`met_link`] tells whether a component of the path is a link.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self { handle: Arc::new(open_without_links(&path, flags)?), path })
    }

    /// Opens the folder at `path`, in which links are followed: [`Self::path`] has none. The
    /// handle serves to open what lies below it.
    ///
    /// # Errors
    /// If it is not there, is not a folder, or is being replaced.
    pub fn resolve(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        Ok(Self { handle: Arc::new(open_without_links(&path, HANDLE)?), path })
    }

    /// A folder that somebody else has opened: a worker gets it from the front.
    pub fn of_handle(path: PathBuf, handle: Arc<OwnedFd>) -> Self {
        Self { handle, path }
    }

    /// The handle, to be sent to a worker.
    pub fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.handle)
    }

    /// Opens a folder below this one, by a path without links.
    ///
    /// # Errors
    /// If there is no folder, or a link is on the way.
    pub fn beneath(&self, path: &Path) -> io::Result<Self> {
        let handle = Arc::new(open_beneath(&self.handle, path, HANDLE)?);
        let steps = path.components().filter(|it| *it != Component::CurDir);
        let path = steps.fold(self.path.clone(), |folder, step| folder.join(step));
        Ok(Self { handle, path })
    }

    /// Opens a file below this folder for reading, by a path without links. Whether it is a
    /// regular file is for the caller to check; a pipe is not waited for.
    ///
    /// # Errors
    /// If nothing is there, it must not be read, or a link is on the way.
    pub fn file_beneath(&self, path: &Path) -> io::Result<File> {
        Ok(open_beneath(&self.handle, path, FILE)?.into())
    }

    /// What is known of something below this folder, which is not opened for it.
    ///
    /// # Errors
    /// If nothing is there, or a link is on the way.
    pub fn metadata(&self, path: &Path) -> io::Result<std::fs::Metadata> {
        File::from(open_beneath(&self.handle, path, OFlags::PATH | OFlags::CLOEXEC)?).metadata()
    }

    /// Opens the folder `name` in this one.
    ///
    /// # Errors
    /// [`met_link`] tells whether it is a link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let handle = Arc::new(openat(&self.handle, plain(name)?, flags, Mode::empty())?);
        Ok(Self { handle, path: self.path.join(name) })
    }

    /// Opens the folder `name` in this one, which is created for this user alone if it
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
    /// [`ErrorKind::InvalidInput`] if it is something else, or as the system says.
    pub fn file(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing, which is created for this user alone
    /// if it does not exist.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn file_or_create(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Opens a regular file to write at its end, which is created for this user alone if
    /// it does not exist.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn file_to_append(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    /// Creates a file for this user alone.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], whatever has the name, or as the system says.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.handle, plain(name)?, flags, FILE_MODE)?))
    }

    /// What `name` stands for; `None` if nothing has that name.
    ///
    /// # Errors
    /// As the system says.
    pub fn entry(&self, name: &str) -> io::Result<Option<Entry>> {
        match statat(&self.handle, plain(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry::new(name.to_owned(), &stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything in the folder, but for what disappears meanwhile and for names that are
    /// not UTF-8, which are none of ours.
    ///
    /// # Errors
    /// As the system says.
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

    /// Removes what has the name, unless it is a folder. A link is removed, not what it
    /// leads to.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, plain(name)?, AtFlags::empty())?)
    }

    /// Moves what has the name to another name, in the place of what had that one.
    ///
    /// # Errors
    /// As the system says.
    pub fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, plain(name)?, &to.handle, plain(new)?)?)
    }

    /// Moves what has the name to another name, which must be free.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or as the system says.
    pub fn rename_new(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        let (name, new) = (plain(name)?, plain(new)?);
        let renamed = renameat_with(&self.handle, &name, &to.handle, &new, RenameFlags::NOREPLACE);
        match renamed {
            // Not every filesystem can do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if statat(&to.handle, &new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                Ok(renameat(&self.handle, &name, &to.handle, &new)?)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Makes what was created, renamed and removed so far outlast a loss of power.
    ///
    /// # Errors
    /// As the system says.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }

    /// Where it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_regular(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // A pipe would keep the caller waiting for somebody at its other end.
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

/// Whether something was not opened because a link, or something else that is not a
/// folder, is in the way.
pub fn met_link(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::LOOP | Errno::NOTDIR))
}

/// Opens a path none of whose components is a link.
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

/// A name that cannot lead anywhere else.
fn plain(name: &str) -> io::Result<CString> {
    if matches!(name, "" | "." | "..") || OsStr::new(name).as_bytes().contains(&b'/') {
        let text = format!("{name:?} is not a plain file name");
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(CString::new(name)?)
}

#[cfg(test)]
mod tests;
