use isolith_protocol::{DeclarePredicate, Done, PredicateDeclared, StoreError};
use isolith_sql::params;

use super::super::{Perform, Work};
use super::{entities, state};
use crate::facts::names::FactName;
use crate::read::facts::{StoredFact, facts_with_predicate};
use crate::read::predicates::require_predicate;
use crate::sqlite::During;

impl Perform for DeclarePredicate {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let name = FactName::of_predicate(&self.name)?;
        let number = entities::predicate(work, &name)?;
        if self.single_valued {
            refuse_contradictions(work, number)?;
        }
        work.db
            .prepare_cached("UPDATE predicate SET single_valued = ?2 WHERE id = ?1")
            .and_then(|mut statement| statement.execute(params![number, self.single_valued]))
            .during(work.db, "declare a predicate")?;
        let predicate = require_predicate(work.db, number)?;
        Ok(PredicateDeclared { predicate }.into())
    }
}

/// Fails if some subject has two objects at the same time.
fn refuse_contradictions(work: Work<'_>, predicate: i64) -> Result<(), StoreError> {
    let mut facts = facts_with_predicate(work.db, predicate)?;
    let certain_from = |fact: &StoredFact| fact.validity.certain_from(fact.recorded_at);
    facts.sort_by_key(|fact| (fact.subject, certain_from(fact)));
    // Of each subject, the fact so far that lasts longest.
    let mut lasting: Option<&StoredFact> = None;
    for fact in &facts {
        let before = lasting.filter(|before| before.subject == fact.subject);
        if let Some(before) = before.filter(|before| before.validity.outlasts(certain_from(fact)))
            && before.object != fact.object
        {
            return Err(state::contradiction(work.db, before, fact.validity)?);
        }
        let lasts = |fact: &StoredFact| fact.validity.until.unwrap_or(i64::MAX);
        if before.is_none_or(|before| lasts(before) < lasts(fact)) {
            lasting = Some(fact);
        }
    }
    Ok(())
}
