//! A Unix socket that only its user can connect to.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use isolith_types::{Code, Failure};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{UnixListener, UnixStream};

/// Maximum length of a socket's path.
const MAX_PATH_BYTES: usize = 107;

/// Name of the new socket in the private folder.
const NEW_NAME: &str = "new";

/// Name of a replaced socket in the private folder, before it is deleted.
const DEAD_NAME: &str = "old";

/// A listening socket. Dropping it deletes its file.
pub(crate) struct UnixSocket {
    listener: UnixListener,
    folder: OwnedFd,
    name: OsString,
    file_id: FileId,
}

/// Device and inode.
type FileId = (u64, u64);

impl UnixSocket {
    /// Listens at a path. Replaces a dead socket, one that no process listens on.
    ///
    /// # Errors
    /// `usage` if the path is too long or taken by something else; `failed` if another server
    /// listens there, or the socket cannot be created.
    pub(crate) fn bind(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().ok_or_else(|| unusable(path, "is not the path of a file"))?;
        let length = path.as_os_str().len();
        if length > MAX_PATH_BYTES {
            let what = format!("has {length} bytes; the limit for a socket is {MAX_PATH_BYTES}");
            return Err(unusable(path, &what));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let failed = |error: io::Error| failed(path, &error);
        let folder = open_folder(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        let private = PrivateFolder::create(&folder).map_err(failed)?;
        let (listener, file_id) = private.listen().map_err(failed)?;
        private.remove_dead(&folder, name, path)?;
        rustix::fs::renameat_with(&private.fd, NEW_NAME, &folder, name, RenameFlags::NOREPLACE)
            .map_err(|error| match error {
                Errno::EXIST => in_use(path),
                error => failed(error.into()),
            })?;
        drop(private);
        Ok(Self { listener, folder, name: name.to_owned(), file_id })
    }

    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if stat(&self.folder, &self.name).is_ok_and(|it| file_id(&it) == self.file_id) {
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// A temporary folder that only this user can enter, where the socket gets its mode before it is
/// moved to its path. Deleted when dropped.
struct PrivateFolder<'a> {
    folder: &'a OwnedFd,
    name: String,
    fd: OwnedFd,
}

impl<'a> PrivateFolder<'a> {
    fn create(folder: &'a OwnedFd) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".isolith-{}-{number}", std::process::id());
            match rustix::fs::mkdirat(folder, &name, Mode::RWXU) {
                Ok(()) => break name,
                // Left over from a process with the same id.
                Err(Errno::EXIST) if number < 100 => {}
                Err(error) => return Err(error.into()),
            }
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, &name, flags, Mode::empty()) {
            Ok(fd) => Ok(Self { folder, name, fd }),
            Err(error) => {
                let _ = rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR);
                Err(error.into())
            }
        }
    }

    fn listen(&self) -> io::Result<(UnixListener, FileId)> {
        let listener =
            std::os::unix::net::UnixListener::bind(short_path(&self.fd, NEW_NAME.as_ref()))?;
        listener.set_nonblocking(true)?;
        let private = Mode::RUSR | Mode::WUSR;
        rustix::fs::chmodat(&self.fd, NEW_NAME, private, AtFlags::empty())?;
        let file_id = file_id(&stat(&self.fd, NEW_NAME.as_ref())?);
        Ok((UnixListener::from_std(listener)?, file_id))
    }

    /// Deletes this user's socket at the path if it is dead.
    fn remove_dead(&self, folder: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Failure> {
        let failed = |error: Errno| failed(path, &error.into());
        let found = match stat(folder, name) {
            Err(Errno::NOENT) => return Ok(()),
            found => found.map_err(failed)?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket
            || found.st_uid != rustix::process::geteuid().as_raw()
        {
            return Err(unusable(path, "exists and is not a socket of this user"));
        }
        if has_listener(folder, name).map_err(failed)? {
            return Err(in_use(path));
        }
        // Another server may just have taken the path, so delete only the socket that was checked.
        match rustix::fs::renameat(folder, name, &self.fd, DEAD_NAME) {
            Err(Errno::NOENT) => return Ok(()),
            moved => moved.map_err(failed)?,
        }
        let moved = stat(&self.fd, DEAD_NAME.as_ref()).map_err(failed)?;
        if file_id(&moved) == file_id(&found) {
            return Ok(());
        }
        let back = RenameFlags::NOREPLACE;
        let _ = rustix::fs::renameat_with(&self.fd, DEAD_NAME, folder, name, back);
        Err(in_use(path))
    }
}

impl Drop for PrivateFolder<'_> {
    fn drop(&mut self) {
        for name in [NEW_NAME, DEAD_NAME] {
            let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::REMOVEDIR);
    }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// A path through `/proc`, short however long the folder's own path is.
fn short_path(folder: &OwnedFd, name: &OsStr) -> PathBuf {
    let folder = folder.as_raw_fd();
    Path::new("/proc/self/fd").join(folder.to_string()).join(name)
}

/// Whether a process listens on the socket. Never blocks.
fn has_listener(folder: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(short_path(folder, name).as_os_str().as_bytes())?;
    match rustix::net::connect(socket.as_fd(), &address) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error),
    }
}

fn stat(folder: &OwnedFd, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn file_id(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

fn unusable(path: &Path, what: &str) -> Failure {
    Failure::new(Code::Usage, format!("{} {what}", path.display()))
        .with_hint("choose another path with --listen unix:PATH")
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::Failed, format!("cannot listen on {}: {error}", path.display()))
        .with_hint("choose another path with --listen unix:PATH, in a folder that exists")
}

fn in_use(path: &Path) -> Failure {
    Failure::new(Code::Failed, format!("another server listens on {}", path.display()))
        .with_hint("use that server, or choose another path with --listen unix:PATH")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[tokio::test]
    async fn a_socket_is_private_and_deleted_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = UnixSocket::bind(&path).unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["s"], "the private folder is gone");
        let (accepted, connected) = tokio::join!(socket.accept(), UnixStream::connect(&path));
        assert!(accepted.is_ok() && connected.is_ok());
        drop(socket);
        assert!(names(folder.path()).is_empty());
    }

    #[tokio::test]
    async fn only_a_dead_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let live = UnixSocket::bind(&path).unwrap();
        assert_eq!(UnixSocket::bind(&path).err().unwrap().code, Code::Failed);
        drop(live);
        // The standard library does not delete sockets.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let replaced = UnixSocket::bind(&path).unwrap();
        // A file that has replaced the socket must not be deleted.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(replaced);
        assert_eq!(UnixSocket::bind(&path).err().unwrap().code, Code::Usage);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        let link = folder.path().join("link");
        symlink(folder.path().join("elsewhere"), &link).unwrap();
        assert_eq!(UnixSocket::bind(&link).err().unwrap().code, Code::Usage);
        assert_eq!(names(folder.path()).len(), 2, "nothing is left behind");
    }

    #[tokio::test]
    async fn overlong_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let room = MAX_PATH_BYTES - folder.path().as_os_str().len() - 1;
        let longest = folder.path().join("s".repeat(room));
        drop(UnixSocket::bind(&longest).unwrap());
        let failure = UnixSocket::bind(&folder.path().join("s".repeat(room + 1))).err().unwrap();
        assert_eq!(failure.code, Code::Usage);
        assert!(failure.message.contains("107"), "{failure}");
        let missing = UnixSocket::bind(&folder.path().join("no/s")).err().unwrap();
        assert_eq!(missing.code, Code::Failed);
        assert!(UnixSocket::bind(Path::new("/")).is_err());
    }
}
