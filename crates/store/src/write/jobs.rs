//! Jobs that kill workers, remembered beyond the life of a front.

use rusqlite::params;

use super::Work;
use super::request::Outcome;
use crate::error::StoreError;
use crate::sqlite::During;

pub(super) fn remember(
    work: Work<'_>,
    role: &str,
    input: &[u8],
    poison: &str,
) -> Result<Outcome, StoreError> {
    work.db
        .prepare_cached(
            "INSERT OR REPLACE INTO quarantined_job (role, input, poison, at) \
             VALUES (?1, ?2, ?3, ?4)",
        )
        .and_then(|mut statement| statement.execute(params![role, input, poison, work.now]))
        .during(work.db, "remember a job")?;
    Ok(Outcome { inserted: 1, ..Outcome::default() })
}

pub(super) fn forget(
    work: Work<'_>,
    role: Option<&str>,
    input: Option<&[u8]>,
) -> Result<Outcome, StoreError> {
    let deleted = work
        .db
        .prepare_cached(
            "DELETE FROM quarantined_job \
             WHERE (?1 IS NULL OR role = ?1) AND (?2 IS NULL OR input = ?2)",
        )
        .and_then(|mut statement| statement.execute(params![role, input]))
        .during(work.db, "forget jobs")?;
    Ok(Outcome { deleted: deleted as u64, ..Outcome::default() })
}
