use std::cmp::Ordering;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::parcel;
use super::{HEADER_LEN, Header, INLINE_LIMIT, Placement, WireError};
use crate::linux::area::Area;
use crate::linux::socket::{self, MAX_DESCRIPTORS};

/// A frame that passed all checks except decoding its message.
#[derive(Debug)]
pub(crate) struct Frame {
    pub header: Header,
    /// The descriptors received with it; closed when the frame is dropped.
    pub descriptors: Vec<OwnedFd>,
    payload: Bytes,
}

impl Frame {
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        parcel::decode(&self.payload, &self.header)
    }
}

/// The result of [`FrameReader::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Some,
    WouldBlock,
    Eof,
    /// The stream ended, and the peer had not read everything it was sent.
    Reset,
}

/// Reads frames from a socket. It buffers at most one frame, whatever length the peer claims.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The last receive did not fill the buffer, so the socket is empty.
    got_all: bool,
    descriptors: Vec<OwnedFd>,
    /// The maximum number of descriptors with one frame.
    max_descriptors: usize,
    /// Where long payloads are read from, and how long they may be.
    area: Option<Area>,
    area_limit: u64,
}

impl FrameReader {
    /// A reader that accepts inline payloads only, and no descriptors.
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; HEADER_LEN + INLINE_LIMIT].into_boxed_slice(),
            start: 0,
            end: 0,
            got_all: false,
            descriptors: Vec::new(),
            max_descriptors: 0,
            area: None,
            area_limit: 0,
        }
    }

    /// Also accepts payloads of up to `limit` bytes in `area`.
    pub(crate) fn set_area(&mut self, area: Area, limit: u64) {
        self.area = Some(area);
        self.area_limit = limit;
    }

    /// Also accepts descriptors, if the frame's header announces them. Only workers do:
    /// descriptors go from front to worker, never back.
    pub(crate) fn accept_descriptors(&mut self) {
        self.max_descriptors = MAX_DESCRIPTORS;
    }

    /// Receives once. There is room for it whenever [`Self::next`] returned `None`.
    pub(crate) fn fill(&mut self, socket: impl AsFd) -> io::Result<Fill> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = &mut self.buffer[self.end..];
        let size = room.len();
        match socket::receive(socket, room, &mut self.descriptors) {
            Ok(0) => Ok(Fill::Eof),
            Ok(received) => {
                self.got_all = received < size;
                self.end += received;
                Ok(Fill::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Fill::WouldBlock),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Fill::Reset),
            Err(error) => Err(error),
        }
    }

    /// The next complete frame, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, WireError> {
        if self.descriptors.len() > self.max_descriptors {
            return Err(WireError::SurplusDescriptors);
        }
        let waiting = &self.buffer[self.start..self.end];
        let Some((header, rest)) = waiting.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let header = Header::decode(header, self.area_limit)?;
        let inline_len = match header.placement {
            Placement::Inline => header.payload_len() as usize,
            Placement::Area => 0,
        };
        if rest.len() < inline_len {
            return Ok(None);
        }
        let inline = &rest[..inline_len];
        let payload = match header.placement {
            Placement::Inline => {
                if crc32c::crc32c(inline) != header.checksum {
                    return Err(WireError::PayloadChecksum);
                }
                Bytes::copy_from_slice(inline)
            }
            Placement::Area => {
                let area = self.area.as_ref().ok_or(WireError::NoArea)?;
                let payload = area.read(header.payload_len())?;
                if crc32c::crc32c(&payload[header.slabs_len as usize..]) != header.checksum {
                    return Err(WireError::PayloadChecksum);
                }
                payload.into()
            }
        };
        self.start += HEADER_LEN + inline_len;
        let descriptors = self.take_descriptors(header.descriptors)?;
        Ok(Some(Frame { header, descriptors, payload }))
    }

    /// The descriptors of a complete frame. The peer sends the next frame only after this one
    /// was answered, so all of them belong to it.
    fn take_descriptors(&mut self, announced: u32) -> Result<Vec<OwnedFd>, WireError> {
        let received = self.descriptors.len();
        match (announced as usize).cmp(&received) {
            Ordering::Equal => Ok(std::mem::take(&mut self.descriptors)),
            Ordering::Less => Err(WireError::SurplusDescriptors),
            // The kernel drops descriptors if the process has too many open.
            Ordering::Greater => Err(WireError::MissingDescriptors { announced, received }),
        }
    }

    /// Whether everything available at the last receive has been read.
    pub(crate) fn is_drained(&self) -> bool {
        self.got_all && self.start == self.end
    }

    /// Whether the stream stopped inside a frame.
    pub(crate) fn is_torn(&self) -> bool {
        self.start != self.end
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use isolate_types::Bulk;

    use super::super::{FrameKind, Parcel};
    use super::*;

    const LIMIT: u64 = 16 << 20;

    /// A socket and a shared area, as between front and worker.
    struct Channel {
        ours: OwnedFd,
        theirs: OwnedFd,
        outgoing: Area,
        reader: FrameReader,
    }

    impl Channel {
        fn new() -> Self {
            let (ours, theirs) = socket::pair().unwrap();
            let outgoing = Area::create(LIMIT).unwrap();
            let mut reader = FrameReader::new();
            let incoming = outgoing.as_fd().try_clone_to_owned().unwrap();
            reader.set_area(Area::received(incoming), LIMIT);
            Self { ours, theirs, outgoing, reader }
        }

        fn send(&self, parcel: &Parcel) {
            parcel.place(&self.outgoing).unwrap();
            let header = parcel.header(FrameKind::Reply, 1).encode();
            self.send_raw(&[&header, parcel.inline()]);
        }

        fn send_raw<const N: usize>(&self, parts: &[&[u8]; N]) {
            socket::send(&self.ours, parts, &[]).unwrap();
        }

        fn receive(&mut self) -> Result<Frame, WireError> {
            loop {
                if let Some(frame) = self.reader.next()? {
                    return Ok(frame);
                }
                assert_eq!(self.reader.fill(&self.theirs).unwrap(), Fill::Some);
            }
        }
    }

    #[test]
    fn bulk_of_any_size_arrives_as_sent() {
        let mut channel = Channel::new();
        for size in [0, 1, 15, 16, 17, 1000, 60_000, 65_536, 65_537, 3_000_000, 100, 70_000] {
            let slab: Vec<u8> = (0..size).map(|i| (i * 7 + size) as u8).collect();
            let sent = (String::from("name"), Bulk::from(slab), 5u8, Bulk::from(vec![9; 33]));
            channel.send(&Parcel::encode(&sent, LIMIT).unwrap());
            let got: (String, Bulk, u8, Bulk) = channel.receive().unwrap().decode().unwrap();
            assert_eq!(got, sent, "{size}");
            assert_eq!(got.3.as_ptr() as usize % super::super::SLAB_ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_long_message_without_slabs_arrives() {
        let sent: Vec<String> = (0..10_000).map(|i| format!("line {i}")).collect();
        let mut channel = Channel::new();
        channel.send(&Parcel::encode(&sent, LIMIT).unwrap());
        let got: Vec<String> = channel.receive().unwrap().decode().unwrap();
        assert_eq!(got, sent);
    }

    #[test]
    fn a_payload_over_the_limit_is_rejected_before_sending() {
        let error = Parcel::encode(&Bulk::from(vec![0; 1 << 20]), 1 << 19).unwrap_err();
        assert!(matches!(error, WireError::TooLong { .. }));
    }

    #[test]
    fn a_missing_payload_is_rejected() {
        let parcel = Parcel::encode(&Bulk::from(vec![1; 100_000]), LIMIT).unwrap();
        let header = parcel.header(FrameKind::Reply, 1).encode();

        let mut nothing_written = Channel::new();
        nothing_written.send_raw(&[&header]);
        assert!(matches!(nothing_written.receive(), Err(WireError::Hollow { .. })));

        let mut something_else = Channel::new();
        something_else.outgoing.write_at(&[3; 200_000], 0).unwrap();
        something_else.send_raw(&[&header]);
        assert!(matches!(something_else.receive(), Err(WireError::PayloadChecksum)));

        let mut no_area = Channel { reader: FrameReader::new(), ..Channel::new() };
        no_area.send_raw(&[&header]);
        assert!(matches!(no_area.receive(), Err(WireError::TooLong { limit: 0, .. })));
    }

    #[test]
    fn unexpected_descriptors_are_rejected() {
        let mut channel = Channel::new();
        let parcel = Parcel::encode(&1u8, LIMIT).unwrap();
        let header = parcel.header(FrameKind::Reply, 1).encode();
        let file = tempfile::tempfile().unwrap();
        socket::send(&channel.ours, &[&header, parcel.inline()], &[file.as_fd()]).unwrap();
        assert!(matches!(channel.receive(), Err(WireError::SurplusDescriptors)));
    }

    #[test]
    fn descriptors_arrive_with_the_frame_that_announces_them() {
        let file = tempfile::tempfile().unwrap();
        let parcel = Parcel::encode(&vec![7u8; 300], LIMIT).unwrap();
        let send = |announced: u32, sent: &[BorrowedFd<'_>]| {
            let mut channel = Channel::new();
            channel.reader.accept_descriptors();
            let header = Header { descriptors: announced, ..parcel.header(FrameKind::Job, 1) };
            socket::send(&channel.ours, &[&header.encode(), parcel.inline()], sent).unwrap();
            channel.receive()
        };
        let two = [file.as_fd(), file.as_fd()];
        assert_eq!(send(2, &two).unwrap().descriptors.len(), 2);
        assert_eq!(send(0, &[]).unwrap().descriptors.len(), 0);
        let missing = send(2, &two[..1]);
        assert!(matches!(
            missing,
            Err(WireError::MissingDescriptors { announced: 2, received: 1 })
        ));
        assert!(matches!(send(1, &two), Err(WireError::SurplusDescriptors)));
    }

    #[test]
    fn a_flipped_payload_byte_is_detected() {
        let parcel = Parcel::encode(&vec![1u8; 500], LIMIT).unwrap();
        let header = parcel.header(FrameKind::Reply, 1).encode();
        for at in [0, 100, parcel.inline().len() - 1] {
            let mut payload = parcel.inline().to_vec();
            payload[at] ^= 0x10;
            let mut channel = Channel::new();
            channel.send_raw(&[&header, &payload]);
            assert!(matches!(channel.receive(), Err(WireError::PayloadChecksum)));
        }
    }

    #[test]
    fn frames_arrive_whole_however_the_stream_is_split() {
        let sent: Vec<Vec<u32>> = (0..5u32).map(|i| vec![i; i as usize * 10]).collect();
        let mut stream = Vec::new();
        for message in &sent {
            let parcel = Parcel::encode(message, LIMIT).unwrap();
            stream.extend_from_slice(&parcel.header(FrameKind::Reply, 1).encode());
            stream.extend_from_slice(parcel.inline());
        }
        for step in [1, 2, 3, 7, 54, 55, 56, 57, 1000] {
            let mut channel = Channel::new();
            let mut got = Vec::new();
            for piece in stream.chunks(step) {
                channel.send_raw(&[piece]);
                assert_eq!(channel.reader.fill(&channel.theirs).unwrap(), Fill::Some);
                while let Some(frame) = channel.reader.next().unwrap() {
                    got.push(frame.decode::<Vec<u32>>().unwrap());
                }
            }
            assert_eq!(got, sent, "step {step}");
            assert!(!channel.reader.is_torn());
        }
    }
}
