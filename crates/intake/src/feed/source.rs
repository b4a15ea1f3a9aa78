use std::io;

use crate::feed::Content;

/// A sequence of bytes, of which a window is in memory.
pub trait Feed {
    /// The bytes that are in memory and not yet consumed.
    fn window(&self) -> &[u8];

    /// Consumes bytes of the window.
    fn advance(&mut self, count: usize);

    /// Extends the window; false at the end of the bytes.
    ///
    /// # Errors
    /// [`Fault::Io`] or [`Fault::Cancelled`].
    fn more(&mut self) -> Result<bool, Fault>;

    /// The file offset of the window.
    fn offset(&self) -> u64;
}

/// Why bytes could not be read as JSON. Offsets count from 0.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The operating system could not read them.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// The caller cancelled the reading.
    #[error("reading the file was cancelled")]
    Cancelled,
    /// The bytes end in the middle of a value.
    #[error("truncated at byte {offset}")]
    End {
        /// The offset of the end.
        offset: u64,
    },
    /// An unexpected byte.
    #[error("not JSON at byte {offset}: expected {expected}, found {}", name_byte(*.found))]
    Syntax {
        /// Its offset.
        offset: u64,
        /// What was expected instead.
        expected: &'static str,
        /// The byte.
        found: u8,
    },
    /// Lists and objects are nested too deeply.
    #[error("nested too deeply at byte {offset}")]
    TooDeep {
        /// The offset of the bracket.
        offset: u64,
    },
}

/// A readable name of a byte, for messages.
pub fn name_byte(byte: u8) -> String {
    match byte {
        b'\n' => "the end of the line".to_owned(),
        0x20..=0x7E => format!("'{}'", char::from(byte)),
        _ => format!("the byte 0x{byte:02x}"),
    }
}

/// Where the bytes of a [`BufferedFeed`] come from.
pub trait Blocks {
    /// Reads some bytes at an offset; returns 0 only at the end.
    ///
    /// # Errors
    /// [`Fault::Io`] or [`Fault::Cancelled`].
    fn read_block(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault>;
}

impl<C: Content> Blocks for C {
    fn read_block(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        loop {
            match self.read_at(offset, buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(Fault::Io),
            }
        }
    }
}

/// A feed from a file. Its buffer grows for a long value, up to the limit of its reader, and
/// shrinks again afterwards.
pub struct BufferedFeed<B> {
    blocks: B,
    buffer: Vec<u8>,
    usual_size: usize,
    /// The file offset of the buffer.
    base: u64,
    start: usize,
    end: usize,
}

/// The maximum growth of a buffer at a time, so that it does not double for the last few bytes.
const LARGEST_STEP: usize = 8 << 20;

impl<B: Blocks> BufferedFeed<B> {
    /// Reads from an offset, with this initial buffer size.
    pub fn new(blocks: B, offset: u64, buffer_size: usize) -> Self {
        let buffer = vec![0; buffer_size];
        Self { blocks, buffer, usual_size: buffer_size, base: offset, start: 0, end: 0 }
    }

    /// Returns the underlying reader.
    pub fn into_blocks(self) -> B {
        self.blocks
    }

    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end + self.end.min(LARGEST_STEP), 0);
        } else if self.buffer.len() > self.usual_size && self.end < self.usual_size {
            self.buffer.truncate(self.usual_size);
            self.buffer.shrink_to_fit();
        }
    }
}

impl<B: Blocks> Feed for BufferedFeed<B> {
    #[inline]
    fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "only what is in the window");
        self.start += count;
    }

    fn more(&mut self) -> Result<bool, Fault> {
        self.make_room();
        let offset = self.base + self.end as u64;
        let count = self.blocks.read_block(offset, &mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count > 0)
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.base + self.start as u64
    }
}

/// A feed from memory: one record of a file.
pub struct SliceFeed<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> SliceFeed<'a> {
    /// Reads bytes that begin at this offset of the file.
    pub fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { bytes, offset }
    }

    /// Consumes bytes of the window and returns them.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        self.offset += count as u64;
        taken
    }
}

impl Feed for SliceFeed<'_> {
    #[inline]
    fn window(&self) -> &[u8] {
        self.bytes
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.take(count);
    }

    fn more(&mut self) -> Result<bool, Fault> {
        Ok(false)
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.offset
    }
}
