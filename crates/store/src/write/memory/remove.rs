use std::collections::HashSet;
use std::time::{Duration, Instant};

use rusqlite::OptionalExtension;

use super::super::Work;
use super::super::change::Changes;
use super::super::request::Outcome;
use super::passages;
use crate::error::StoreError;
use crate::memory::WhichDrawers;
use crate::read::collections::memory;
use crate::read::memory::numbers_matching;
use crate::sqlite::During;

/// A slice of removing by filter ends after this long, or after so many drawers.
const SLICE: Duration = Duration::from_millis(30);
const SLICE_DRAWERS: u64 = 2_000;

/// Removes drawers with their passages. By filter that may take several calls.
pub(in crate::write) fn remove(
    work: Work<'_>,
    which: &WhichDrawers,
) -> Result<Outcome, StoreError> {
    if matches!(which, WhichDrawers::Matching(filter) if filter.is_empty()) {
        let reason = "say which drawers are to go: this would be all".to_owned();
        return Err(StoreError::Invalid(reason));
    }
    let mut outcome = Outcome::default();
    let Some(state) = memory(work.db)? else {
        if let WhichDrawers::Ids(ids) = which {
            outcome.missing = ids.iter().collect::<HashSet<_>>().len() as u64;
        }
        return Ok(outcome);
    };
    let numbers = match which {
        WhichDrawers::Ids(ids) => numbers_of(work, ids, &mut outcome.missing),
        // One more than may go tells whether there is more.
        WhichDrawers::Matching(filter) => numbers_matching(work.db, filter, SLICE_DRAWERS + 1),
    };
    let numbers = numbers.during(work.db, "look for drawers")?;
    let in_slices = matches!(which, WhichDrawers::Matching(_));
    let end = Instant::now() + SLICE;
    let mut changes = Changes::begin(work, &state)?;
    for number in numbers {
        let full = outcome.deleted == SLICE_DRAWERS || Instant::now() >= end;
        if in_slices && full && outcome.deleted > 0 {
            outcome.more = true;
            break;
        }
        work.deadline.check("remove drawers")?;
        passages::remove(work, &mut changes, number)?;
        work.db
            .prepare_cached("DELETE FROM drawer WHERE number = ?1")
            .and_then(|mut statement| statement.execute([number]))
            .during(work.db, "remove a drawer")?;
        outcome.deleted += 1;
    }
    changes.finish(outcome)
}

fn numbers_of(work: Work<'_>, ids: &[String], missing: &mut u64) -> rusqlite::Result<Vec<u64>> {
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
