//! Jobs that kill workers, remembered beyond the lifetime of a front.

use isolith_protocol::{Done, ForgetPoison, Marked, RememberPoison, StoreError};
use isolith_sql::params;

use super::{Perform, Work};
use crate::sqlite::During;

impl Perform for RememberPoison {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        remember(work, &self.role, &self.input, &self.poison)
    }
}

impl Perform for ForgetPoison {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        forget(work, self.role.as_deref(), self.input.as_deref())
    }
}

pub(super) fn remember(
    work: Work<'_>,
    role: &str,
    input: &[u8],
    poison: &str,
) -> Result<Done<()>, StoreError> {
    work.db
        .prepare_cached(
            "INSERT OR REPLACE INTO quarantined_job (role, input, poison, at) \
             VALUES (?1, ?2, ?3, ?4)",
        )
        .and_then(|mut statement| statement.execute(params![role, input, poison, work.now]))
        .during(work.db, "quarantine a job")?;
    Ok(().into())
}

pub(super) fn forget(
    work: Work<'_>,
    role: Option<&str>,
    input: Option<&[u8]>,
) -> Result<Done<Marked>, StoreError> {
    let deleted = work
        .db
        .prepare_cached(
            "DELETE FROM quarantined_job \
             WHERE (?1 IS NULL OR role = ?1) AND (?2 IS NULL OR input = ?2)",
        )
        .and_then(|mut statement| statement.execute(params![role, input]))
        .during(work.db, "forget jobs")?;
    Ok(Marked { updated: deleted as u64 }.into())
}
