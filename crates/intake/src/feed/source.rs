use std::io;

use crate::feed::Content;

/// Bytes in order, of which a part is in memory.
pub trait Feed {
    /// What is in memory and not yet consumed.
    fn window(&self) -> &[u8];

    /// Consumes bytes of the window.
    fn advance(&mut self, count: usize);

    /// Makes the window longer at its end; false at the end of the bytes.
    ///
    /// # Errors
    /// [`Fault::Io`] or [`Fault::Cancelled`].
    fn more(&mut self) -> Result<bool, Fault>;

    /// Where the window begins in the file.
    fn offset(&self) -> u64;
}

/// Why bytes could not be read as JSON. Bytes are counted from 0.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The operating system could not read them.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// Whoever gives the bytes was told to stop.
    #[error("reading the file was cancelled")]
    Cancelled,
    /// The bytes end where more must come.
    #[error("it is cut off at byte {offset}")]
    End {
        /// Where they end.
        offset: u64,
    },
    /// Something is where it must not be.
    #[error("not JSON at byte {offset}: expected {expected}, found {}", name_byte(*.found))]
    Syntax {
        /// Where.
        offset: u64,
        /// What would be right there.
        expected: &'static str,
        /// What is there.
        found: u8,
    },
    /// Lists and objects are too deep inside each other.
    #[error("nested too deep at byte {offset}")]
    TooDeep {
        /// Where.
        offset: u64,
    },
}

/// A byte as people recognize it.
pub fn name_byte(byte: u8) -> String {
    match byte {
        b'\n' => "the end of the line".to_owned(),
        0x20..=0x7E => format!("'{}'", char::from(byte)),
        _ => format!("the byte 0x{byte:02x}"),
    }
}

/// Where the bytes of a [`Source`] come from.
pub trait Blocks {
    /// Reads some bytes from a place on; 0 only at the end.
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

/// A feed from a file. Its buffer grows for a long value, up to the limit that the
/// reader of the value keeps, and shrinks again after it.
pub struct Source<B> {
    blocks: B,
    buffer: Vec<u8>,
    usual_size: usize,
    /// Where the buffer begins in the file.
    base: u64,
    start: usize,
    end: usize,
}

/// By so much a buffer grows at most, so that it does not double for the last few bytes.
const LARGEST_STEP: usize = 8 << 20;

impl<B: Blocks> Source<B> {
    /// Reads from a place on, with a buffer of a usual size.
    pub fn new(blocks: B, offset: u64, buffer_size: usize) -> Self {
        let buffer = vec![0; buffer_size];
        Self { blocks, buffer, usual_size: buffer_size, base: offset, start: 0, end: 0 }
    }

    /// Where the bytes come from.
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

impl<B: Blocks> Feed for Source<B> {
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

/// A feed from memory: one record that was cut out of a file.
pub struct Cut<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Cut<'a> {
    /// Bytes that are at this place of the file.
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

impl Feed for Cut<'_> {
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
