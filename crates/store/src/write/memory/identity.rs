//! The identity of drawers: the same text in the same wing and room, from the same source, is the
//! same drawer.

use isolith_protocol::StoreError;
use isolith_sql::OptionalExtension;

use super::super::Work;
use super::check::Content;
use crate::memory::{ContentHash, id_of};
use crate::sqlite::During;

/// Where a text belongs.
pub(super) enum DrawerSlot {
    /// An existing drawer has it.
    Taken {
        /// That drawer's id.
        id: String,
    },
    /// It becomes a new drawer.
    Free {
        /// The new drawer's id.
        id: String,
    },
}

/// Finds the drawer with this content, or a free id for it.
pub(super) fn place_for(work: Work<'_>, content: &Content<'_>) -> Result<DrawerSlot, StoreError> {
    let hash = content.hash();
    if let Some(id) = owner_of(work, &hash)? {
        return Ok(DrawerSlot::Taken { id });
    }
    let mut salt = 0;
    loop {
        let id = id_of(&hash, salt);
        if !is_taken(work, &id)? {
            return Ok(DrawerSlot::Free { id });
        }
        salt += 1;
    }
}

/// The id of the drawer with this content, if there is one.
pub(super) fn owner_of(work: Work<'_>, hash: &ContentHash) -> Result<Option<String>, StoreError> {
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
