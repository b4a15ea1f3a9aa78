//! The model's bytes in the executable: vocabulary, scales, rows.

use crate::table::{self, KEY_BYTES, Key, Slot, VOCABULARY_START};

/// The number of dimensions of a vector.
pub const DIMENSION: usize = 256;

/// Aligns rows to cache lines.
#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!("../model/static-code-256.stem"));
static BEGINNINGS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/beginnings.bin")));
static CONTINUATIONS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/continuations.bin")));

const ROWS: usize = header(12);
const VOCABULARY_LENGTH: usize = header(20);
const SCALES_START: usize = (VOCABULARY_START + VOCABULARY_LENGTH).next_multiple_of(64);
const TABLE_START: usize = SCALES_START + ROWS * size_of::<f32>();
const _: () = assert!(header(8) == DIMENSION);
const _: () = assert!(TABLE_START + ROWS * DIMENSION == MODEL.0.len());

/// The row of a piece that begins a word.
#[inline]
pub(crate) fn beginning(bytes: &[u8; KEY_BYTES], length: usize) -> Option<u16> {
    table::find(slots(BEGINNINGS), &MODEL.0, Key::of(bytes, length))
}

/// The row of a piece that continues a word.
#[inline]
pub(crate) fn continuation(bytes: &[u8; KEY_BYTES], length: usize) -> Option<u16> {
    table::find(slots(CONTINUATIONS), &MODEL.0, Key::of(bytes, length))
}

/// All rows, and their scales.
#[inline]
pub(crate) fn rows() -> (&'static [[u8; DIMENSION]], &'static [[u8; 4]]) {
    let (scales, table) = MODEL.0[SCALES_START..].split_at(TABLE_START - SCALES_START);
    (table.as_chunks().0, scales.as_chunks().0)
}

#[inline]
fn slots(table: &'static Aligned<[u8]>) -> &'static [Slot] {
    table.0.as_chunks().0
}

const fn header(at: usize) -> usize {
    let bytes = &MODEL.0;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_contain_exactly_the_vocabulary() {
        let vocabulary = &MODEL.0[VOCABULARY_START..][..VOCABULARY_LENGTH];
        let lines: Vec<&str> = str::from_utf8(vocabulary).unwrap().split('\n').collect();
        assert_eq!(lines.len(), ROWS);
        for (row, line) in lines.iter().enumerate() {
            let key = |piece: &str| {
                let mut bytes = [b'x'; KEY_BYTES];
                bytes[..piece.len()].copy_from_slice(piece.as_bytes());
                bytes
            };
            let found = match line.strip_prefix("##") {
                Some(rest) => continuation(&key(rest), rest.len()),
                None => beginning(&key(line), line.len()),
            };
            assert_eq!(found.map(usize::from), Some(row), "{line}");
        }
        let used = |table| slots(table).iter().filter(|&&slot| slot != Slot::default()).count();
        assert_eq!(used(BEGINNINGS) + used(CONTINUATIONS), ROWS);
    }

    #[test]
    fn unknown_pieces_are_not_found() {
        assert_eq!(beginning(b"zqxjkvbpwmzqxjkvbpwmzqxj", 10), None);
        assert_eq!(beginning(&[0; KEY_BYTES], 0), None);
        assert_eq!(continuation(&[0; KEY_BYTES], 0), None);
        assert_eq!(continuation(&[0xff; KEY_BYTES], KEY_BYTES), None);
    }
}
