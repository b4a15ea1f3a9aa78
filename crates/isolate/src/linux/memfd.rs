//! Payloads in sealed memory. The receiver reads it and never maps it: a mapping
//! of memory that its sender can shrink is a SIGBUS in waiting.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

use crate::wire::WireError;

/// Read in steps of this size, so that no more is allocated than there is.
const STEP: usize = 1 << 20;

pub(crate) fn create() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(rustix::fs::memfd_create("isolate", flags)?)
}

pub(crate) fn write_at(fd: impl AsFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::pwrite(&fd, bytes, at)?;
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}

/// No byte and no length of it changes any more.
pub(crate) fn seal(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(fd, required_seals() | SealFlags::SEAL)?)
}

fn required_seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE
}

/// Reads a memfd that a peer sent, after checking that it is what the peer says:
/// sealed memory of exactly `claimed` bytes, which the caller has bounded.
pub(crate) fn read_sealed(fd: impl AsFd, claimed: u64) -> Result<Vec<u8>, WireError> {
    let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|e| WireError::NotMemfd(e.into()))?;
    if !seals.contains(required_seals()) {
        return Err(WireError::Unsealed);
    }
    let stat = rustix::fs::fstat(&fd).map_err(|e| WireError::NotMemfd(e.into()))?;
    let actual = u64::try_from(stat.st_size).unwrap_or(0);
    if actual != claimed {
        return Err(WireError::MemfdSize { actual, claimed });
    }
    read_whole(fd, actual).map_err(WireError::NotMemfd)
}

pub(crate) fn read_whole(fd: impl AsFd, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let step = STEP.min(length - bytes.len());
        bytes.try_reserve(step).map_err(io::Error::other)?;
        let at = bytes.len() as u64;
        if rustix::io::pread(&fd, rustix::buffer::spare_capacity(&mut bytes), at)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}
