//! Entry points for fuzzers: the frames between front and worker, which are otherwise private.

use std::os::fd::AsFd;

use isolate_types::Bulk;

use crate::linux::area::Area;
use crate::linux::socket;
use crate::wire::{
    Fill, Frame, FrameKind, FrameReader, Header, Hello, PanicNote, Placement, Progress,
};

/// The maximum size of a payload in shared memory.
const AREA_LIMIT: u64 = 1 << 20;

/// What a reader got from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// A description of each frame, in order.
    pub frames: Vec<String>,
    /// Why the rest of the stream was rejected.
    pub error: Option<String>,
    /// Whether the stream ended inside a frame.
    pub is_torn: bool,
}

/// Reads a stream of frames that arrives in pieces of the given length. Long payloads are read
/// from `area`.
///
/// # Errors
/// If the socket or the shared memory cannot be used.
pub fn receive(stream: &[u8], area: &[u8], piece: usize) -> std::io::Result<Received> {
    let (ours, theirs) = socket::pair()?;
    let outgoing = Area::create(AREA_LIMIT)?;
    outgoing.write_at(&area[..area.len().min(AREA_LIMIT as usize)], 0)?;
    let mut reader = FrameReader::new();
    reader.set_area(Area::received(outgoing.as_fd().try_clone_to_owned()?), AREA_LIMIT);
    let mut received = Received { frames: Vec::new(), error: None, is_torn: false };
    for piece in stream.chunks(piece.max(1)) {
        socket::send(&ours, &[piece], &[])?;
        reader.fill(&theirs)?;
        if !received.take_all(&mut reader) {
            return Ok(received);
        }
    }
    drop(ours);
    while reader.fill(&theirs)? == Fill::Some {
        if !received.take_all(&mut reader) {
            return Ok(received);
        }
    }
    received.is_torn = reader.is_torn();
    Ok(received)
}

impl Received {
    /// Reads all complete frames; false after an error.
    fn take_all(&mut self, reader: &mut FrameReader) -> bool {
        loop {
            match reader.next() {
                Ok(Some(frame)) => self.frames.push(describe(&frame)),
                Ok(None) => return true,
                Err(error) => {
                    self.error = Some(error.to_string());
                    return false;
                }
            }
        }
    }
}

/// The frame, with its payload decoded as each type of message.
fn describe(frame: &Frame) -> String {
    let bulk = frame.decode::<(String, Bulk, u8, Bulk)>().map_err(|error| error.to_string());
    let hello = frame.decode::<Hello>().map_err(|error| error.to_string());
    let progress = frame.decode::<Progress>().map_err(|error| error.to_string());
    let panic = frame.decode::<PanicNote>().map_err(|error| error.to_string());
    format!("{:?} {bulk:?} {hello:?} {progress:?} {panic:?}", frame.header)
}

/// Builds a frame with valid checksums around any payload.
pub fn seal(payload: &[u8], slabs_len: u64, in_area: bool) -> Vec<u8> {
    let slabs_len = slabs_len.min(payload.len() as u64);
    let (placement, checked) = match in_area {
        true => (Placement::Area, &payload[slabs_len as usize..]),
        false => (Placement::Inline, payload),
    };
    let header = Header {
        kind: FrameKind::Reply,
        placement,
        job: 1,
        nanoseconds: 0,
        slabs_len,
        message_len: payload.len() as u64 - slabs_len,
        attempt: 0,
        checksum: crc32c::crc32c(checked),
        descriptors: 0,
    };
    let inline = if in_area { &[] } else { payload };
    [&header.encode(), inline].concat()
}
