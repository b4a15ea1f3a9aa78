use isolith_protocol::StoreError;
use isolith_sql::Connection;

use super::{ProblemList, metadata_of};
use crate::deadline::Deadline;
use crate::memory::content_hash;
use crate::read::memory::{tags_of, text_of};
use crate::sqlite::During;

/// Checks that drawers have their original texts, and that tags and metadata can be decoded.
pub(super) fn drawers(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        let mut statement = db.prepare(
            "SELECT number, id, content, wing, room, source, tags, metadata FROM drawer \
             ORDER BY number",
        )?;
        let mut rows = statement.query([])?;
        let mut at = 0_u64;
        while let Some(row) = rows.next()? {
            at += 1;
            if found.is_full() || (at.is_multiple_of(64) && deadline.passed()) {
                return Ok(());
            }
            let id = row.get_ref(1)?.as_str()?;
            let text = text_of(db, row.get(0)?)?;
            let (wing, room) = (row.get_ref(3)?.as_str()?, row.get_ref(4)?.as_str()?);
            let hash = content_hash(wing, room, row.get_ref(5)?.as_str_or_null()?, &text);
            if row.get_ref(2)?.as_blob()? != hash {
                found.add(format!("drawer {id} does not match its content hash"));
            }
            let tags = tags_of(row.get_ref(6)?.as_str()?);
            if tags.is_none() || metadata_of(row.get_ref(7)?.as_str()?).is_none() {
                found.add(format!("tags or metadata of drawer {id} are malformed"));
            }
        }
        Ok(())
    };
    read().during(db, "check drawers")?;
    deadline.check("check drawers")
}
