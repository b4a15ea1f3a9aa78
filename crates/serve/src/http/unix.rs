//! A Unix socket at a path. Only its user can connect.

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

/// Maximum length of a path that clients can connect to.
const MAX_PATH_BYTES: usize = 107;

/// Name of the socket before it is moved to its path.
const NEW: &str = "new";

/// Name of a dead socket before it is deleted.
const OLD: &str = "old";

/// A listening socket, deleted when dropped.
pub(crate) struct UnixSocket {
    listener: UnixListener,
    folder: OwnedFd,
    name: OsString,
    identity: Identity,
}

/// Identifies a file: device and inode.
type Identity = (u64, u64);

impl UnixSocket {
    /// Listens at a path. Replaces a socket that nobody listens on any more.
    ///
    /// # Errors
    /// `usage` if the path is too long or taken by something else; `failed` if another server
    /// listens there, or the socket cannot be created.
    pub(crate) fn bind(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().ok_or_else(|| refused(path, "is not the path of a file"))?;
        let length = path.as_os_str().len();
        if length > MAX_PATH_BYTES {
            let what = format!("has {length} bytes; a socket's path has at most {MAX_PATH_BYTES}");
            return Err(refused(path, &what));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let failed = |error: io::Error| failed(path, &error);
        let folder = open_folder(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        let private = Private::create(&folder).map_err(failed)?;
        let (listener, identity) = private.listen().map_err(failed)?;
        private.remove_dead(&folder, name, path)?;
        rustix::fs::renameat_with(&private.inside, NEW, &folder, name, RenameFlags::NOREPLACE)
            .map_err(|error| match error {
                Errno::EXIST => in_use(path),
                error => failed(error.into()),
            })?;
        drop(private);
        Ok(Self { listener, folder, name: name.to_owned(), identity })
    }

    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if stat(&self.folder, &self.name).is_ok_and(|it| identity(&it) == self.identity) {
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// A folder that only this user can enter, in which the socket gets its mode. Deleted when
/// dropped.
struct Private<'a> {
    folder: &'a OwnedFd,
    name: String,
    inside: OwnedFd,
}

impl<'a> Private<'a> {
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
            Ok(inside) => Ok(Self { folder, name, inside }),
            Err(error) => {
                let _ = rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR);
                Err(error.into())
            }
        }
    }

    fn listen(&self) -> io::Result<(UnixListener, Identity)> {
        let listener = std::os::unix::net::UnixListener::bind(within(&self.inside, NEW.as_ref()))?;
        listener.set_nonblocking(true)?;
        let private = Mode::RUSR | Mode::WUSR;
        rustix::fs::chmodat(&self.inside, NEW, private, AtFlags::empty())?;
        let identity = identity(&stat(&self.inside, NEW.as_ref())?);
        Ok((UnixListener::from_std(listener)?, identity))
    }

    /// Deletes this user's socket if nobody listens on it any more.
    fn remove_dead(&self, folder: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Failure> {
        let failed = |error: Errno| failed(path, &error.into());
        let found = match stat(folder, name) {
            Err(Errno::NOENT) => return Ok(()),
            found => found.map_err(failed)?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket
            || found.st_uid != rustix::process::geteuid().as_raw()
        {
            return Err(refused(path, "exists and is not a socket of this user"));
        }
        if is_alive(folder, name).map_err(failed)? {
            return Err(in_use(path));
        }
        // Another server may have just taken the path: delete only the socket that was checked.
        match rustix::fs::renameat(folder, name, &self.inside, OLD) {
            Err(Errno::NOENT) => return Ok(()),
            moved => moved.map_err(failed)?,
        }
        let moved = stat(&self.inside, OLD.as_ref()).map_err(failed)?;
        if identity(&moved) == identity(&found) {
            return Ok(());
        }
        let back = RenameFlags::NOREPLACE;
        let _ = rustix::fs::renameat_with(&self.inside, OLD, folder, name, back);
        Err(in_use(path))
    }
}

impl Drop for Private<'_> {
    fn drop(&mut self) {
        for name in [NEW, OLD] {
            let _ = rustix::fs::unlinkat(&self.inside, name, AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::REMOVEDIR);
    }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// A path that is short even if the folder's own path is long.
fn within(folder: &OwnedFd, name: &OsStr) -> PathBuf {
    let folder = folder.as_raw_fd();
    Path::new("/proc/self/fd").join(folder.to_string()).join(name)
}

/// Whether somebody listens. Never blocks.
fn is_alive(folder: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(within(folder, name).as_os_str().as_bytes())?;
    match rustix::net::connect(socket.as_fd(), &address) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error),
    }
}

fn stat(folder: &OwnedFd, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

fn refused(path: &Path, what: &str) -> Failure {
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
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let socket = UnixSocket::bind(&path).unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert_eq!(names(place.path()), ["s"], "the private folder is gone");
        let (accepted, connected) = tokio::join!(socket.accept(), UnixStream::connect(&path));
        assert!(accepted.is_ok() && connected.is_ok());
        drop(socket);
        assert!(names(place.path()).is_empty());
    }

    #[tokio::test]
    async fn only_a_dead_socket_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let live = UnixSocket::bind(&path).unwrap();
        assert_eq!(UnixSocket::bind(&path).err().unwrap().code, Code::Failed);
        drop(live);
        // The standard library does not delete sockets.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let replaced = UnixSocket::bind(&path).unwrap();
        // A file that somebody else has put there must not be deleted.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(replaced);
        assert_eq!(UnixSocket::bind(&path).err().unwrap().code, Code::Usage);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        let link = place.path().join("link");
        symlink(place.path().join("elsewhere"), &link).unwrap();
        assert_eq!(UnixSocket::bind(&link).err().unwrap().code, Code::Usage);
        assert_eq!(names(place.path()).len(), 2, "nothing is left behind");
    }

    #[tokio::test]
    async fn overlong_paths_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let room = MAX_PATH_BYTES - place.path().as_os_str().len() - 1;
        let longest = place.path().join("s".repeat(room));
        drop(UnixSocket::bind(&longest).unwrap());
        let failure = UnixSocket::bind(&place.path().join("s".repeat(room + 1))).err().unwrap();
        assert_eq!(failure.code, Code::Usage);
        assert!(failure.message.contains("107"), "{failure}");
        let missing = UnixSocket::bind(&place.path().join("no/s")).err().unwrap();
        assert_eq!(missing.code, Code::Failed);
        assert!(UnixSocket::bind(Path::new("/")).is_err());
    }
}
