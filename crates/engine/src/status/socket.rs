//! The sockets of live fronts in a store's `run/`, addressed through the open folder because the
//! path of a socket is limited to 107 bytes.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolith_folder::{EntryKind, Folder};
use isolith_store::names::is_socket;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};

use super::front::FrontSnapshot;

const EXTENSION: &str = ".sock";

/// Maximum size of a reply.
const MAX_REPLY_BYTES: u64 = 4 << 20;

/// How long to wait for the replies of all fronts.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// The open folder `run/`.
#[derive(Debug)]
pub(crate) struct RunFolder(Folder);

/// The outcome of querying a front.
#[derive(Debug)]
pub(crate) enum FrontReply {
    Answered(Box<FrontSnapshot>),
    /// It is alive but sent no valid reply.
    Silent,
    /// It is dead; its socket was removed.
    Dead,
}

impl RunFolder {
    /// Opens the folder, if it exists.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Folder::open(path)?))
    }

    /// Creates a socket that accepts connections from the moment it is visible; also returns its
    /// name.
    pub(crate) fn listen(&self) -> io::Result<(UnixListener, String)> {
        let name = format!("{}-{:016x}{EXTENSION}", std::process::id(), fastrand::u64(..));
        // A socket that refuses connections counts as that of a dead front.
        let hidden = format!(".{name}");
        let listener = UnixListener::bind(self.reach(&hidden))?;
        let made = fs::set_permissions(self.reach(&hidden), Permissions::from_mode(0o600))
            .and_then(|()| self.0.rename(&hidden, &self.0, &name));
        if let Err(error) = made {
            self.remove(&hidden);
            return Err(error);
        }
        Ok((listener, name))
    }

    /// The names of all sockets.
    pub(crate) fn sockets(&self) -> Vec<String> {
        let entries = self.0.entries().unwrap_or_default().into_iter();
        let sockets =
            entries.filter(|entry| entry.kind == EntryKind::Other && is_socket(&entry.name));
        let mut names: Vec<String> = sockets.map(|entry| entry.name).collect();
        names.sort_unstable();
        names
    }

    /// Queries one front. Removes its socket if nothing listens on it.
    pub(crate) async fn ask(&self, name: &str) -> FrontReply {
        match tokio::time::timeout(PATIENCE, self.read(name)).await {
            Ok(Ok(snapshot)) => FrontReply::Answered(Box::new(snapshot)),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.remove(name);
                FrontReply::Dead
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => FrontReply::Dead,
            _ => FrontReply::Silent,
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        // Another process may have been faster.
        let _ = self.0.remove(name);
    }

    async fn read(&self, name: &str) -> io::Result<FrontSnapshot> {
        let stream = UnixStream::connect(self.reach(name)).await?;
        let mut text = Vec::new();
        stream.take(MAX_REPLY_BYTES).read_to_end(&mut text).await?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn reach(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_fd().as_raw_fd()))
    }
}

/// The process id in a socket's name.
pub(crate) fn owner(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}
