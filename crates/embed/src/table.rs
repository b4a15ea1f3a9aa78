//! The lookup table over the vocabulary. Both the build script, which creates it, and the
//! library, which reads it, use this module.

/// SHA-256 of the model's file.
pub(crate) const CHECKSUM: &str =
    "ed6bbd2da213da9fffc037134e33203143c899449a44d3ff5f2a63c4296de208";

/// The offset of the vocabulary in the model's file.
pub(crate) const VOCABULARY_START: usize = 24;

/// The row for pieces that are not in the vocabulary.
pub(crate) const UNKNOWN: u16 = 1;

/// The maximum length of a piece, in bytes; also the length of a key.
pub(crate) const KEY_BYTES: usize = 24;

/// An entry of a table, from the lowest bits up: the piece's offset in the model's file, its
/// row, its length and some bits of its hash. A slot of zeros is free.
pub(crate) type Slot = [u8; 8];

const ROW_SHIFT: u32 = 24;
const LENGTH_SHIFT: u32 = 40;
const TAG_SHIFT: u32 = 48;

/// The bits of each part of a key that are used, by length.
const MASKS: [[u64; 3]; KEY_BYTES + 1] = {
    let mut masks = [[0; 3]; KEY_BYTES + 1];
    let mut length = 0;
    while length < KEY_BYTES {
        masks[length + 1] = masks[length];
        masks[length + 1][length / 8] |= 0xff << (length % 8 * 8);
        length += 1;
    }
    masks
};

/// The bytes of a piece as numbers, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    parts: [u64; 3],
    length: u8,
}

impl Key {
    /// The key of the first `length` bytes, at most [`KEY_BYTES`].
    #[inline]
    pub(crate) fn of(bytes: &[u8; KEY_BYTES], length: usize) -> Self {
        let length = length.min(KEY_BYTES);
        let (bytes, _) = bytes.as_chunks();
        let part = |index: usize| u64::from_le_bytes(bytes[index]) & MASKS[length][index];
        Self { parts: [part(0), part(1), part(2)], length: length as u8 }
    }

    #[inline]
    fn hash(self) -> u64 {
        let [first, second, third] = self.parts;
        let mut hash = first.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 32) ^ second).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash = (hash ^ (hash >> 32) ^ third).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ (hash >> 32)
    }

    /// The bits of a slot above the row.
    #[inline]
    fn head(self, hash: u64) -> u64 {
        (hash >> TAG_SHIFT << (TAG_SHIFT - LENGTH_SHIFT)) | u64::from(self.length)
    }
}

/// The row of a piece. The table's length must be a power of two, and it must have free slots.
#[inline]
pub(crate) fn find(slots: &[Slot], model: &[u8], key: Key) -> Option<u16> {
    let hash = key.hash();
    let head = key.head(hash);
    let mut at = hash as usize;
    loop {
        at &= slots.len() - 1;
        let slot = u64::from_le_bytes(slots[at]);
        if slot == 0 {
            return None;
        }
        if slot >> LENGTH_SHIFT == head && key_at(model, slot, key.length) == Some(key) {
            return Some((slot >> ROW_SHIFT) as u16);
        }
        at += 1;
    }
}

/// The slot for a piece at `offset` in the model's file, and the hash that gives its preferred
/// position.
#[allow(dead_code, reason = "only the build script fills tables")]
pub(crate) fn slot(key: Key, offset: u32, row: u16) -> (Slot, u64) {
    let hash = key.hash();
    let slot = (key.head(hash) << LENGTH_SHIFT) | (u64::from(row) << ROW_SHIFT) | u64::from(offset);
    (slot.to_le_bytes(), hash)
}

#[inline]
fn key_at(model: &[u8], slot: u64, length: u8) -> Option<Key> {
    let offset = (slot & ((1 << ROW_SHIFT) - 1)) as usize;
    Some(Key::of(model.get(offset..)?.first_chunk()?, usize::from(length)))
}
