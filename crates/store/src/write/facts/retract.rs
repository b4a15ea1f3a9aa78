use isolith_protocol::{Done, FactRetracted, RetractFact, StoreError};
use isolith_types::{Moment, RetractedFact, WhichFact};

use super::super::{Perform, Work};
use super::end::{find_by_id, find_said_ever};
use super::sync_facts;
use crate::facts::id_of;
use crate::read::facts::{StoredFact, retracted_at};
use crate::sqlite::During;

impl Perform for RetractFact {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let fact = match &self.which {
            WhichFact::Id(id) => find_by_id(work, id)?,
            WhichFact::Said { subject, predicate, object } => {
                find_said_ever(work, subject, predicate, object.as_deref())?
            }
        };
        let retracted_fact = retract(work, &fact)?;
        sync_facts(work, [&retracted_fact.id])?;
        Ok(FactRetracted { retracted_fact }.into())
    }
}

/// Marks a fact as never true. A repetition changes nothing.
fn retract(work: Work<'_>, fact: &StoredFact) -> Result<RetractedFact, StoreError> {
    let id = id_of(fact.id);
    if let Some(at) = retracted_at(work.db, fact.id)? {
        return Ok(RetractedFact { id, retracted_at: Moment::instant(at), changed: false });
    }
    work.db
        .prepare_cached("UPDATE fact SET retracted_at = ?2, changed_at = ?2 WHERE id = ?1")
        .and_then(|mut statement| statement.execute([fact.id, work.now]))
        .during(work.db, "retract a fact")?;
    Ok(RetractedFact { id, retracted_at: Moment::instant(work.now), changed: true })
}
