//! Which drawer a text is: the same text, in the same wing and room and from the same
//! source, is the same drawer.

use std::fmt::Write as _;

use rusqlite::OptionalExtension;

use super::super::Work;
use super::check::Content;
use crate::error::StoreError;
use crate::sqlite::During;

/// How many bytes of a hash an id is.
const ID_BYTES: usize = 12;

/// What tells a drawer from all others.
pub(crate) type Hash = [u8; 32];

/// Where a text goes.
pub(super) enum Place {
    /// A drawer has it already.
    Taken {
        /// The drawer's id.
        id: String,
    },
    /// It becomes a drawer with this id.
    Free {
        /// The id to be.
        id: String,
    },
}

/// BLAKE3 over wing, room, source and text, each with its length before it.
pub(crate) fn hash_of(wing: &str, room: &str, source: Option<&str>, text: &str) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for part in [wing, room, source.unwrap_or_default(), text] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Finds the drawer of a text, or the id that it gets.
pub(super) fn place_for(work: Work<'_>, content: &Content<'_>) -> Result<Place, StoreError> {
    let hash = content.hash();
    if let Some(id) = owner_of(work, &hash)? {
        return Ok(Place::Taken { id });
    }
    // An id stays with its drawer when the text changes, so that the old text may need
    // another one.
    let mut salt = 0;
    loop {
        let id = id_of(&hash, salt);
        if !is_taken(work, &id)? {
            return Ok(Place::Free { id });
        }
        salt += 1;
    }
}

/// The id of the drawer with this content, if there is one.
pub(super) fn owner_of(work: Work<'_>, hash: &Hash) -> Result<Option<String>, StoreError> {
    work.db
        .prepare_cached("SELECT id FROM drawer WHERE content = ?1")
        .and_then(|mut statement| statement.query_row([hash], |row| row.get(0)).optional())
        .during(work.db, "look for a drawer")
}

fn is_taken(work: Work<'_>, id: &str) -> Result<bool, StoreError> {
    work.db
        .prepare_cached("SELECT 1 FROM drawer WHERE id = ?1")
        .and_then(|mut statement| statement.exists([id]))
        .during(work.db, "look for a drawer")
}

fn id_of(hash: &Hash, salt: u64) -> String {
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
    fn ids_depend_on_all_that_tells_drawers_apart() {
        let hash = |wing, room, source, text| hash_of(wing, room, source, text);
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
        // Ids are for ever: other programs have them.
        assert_eq!(id_of(&hash("Ada", "work", None, "Hello."), 0), "bd1306c651ea2f2a677b5389");
        assert_ne!(id_of(&one, 0), id_of(&one, 1));
    }
}
