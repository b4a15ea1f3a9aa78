//! The protocol between front and worker.
//!
//! A frame is a fixed header and a payload. The payload consists of the bulk slabs, each padded
//! to [`SLAB_ALIGNMENT`], and the postcard message. Up to [`INLINE_LIMIT`] bytes, it follows
//! the header on the socket; a longer one is first written to shared memory, so that frames on
//! the socket stay short and no write blocks half-way.

mod frame;
mod parcel;
mod reader;

use std::io;

use serde::{Deserialize, Serialize};

pub(crate) use frame::{FrameKind, HEADER_LEN, Header, Placement};
pub(crate) use parcel::Parcel;
pub(crate) use reader::{Fill, Frame, FrameReader};

/// The version of everything in this module; both sides must have the same.
pub(crate) const PROTOCOL_VERSION: u16 = 2;

/// The maximum size of a payload on the socket.
pub(crate) const INLINE_LIMIT: usize = 64 * 1024;

/// Slabs start at multiples of this, so that they can be read as numbers in place.
pub(crate) const SLAB_ALIGNMENT: usize = 16;

/// The front's first message: what the worker is to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub role: String,
    /// The role's settings, encoded with postcard.
    pub settings: Vec<u8>,
    pub memory_cap: Option<u64>,
    pub max_reply_bytes: u64,
    pub max_request_bytes: u64,
}

/// A worker's progress on its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How much is done, in units chosen by the role.
    pub done: u64,
    /// How much there is to do, if known.
    pub total: Option<u64>,
    /// What is being done, for people.
    pub note: String,
}

/// A worker's panic message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PanicNote {
    pub message: String,
}

/// Why a frame was rejected or could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("frame starts with {0:02x?} instead of the magic bytes")]
    BadMagic([u8; 4]),
    #[error("peer uses protocol version {theirs}, expected {PROTOCOL_VERSION}")]
    Version { theirs: u16 },
    #[error("frame header does not match its checksum")]
    HeaderChecksum,
    #[error("payload does not match its checksum")]
    PayloadChecksum,
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    #[error("payload of {claimed} bytes exceeds the limit of {limit}")]
    TooLong { claimed: u64, limit: u64 },
    #[error("unexpected descriptors")]
    SurplusDescriptors,
    #[error("{announced} descriptors announced, {received} received")]
    MissingDescriptors { announced: u32, received: usize },
    #[error("frame announces a payload in shared memory, but there is none")]
    NoArea,
    #[error("payload of {claimed} bytes announced, {written} written")]
    Hollow { claimed: u64, written: u64 },
    #[error("cannot use shared memory: {0}")]
    Area(io::Error),
    #[error("slab lengths do not add up")]
    SlabTable,
    #[error("cannot encode or decode the message: {0}")]
    Message(#[from] postcard::Error),
}

/// `length` rounded up to the next slab boundary.
pub(crate) fn padded(length: u64) -> u64 {
    length.next_multiple_of(SLAB_ALIGNMENT as u64)
}
