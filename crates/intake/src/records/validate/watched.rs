use crate::feed::{Blocks, Content, Fault};
use crate::records::{IntakeError, Progress};

/// Reads a file sequentially, hashes it and reports progress.
pub(super) struct Watched<'p, 'q, C: ?Sized> {
    content: &'p C,
    hasher: blake3::Hasher,
    done: u64,
    total: u64,
    progress: &'p mut Progress<'q>,
}

impl<'p, 'q, C: Content + ?Sized> Watched<'p, 'q, C> {
    pub(super) fn new(content: &'p C, total: u64, progress: &'p mut Progress<'q>) -> Self {
        Self { content, hasher: blake3::Hasher::new(), done: 0, total, progress }
    }

    /// The hash of the file; fails if not all of it was read.
    pub(super) fn finish(self) -> Result<[u8; 32], IntakeError> {
        if self.done != self.total {
            let detail = format!("it had {} bytes, now {} were read", self.total, self.done);
            return Err(IntakeError::changed(detail));
        }
        Ok(self.hasher.finalize().into())
    }
}

impl<C: Content + ?Sized> Blocks for Watched<'_, '_, C> {
    fn read_block(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut content = self.content;
        let count = content.read_block(offset, buffer)?;
        self.hasher.update(&buffer[..count]);
        self.done += count as u64;
        if (self.progress)(self.done.min(self.total), self.total).is_break() {
            return Err(Fault::Cancelled);
        }
        Ok(count)
    }
}

/// Rereads parts of a file, calling the progress function so that the pass can be stopped.
pub(super) struct Rereading<'p, 'q, C: ?Sized> {
    pub(super) content: &'p C,
    pub(super) total: u64,
    pub(super) progress: &'p mut Progress<'q>,
}

impl<C: Content + ?Sized> Blocks for Rereading<'_, '_, C> {
    fn read_block(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        if (self.progress)(self.total, self.total).is_break() {
            return Err(Fault::Cancelled);
        }
        let mut content = self.content;
        content.read_block(offset, buffer)
    }
}
