//! Recomputing stored counts.

use isolith_protocol::{Done, Marked, Recount, StoreError};

use super::{Perform, Work};
use crate::graph;
use crate::sqlite::During;

impl Perform for Recount {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        recount(work)
    }
}

/// Recounts records and unfolded versions of every collection, and nodes and edges of the graph,
/// and ensures that the next change number is new.
pub(super) fn recount(work: Work<'_>) -> Result<Done<Marked>, StoreError> {
    let count = || {
        let updated = work.db.execute(
            "UPDATE collection SET \
             records = (SELECT count(*) FROM record WHERE collection = collection.id), \
             unfolded = (SELECT count(*) FROM record WHERE collection = collection.id AND change > \
              coalesce((SELECT complete_to FROM generation WHERE collection = collection.id), 0)) \
              + (SELECT count(*) FROM tombstone WHERE collection = collection.id) \
             WHERE name IS NOT NULL",
            [],
        )?;
        work.db.execute(
            "UPDATE store SET last_change = max(last_change, \
             coalesce((SELECT max(change) FROM record), 0), \
             coalesce((SELECT max(row) FROM record), 0), \
             coalesce((SELECT max(died) FROM tombstone), 0))",
            [],
        )?;
        // A file without the expected number of chunks must be indexed again.
        work.db.execute(
            "UPDATE file SET hash = zeroblob(32), \
             chunks = (SELECT count(*) FROM chunk WHERE file = file.id) \
             WHERE chunks <> (SELECT count(*) FROM chunk WHERE file = file.id)",
            [],
        )?;
        // Only the hash tells whether the text is complete.
        work.db.execute(
            "UPDATE drawer SET passages = (SELECT count(*) FROM passage WHERE drawer = number) \
             WHERE passages <> (SELECT count(*) FROM passage WHERE drawer = number)",
            [],
        )?;
        graph::recount(work.db)?;
        Ok(updated)
    };
    let updated = count().during(work.db, "count the records")?;
    Ok(Marked { updated: updated as u64 }.into())
}
