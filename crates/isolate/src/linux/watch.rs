use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that the runtime polls for readability.
pub(crate) type Watched = AsyncFd<OwnedFd>;

#[allow(unsafe_code)]
pub(crate) fn watch(fd: OwnedFd) -> io::Result<Watched> {
    // SAFETY: the `AsyncFd` owns the descriptor from here on, so it stays open and stays the
    // same.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn watch_process(pid: u32) -> io::Result<Watched> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    watch(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}
