use bytes::Bytes;
use isolate_types::for_isolate::{collect_slabs, with_slabs};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FrameKind, Header, INLINE_LIMIT, Placement, WireError, padded};
use crate::linux::area::Area;

/// Most messages are shorter than this, not counting slabs.
const TYPICAL_LEN: usize = 256;

/// A message with its slabs, encoded once and ready to be sent any number of times.
#[derive(Debug)]
pub(crate) struct Parcel {
    slabs_len: u64,
    message_len: u64,
    checksum: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Inline(Vec<u8>),
    Area { slabs: Vec<Bytes>, message: Vec<u8> },
}

impl Parcel {
    pub(crate) fn encode<T: Serialize>(value: &T, limit: u64) -> Result<Self, WireError> {
        let (body, slabs) =
            collect_slabs(|| postcard::to_extend(value, Vec::with_capacity(TYPICAL_LEN)));
        let body = body?;
        let lengths: Vec<u64> = slabs.iter().map(|slab| slab.len() as u64).collect();
        let table = postcard::to_allocvec(&lengths)?;

        let slabs_len = lengths.iter().copied().map(padded).sum::<u64>();
        let message_len = (table.len() + body.len()) as u64;
        let claimed = slabs_len + message_len;
        if claimed > limit {
            return Err(WireError::TooLong { claimed, limit });
        }
        if claimed <= INLINE_LIMIT as u64 {
            let payload = lay_out(claimed as usize, &slabs, &table, &body);
            return Ok(Self {
                slabs_len,
                message_len,
                checksum: crc32c::crc32c(&payload),
                content: Content::Inline(payload),
            });
        }
        let message = [table, body].concat();
        Ok(Self {
            slabs_len,
            message_len,
            checksum: crc32c::crc32c(&message),
            content: Content::Area { slabs, message },
        })
    }

    /// The header to send before this parcel.
    pub(crate) fn header(&self, kind: FrameKind, job: u64) -> Header {
        Header {
            kind,
            placement: match self.content {
                Content::Inline(_) => Placement::Inline,
                Content::Area { .. } => Placement::Area,
            },
            job,
            nanoseconds: 0,
            slabs_len: self.slabs_len,
            message_len: self.message_len,
            attempt: 0,
            checksum: self.checksum,
            descriptors: 0,
        }
    }

    /// What follows the header on the socket.
    pub(crate) fn inline(&self) -> &[u8] {
        match &self.content {
            Content::Inline(payload) => payload,
            Content::Area { .. } => &[],
        }
    }

    /// Writes a payload that is too long for the socket to the shared area.
    pub(crate) fn place(&self, area: &Area) -> Result<(), WireError> {
        let Content::Area { slabs, message } = &self.content else { return Ok(()) };
        let mut at = 0;
        for slab in slabs {
            area.write_at(slab, at).map_err(WireError::Area)?;
            at += padded(slab.len() as u64);
        }
        area.write_at(message, at).map_err(WireError::Area)
    }

    /// A hash that identifies the content.
    pub(crate) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match &self.content {
            Content::Inline(payload) => hasher.update(payload),
            Content::Area { slabs, message } => {
                for slab in slabs {
                    hasher.update(slab);
                }
                hasher.update(message)
            }
        };
        // 128 bits are enough to avoid collisions.
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

/// Decodes the payload of a frame.
pub(super) fn decode<T: DeserializeOwned>(
    payload: &Bytes,
    header: &Header,
) -> Result<T, WireError> {
    let slabs_len = usize::try_from(header.slabs_len).map_err(|_| WireError::SlabTable)?;
    let message = payload.get(slabs_len..).ok_or(WireError::SlabTable)?;
    let (lengths, body): (Vec<u64>, _) = postcard::take_from_bytes(message)?;
    let mut slabs = Vec::with_capacity(lengths.len());
    let mut start = 0u64;
    for length in lengths {
        let end = start.checked_add(length).ok_or(WireError::SlabTable)?;
        if end > header.slabs_len {
            return Err(WireError::SlabTable);
        }
        slabs.push(payload.slice(start as usize..end as usize));
        start = padded(end);
    }
    Ok(with_slabs(slabs, || postcard::from_bytes(body))?)
}

fn lay_out(length: usize, slabs: &[Bytes], table: &[u8], body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(length);
    for slab in slabs {
        payload.extend_from_slice(slab);
        payload.resize(padded(payload.len() as u64) as usize, 0);
    }
    payload.extend_from_slice(table);
    payload.extend_from_slice(body);
    payload
}
