use super::{INLINE_LIMIT, PROTOCOL_VERSION, WireError};

const MAGIC: [u8; 4] = *b"IsoF";

/// The length of an encoded [`Header`].
pub(crate) const HEADER_LEN: usize = 56;

/// The offset of the header's checksum, which covers everything before it.
const CHECKSUM_AT: usize = HEADER_LEN - 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// Front to worker: role, settings, limits; with the control pipe and both shared areas as
    /// descriptors.
    Hello = 1,
    /// Worker to front: warmed up.
    Ready = 2,
    /// Worker to front: `warm_up` returned a refusal.
    Refused = 3,
    /// Front to worker: a job, with the caller's descriptors.
    Job = 4,
    /// Worker to front: the job's reply.
    Reply = 5,
    Progress = 6,
    /// Worker to front: the job panicked; the worker is about to exit.
    Panic = 7,
    /// Front to worker: clean up and exit.
    Stop = 8,
    /// Worker to front: the worker is healthy, but the job cannot be decoded or its reply not
    /// sent.
    Unanswerable = 9,
    /// Worker to front: another worker must do the job; stop this one.
    PassedOn = 10,
    /// Worker to front: bytes ahead of the reply.
    Part = 11,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Result<Self, WireError> {
        Ok(match byte {
            1 => FrameKind::Hello,
            2 => FrameKind::Ready,
            3 => FrameKind::Refused,
            4 => FrameKind::Job,
            5 => FrameKind::Reply,
            6 => FrameKind::Progress,
            7 => FrameKind::Panic,
            8 => FrameKind::Stop,
            9 => FrameKind::Unanswerable,
            10 => FrameKind::PassedOn,
            11 => FrameKind::Part,
            other => return Err(WireError::UnknownKind(other)),
        })
    }
}

/// Where the payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Placement {
    Inline = 0,
    Area = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: FrameKind,
    pub placement: Placement,
    /// The job that this frame is about; 0 for none.
    pub job: u64,
    /// In a job, its budget; in a reply, how long it ran.
    pub nanoseconds: u64,
    pub slabs_len: u64,
    pub message_len: u64,
    /// In a job: 0 for the first attempt.
    pub attempt: u32,
    /// CRC-32C of the message, and of the slabs if they are inline.
    pub checksum: u32,
    /// The number of descriptors sent with the frame.
    pub descriptors: u32,
}

impl Header {
    pub(crate) fn payload_len(&self) -> u64 {
        self.slabs_len.saturating_add(self.message_len)
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&PROTOCOL_VERSION.to_le_bytes());
        bytes[6] = self.kind as u8;
        bytes[7] = self.placement as u8;
        bytes[8..16].copy_from_slice(&self.job.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.nanoseconds.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.slabs_len.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.message_len.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.descriptors.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes and checks a header; `area_limit` is the maximum size of a payload in shared
    /// memory.
    pub(crate) fn decode(bytes: &[u8; HEADER_LEN], area_limit: u64) -> Result<Self, WireError> {
        let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if magic != MAGIC {
            return Err(WireError::BadMagic(magic));
        }
        let theirs = u16::from_le_bytes([bytes[4], bytes[5]]);
        if theirs != PROTOCOL_VERSION {
            return Err(WireError::Version { theirs });
        }
        if crc32c::crc32c(&bytes[..CHECKSUM_AT]) != u32_at(bytes, CHECKSUM_AT) {
            return Err(WireError::HeaderChecksum);
        }
        let header = Self {
            kind: FrameKind::from_byte(bytes[6])?,
            placement: match bytes[7] {
                0 => Placement::Inline,
                _ => Placement::Area,
            },
            job: u64_at(bytes, 8),
            nanoseconds: u64_at(bytes, 16),
            slabs_len: u64_at(bytes, 24),
            message_len: u64_at(bytes, 32),
            attempt: u32_at(bytes, 40),
            checksum: u32_at(bytes, 44),
            descriptors: u32_at(bytes, 48),
        };
        let limit = match header.placement {
            Placement::Inline => INLINE_LIMIT as u64,
            Placement::Area => area_limit,
        };
        let claimed = header.payload_len();
        if claimed > limit {
            return Err(WireError::TooLong { claimed, limit });
        }
        Ok(header)
    }
}

fn u32_at(bytes: &[u8; HEADER_LEN], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8; HEADER_LEN], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: FrameKind::Reply,
            placement: Placement::Area,
            job: 7,
            nanoseconds: 1_234_567,
            slabs_len: 1 << 20,
            message_len: 99,
            attempt: 1,
            checksum: 0xdead_beef,
            descriptors: 2,
        }
    }

    #[test]
    fn a_header_round_trips() {
        let decoded = Header::decode(&header().encode(), 1 << 21).unwrap();
        assert_eq!(decoded, header());
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let good = header().encode();
        for bit in 0..HEADER_LEN * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bad, u64::MAX).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_excessive_length_is_rejected() {
        let claims = [(u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX), (1 << 40, 8)];
        for (slabs_len, message_len) in claims {
            for placement in [Placement::Inline, Placement::Area] {
                let giant = Header { placement, slabs_len, message_len, ..header() };
                assert!(matches!(
                    Header::decode(&giant.encode(), 1 << 30),
                    Err(WireError::TooLong { .. })
                ));
            }
        }
    }
}
