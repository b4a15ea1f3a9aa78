//! The checksum of SQLite's log: two sums modulo 2^32 over pairs of words.

/// The running sums. Those of a frame continue from the previous frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums(pub(super) u32, pub(super) u32);

/// Byte order of the summed words, as given in the log's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn word(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

impl Sums {
    /// Reads sums as stored in the log.
    pub(super) fn stored(bytes: &[u8]) -> Self {
        Self(ByteOrder::Big.word(bytes), ByteOrder::Big.word(&bytes[4..]))
    }

    /// Continues over more bytes, a multiple of eight.
    #[must_use]
    pub(super) fn over(self, bytes: &[u8], order: ByteOrder) -> Self {
        bytes.chunks_exact(8).fold(self, |Self(first, second), pair| {
            let first = first.wrapping_add(order.word(pair)).wrapping_add(second);
            let second = second.wrapping_add(order.word(&pair[4..])).wrapping_add(first);
            Self(first, second)
        })
    }

    /// The number of bits in which two sums differ.
    pub(super) fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones() + (self.1 ^ other.1).count_ones()
    }
}

/// The one bit of `bytes` that must be flipped for the sums to be `wanted` instead of `found`.
/// The sums are linear in the words, so each bit's contribution is known without summing again. A
/// flip in a word's upper bits contributes the same at many positions; then it is ambiguous and
/// `None` is returned.
pub(super) fn flipped_bit(
    bytes: &[u8],
    found: Sums,
    wanted: Sums,
    order: ByteOrder,
) -> Option<usize> {
    let missing = (wanted.0.wrapping_sub(found.0), wanted.1.wrapping_sub(found.1));
    // The contribution of 1 in the first and second word of a pair, starting at the last pair.
    let (mut of_first, mut of_second) = ((1_u32, 1_u32), (0_u32, 1_u32));
    let onward = |(first, second): (u32, u32)| {
        let first = first.wrapping_add(second);
        (first, first.wrapping_add(second))
    };
    let mut only = None;
    for (pair, words) in bytes.chunks_exact(8).enumerate().rev() {
        for (at, adds) in [(0, of_first), (4, of_second)] {
            let Some(bit) = bit_of_word(order.word(&words[at..]), adds, missing) else { continue };
            let byte = match order {
                ByteOrder::Little => bit / 8,
                ByteOrder::Big => 3 - bit / 8,
            };
            if only.replace((pair * 8 + at + byte) * 8 + bit % 8).is_some() {
                return None;
            }
        }
        (of_first, of_second) = (onward(of_first), onward(of_second));
    }
    only
}

fn bit_of_word(word: u32, adds: (u32, u32), missing: (u32, u32)) -> Option<usize> {
    (0..32).find(|bit| {
        let one = 1_u32 << bit;
        let more = if word & one == 0 { one } else { one.wrapping_neg() };
        (more.wrapping_mul(adds.0), more.wrapping_mul(adds.1)) == missing
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_is_found_unless_ambiguous() {
        let mut random = fastrand::Rng::with_seed(3);
        let bytes: Vec<u8> = (0..8200).map(|_| random.u8(..)).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let before = Sums(17, 4);
            let wanted = before.over(&bytes, order);
            let mut found_bits = 0;
            for _ in 0..60 {
                let bit = random.usize(0..bytes.len() * 8);
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let found = before.over(&damaged, order);
                if let Some(answer) = flipped_bit(&damaged, found, wanted, order) {
                    assert_eq!(answer, bit);
                    found_bits += 1;
                }
                // Two flipped bits cannot be corrected.
                damaged[(bit / 8 + 4003) % bytes.len()] ^= 8;
                let found = before.over(&damaged, order);
                assert_eq!(flipped_bit(&damaged, found, wanted, order), None);
            }
            assert!(found_bits > 30, "{found_bits}");
        }
    }
}
