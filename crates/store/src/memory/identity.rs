//! The identity of a drawer.

use std::fmt::Write as _;

/// Length of an id in bytes.
const ID_BYTES: usize = 12;

/// Identifies a drawer by its content.
pub(crate) type ContentHash = [u8; 32];

/// BLAKE3 over wing, room, source and text, each prefixed with its length.
pub(crate) fn content_hash(
    wing: &str,
    room: &str,
    source: Option<&str>,
    text: &str,
) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    for part in [wing, room, source.unwrap_or_default(), text] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The id of a drawer with this content, if those with smaller salts are taken. A drawer keeps
/// its id when its text changes, so the old text may need another one.
pub(crate) fn id_of(hash: &ContentHash, salt: u64) -> String {
    let hash = match salt {
        0 => *hash,
        salt => {
            let mut hasher = blake3::Hasher::new();
            hasher.update(hash).update(&salt.to_le_bytes());
            *hasher.finalize().as_bytes()
        }
    };
    hash[..ID_BYTES].iter().fold(String::with_capacity(ID_BYTES * 2), |mut id, byte| {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_wing_room_source_and_text() {
        let hash = |wing, room, source, text| content_hash(wing, room, source, text);
        let one = hash("w", "r", Some("s"), "t");
        assert_eq!(one, hash("w", "r", Some("s"), "t"));
        for other in [
            hash("w2", "r", Some("s"), "t"),
            hash("wr", "", Some("s"), "t"),
            hash("w", "rs", None, "t"),
            hash("w", "r", None, "st"),
            hash("w", "r", Some("s"), "t "),
        ] {
            assert_ne!(one, other);
        }
        // Ids must never change: other programs store them.
        assert_eq!(id_of(&hash("Ada", "work", None, "Hello."), 0), "bd1306c651ea2f2a677b5389");
        assert_ne!(id_of(&one, 0), id_of(&one, 1));
    }
}
