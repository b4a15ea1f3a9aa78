use twox_hash::XxHash3_64;

/// The number of bytes reserved for the checksum at the end of each page.
pub const RESERVED: u8 = 8;

/// Writes the checksum of a page into its last bytes. Does nothing if the page is too short for
/// one.
pub fn seal(page: &mut [u8], number: u32) {
    if let Some((content, place)) = page.split_last_chunk_mut() {
        *place = checksum(content, number);
    }
}

/// Whether the checksum of a page matches its content and number.
pub fn is_sealed(page: &[u8], number: u32) -> bool {
    page.split_last_chunk().is_some_and(|(content, found)| *found == checksum(content, number))
}

/// Clears the checksum. SQLite copies the reserved bytes when it writes the page to the log,
/// and another program would copy them from there into the file: cleared bytes show that it
/// did.
pub fn unseal(page: &mut [u8]) {
    if let Some(place) = page.last_chunk_mut::<{ RESERVED as usize }>() {
        place.fill(0);
    }
}

/// Whether the checksum bytes are all zero.
pub(crate) fn is_unsealed(page: &[u8]) -> bool {
    page.last_chunk().is_some_and(|place| *place == [0; RESERVED as usize])
}

/// Seeded with the page number, so that a page in the wrong place does not match.
fn checksum(content: &[u8], number: u32) -> [u8; RESERVED as usize] {
    XxHash3_64::oneshot_with_seed(u64::from(number), content).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        (0..8192_u32).map(|at| (at * 31 % 251) as u8).collect()
    }

    /// The layout is part of the file format: this value must never change.
    #[test]
    fn the_checksum_of_a_known_page_never_changes() {
        let mut page = page();
        seal(&mut page, 7);
        assert_eq!(hex(&page[8184..]), "38c77e78b64f31c7");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn every_flipped_bit_and_every_wrong_page_number_is_detected() {
        let mut page = page();
        seal(&mut page, 7);
        assert!(is_sealed(&page, 7));
        assert!(!is_sealed(&page, 8));
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sealed(&page, 7), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!is_sealed(&[0; 8192], 7));
        assert!(!is_sealed(&[], 7));
    }
}
