//! The sockets of live fronts in a store's `run/`. They are reached through the open
//! folder, as a socket's own path may be no longer than 107 bytes.

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

/// A longer answer is not one of ours.
const LONGEST_ANSWER: u64 = 4 << 20;

/// All fronts together get this long to answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// An open `run/`.
#[derive(Debug)]
pub(crate) struct RunFolder(Folder);

/// What became of asking a front.
#[derive(Debug)]
pub(crate) enum Asked {
    Answered(Box<FrontSnapshot>),
    /// It is there, but says nothing, or nothing that makes sense.
    Silent,
    /// It is gone; so is its socket now.
    Dead,
}

impl RunFolder {
    /// Opens the folder, if it is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Folder::open(path)?))
    }

    /// Makes a socket that is ready when it appears. Returns its name, too.
    pub(crate) fn listen(&self) -> io::Result<(UnixListener, String)> {
        let name = format!("{}-{:016x}{EXTENSION}", std::process::id(), fastrand::u64(..));
        // Whoever finds a socket that refuses takes its front for dead.
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

    /// Asks one front. A socket that nobody listens to any more is removed.
    pub(crate) async fn ask(&self, name: &str) -> Asked {
        match tokio::time::timeout(PATIENCE, self.read(name)).await {
            Ok(Ok(snapshot)) => Asked::Answered(Box::new(snapshot)),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.remove(name);
                Asked::Dead
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Asked::Dead,
            _ => Asked::Silent,
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        // Another process may have been faster.
        let _ = self.0.remove(name);
    }

    async fn read(&self, name: &str) -> io::Result<FrontSnapshot> {
        let stream = UnixStream::connect(self.reach(name)).await?;
        let mut text = Vec::new();
        stream.take(LONGEST_ANSWER).read_to_end(&mut text).await?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn reach(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_fd().as_raw_fd()))
    }
}

/// The process that a socket is named after.
pub(crate) fn owner(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}
