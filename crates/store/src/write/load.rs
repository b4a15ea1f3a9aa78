//! The progress of a load, committed with each of its batches.

use isolith_protocol::{CollectionState, LoadProgress, LoadStep, RecordsPut, StoreError};
use isolith_sql::{OptionalExtension, params};

use super::Work;
use crate::sqlite::During;

/// Whether a step must still be done.
pub(super) enum Continue {
    /// Already done.
    Done(LoadProgress),
    /// To be done, continuing from here.
    From(LoadProgress),
}

pub(super) fn continue_at(
    work: Work<'_>,
    collection: &CollectionState,
    step: &LoadStep,
) -> Result<Continue, StoreError> {
    let known = find(work, step)?;
    let progress = match known {
        // Belongs to a deleted collection of the same name.
        Some((of, _)) if of != collection.id => LoadProgress::default(),
        // Restarting a finished load begins a new one.
        Some((_, progress)) if progress.finished && step.first_row == 0 => LoadProgress::default(),
        Some((_, progress)) => progress,
        None => LoadProgress::default(),
    };
    let end = step.first_row.saturating_add(step.rows_covered);
    if step.first_row > progress.rows {
        return Err(StoreError::Invalid(format!(
            "the load is at row {} and cannot continue at row {}",
            progress.rows, step.first_row
        )));
    }
    let was_done = end <= progress.rows && (progress.finished || !step.finished);
    // An empty step that does not finish the load cannot be a repetition.
    if was_done && end > 0 {
        return Ok(Continue::Done(progress));
    }
    Ok(Continue::From(progress))
}

pub(super) fn record(
    work: Work<'_>,
    collection: &CollectionState,
    step: &LoadStep,
    before: LoadProgress,
    reply: &RecordsPut,
) -> Result<LoadProgress, StoreError> {
    let after = LoadProgress {
        rows: before.rows.max(step.first_row + step.rows_covered),
        inserted: before.inserted + reply.inserted,
        updated: before.updated + reply.updated,
        unchanged: before.unchanged + reply.unchanged,
        rejected: before.rejected + reply.rejected_count + step.rejected,
        finished: step.finished,
    };
    work.db
        .prepare_cached(
            "INSERT OR REPLACE INTO load \
             (source, collection, rows, inserted, updated, unchanged, rejected, finished, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                step.source,
                collection.id,
                after.rows,
                after.inserted,
                after.updated,
                after.unchanged,
                after.rejected,
                after.finished,
                work.now
            ])
        })
        .during(work.db, "write the progress of the load")?;
    Ok(after)
}

fn find(work: Work<'_>, step: &LoadStep) -> Result<Option<(u64, LoadProgress)>, StoreError> {
    work.db
        .prepare_cached(
            "SELECT rows, inserted, updated, unchanged, rejected, finished, collection \
             FROM load WHERE source = ?1",
        )
        .and_then(|mut statement| {
            statement
                .query_row([&step.source], |row| Ok((row.get(6)?, progress_of(row)?)))
                .optional()
        })
        .during(work.db, "read the progress of the load")
}

/// Decodes the first six columns.
pub(crate) fn progress_of(row: &isolith_sql::Row<'_>) -> isolith_sql::Result<LoadProgress> {
    Ok(LoadProgress {
        rows: row.get(0)?,
        inserted: row.get(1)?,
        updated: row.get(2)?,
        unchanged: row.get(3)?,
        rejected: row.get(4)?,
        finished: row.get(5)?,
    })
}
