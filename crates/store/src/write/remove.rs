use std::collections::HashSet;

use isolith_protocol::{DeleteRecords, Done, RecordsDeleted, StoreError, Which};
use isolith_sql::{OptionalExtension, params};
use isolith_types::Metadata;

use super::change::Changes;
use super::fields::Fields;
use super::{Perform, Work};
use crate::read::{collections, filter};
use crate::sqlite::During;

impl Perform for DeleteRecords {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        remove(work, self)
    }
}

/// Removes records by id or by filter.
fn remove(
    work: Work<'_>,
    DeleteRecords { collection, which, limit }: &DeleteRecords,
) -> Result<Done<RecordsDeleted>, StoreError> {
    let state = collections::require_records(work.db, collection)?;
    let mut reply = RecordsDeleted::default();
    let rows = match which {
        Which::Ids(ids) => {
            let rows = rows_of(work, state.id, ids).during(work.db, "look for records")?;
            reply.missing = rows.missing;
            rows.found
        }
        Which::Matching(filter) => filter::rows_matching(work.db, work.deadline, state.id, filter)?,
    };
    let mut changes = Changes::begin(work, &state)?;
    let mut fields = Fields::of(work, state.id)?;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for row in rows.into_iter().take(limit) {
        remove_one(work, &mut changes, &mut fields, row)?;
        reply.deleted += 1;
    }
    changes.finish(reply)
}

struct FoundRows {
    found: Vec<u64>,
    missing: u64,
}

/// Rows of these ids, in ascending order, so that tables are read only once.
fn rows_of(work: Work<'_>, collection: u64, ids: &[String]) -> isolith_sql::Result<FoundRows> {
    let mut find =
        work.db.prepare_cached("SELECT row FROM record WHERE collection = ?1 AND id = ?2")?;
    let mut found = Vec::with_capacity(ids.len());
    let mut missing = 0;
    for id in ids.iter().collect::<HashSet<_>>() {
        match find.query_row(params![collection, id], |row| row.get(0)).optional()? {
            Some(row) => found.push(row),
            None => missing += 1,
        }
    }
    found.sort_unstable();
    Ok(FoundRows { found, missing })
}

fn remove_one(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    fields: &mut Fields<'_>,
    row: u64,
) -> Result<(), StoreError> {
    let take = || {
        let (change, metadata) = work
            .db
            .prepare_cached("SELECT change, metadata FROM record WHERE row = ?1")?
            .query_row([row], |found| Ok((found.get(0)?, found.get(1)?)))?;
        work.db.prepare_cached("DELETE FROM vector WHERE row = ?1")?.execute([row])?;
        work.db.prepare_cached("DELETE FROM record WHERE row = ?1")?.execute([row])?;
        Ok((change, Metadata::from_canonical(metadata)))
    };
    let (change, metadata) = take().during(work.db, "remove a record")?;
    fields.remove(row, &metadata)?;
    changes.removed(row, change)
}
