//! Memory that front and worker share for payloads too long for the socket.
//!
//! The front creates it and seals its size, so a worker can neither shrink nor grow it. It is
//! read and written like a file and never mapped by the front: if a worker changes it during a
//! read, only the copied bytes differ. There is one for each direction, for the life of the
//! worker, because allocating memory for each payload would cost more than the copying.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::process::Resource;

use crate::wire::WireError;

/// How much memory an area keeps between jobs; the rest is released.
const MAX_RETAINED_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct Area {
    fd: OwnedFd,
}

impl Area {
    /// An area for payloads of up to `size` bytes. Memory is allocated when it is written.
    pub(crate) fn create(size: u64) -> io::Result<Self> {
        // Beyond this limit the kernel does not return an error, it kills the process.
        let size = size.min(i64::MAX.unsigned_abs());
        let limit = rustix::process::getrlimit(Resource::Fsize).current;
        if let Some(limit) = limit.filter(|&limit| limit < size) {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file size limit is {limit} bytes, but shared memory needs {size}"),
            ));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("isolate", flags)?;
        rustix::fs::ftruncate(&fd, size)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self { fd })
    }

    /// An area received from the front.
    pub(crate) fn received(fd: OwnedFd) -> Self {
        Self { fd }
    }

    pub(crate) fn write_at(&self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = rustix::io::pwrite(&self.fd, bytes, at)?;
            bytes = &bytes[written..];
            at += written as u64;
        }
        Ok(())
    }

    /// Copies the first `claimed` bytes; the caller has checked the length. Nothing is
    /// allocated for bytes that were never written.
    pub(crate) fn read(&self, claimed: u64) -> Result<Vec<u8>, WireError> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|error| WireError::Area(error.into()))?;
        let written = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        if claimed > written {
            return Err(WireError::Hollow { claimed, written });
        }
        let payload = self.copy(claimed).map_err(WireError::Area)?;
        if claimed > MAX_RETAINED_BYTES {
            self.release_memory();
        }
        Ok(payload)
    }

    fn copy(&self, length: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(io::Error::other)?;
        while bytes.len() < length {
            let at = bytes.len() as u64;
            if rustix::io::pread(&self.fd, rustix::buffer::spare_capacity(&mut bytes), at)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Releases all its memory to the system.
    fn release_memory(&self) {
        let size = rustix::fs::fstat(&self.fd).map_or(0, |stat| stat.st_size.unsigned_abs());
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // If this fails, the memory stays allocated a little longer.
        let _ = rustix::fs::fallocate(&self.fd, flags, 0, size);
    }
}

impl AsFd for Area {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(area: &Area) -> u64 {
        rustix::fs::fstat(&area.fd).unwrap().st_blocks.unsigned_abs()
    }

    #[test]
    fn the_size_of_an_area_cannot_be_changed() {
        let area = Area::create(1 << 20).unwrap();
        assert!(rustix::fs::ftruncate(&area.fd, 0).is_err());
        assert!(rustix::fs::ftruncate(&area.fd, 2 << 20).is_err());
        assert!(area.write_at(b"beyond", 1 << 20).is_err());
    }

    #[test]
    fn unwritten_bytes_are_not_read() {
        let area = Area::create(64 << 20).unwrap();
        area.write_at(&[1; 100_000], 0).unwrap();
        assert_eq!(area.read(100_000).unwrap(), [1; 100_000]);
        assert!(matches!(area.read(64 << 20), Err(WireError::Hollow { .. })));
    }

    #[test]
    fn memory_beyond_the_retained_amount_is_released() {
        let area = Area::create(64 << 20).unwrap();
        area.write_at(&vec![1; 1 << 20], 0).unwrap();
        area.read(1 << 20).unwrap();
        assert!(blocks(&area) > 0, "a small amount is retained");
        area.write_at(&vec![1; 8 << 20], 0).unwrap();
        area.read(8 << 20).unwrap();
        assert_eq!(blocks(&area), 0);
    }
}
