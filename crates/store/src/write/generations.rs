use isolith_protocol::{
    CollectionState, Done, Level, Marked, QuarantineSegments, SegmentsSwapped, StoreError,
    SwapPlan, SwapSegments,
};
use isolith_sql::params;

use super::{Perform, Work};
use crate::read::collections::by_id;
use crate::sqlite::During;

impl Perform for SwapSegments {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        swap(work, &self.plan)
    }
}

impl Perform for QuarantineSegments {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let Self { collection, generation, files, reason } = self;
        quarantine(work, *collection, *generation, files, reason)
    }
}

/// Makes new segments current, if the generation that they were folded from still is.
pub(super) fn swap(work: Work<'_>, plan: &SwapPlan) -> Result<Done<SegmentsSwapped>, StoreError> {
    let state = by_id(work.db, plan.collection)?;
    let Some(state) = state.filter(|state| state.generation_number() == plan.from_generation)
    else {
        // Someone else was faster, or the collection is gone: the new files are useless.
        let obsolete_files = files_of(plan);
        return Ok(SegmentsSwapped { swapped: false, obsolete_files }.into());
    };
    check(plan, &state)?;
    let base_to = match (plan.level, &state.generation) {
        (Level::Delta, Some(generation)) => generation.base_to,
        _ => plan.complete_to,
    };
    replace(work, plan, base_to).during(work.db, "swap segments")?;
    let obsolete_files = obsolete(&state, plan);
    let after = by_id(work.db, plan.collection)?;
    let fold_due = after.as_ref().is_some_and(CollectionState::fold_due);
    let done = Done::from(SegmentsSwapped { swapped: true, obsolete_files });
    Ok(Done { fold_due, ..done.with_collection(after) })
}

/// Marks segments of the current generation that must not be opened.
pub(super) fn quarantine(
    work: Work<'_>,
    collection: u64,
    generation: u64,
    files: &[String],
    reason: &str,
) -> Result<Done<Marked>, StoreError> {
    let mark_all = || {
        let mut mark = work.db.prepare_cached(
            "UPDATE segment SET quarantined = ?4 WHERE collection = ?1 AND file = ?3 AND EXISTS \
             (SELECT 1 FROM generation WHERE generation.collection = ?1 AND number = ?2)",
        )?;
        let mut marked = 0;
        for file in files {
            marked += mark.execute(params![collection, generation, file, reason])? as u64;
        }
        Ok(marked)
    };
    let updated = mark_all().during(work.db, "quarantine segments")?;
    Ok(Done::from(Marked { updated }).with_collection(by_id(work.db, collection)?))
}

fn check(plan: &SwapPlan, state: &CollectionState) -> Result<(), StoreError> {
    let invalid = |reason: &str| Err(StoreError::Invalid(format!("bad swap: {reason}")));
    if plan.level == Level::Delta && state.generation.is_none() {
        return invalid("a delta needs a base");
    }
    if plan.segments.iter().any(|segment| segment.level != plan.level) {
        return invalid("a segment has the wrong level");
    }
    if plan.complete_to < state.complete_to() {
        return invalid("it would go back to an older state");
    }
    Ok(())
}

fn replace(work: Work<'_>, plan: &SwapPlan, base_to: u64) -> isolith_sql::Result<()> {
    let db = work.db;
    db.prepare_cached(
        "INSERT OR REPLACE INTO generation (collection, number, base_to, complete_to, built_at) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        plan.collection,
        plan.from_generation + 1,
        base_to,
        plan.complete_to,
        work.now
    ])?;
    // A new base replaces the old delta, too.
    db.prepare_cached("DELETE FROM segment WHERE collection = ?1 AND (?2 OR level = 'delta')")?
        .execute(params![plan.collection, plan.level == Level::Base])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO segment (collection, level, kind, file, rows, bytes, checksum, quarantined) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for segment in &plan.segments {
        insert.execute(params![
            plan.collection,
            segment.level.name(),
            segment.kind.name(),
            segment.file,
            segment.rows,
            segment.bytes,
            segment.checksum,
            segment.quarantined
        ])?;
    }
    // Dead versions in the old base keep their tombstones as long as it stays.
    let keep_to = if plan.level == Level::Base { 0 } else { base_to };
    db.prepare_cached(
        "DELETE FROM tombstone WHERE collection = ?1 AND died <= ?2 AND change > ?3",
    )?
    .execute(params![plan.collection, plan.complete_to, keep_to])?;
    recount(work, plan)
}

/// What the fold did not include is still unfolded.
fn recount(work: Work<'_>, plan: &SwapPlan) -> isolith_sql::Result<()> {
    work.db
        .prepare_cached(
            "UPDATE collection SET unfolded = \
             (SELECT count(*) FROM record WHERE collection = ?1 AND change > ?2) + \
             (SELECT count(*) FROM tombstone WHERE collection = ?1) WHERE id = ?1",
        )?
        .execute(params![plan.collection, plan.complete_to])
        .map(|_| ())
}

fn files_of(plan: &SwapPlan) -> Vec<String> {
    plan.segments.iter().map(|segment| segment.file.clone()).collect()
}

/// The files that are no longer referenced after the swap.
fn obsolete(state: &CollectionState, plan: &SwapPlan) -> Vec<String> {
    let old = state.generation.iter().flat_map(|generation| &generation.segments);
    old.filter(|segment| plan.level == Level::Base || segment.level == Level::Delta)
        .map(|segment| segment.file.clone())
        .filter(|file| plan.segments.iter().all(|segment| segment.file != *file))
        .collect()
}
