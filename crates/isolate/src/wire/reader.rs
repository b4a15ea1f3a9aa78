use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::parcel;
use super::{HEADER_LEN, Header, INLINE_LIMIT, Kind, Placement, WireError};
use crate::linux::{memfd, socket};

/// More descriptors than this in flight are a violation: a frame has at most one.
const MAX_DESCRIPTORS: usize = 4;

/// A frame that passed every check but the decoding of its message.
#[derive(Debug)]
pub(crate) struct Frame {
    pub header: Header,
    payload: Bytes,
    /// Set on the one frame that carries a descriptor of its own, the hello.
    pub descriptor: Option<OwnedFd>,
}

impl Frame {
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        parcel::decode(&self.payload, &self.header)
    }
}

/// What [`FrameReader::fill`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Some,
    WouldBlock,
    Eof,
}

/// Takes frames off a socket. It holds one frame's worth of bytes, whatever the
/// peer claims.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    descriptors: VecDeque<OwnedFd>,
    memfd_limit: u64,
}

impl FrameReader {
    /// A reader that accepts payloads of up to `memfd_limit` bytes.
    pub(crate) fn new(memfd_limit: u64) -> Self {
        Self {
            buffer: vec![0; HEADER_LEN + INLINE_LIMIT].into_boxed_slice(),
            start: 0,
            end: 0,
            descriptors: VecDeque::new(),
            memfd_limit,
        }
    }

    pub(crate) fn set_memfd_limit(&mut self, limit: u64) {
        self.memfd_limit = limit;
    }

    /// Receives once. There is room for it whenever [`Self::next`] returned `None`.
    pub(crate) fn fill(&mut self, socket: impl AsFd) -> io::Result<Fill> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        match socket::receive(socket, &mut self.buffer[self.end..], &mut self.descriptors) {
            Ok(0) => Ok(Fill::Eof),
            Ok(received) => {
                self.end += received;
                Ok(Fill::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Fill::WouldBlock),
            // The peer died with unread data of ours: for us the stream ends here.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Fill::Eof),
            Err(error) => Err(error),
        }
    }

    /// The next whole frame, or `None` if more bytes are needed for one.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, WireError> {
        if self.descriptors.len() > MAX_DESCRIPTORS {
            return Err(WireError::SurplusDescriptors);
        }
        let waiting = &self.buffer[self.start..self.end];
        let Some((header, rest)) = waiting.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let header = Header::decode(header, self.memfd_limit)?;
        let inline_len = match header.placement {
            Placement::Inline => header.payload_len() as usize,
            Placement::Memfd => 0,
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
            Placement::Memfd => {
                let fd = self.descriptors.pop_front().ok_or(WireError::MissingMemfd)?;
                let payload = memfd::read_sealed(&fd, header.payload_len())?;
                if crc32c::crc32c(&payload[header.slabs_len as usize..]) != header.checksum {
                    return Err(WireError::PayloadChecksum);
                }
                payload.into()
            }
        };
        self.start += HEADER_LEN + inline_len;
        // Any other descriptor in the queue came with a frame behind this one.
        let descriptor = match header.kind {
            Kind::Hello => self.descriptors.pop_front(),
            _ => None,
        };
        Ok(Some(Frame { header, payload, descriptor }))
    }

    /// Whether the stream stopped inside a frame.
    pub(crate) fn is_torn(&self) -> bool {
        self.start != self.end
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::super::{Bulk, Parcel};
    use super::*;

    const LIMIT: u64 = 16 << 20;

    fn send(socket: impl AsFd, parcel: &Parcel) {
        let header = parcel.header(Kind::Reply, 1);
        socket::send(socket, &[&header.encode(), parcel.inline()], parcel.memfd()).unwrap();
    }

    fn receive(socket: impl AsFd) -> Result<Option<Frame>, WireError> {
        let mut reader = FrameReader::new(LIMIT);
        while reader.fill(&socket).unwrap() == Fill::Some {
            if let Some(frame) = reader.next()? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    #[test]
    fn bulk_of_any_size_arrives_as_sent() {
        for size in [0, 1, 15, 16, 17, 1000, 60_000, 65_536, 65_537, 3_000_000] {
            let slab: Vec<u8> = (0..size).map(|i| (i * 7 + size) as u8).collect();
            let sent = (String::from("name"), Bulk::from(slab), 5u8, Bulk::from(vec![9; 33]));
            let (ours, theirs) = socket::pair().unwrap();
            send(&ours, &Parcel::encode(&sent, LIMIT).unwrap());
            let frame = receive(&theirs).unwrap().unwrap();
            let got: (String, Bulk, u8, Bulk) = frame.decode().unwrap();
            assert_eq!(got, sent, "{size}");
            assert_eq!(got.3.as_ptr() as usize % super::super::SLAB_ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_long_message_without_slabs_travels_too() {
        let sent: Vec<String> = (0..10_000).map(|i| format!("line {i}")).collect();
        let (ours, theirs) = socket::pair().unwrap();
        send(&ours, &Parcel::encode(&sent, LIMIT).unwrap());
        let got: Vec<String> = receive(&theirs).unwrap().unwrap().decode().unwrap();
        assert_eq!(got, sent);
    }

    #[test]
    fn what_is_over_the_limit_is_refused_before_it_is_sent() {
        let error = Parcel::encode(&Bulk::from(vec![0; 1 << 20]), 1 << 19).unwrap_err();
        assert!(matches!(error, WireError::TooLong { .. }));
    }

    #[test]
    fn a_memfd_that_is_not_what_its_frame_says_is_refused() {
        let parcel = Parcel::encode(&Bulk::from(vec![1; 100_000]), LIMIT).unwrap();
        let header = parcel.header(Kind::Reply, 1);
        let len = header.payload_len();

        let unsealed = memfd::create().unwrap();
        memfd::write_at(&unsealed, &vec![0; len as usize], 0).unwrap();
        let short = memfd::create().unwrap();
        memfd::write_at(&short, b"short", 0).unwrap();
        memfd::seal(&short).unwrap();
        let file = tempfile::tempfile().unwrap();

        let verdict = |fd: Option<_>| {
            let (ours, theirs) = socket::pair().unwrap();
            socket::send(&ours, &[&header.encode()], fd).unwrap();
            receive(&theirs).unwrap_err()
        };
        assert!(matches!(verdict(Some(unsealed.as_fd())), WireError::Unsealed));
        assert!(matches!(verdict(Some(short.as_fd())), WireError::MemfdSize { .. }));
        assert!(matches!(verdict(Some(file.as_fd())), WireError::NotMemfd(_)));
        assert!(matches!(verdict(None), WireError::MissingMemfd));
    }

    #[test]
    fn a_flipped_payload_byte_is_noticed() {
        let parcel = Parcel::encode(&vec![1u8; 500], LIMIT).unwrap();
        let header = parcel.header(Kind::Reply, 1).encode();
        for at in [0, 100, parcel.inline().len() - 1] {
            let mut payload = parcel.inline().to_vec();
            payload[at] ^= 0x10;
            let (ours, theirs) = socket::pair().unwrap();
            socket::send(&ours, &[&header, &payload], None).unwrap();
            assert!(matches!(receive(&theirs), Err(WireError::PayloadChecksum)));
        }
    }

    #[test]
    fn a_memfd_stays_with_its_frame() {
        let note = Parcel::encode(&1u8, LIMIT).unwrap();
        let large = Parcel::encode(&Bulk::from(vec![3; 100_000]), LIMIT).unwrap();
        let (ours, theirs) = socket::pair().unwrap();
        send(&ours, &note);
        send(&ours, &large);
        let mut reader = FrameReader::new(LIMIT);
        let mut frames = Vec::new();
        while frames.len() < 2 {
            assert_eq!(reader.fill(&theirs).unwrap(), Fill::Some);
            while let Some(frame) = reader.next().unwrap() {
                frames.push(frame);
            }
        }
        assert_eq!(frames[1].decode::<Bulk>().unwrap().len(), 100_000);
    }

    #[test]
    fn frames_come_out_whole_however_they_are_cut() {
        let parcels: Vec<Parcel> =
            (0..5u32).map(|i| Parcel::encode(&vec![i; i as usize * 10], LIMIT).unwrap()).collect();
        let mut stream = Vec::new();
        for parcel in &parcels {
            stream.extend_from_slice(&parcel.header(Kind::Reply, 1).encode());
            stream.extend_from_slice(parcel.inline());
        }
        for step in [1, 2, 3, 7, 50, 51, 52, 53, 1000] {
            let (ours, theirs) = socket::pair().unwrap();
            let mut reader = FrameReader::new(LIMIT);
            let mut got = Vec::new();
            for piece in stream.chunks(step) {
                socket::send(&ours, &[piece], None).unwrap();
                assert_eq!(reader.fill(&theirs).unwrap(), Fill::Some);
                while let Some(frame) = reader.next().unwrap() {
                    got.push(frame.decode::<Vec<u32>>().unwrap());
                }
            }
            let sent: Vec<Vec<u32>> = (0..5u32).map(|i| vec![i; i as usize * 10]).collect();
            assert_eq!(got, sent, "step {step}");
            assert!(!reader.is_torn());
        }
    }
}
