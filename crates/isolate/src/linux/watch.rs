use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that the runtime watches for something to read.
pub(crate) type Watched = AsyncFd<OwnedFd>;

#[allow(unsafe_code)]
pub(crate) fn watch(fd: OwnedFd) -> io::Result<Watched> {
    // SAFETY: the descriptor is open and owned by the `AsyncFd` from here on, so
    // it stays open and the same.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
