use std::io;
use std::os::fd::OwnedFd;

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
