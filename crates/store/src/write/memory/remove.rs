use std::collections::HashSet;
use std::time::{Duration, Instant};

use isolith_protocol::{DeleteDrawers, Done, DrawersDeleted, StoreError, WhichDrawers};
use isolith_sql::OptionalExtension;

use super::super::change::Changes;
use super::super::{Perform, Work};
use super::passages;
use crate::read::collections::memory;
use crate::read::memory::numbers_matching;
use crate::sqlite::During;

impl Perform for DeleteDrawers {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        remove(work, &self.which)
    }
}

/// Limits of a slice when removing by filter: time and number of drawers.
const SLICE: Duration = Duration::from_millis(30);
const SLICE_DRAWERS: u64 = 2_000;

/// Removes drawers with their passages. By filter, this may take several calls.
pub(in crate::write) fn remove(
    work: Work<'_>,
    which: &WhichDrawers,
) -> Result<Done<DrawersDeleted>, StoreError> {
    if matches!(which, WhichDrawers::Matching(filter) if filter.is_empty()) {
        let reason = "name the drawers to delete: this would delete all".to_owned();
        return Err(StoreError::Invalid(reason));
    }
    let mut reply = DrawersDeleted::default();
    let Some(state) = memory(work.db)? else {
        if let WhichDrawers::Ids(ids) = which {
            reply.missing = ids.iter().collect::<HashSet<_>>().len() as u64;
        }
        return Ok(reply.into());
    };
    let numbers = match which {
        WhichDrawers::Ids(ids) => numbers_of(work, ids, &mut reply.missing),
        // One more than allowed, to know whether there are more.
        WhichDrawers::Matching(filter) => numbers_matching(work.db, filter, SLICE_DRAWERS + 1),
    };
    let numbers = numbers.during(work.db, "look for drawers")?;
    let in_slices = matches!(which, WhichDrawers::Matching(_));
    let end = Instant::now() + SLICE;
    let mut changes = Changes::begin(work, &state)?;
    for number in numbers {
        let full = reply.deleted == SLICE_DRAWERS || Instant::now() >= end;
        if in_slices && full && reply.deleted > 0 {
            reply.more = true;
            break;
        }
        work.deadline.check("remove drawers")?;
        passages::remove(work, &mut changes, number)?;
        work.db
            .prepare_cached("DELETE FROM drawer WHERE number = ?1")
            .and_then(|mut statement| statement.execute([number]))
            .during(work.db, "remove a drawer")?;
        reply.deleted += 1;
    }
    changes.finish(reply)
}

fn numbers_of(work: Work<'_>, ids: &[String], missing: &mut u64) -> isolith_sql::Result<Vec<u64>> {
    let mut find = work.db.prepare_cached("SELECT number FROM drawer WHERE id = ?1")?;
    let mut numbers = Vec::with_capacity(ids.len());
    for id in ids.iter().collect::<HashSet<_>>() {
        match find.query_row([id], |row| row.get(0)).optional()? {
            Some(number) => numbers.push(number),
            None => *missing += 1,
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
